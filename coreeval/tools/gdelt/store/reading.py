"""Reading one file: what it holds, its rows as tables, and which batches it is of."""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc  # type: ignore[import-untyped]

from coreeval.tools.gdelt.files import DamagedFile
from coreeval.tools.gdelt.store.feeds import Feed, feed_of, stamp_in
from coreeval.tools.gdelt.store.gkg import read_gkg
from coreeval.tools.gdelt.store.listed import read_gal, read_list
from coreeval.tools.gdelt.store.signals import read_events, read_mentions
from coreeval.tools.gdelt.store.streams import TooLarge, line_groups
from coreeval.tools.gdelt.store.tally import Tally

BATCH_S = 900
MOST_UNPACKED = 1 << 30
"""Bytes of a file on disk when unpacked, which bounds the memory that reading it takes."""
MOST_UNPACKED_DOWNLOAD = 128 << 20
"""Bytes of a download when unpacked; a busy GKG batch has 18 MB (research: gdelt §2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A file that may be read."""

    path: Path
    name: str
    """What the ledger calls it; never used as a path."""
    feed: Feed | None = None
    """None where only its content can tell."""
    batch: datetime | None = None
    md5: str = ""
    """Of its bytes as they are on disk, where that is known already."""
    downloaded: bool = False
    """Whether it is ours: then it holds one file of bounded size, and goes once it is read."""


@dataclass(slots=True)
class Reading:
    """What reading a file came to."""

    offer: Offer
    feed: Feed | None = None
    md5: str = ""
    size: int = 0
    known: bool = False
    """Its content was read before, so it was not read again."""
    why: str = ""
    """Why nothing was read."""
    tally: Tally = field(default_factory=Tally)
    articles: list[Any] = field(default_factory=list)
    """Tables of articles."""
    signals: Any = None
    """A table of signals."""
    batches: set[int] = field(default_factory=set)
    """Quarter hours that its rows are of, in epoch seconds."""


Content = Callable[[Offer], Reading]
"""Reads a file whose MD5 is known, here or elsewhere."""


def read_content(offer: Offer) -> Reading:
    """Read one file whose MD5 is known, whatever was read before.

    Raises:
        OSError: it cannot be read.
    """
    reading = Reading(offer, offer.feed, offer.md5, offer.path.stat().st_size)
    try:
        reading.feed = reading.feed or feed_of(offer.path)
    except DamagedFile as error:
        reading.why = f"damaged: {error}"
        return reading
    if reading.feed is None:
        reading.why = "holds no news"
        return reading
    _read_rows(reading, reading.feed)
    if reading.tally.bad["too_large"]:  # what is made to look like news is not kept in part
        reading.articles, reading.signals, reading.batches = [], None, set()
    return reading


def read(offer: Offer, known: Container[str], content: Content = read_content) -> Reading:
    """Read one file, unless its content is among the known ones.

    Raises:
        OSError: a download cannot be read; a file of the user's only counts as left out.
    """
    try:
        md5 = offer.md5 or _md5(offer.path)
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
    groups = _whole(line_groups(offer.path, most, one_entry=offer.downloaded), tally)
    if feed in ("events", "mentions"):
        found = read_events(groups, tally) if feed == "events" else read_mentions(groups, tally)
        reading.signals = found.table()
        reading.batches = {stamp // BATCH_S * BATCH_S for stamp in found.stamps}
    elif feed == "gal":
        reading.articles = list(read_gal(groups, tally))
        stamp = stamp_in(offer.name)
        reading.batches = {int(stamp.timestamp()) // BATCH_S * BATCH_S} if stamp else set()
    else:
        reading.articles = list(read_gkg(groups, tally, feed))
        reading.batches = _crawled(reading.articles)


def _whole(groups: Iterable[list[bytes]], tally: Tally) -> Iterator[list[bytes]]:
    """Yield the lines of a file up to its end or to where it is damaged, which counts as a row."""
    try:
        yield from groups
    except TooLarge as error:
        tally.end_early("too_large", str(error))
    except DamagedFile as error:
        tally.end_early("damaged", str(error))


def _crawled(tables: Iterable[Any]) -> set[int]:
    stamps = (stamp for table in tables for stamp in pc.unique(table["crawled_at"]).to_pylist())
    return {stamp // BATCH_S * BATCH_S for stamp in stamps}


def _md5(path: Path) -> str:
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
