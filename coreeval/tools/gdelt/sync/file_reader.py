"""Reads one file: its kind, its rows as tables, and the batches that they belong to.

Its lines are decompressed piece by piece, up to a limit.
"""

import hashlib
import os
import struct
import zipfile
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import pyarrow.compute as pc  # type: ignore[import-untyped]
from isal import igzip_lib, isal_zlib

from coreeval.tools.archives import ARCHIVE_DAMAGE, check_packing
from coreeval.tools.gdelt.rows import LONGEST_LINE, FileDamage
from coreeval.tools.gdelt.sync.article_lists import read_gal, read_list
from coreeval.tools.gdelt.sync.facts import read_facts
from coreeval.tools.gdelt.sync.feeds import Feed, feed_of, stamp_in_name
from coreeval.tools.gdelt.sync.gkg import read_gkg
from coreeval.tools.gdelt.sync.segment_rows import CUT_REASONS, RowTally
from coreeval.tools.gdelt.sync.signals import read_events, read_mentions

PIECE = 1 << 19
PACKED_PIECE = 1 << 16
GZIP, DEFLATE = 31, -15
"""The compression formats, as values of `wbits`."""
GZIP_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"
_LOCAL_HEADER = 30
_ISAL: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # not an instance
TROUBLE = (*ARCHIVE_DAMAGE, _ISAL)
"""The errors raised when damaged files are decompressed."""


class FileTooLarge(FileDamage):
    """The decompressed file is larger than a file of its kind can be."""


def line_groups(path: Path, most: int, *, one_entry: bool = False) -> Iterator[list[bytes]]:
    """Yield the lines of a plain, gzipped or zipped file in groups, split at LF only.

    Args:
        path: The file.
        most: The most bytes that it may have when decompressed.
        one_entry: Whether an archive must contain exactly one file, as GDELT's do.

    Raises:
        FileDamage: the file cannot be decompressed to its end; earlier lines were yielded.
        FileTooLarge: the file has more than `most` bytes.
    """
    left = b""
    for piece in _limit(_iter_pieces(path, one_entry), most):
        lines = _split_lines(piece)
        lines[0] = left + lines[0]
        left = lines.pop()
        if len(left) > LONGEST_LINE:
            raise FileDamage(f"it has a line of more than {LONGEST_LINE >> 20} MB")
        if lines:
            yield lines
    if left:
        yield [left]


def _split_lines(piece: bytes) -> list[bytes]:
    """Return the same as `split`, using `find`, which examines many bytes at a time."""
    lines, start = [], 0
    while (end := piece.find(b"\n", start)) >= 0:
        lines.append(piece[start:end])
        start = end + 1
    return [*lines, piece[start:]]


