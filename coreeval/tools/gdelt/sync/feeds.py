"""GDELT's feeds: their names on the mirror, sizes, files, and periods known to be empty."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from coreeval.errors import UsageError
from coreeval.tools.gdelt import rows
from coreeval.tools.gdelt.sync.signals import DATE_ADDED, EVENT_COLUMNS, MENTION_COLUMNS

QUARTER = timedelta(minutes=15)
"""The interval at which GDELT publishes batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A period without files; `end` is the first batch after it."""

    start: datetime
    end: datetime
    reason: str
    feeds: tuple[str, ...]
    """The feeds that are known to lack these batches."""

    @property
    def batches(self) -> int:
        """The number of missing batches of each feed."""
        return (self.end - self.start) // QUARTER


HOLES = (
    Hole(
        start=datetime(2025, 6, 14, 18, tzinfo=UTC),
        end=datetime(2025, 7, 2, 2, tzinfo=UTC),
        reason="GDELT published no GKG, Events or Mentions files on these days",
        feeds=("gkg", "gkg_translated", "events", "mentions"),
    ),
)
"""The known holes, found by checking each file in October 2026 (research: gdelt §4)."""


def find_hole(moment: datetime, feed: str) -> Hole | None:
    """Return the known hole of a feed that contains a time."""
    inside = (hole for hole in HOLES if hole.start <= moment < hole.end)
    return next((hole for hole in inside if feed in hole.feeds), None)


Feed = Literal[
    "gkg", "gkg_translated", "gal", "events", "mentions", "artlist", "current_events", "file"
]  # fmt: skip
Suffixes = tuple[str, ...]
GAL_MINUTES = 8
"""The minutes of a quarter hour with GAL files, 0 to 7; nothing lists these files (research: gdelt
§1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFeed:
    """The location and format of a feed on the mirror."""

    folder: str
    suffixes: Suffixes
    """The suffixes of the files of one batch; each is an archive of one file or a gzip file."""
    day_mb: float
    """The size of one day's download in megabytes."""
    minutes: int = 1
    """The number of minutes of a batch at which there may be a file."""
    ready_after: timedelta = timedelta(minutes=-11)
    """The time after a batch's stamp at which its files may be available: most appear before it."""
    step: timedelta = QUARTER
    """The time between two batches."""
    patience: timedelta = timedelta(hours=3)
    """The time after which a batch that is still not available counts as a gap; before, it may
    still arrive."""
    settled: timedelta = timedelta(days=1)
    """The age after which a gap or missing files of a batch are not requested again."""
    rewritten: bool = False
    """Whether a batch may change, so that it is also requested again up to that age."""

    @property
    def grows(self) -> bool:
        """Return whether a read batch may get changes or files of other minutes."""
        return self.rewritten or self.minutes > 1

    def paths(self, batch: datetime) -> list[str]:
        """Return the paths that a batch may have on the mirror."""
        stamps = [batch + timedelta(minutes=minute) for minute in range(self.minutes)]
        return [f"{self.folder}/{format_stamp(at)}{end}" for at in stamps for end in self.suffixes]


MIRRORED: dict[Feed, MirrorFeed] = {
    "gkg": MirrorFeed(folder="gdeltv2", suffixes=(".gkg.csv.zip",), day_mb=420),
    "gkg_translated": MirrorFeed(
        folder="gdeltv2", suffixes=(".translation.gkg.csv.zip",), day_mb=420
    ),
    "gal": MirrorFeed(
        folder="gdeltv3/gal",
        suffixes=(".gal.json.gz",),
        day_mb=30,
        minutes=GAL_MINUTES,
        ready_after=timedelta(minutes=30),
    ),
    "events": MirrorFeed(folder="gdeltv2", suffixes=(".export.CSV.zip",), day_mb=8),
    "mentions": MirrorFeed(folder="gdeltv2", suffixes=(".mentions.CSV.zip",), day_mb=9),
    "current_events": MirrorFeed(
        folder="",
        suffixes=(),
        day_mb=0.1,
        ready_after=timedelta(),
        step=timedelta(days=1),
        patience=timedelta(days=2),
        settled=timedelta(days=4),
        rewritten=True,
    ),
}
"""The feeds that can be downloaded; sizes as of October 2026 (research: gdelt §4). Current events
are daily pages of Wikipedia, which are extended for some days; the others are files of GDELT's
mirror."""
PORTAL_FEEDS: tuple[Feed, ...] = ("current_events",)
SIGNAL_FEEDS: tuple[Feed, ...] = ("events", "mentions")
USUAL_FEEDS: tuple[Feed, ...] = ("gkg", "gal", "events", "mentions")


def estimate_download_mb(feeds: Sequence[Feed], start: datetime, end: datetime) -> float:
    """Return the approximate megabytes of the feeds between two times; 0 if no batch fits."""
    days = max(0.0, (end - start) / timedelta(days=1))
    return days * sum(MIRRORED[feed].day_mb for feed in feeds)


def parse_feeds(names: str) -> tuple[Feed, ...]:
    """Return the distinct feeds of a comma-separated list, in the order of `MIRRORED`.

    Raises:
        UsageError: a feed is unknown, or none is named.
    """
    wanted = {name.strip().lower() for name in names.split(",") if name.strip()}
    unknown = sorted(wanted - set(MIRRORED))
    if unknown or not wanted:
        raise UsageError(
            f"unknown feed {unknown[0]!r}" if unknown else "no feed is listed",
            where="--feeds",
            hint=f"available feeds: {', '.join(MIRRORED)}; separate them with commas",
        )
    return tuple(feed for feed in MIRRORED if feed in wanted)


def feed_of(path: Path) -> Feed | None:
    """Return a file's feed by its first lines; None if it is not a kind that is read here.

    Raises:
        FileDamage: its first line cannot be decompressed.
    """
    head = rows.first_lines(path)
    kind = rows.classify_lines(head)
    if kind == "gkg":
        return "gkg_translated" if any(_TRANSLATED.match(line) for line in head) else "gkg"
    return kind or _signals_feed(head)


_TRANSLATED = re.compile(rb"\d{14}-T\d+\t")


def _signals_feed(head: Sequence[bytes]) -> Feed | None:
    rows = [line.split(b"\t") for line in head]
    if any(_has_digits(row, EVENT_COLUMNS, (0, 1, DATE_ADDED)) for row in rows):
        return "events"
    if any(_has_digits(row, MENTION_COLUMNS, (0, 1, 2, 3)) for row in rows):
        return "mentions"
    return None


def _has_digits(row: Sequence[bytes], width: int, places: Sequence[int]) -> bool:
    """Return whether a row has all its columns, with digits in those that require them."""
    return len(row) == width and all(row[place].isdigit() for place in places)


def is_copy(name: str, feed: Feed) -> bool:
    """Return whether a file's name is GDELT's name for a complete batch, compressed or not."""
    published = MIRRORED.get(feed)
    if published is None or published.minutes > 1:
        return False
    plain = name.rpartition("/")[2].removesuffix(".gz").removesuffix(".zip")
    ends = {suffix.removesuffix(".zip") for suffix in published.suffixes}
    return stamp_in_name(name) is not None and plain[14:] in ends


def format_stamp(batch: datetime) -> str:
    """Return a time in the form of GDELT's file names: 14 digits."""
    return f"{batch:%Y%m%d%H%M%S}"


def stamp_in_name(name: str) -> datetime | None:
    """Return the time at the start of a file's name; None if there is none."""
    found = re.match(r"([0-9]{14})\.", name.rpartition("/")[2])
    try:
        return datetime.strptime(found[1] + "+0000", "%Y%m%d%H%M%S%z") if found else None
    except ValueError:
        return None
