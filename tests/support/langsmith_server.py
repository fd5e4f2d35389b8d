"""A server on loopback that takes traces as LangSmith does: /info and /runs/multipart."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Run = dict[str, Any]

BATCHES = {
    "use_multipart_endpoint": True,
    "scale_up_qsize_trigger": 1000,
    "scale_up_nthreads_limit": 4,
    "scale_down_nempty_trigger": 4,
    "size_limit": 100,
    "size_limit_bytes": 1_000_000,
}
"""What the server says of the batches that it takes."""


@dataclass
class LangSmithServer:
    """What LangSmith was sent: runs by their id, as their parts came together."""

    url: str = ""
    keys: set[str] = field(default_factory=set)
    bodies: list[bytes] = field(default_factory=list)
    by_key: dict[str, bytes] = field(default_factory=dict)
    """The bodies of each key, one after the other."""
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def roots(self) -> list[Run]:
        return [run for run in self.runs.values() if not run.get("parent_run_id")]

    def take(self, headers: Message, body: bytes) -> None:
        """Keep a request of parts that are called `post.ID`, `patch.ID` or `post.ID.inputs`."""
        self.keys.add(headers["x-api-key"])
        self.bodies.append(body)
        key = str(headers["x-api-key"])
        self.by_key[key] = self.by_key.get(key, b"") + body
        head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
        for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
            name = str(part.get_param("name", header="content-disposition"))
            _, run_id, *rest = name.split(".")
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            said = json.loads(payload)
            run = self.runs.setdefault(run_id, {})
            if rest:
                run[rest[0]] = said
            else:
                run.update({key: value for key, value in said.items() if value is not None})


@contextmanager
def tracing() -> Iterator[LangSmithServer]:
    """Run a server inside the block."""
    taken = LangSmithServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"version": "1", "batch_ingest_config": BATCHES})

        def do_POST(self) -> None:
            taken.take(self.headers, self.rfile.read(int(self.headers["Content-Length"])))
            self._answer({})

        def _answer(self, document: object) -> None:
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        taken.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield taken
        server.shutdown()
        thread.join(10)
