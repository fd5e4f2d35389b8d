"""The lines of GDELT's files, unpacked piece by piece and never beyond a limit.

Pieces are small enough to stay in the processor's cache, which makes splitting them cheap.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from isal import igzip_lib, isal_zlib

from coreeval.tools.gdelt.files import LONGEST_LINE, DamagedFile

PIECE = 1 << 19
PACKED_PIECE = 1 << 16
GZIP, DEFLATE = 31, -15
"""Forms of packing, as `wbits` calls them."""
GZIP_MAGIC = b"\x1f\x8b"
_LOCAL_HEADER = 30
_ENCRYPTED = 1
_ISAL: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # not an instance
TROUBLE = (
    EOFError, OSError, zlib.error, _ISAL, zipfile.BadZipFile, NotImplementedError, struct.error,
    UnicodeDecodeError,
)  # fmt: skip
"""What unpacking damaged files raises."""


class TooLarge(DamagedFile):
    """Unpacked, a file is larger than a file of its kind can be."""


def line_groups(path: Path, most: int, *, one_entry: bool = False) -> Iterator[list[bytes]]:
    """Yield the lines of a plain, gzipped or zipped file, some at a time, ended by LF only.

    Args:
        path: The file.
        most: Bytes that it may have when unpacked.
        one_entry: Whether an archive must hold exactly one file, as GDELT's own do.

    Raises:
        DamagedFile: it cannot be unpacked to its end; the lines before were given.
        TooLarge: it has more than `most` bytes.
    """
    left = b""
    for piece in _limited(_pieces(path, one_entry), most):
        lines = _lines(piece)
        lines[0] = left + lines[0]
        left = lines.pop()
        if len(left) > LONGEST_LINE:
            raise DamagedFile(f"a line of more than {LONGEST_LINE >> 20} MB")
        if lines:
            yield lines
    if left:
        yield [left]


def _lines(piece: bytes) -> list[bytes]:
    """Return what `split` does, by `find`: it looks at many bytes at a time."""
    lines, start = [], 0
    while (end := piece.find(b"\n", start)) >= 0:
        lines.append(piece[start:end])
        start = end + 1
    return [*lines, piece[start:]]


def _limited(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    total = 0
    try:
        for piece in pieces:
            total += len(piece)
            if total > most:
                raise TooLarge(f"more than {most >> 20} MB when unpacked")
            yield piece
    except TROUBLE as error:
        raise DamagedFile(str(error) or type(error).__name__) from error


def _pieces(path: Path, one_entry: bool) -> Iterator[bytes]:
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic.startswith(GZIP_MAGIC):
            yield from _inflated(_packed(raw, path.stat().st_size), GZIP)
        elif magic == b"PK\x03\x04":
            yield from _members(raw, one_entry)
        else:
            yield from _read(raw)


def _read(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _members(raw: IO[bytes], one_entry: bool) -> Iterator[bytes]:
    """Yield what is in an archive; the names in it are never used."""
    with zipfile.ZipFile(raw) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
    if one_entry and len(members) != 1:
        raise zipfile.BadZipFile(f"an archive of {len(members)} files in place of one")
    piece = b"\n"
    for member in members:
        if not piece.endswith(b"\n"):
            yield b"\n"  # a line does not go on in the next file
        for piece in _unpacked(raw, member):
            yield piece


def _unpacked(raw: IO[bytes], member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield one member and check it; isal takes 0.4 of the time of zlib (docs/knowledge.md)."""
    if member.flag_bits & _ENCRYPTED or member.compress_type not in (0, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("packed in a way that GDELT does not use")
    raw.seek(member.header_offset)
    name, extra = struct.unpack_from("<HH", raw.read(_LOCAL_HEADER), 26)
    raw.seek(name + extra, 1)
    packed = _packed(raw, member.compress_size)
    checksum = 0
    for piece in _inflated(packed, DEFLATE) if member.compress_type else packed:
        checksum = isal_zlib.crc32(piece, checksum)
        yield piece
    if checksum != member.CRC:
        raise zipfile.BadZipFile("the checksum does not match")


def _packed(raw: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (packed := raw.read(min(size, PACKED_PIECE))):
        size -= len(packed)
        yield packed


def _inflated(packed: Iterator[bytes], form: int) -> Iterator[bytes]:
    """Yield what was packed; a gzip file may have several members."""
    inflater = isal_zlib.decompressobj(wbits=form)
    for chunk in packed:
        while chunk:
            if inflater.eof:
                if not (chunk := chunk.lstrip(b"\0")):  # what pads an archive
                    break
                inflater = isal_zlib.decompressobj(wbits=form)
            yield inflater.decompress(chunk, PIECE)
            chunk = inflater.unused_data or inflater.unconsumed_tail
    while piece := inflater.decompress(b"", PIECE):
        yield piece
    if not inflater.eof:
        raise EOFError("the archive ends early")
