"""Is a download whole? By the MD5 that its server states, or else by unpacking it."""

import base64
import binascii
import re
from pathlib import Path

from multidict import MultiMapping

from coreeval.tools.gdelt.rows import FileDamage
from coreeval.tools.gdelt.sync.file_reader import (
    GZIP_MAGIC,
    MOST_UNPACKED_DOWNLOAD,
    ZIP_MAGIC,
    FileTooLarge,
    line_groups,
)

_STATED = re.compile(r"(?:^|[,\s])md5=([^,\s]*)")
_MD5 = re.compile(r'"?([0-9a-f]{32})"?$')
_MD5_BYTES = 16


class ChecksumUnreadable(ValueError):
    """A server states an MD5 that is none."""


def read_md5_header(headers: MultiMapping[str]) -> str | None:
    """Return the MD5 that a response states in x-goog-hash or as its ETag; None without one.

    x-goog-hash may come in several lines, one for each kind of checksum.

    Raises:
        ChecksumUnreadable: x-goog-hash has an MD5 that is none, or two different ones.
    """
    stated = set(_STATED.findall(",".join(headers.getall("x-goog-hash", []))))
    if len(stated) > 1:
        raise ChecksumUnreadable("the mirror states two different MD5s")
    for word in stated:
        return _decode_md5(word)
    tag = _MD5.match(headers.get("ETag", ""))
    return tag[1] if tag else None


def _decode_md5(word: str) -> str:
    try:
        digest = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != _MD5_BYTES:
        raise ChecksumUnreadable(f"the mirror states an invalid MD5: {word[:40]!r}")
    return digest.hex()


def find_damage(path: Path) -> str:
    """Return why a download without a checksum cannot be whole, "" if it can be.

    What is too large is left to the reader, which refuses it.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as raw:
        magic = raw.read(len(ZIP_MAGIC))
    if not magic:
        return "it is empty"
    if not magic.startswith((GZIP_MAGIC, ZIP_MAGIC)):
        return "it is not an archive"
    try:
        for _ in line_groups(path, MOST_UNPACKED_DOWNLOAD, one_entry=True):
            pass
    except FileTooLarge:
        return ""
    except FileDamage as error:
        return f"it is damaged: {error}"
    return ""
