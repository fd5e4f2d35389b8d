"""Servers on loopback: one that answers every request by naming another place, one that counts."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """A server that runs, and what it was asked."""

    port: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def bystander() -> Iterator[Served]:
    """Give a server inside the block that nobody has named and that should hear of nobody."""
    with _serving(200, "") as server:
        yield server


@contextmanager
def lure(to: str, status: int = 307) -> Iterator[Served]:
    """Give a server inside the block that redirects every request."""
    with _serving(status, to) as server:
        yield server


@contextmanager
def _serving(status: int, location: str) -> Iterator[Served]:
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            served.asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(status)
            if location:
                self.send_header("location", location)
            self.send_header("content-length", "2")
            self.end_headers()
            if self.command != "HEAD":
                with suppress(OSError):  # the client has gone
                    self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_HEAD = answer

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.port = int(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join(10)
