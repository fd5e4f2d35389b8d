"""Writing a cassette: the same things give the same bytes, whenever and wherever."""

import gzip
import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from coreeval.releases.cassettes.lines import KINDS, Head, Line
from coreeval.schema import Value
from coreeval.tools.files import replacing

LEVEL = 6
"""Of gzip, its own default."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the lines after the head come to."""

    lines: dict[str, int]
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A cassette that was written."""

    path: Path
    head: Head
    digest: str
    bytes: int


def pack(path: Path, lines: Iterable[Line], head_of: Callable[[Tally], Head]) -> Packed:
    """Write a cassette as one atomic replacement.

    Args:
        path: The file.
        lines: What comes after the head.
        head_of: Makes the head from what the lines came to.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent) as body:
        counts, digest, size = Counter[str](), hashlib.sha256(), 0
        for line in lines:
            told = written(line)
            body.write(told)
            digest.update(told)
            counts[line.kind] += 1
            size += len(told)
        ordered = {kind: counts[kind] for kind in KINDS}
        head = head_of(Tally(lines=ordered, bytes=size, sha256=digest.hexdigest()))
        body.seek(0)
        with (
            replacing(path) as draft,
            draft.open("wb") as file,
            gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
        ):
            packed.write(written(head))
            shutil.copyfileobj(body, packed)
    return Packed(path=path, head=head, digest=digest_of(head), bytes=path.stat().st_size)


def digest_of(head: Head) -> str:
    """Return the digest of a cassette: of its head, which vouches for the rest."""
    return hashlib.sha256(written(head)).hexdigest()


def written(line: Value) -> bytes:
    """Return a head or a line as it stands in the file; ASCII, so that every text has a form."""
    return json.dumps(line.model_dump(mode="json")).encode() + b"\n"