def _limit(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    total = 0
    try:
        for piece in pieces:
            total += len(piece)
            if total > most:
                raise FileTooLarge(f"it has more than {most >> 20} MB when unpacked")
            yield piece
    except TROUBLE as error:
        raise FileDamage(str(error) or type(error).__name__) from error


def _iter_pieces(path: Path, one_entry: bool) -> Iterator[bytes]:
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic.startswith(GZIP_MAGIC):
            yield from _inflate(_read_packed(raw, path.stat().st_size), GZIP)
        elif magic == ZIP_MAGIC:
            yield from _iter_members(raw, one_entry)
        else:
            yield from _read_stream(raw)


def _read_stream(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _iter_members(raw: IO[bytes], one_entry: bool) -> Iterator[bytes]:
    """Yield the contents of an archive; its file names are never used."""
    with zipfile.ZipFile(raw) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
    if one_entry and len(members) != 1:
        raise zipfile.BadZipFile(f"the archive has {len(members)} files instead of one")
    piece = b"\n"
    for member in members:
        if not piece.endswith(b"\n"):
            yield b"\n"  # a line does not continue in the next file
        for piece in _unpack_member(raw, member):
            yield piece


def _unpack_member(raw: IO[bytes], member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield one member and check it; isal takes 0.4 of the time of zlib (docs/knowledge.md)."""
    check_packing(member)
    raw.seek(member.header_offset)
    name, extra = struct.unpack_from("<HH", raw.read(_LOCAL_HEADER), 26)
    raw.seek(name + extra, 1)
    packed = _read_packed(raw, member.compress_size)
    checksum = 0
    for piece in _inflate(packed, DEFLATE) if member.compress_type else packed:
        checksum = isal_zlib.crc32(piece, checksum)
        yield piece
    if checksum != member.CRC:
        raise zipfile.BadZipFile("the checksum does not match")


def _read_packed(raw: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (packed := raw.read(min(size, PACKED_PIECE))):
        size -= len(packed)
        yield packed


def _inflate(packed: Iterator[bytes], form: int) -> Iterator[bytes]:
    """Yield decompressed bytes; a gzip file may have several members."""
    inflater = isal_zlib.decompressobj(wbits=form)
    for chunk in packed:
        while chunk:
            if inflater.eof:
                if not (chunk := chunk.lstrip(b"\0")):  # padding of an archive
                    break
                inflater = isal_zlib.decompressobj(wbits=form)
            yield inflater.decompress(chunk, PIECE)
            chunk = inflater.unused_data or inflater.unconsumed_tail
    while piece := inflater.decompress(b"", PIECE):
        yield piece
    if not inflater.eof:
        raise EOFError("the archive ends early")


BATCH_S = 900
MOST_UNPACKED = 1 << 30
"""The most bytes of a decompressed file on disk, which limits the memory for reading it."""
MOST_UNPACKED_DOWNLOAD = 128 << 20
"""The most bytes of a decompressed download; a busy GKG batch has 18 MB (research: gdelt §2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A file that may be read."""

    path: Path
    name: str
    """The file's name in the ledger; never used as a path."""
    feed: Feed | None = None
    """The file's feed; None if it must be determined from the content."""
    batch: datetime | None = None
    md5: str = ""
    """The MD5 of the file's bytes on disk; "" if not known yet."""
    downloaded: bool = False
    """Whether it is our own download, which contains one file of limited size and is deleted after
    reading."""


@dataclass(slots=True)
class Reading:
    """The result of reading a file."""

    offer: Offer
    feed: Feed | None = None
    md5: str = ""
    size: int = 0
    known: bool = False
    """Whether its content was read before and therefore skipped."""
    why: str = ""
    """The reason that nothing was read."""
    tally: RowTally = field(default_factory=RowTally)
    articles: list[Any] = field(default_factory=list)
    """The tables of articles."""
    signals: Any = None
    """The table of signals."""
    batches: set[int] = field(default_factory=set)
    """The quarter hours that its rows belong to, in epoch seconds."""


Content = Callable[[Offer], Reading]
"""Reads a file with a known MD5, in this process or another."""


def read_content(offer: Offer) -> Reading:
    """Read one file with a known MD5, even if its content was read before.

    Raises:
        OSError: the file cannot be read.
    """
    reading = Reading(offer, offer.feed, offer.md5, offer.path.stat().st_size)
    try:
        reading.feed = reading.feed or feed_of(offer.path)
    except FileDamage as error:
        reading.why = f"damaged: {error}"
        return reading
    if reading.feed is None:
        reading.why = "contains no news"
        return reading
    _read_rows(reading, reading.feed)
    if reading.tally.bad["too_large"]:  # a crafted file is not kept in part
        reading.articles, reading.signals, reading.batches = [], None, set()
    return reading


def read(offer: Offer, known: Container[str], content: Content = read_content) -> Reading:
    """Read one file, unless its content is among the known contents.

    Raises:
        OSError: a download cannot be read; a user's file only counts as skipped.
    """
    try:
        md5 = offer.md5 or _hash_file(offer.path)
        if md5 in known:
            return Reading(offer, offer.feed, md5, offer.path.stat().st_size, known=True)
        return content(replace(offer, md5=md5))
    except OSError as error:
        if offer.downloaded:
            raise
        return Reading(offer, why=f"cannot be read: {error.strerror or error}")
    finally:
        if offer.downloaded:
            offer.path.unlink(missing_ok=True)


def _read_rows(reading: Reading, feed: Feed) -> None:
    offer, tally = reading.offer, reading.tally
    if feed == "artlist":
        reading.articles = list(read_list(offer.path, tally))
        return
    most = MOST_UNPACKED_DOWNLOAD if offer.downloaded else MOST_UNPACKED
    groups = line_groups(offer.path, most, one_entry=offer.downloaded)
    groups = _whole_groups(groups, tally, open_end=_has_open_end(offer.path))
    if feed in ("events", "mentions"):
        found = read_events(groups, tally) if feed == "events" else read_mentions(groups, tally)
        reading.signals = found.table()
        reading.batches = {stamp // BATCH_S * BATCH_S for stamp in found.stamps}
    elif feed == "gal":
        reading.articles = list(read_gal(groups, tally))
        stamp = stamp_in_name(offer.name)
        reading.batches = {int(stamp.timestamp()) // BATCH_S * BATCH_S} if stamp else set()
    elif feed in ("current_events", "file"):
        reading.articles = list(read_facts(groups, tally))
        reading.batches = _crawl_batches(reading.articles) if feed == "current_events" else set()
    else:
        reading.articles = list(read_gkg(groups, tally, feed))
        reading.batches = _crawl_batches(reading.articles)


def _has_open_end(path: Path) -> bool:
    """Return whether a plain file does not end with LF; truncated archives raise errors instead."""
    with path.open("rb") as raw:
        if raw.read(4).startswith((GZIP_MAGIC, ZIP_MAGIC)) or not raw.seek(0, os.SEEK_END):
            return False
        raw.seek(-1, os.SEEK_END)
        return raw.read(1) != b"\n"


def _whole_groups(
    groups: Iterable[list[bytes]], tally: RowTally, *, open_end: bool
) -> Iterator[list[bytes]]:
    """Yield the lines of a file up to its end or to damage, which counts as a row.

    With an open end, the last row is its own group; if refused for such a reason, it was cut off.
    """
    before = tally.bad.copy()
    try:
        for lines in groups:
            before = tally.bad.copy()
            yield lines
        for reason in CUT_REASONS & (tally.bad - before).keys() if open_end else ():
            tally.mark_last_as_cut(reason)
    except FileTooLarge as error:
        tally.end_early("too_large", str(error))
    except FileDamage as error:
        tally.end_early("damaged", str(error))


def _crawl_batches(tables: Iterable[Any]) -> set[int]:
    stamps = (stamp for table in tables for stamp in pc.unique(table["crawled_at"]).to_pylist())
    return {stamp // BATCH_S * BATCH_S for stamp in stamps}


def _hash_file(path: Path) -> str:
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
