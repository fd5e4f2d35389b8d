"""The offline roles behind a local server, some of whose answers are hostile.

    python -m benchmarks.chaos.hostile_server --config CONFIG.yaml --kind texts

Every third request is answered with something made to break whoever reads it, the same request
sent again as it should be. The first line on stdout is the port.
"""

import argparse
import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Final

from coreeval.config import load_config
from coreeval.models.answers import MOST_ANSWER_CHARACTERS
from coreeval.tools.http import MOST_BODY_BYTES
from tests.hostile.test_answers import ANSWERS
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import Reply, Request, serve

EVERY: Final = 3
CORPUS: Final = Path("tests/hostile/corpus/answer")
KINDS: Final = ("none", "texts", "bodies")


class Hostile:
    """Answers as others do, but for every third request when it comes for the first time."""

    def __init__(self, answers: OfflineAnswers, kind: str) -> None:
        self._answers = answers
        self._hostile = cycle(_texts() if kind == "texts" else _bodies())
        self._none = kind == "none"
        self._seen = set[int]()
        self.counts = {"hostile": 0}

    async def __call__(self, request: Request) -> str | Reply:
        """Answer one request."""
        key = zlib.crc32(json.dumps(request, sort_keys=True).encode())
        if self._none or key % EVERY or key in self._seen:
            said = self._answers(request)
            return await said if isinstance(said, Awaitable) else said
        self._seen.add(key)
        self.counts["hostile"] += 1
        return next(self._hostile)


def _texts() -> list[str | Reply]:
    """Return what models could say at most, each made to be read slowly, and the corpus."""
    told = [text[: MOST_ANSWER_CHARACTERS - 1] for text in ANSWERS.values()]
    small = (file.read_text("utf-8", "replace") for file in sorted(CORPUS.iterdir()))
    return [*told, *small]


def _bodies() -> list[str | Reply]:
    """Return responses that unpack to far more than they are, do not end, or have many parts."""
    return [Reply(raw=raw) for raw in _raw()]


def _raw() -> Iterator[bytes]:
    head = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nConnection: close\r\n"
    packed = head + b"Content-Encoding: gzip\r\n\r\n"
    blank = b" " * (1 << 20)
    yield packed + gzip.compress(blank * 256, 9)
    yield packed + gzip.compress(b'{"choices":[' + b"[]," * (MOST_BODY_BYTES // 3 - 9) + b"[]]}", 9)
    yield packed + gzip.compress(b'{"choices":"' + b"x" * (MOST_BODY_BYTES - 99) + b'"}', 9)
    yield head + b"\r\n" + blank * 32
    yield head + b"\r\n" + b"[" * (MOST_BODY_BYTES - 9)
    yield head + b"X: " + b"x" * (4 << 20) + b"\r\n\r\n{}"


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--kind", choices=KINDS, required=True)
    options = parser.parse_args()
    answers = Hostile(OfflineAnswers(load_config(options.config), options.cache), options.kind)
    asyncio.run(serve(0, answers, 0.0))


if __name__ == "__main__":
    main()
