"""Files as publishers have them: fetched whole or not at all, within a bound, and unpacked."""

import hashlib
import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2

from coreeval.errors import DatasetError
from coreeval.models.network import proxy_for, trusted

MOST_BYTES: Final = 32 << 20
"""The most that a file may have, packed and unpacked: daily factors since 1926 have 2 MB."""
_PATIENCE: Final = httpx2.Timeout(30.0, connect=10.0)
_REDIRECTS: Final = 5
_HEADERS: Final = {"User-Agent": "coreeval (a series for an audit)", "Accept-Encoding": "gzip"}
_BROKEN: Final = (
    EOFError,
    OSError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)
"""What a damaged or encrypted archive raises."""


def kept_at(url: str, cache: Path) -> Path:
    """Return where a fetched file is kept: its name, with what tells URLs apart."""
    parts = urlsplit(url)
    name = re.sub(r"[^A-Za-z0-9.=-]+", "_", f"{Path(parts.path).name}_{parts.query}").strip("_")
    return cache / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name[:80]}"


def fetch(url: str, *, hint: str) -> bytes:
    """Return what is at a URL.

    Raises:
        DatasetError: nothing answers, something else than success does, or it is too much; `hint`
            says how to do without.
    """
    client = httpx2.Client(
        proxy=proxy_for(url),
        verify=trusted(None),
        trust_env=False,
        timeout=_PATIENCE,
        headers=_HEADERS,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
    )
    try:
        with client, client.stream("GET", url) as answer:
            if answer.status_code != 200:
                raise DatasetError(
                    f"the publisher answered with status {answer.status_code}", where=url, hint=hint
                )
            return _bounded(answer)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        told = str(error) or type(error).__name__
        raise DatasetError(f"it cannot be fetched: {told}", where=url, hint=hint) from None
    except ValueError as error:
        raise DatasetError(str(error), where=url, hint=hint) from None


def _bounded(answer: httpx2.Response) -> bytes:
    """Return a body; what a server says of its length is not what it sends.

    Raises:
        ValueError: it is too large, or ends early.
    """
    body = bytearray()
    for part in answer.iter_bytes(1 << 16):
        body += part
        if len(body) > MOST_BYTES:
            raise ValueError(f"the file has more than {MOST_BYTES >> 20} MiB")
    return bytes(body)


def text_of(data: bytes) -> str:
    """Return the text of a file, out of its zip archive where it is in one.

    Raises:
        DatasetError: it is no text, or its archive is damaged, too large, or has several files.
    """
    unpacked = _unzipped(data) if data.startswith(b"PK\x03\x04") else data
    if b"\0" in unpacked:
        raise DatasetError(
            "this is no text file", hint="a CSV is read, plain or in a zip; save a table as CSV"
        )
    return unpacked.decode("utf-8-sig", errors="replace")  # prose may be in Latin-1, numbers not


def _unzipped(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith((".csv", ".txt"))]
            if len(names) != 1:
                raise DatasetError(
                    f"the archive has {len(names)} CSV files in place of one",
                    hint="unpack it and give the file",
                )
            with archive.open(names[0]) as member:
                unpacked = member.read(MOST_BYTES + 1)
    except _BROKEN as error:
        raise DatasetError(f"the archive cannot be unpacked: {error}") from None
    if len(unpacked) > MOST_BYTES:
        raise DatasetError(f"the archive has more than {MOST_BYTES >> 20} MiB when unpacked")
    return unpacked
