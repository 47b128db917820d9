"""A server that answers whatever a test wants, with the certificate of a real one; and a terminal to look at."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyte

COLUMNS = 80
Answer = tuple[int, Any]  # status, and JSON or an iterator of bytes that may have no end


@contextmanager
def serving(folder: Path, handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[int]:
    """Over TLS, with the certificate and key in `folder`; the port."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answering(folder: Path, answer: Callable[[str], Answer]) -> Iterator[str]:
    """The address of a server whose answers are a function of the path; `folder` has its certificate and key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = answer(self.path)
            data = json.dumps(content).encode() if isinstance(content, dict | list) else None
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if data is not None:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                for part in [data] if data is not None else content:
                    self.wfile.write(part)
            except OSError:
                return  # whoever asked has left

        do_POST = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with serving(folder, Handler) as port:
        yield f"https://127.0.0.1:{port}"


def screen(printed: str, columns: int = COLUMNS, rows: int = 100) -> list[str]:
    """What a person sees of it, line by line."""
    seen = pyte.Screen(columns, rows)
    pyte.Stream(seen).feed(printed.replace("\n", "\r\n"))
    lines = [line.rstrip() for line in seen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines
