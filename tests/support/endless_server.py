"""A server on loopback whose responses have no end: plain, packed, or a redirect."""

import socketserver
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Kind = Literal[
    "plain", "gzip", "deflate", "redirect", "packed redirect", "error", "trickle", "slow head"
]
_PIECE = b" " * (1 << 16)


def _head(kind: Kind) -> bytes:
    status = {"redirect": 307, "packed redirect": 307, "error": 500}.get(kind, 200)
    packing = {"gzip": "gzip", "deflate": "deflate", "packed redirect": "gzip"}.get(kind, "")
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", "Location: /elsewhere"]
    lines += [f"Content-Encoding: {packing}"] if packing else []
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


def _pieces(kind: Kind, ended: threading.Event) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 15 if kind == "deflate" else 31)
    packed = kind in ("gzip", "deflate", "packed redirect")
    while not ended.is_set():
        if kind == "trickle":
            ended.wait(0.05)
            yield b" "
        elif kind == "slow head":
            yield from _slow_head(ended)
        else:
            yield packer.compress(_PIECE * 16) if packed else _PIECE


def _slow_head(ended: threading.Event) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 X\r\nX-Slow: "
    while not ended.wait(0.05):
        yield b"x"


@contextmanager
def endless(kind: Kind) -> Iterator[str]:
    """Give the URL of a server that answers every request without an end."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            try:
                if kind != "slow head":
                    self.request.sendall(_head(kind))
                for piece in _pieces(kind, ended):
                    self.request.sendall(piece)
            except OSError:
                pass  # the client has had enough

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
