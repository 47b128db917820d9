"""Which routes a page from anywhere may call: those of a party, and no other.

A party's page is a file, or lies at a third address, so browsers ask whether it may talk to a server. `*` is right: a
token is sent by the page itself, never by the browser, which has no cookie of ours. The routes of analysts, operators
and peers say nothing, so that a page that somebody visits cannot call them.
"""

import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ROUTES = {
    "GET": re.compile(r"/v1/campaigns/[^/]+"),
    "POST": re.compile(r"/v1/campaigns/[^/]+/uploads(/withdraw)?"),
}
REMEMBERED_S = 7200  # how long a browser need not ask again


def method_for_pages(path: str) -> str | None:
    """The method that pages may use at this address."""
    return next((method for method, pattern in _ROUTES.items() if pattern.fullmatch(path)), None)


class Cors:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = method_for_pages(scope["path"]) if scope["type"] == "http" else None
        if method is not None and scope["method"] == "OPTIONS":
            await _answer_preflight(method, send)
        elif method is not None and scope["method"] == method and _is_from_page(scope):
            await self._app(scope, receive, _opened(send))
        else:
            await self._app(scope, receive, send)


def _is_from_page(scope: Scope) -> bool:
    """Browsers say where a page is from; other programs do not, and are spared the headers."""
    return any(name == b"origin" for name, _ in scope["headers"])


async def _answer_preflight(method: str, send: Send) -> None:
    headers = {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": method,
        "access-control-allow-headers": "Authorization, Content-Type",
        "access-control-max-age": str(REMEMBERED_S),
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 204, "headers": raw})
    await send({"type": "http.response.body", "body": b""})


def _opened(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers["access-control-allow-origin"] = "*"
            headers["access-control-expose-headers"] = "Retry-After"
        await send(message)

    return sent
