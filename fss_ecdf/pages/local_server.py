"""A console's server: pages for one person's browser, from one program on the same machine.

Other programs on the machine, and other pages in the browser, can reach its port too. So:

- the address that is printed holds a secret that works once; for it the browser gets a cookie that scripts cannot read
  and that other sites' pages cannot cause to be sent (HttpOnly, SameSite=Strict);
- a request must name this machine as its host, or a name that somebody else's name server resolves to us would be let
  in (421);
- whatever changes something is a POST with a header of our own, which no form can send;
- the page may run its own script and ask this server, and nothing else.

Tokens stay in the program: no page, address, cookie or answer has one.
"""

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fss_ecdf.campaign.errors import InvalidQuery, Problem
from fss_ecdf.pages.party_page import source_hash

HEADER = "X-Fss-Console"
LARGEST_BODY = 1 << 16
_SECURITY = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Page:
    """What the browser gets: markup with one style and one script, which the policy names by their hashes."""

    markup: str
    style: str
    script: str

    @property
    def policy(self) -> str:
        # Pictures become PNG by way of an image from a blob; nothing else is loaded.
        return (
            f"default-src 'none'; script-src {source_hash(self.script)}; style-src {source_hash(self.style)}; "
            "connect-src 'self'; img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )

    def text(self) -> str:
        return self.markup.replace("$style", self.style).replace("$script", self.script)


@dataclass(frozen=True)
class Download:
    """An answer that is a file."""

    name: str
    media_type: str
    data: bytes


class Query:
    """What a page asks, read strictly: texts, numbers and lists of them."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        return self._fields.get(name, [default])[-1]

    def texts(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def number(self, name: str, default: float) -> float:
        found = self.text(name, str(default))
        try:
            return float(found)
        except ValueError:
            raise InvalidQuery(f"{name} must be a number, got {found[:40]!r}") from None

    def whole(self, name: str, default: int) -> int:
        found = self.number(name, default)
        if found != found // 1 or abs(found) > 1e9:
            raise InvalidQuery(f"{name} must be a whole number")
        return int(found)


Answer = dict[str, Any] | list[Any] | Download
Asked = Callable[[Query], Answer]


@dataclass
class Routes:
    """What a console answers: `get` looks, `post` changes something."""

    get: dict[str, Asked] = field(default_factory=dict)
    post: dict[str, Asked] = field(default_factory=dict)


class Console:
    """A server on this machine's own address, for whoever has the link."""

    def __init__(self, page: Page, routes: Routes, port: int = 0) -> None:
        self.page, self.routes = page, routes
        self._secret: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"console": self}))
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.cookie = f"fss-console-{self.port}"  # a browser keeps one cookie of a name for all ports of a machine
        self.hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        self.link = f"http://127.0.0.1:{self.port}/enter?secret={self._secret}"

    def serve(self) -> None:
        """Until it is interrupted."""
        self._http.serve_forever()

    def start(self) -> None:
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def admit(self, given: str) -> str | None:
        """The cookie, for the secret, once."""
        with self._lock:
            if self._secret is None or not hmac.compare_digest(given.encode(), self._secret.encode()):
                return None
            self._secret = None
            return self._session

    def knows(self, cookie: str) -> bool:
        return hmac.compare_digest(cookie.encode(), self._session.encode())

    def answer(self, asked: Asked, query: Query) -> Answer:
        """One at a time: a client and what it keeps are not made for several."""
        with self._lock:
            return asked(query)


_ENTER = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">
<title>Opening the console</title><p><a href="/">Open the console</a></p></html>"""


class _Handler(BaseHTTPRequestHandler):
    """One request, from whomever."""

    console: Console
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_POST(self) -> None:
        self._guarded(self._post)

    def log_message(self, *_: Any) -> None:
        """Nothing: an address says what somebody looked at."""

    def _guarded(self, answer: Callable[[], None]) -> None:
        try:
            if self.headers.get("Host") not in self.console.hosts:
                self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this console is for this machine only")
            else:
                answer()
        except Problem as problem:
            self._json(problem.document(), problem.status)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except Exception as error:
            self._json(Problem(f"a fault of the console: {type(error).__name__}").document(), 500)

    def _get(self) -> None:
        parts = urlsplit(self.path)
        query = Query(parse_qs(parts.query))
        if parts.path == "/enter":
            self._enter(query)
        elif self._is_known():
            if parts.path == "/":
                self._send(self.console.page.text().encode(), "text/html; charset=utf-8", self.console.page.policy)
            else:
                self._answer(self.console.routes.get.get(parts.path), query)

    def _post(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a body of at most 64 kB is expected")
            return
        body = self.rfile.read(int(length))
        if not self._is_known():
            return
        origin = self.headers.get("Origin", f"http://{self.headers['Host']}")
        if HEADER not in self.headers or origin.removeprefix("http://") not in self.console.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, f"a change needs the header {HEADER}, from the console's own page")
            return
        self._answer(self.console.routes.post.get(urlsplit(self.path).path), _body_query(body))

    def _enter(self, query: Query) -> None:
        cookie = self.console.admit(query.text("secret"))
        if cookie is None:
            self._refuse(HTTPStatus.FORBIDDEN, "this link was used already; start the console again for a new one")
            return
        kept = {"Set-Cookie": f"{self.console.cookie}={cookie}; HttpOnly; SameSite=Strict; Path=/"}
        self._send(_ENTER.encode(), "text/html; charset=utf-8", "default-src 'none'", more=kept)

    def _is_known(self) -> bool:
        try:
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        if self.console.cookie in cookies and self.console.knows(cookies[self.console.cookie].value):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "open the console by the link that it printed")
        return False

    def _answer(self, asked: Asked | None, query: Query) -> None:
        if asked is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address")
            return
        found = self.console.answer(asked, query)
        if isinstance(found, Download):
            kept = {"Content-Disposition": f'attachment; filename="{found.name}"'}
            self._send(found.data, found.media_type, "default-src 'none'; sandbox", more=kept)
        else:
            self._json(found)

    def _json(self, body: Any, status: int = 200) -> None:
        data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        self._send(data, "application/json", "default-src 'none'", status)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        self._json({"status": status.value, "title": status.phrase, "detail": detail}, status.value)

    def _send(
        self, data: bytes, media_type: str, policy: str, status: int = 200, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        about = {"Content-Type": media_type, "Content-Length": str(len(data)), "Content-Security-Policy": policy}
        for name, value in {**about, **_SECURITY, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def version_string(self) -> str:
        return "fss-ecdf"


def _body_query(body: bytes) -> Query:
    """A POST's JSON object of texts."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidQuery("a POST has a JSON object") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidQuery("a POST has a JSON object of texts")
    return Query({name: [value] for name, value in found.items()})
