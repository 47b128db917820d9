"""Metrics of one process, on a port of their own: whoever may read them may do nothing else, and every process has one.

HTTPS with the server's certificate, and a token whose hash is in the settings. /healthz and /readyz need no token and
tell no more than the routes of these names: `fss-server worker` listens nowhere else, and supervisors ask here.
"""

import hmac
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.tokens import hash_token
from servers import log
from servers.settings import Tls

PATH = "/metrics"
Checks = Mapping[str, Callable[[], str]]  # by path: a word, or an exception where all is not well
TIMEOUT_S = 10  # of a request's head, and of an answer that nobody takes


class Exposition:
    """Listens from the start, and answers when it is started."""

    def __init__(
        self, host: str, port: int, tls: Tls, tokens: Sequence[str], measure: Callable[[], None], checks: Checks
    ) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.reload(tls, tokens)
        try:
            self._server = _Server((host, port), _handler(self, measure, checks))
        except OSError as error:
            raise UsageError(f"metrics.listen: {host}:{port} cannot be used ({error.strerror})") from None
        self._server.socket = self._context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def reload(self, tls: Tls, tokens: Sequence[str]) -> None:
        self._tokens = tuple(tokens)
        self._context.load_cert_chain(tls.certificate, tls.key)

    def admits(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        given = hash_token(token) if kind.lower() == "bearer" else ""
        matches = [hmac.compare_digest(given, known) for known in self._tokens]
        return any(matches)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def handle_error(self, request: object, client_address: object) -> None:
        """Who leaves in the middle, or speaks no TLS, is no fault of ours."""


def _handler(of: Exposition, measure: Callable[[], None], checks: Checks) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = TIMEOUT_S
        server_version, sys_version = "fss", ""

        def do_GET(self) -> None:
            if self.path in checks:
                self._check(checks[self.path])
            elif not of.admits(self.headers.get("Authorization", "")):
                self._answer(HTTPStatus.UNAUTHORIZED, b"the token is not known here\n")
            elif self.path != PATH:
                self._answer(HTTPStatus.NOT_FOUND, b"only /metrics is here\n")
            else:
                with log.failures("not-measured", Exception):  # what is known without the database is told
                    measure()
                self._answer(HTTPStatus.OK, generate_latest(), CONTENT_TYPE_LATEST)

        def _check(self, check: Callable[[], str]) -> None:
            try:
                word, status = check(), HTTPStatus.OK
            except Exception:  # whatever it is: why is in the log, and not for everybody
                word, status = "not ready", HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, json.dumps({"status": word}).encode(), "application/json")

        def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    return Handler
