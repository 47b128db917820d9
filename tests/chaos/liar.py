"""A server that lies to parties: it stands in front of a real one, with its certificate, and answers as it likes.

    honest      passes on and answers what the server says
    deny        stores, and answers 503
    away        stores nothing, and answers 503
    forget      answers that it is done, and does nothing
    late        answers 503, and does it later
    replay      does it, and later again, perhaps after what came in between
    withdrawn   stores, and says that the party had withdrawn it
    conflict    stores nothing, and says that the id is taken
    closed      stores, and says that the wave has closed
    unknown     stores, and says that the token is not known
    nonsense    stores, and answers 200 with something that means nothing
    slow        does it when the party has given up waiting

What only reads is passed on, so that parties come as far as the lies.
"""

import http.server
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import httpx

from fss_ecdf.campaign import confirmations
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import NotAuthenticated, NotReady, Problem, UploadConflict, UploadWithdrawn, WaveClosed
from fss_ecdf.campaign.sealed_uploads import token_digest
from fss_ecdf.net.server_identity import Identity
from servers.storage.admission import decrypt_rows
from tests.harness.server_pair import IDENTITIES, SALT, LivePair

NETWORK = ("deny", "away", "late", "slow")  # what a bad network in front of an honest server can look like
LIES = ("deny", "away", "forget", "late", "replay", "withdrawn", "conflict", "closed", "unknown", "nonsense", "slow")
SLOW_S = 0.6

Reply = tuple[int, bytes]
Request = tuple[str, str, dict[str, str], bytes]


class Liar:
    """`with Liar(pair, role) as liar:` listens; `choose` says for each request how it is answered."""

    def __init__(
        self, pair: LivePair, role: int, choose: Callable[[], str] = lambda: "honest", signs: bool = True
    ) -> None:
        """One that does not sign stands in front of a server, and is not the server."""
        self.choose = choose
        self._identity, self._signs = Identity(IDENTITIES[role], role), signs
        self.told = list[str]()
        self._later = list[Request]()
        self._lock = threading.Lock()
        self.waiting = set[socket.socket]()  # connections that have no request under way
        self.leaving = False
        self._client = pair.client(role)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False  # whatever is under way comes to its end before the liar is gone
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        folder = pair.folder / f"server{role}"
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self.leaving = True
        for connection in list(self.waiting):  # or it would wait for their next requests
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._client.close()

    def answer(self, request: Request) -> Reply:
        if request[0] == "GET":
            return self._pass_on(request)
        lie = self.choose()
        self.told.append(lie)
        done = {"honest", "deny", "replay", "withdrawn", "closed", "unknown", "nonsense"}
        if lie == "slow":
            time.sleep(SLOW_S)
        if lie in ("late", "replay"):
            with self._lock:
                self._later.append(request)
        honest = self._pass_on(request) if lie in done | {"slow"} else (200, b"")
        if lie == "forget":
            return 200, json.dumps(self._confirmed(request)).encode()
        return _reply(lie, honest)

    def _confirmed(self, request: Request) -> dict[str, object]:
        """As if it had stored or withdrawn all that it was asked to."""
        _, path, headers, body = request
        withdraws, server = path.endswith("/withdraw"), self._identity.server
        said: dict[str, object] = {"withdrawn": len(body) // UPLOAD_ID_BYTES} if withdraws else {}
        said["failures"] = []
        if self._signs:
            described = json.loads(self._pass_on(("GET", path.partition("/uploads")[0], {}, b""))[1])
            campaign = Campaign.from_dict(described["campaign"])
            if withdraws:
                message = confirmations.withdrawn(campaign.digest, server, body)
            else:
                message = self._stored(campaign, headers, body)
            said["signature"] = to_base64url(self._identity.sign(message))
        return said

    def _stored(self, campaign: Campaign, headers: dict[str, str], body: bytes) -> bytes:
        token = next(v for k, v in headers.items() if k.lower() == "authorization").removeprefix("Bearer ")
        key = self._identity.hpke_key(campaign.id, campaign.kem, SALT)
        contribution, rows = decrypt_rows(body, campaign, self._identity.server, token_digest(token), key.open)
        leaves = b"".join(leaf for _, leaf, _ in rows)
        return confirmations.stored(campaign.digest, self._identity.server, contribution.wave, leaves)

    def catch_up(self, rng: random.Random) -> None:
        """Do now, in any order, what was kept for later."""
        with self._lock:
            later, self._later = self._later, []
        rng.shuffle(later)
        for request in later:
            self._pass_on(request)

    def _pass_on(self, request: Request) -> Reply:
        method, path, headers, body = request
        try:
            response = self._client.request(method, path, headers=headers, content=body)
        except httpx.HTTPError:
            return _problem(NotReady("the server behind does not answer"))
        return response.status_code, response.content


def _reply(lie: str, honest: Reply) -> Reply:
    if lie in ("deny", "away", "late"):
        return _problem(NotReady("busy, says the liar"))
    if lie == "withdrawn":
        return _problem(UploadWithdrawn("you have withdrawn it, says the liar"))
    if lie == "conflict":
        return _problem(UploadConflict("somebody has this id, says the liar"))
    if lie == "closed":
        return _problem(WaveClosed("the wave has closed, says the liar"))
    if lie == "unknown":
        return _problem(NotAuthenticated("nobody knows this token, says the liar"))
    return (200, b"<html>Welcome!</html>") if lie == "nonsense" else honest


def _problem(problem: Problem) -> Reply:
    return problem.status, json.dumps(problem.document()).encode()


def _handler(liar: Liar) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            kept = {k: v for k, v in self.headers.items() if k.lower() in ("authorization", "content-type")}
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            liar.waiting.discard(self.connection)
            status, content = liar.answer((self.command, self.path, kept, body))
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # the party has given up waiting
            liar.waiting.add(self.connection)
            self.close_connection |= liar.leaving

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle(self) -> None:
            liar.waiting.add(self.connection)
            try:
                super().handle()
            except OSError:  # a party that ends in the middle
                self.close_connection = True
            finally:
                liar.waiting.discard(self.connection)

    return Handler
