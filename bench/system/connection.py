"""A client for benchmarks."""

import http.client
from urllib.parse import urlsplit

from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from tests.harness.server_pair import LivePair


class Connection:
    """One kept-alive HTTPS connection, with as little client work as possible."""

    def __init__(self, pair: LivePair, role: int, token: str) -> None:
        at = urlsplit(pair.url(role))
        self._http = http.client.HTTPSConnection(at.hostname or "", at.port, context=pair.context, timeout=120)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> bytes:
        return self._call("GET", path, None, self._headers)

    def post(self, path: str, body: bytes) -> bytes:
        return self._call("POST", path, body, {**self._headers, "Content-Type": UPLOAD_TYPE})

    def _call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        data = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:300]!r}")
        return data
