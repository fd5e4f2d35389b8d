"""The text of a publisher's file, out of its archive where it is in one."""

import io
import zipfile
import zlib
from typing import Final

from coreeval.errors import DatasetError

MOST_BYTES: Final = 32 << 20
"""The most that a file may have, packed and unpacked: daily factors since 1926 have 2 MB."""
_BROKEN: Final = (
    EOFError,
    OSError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)
"""What an archive raises that is damaged, encrypted, or names files in no UTF-8."""


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
