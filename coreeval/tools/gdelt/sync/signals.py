"""Events and Mentions as signals: a page's prominence in one file, by its URL.

The events that the rows claim are not used: CAMEO rows are not facts (research: gdelt §2).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.tools.gdelt.rows import Reason
from coreeval.tools.gdelt.sync.segment_rows import SIGNALS, RowTally, is_address, parse_seconds

EVENT_COLUMNS, MENTION_COLUMNS = 61, 16
SQLDATE, IS_ROOT, NUM_MENTIONS, NUM_SOURCES, NUM_ARTICLES = 1, 25, 31, 32, 33
DATE_ADDED, SOURCE_URL = 59, 60
MENTION_TIME, MENTION_TYPE, IDENTIFIER, CONFIDENCE = 2, 3, 5, 11
WEB = b"1"
"""The type of mentions whose identifier is a URL; the others are citations."""
Columns = list[bytes]


@dataclass(slots=True)
class _Signal:
    """The signals of one page, combined from several rows."""

    num_mentions: int | None = None
    num_sources: int | None = None
    num_articles: int | None = None
    mentions: int | None = None
    confidence: int | None = None
    is_root: bool | None = None
    sqldate: int | None = None


@dataclass(slots=True)
class Signals:
    """The signals of one file, and the batches that its rows belong to."""

    by_url: dict[str, _Signal] = field(default_factory=dict)
    stamps: set[int] = field(default_factory=set)

    def table(self) -> Any:  # noqa: ANN401 - Arrow has no types
        """Return the signals as a table, one row per URL."""
        found = list(self.by_url.values())
        columns: list[list[Any]] = [list(self.by_url)]
        columns += [[getattr(each, name) for each in found] for name in SIGNALS.names[1:]]
        arrays = [pa.array(*pair) for pair in zip(columns, SIGNALS.types, strict=True)]
        return pa.table(arrays, schema=SIGNALS)


def read_events(groups: Iterable[list[bytes]], tally: RowTally) -> Signals:
    """Return the signals of one Events file."""
    return _read_signals(groups, tally, EVENT_COLUMNS, _add_event)


def read_mentions(groups: Iterable[list[bytes]], tally: RowTally) -> Signals:
    """Return the signals of one Mentions file."""
    return _read_signals(groups, tally, MENTION_COLUMNS, _add_mention)


def _read_signals(
    groups: Iterable[list[bytes]],
    tally: RowTally,
    width: int,
    add: Callable[[Signals, Columns], Reason | None],
) -> Signals:
    signals = Signals()
    for number, line in enumerate(_iter_lines(groups), start=1):
        if not line.strip():
            continue
        tally.rows += 1
        columns = line.rstrip(b"\r").split(b"\t")
        reason = add(signals, columns) if len(columns) == width else "columns"
        if reason:
            tally.refuse(number, reason, line)
    return signals


def _iter_lines(groups: Iterable[list[bytes]]) -> Iterator[bytes]:
    for lines in groups:
        yield from lines


def _add_event(signals: Signals, columns: Columns) -> Reason | None:
    """Add a row: the largest counts of the events on a page, and root if one of them is."""
    found = _signal_of(signals, columns[SOURCE_URL], columns[DATE_ADDED])
    if isinstance(found, str):
        return found
    found.num_mentions = _largest(found.num_mentions, columns[NUM_MENTIONS])
    found.num_sources = _largest(found.num_sources, columns[NUM_SOURCES])
    found.num_articles = _largest(found.num_articles, columns[NUM_ARTICLES])
    found.sqldate = _largest(found.sqldate, columns[SQLDATE])
    found.is_root = bool(found.is_root) or columns[IS_ROOT] == b"1"
    return None


def _add_mention(signals: Signals, columns: Columns) -> Reason | None:
    """Add a row: a page's number of mentions of events, and the best confidence in them."""
    if columns[MENTION_TYPE] != WEB:
        return "collection"
    found = _signal_of(signals, columns[IDENTIFIER], columns[MENTION_TIME])
    if isinstance(found, str):
        return found
    found.mentions = (found.mentions or 0) + 1
    found.confidence = _largest(found.confidence, columns[CONFIDENCE], most=100)
    return None


def _signal_of(signals: Signals, address: bytes, stamp: bytes) -> _Signal | Reason:
    url, moment = (
        address.decode("utf-8", "replace"),
        parse_seconds(stamp.decode("ascii", "replace")),
    )
    if not is_address(url):
        return "no_url"
    if moment is None:
        return "no_date"
    signals.stamps.add(moment)
    return signals.by_url.setdefault(url, _Signal())


def _largest(known: int | None, number: bytes, most: int = 2**31 - 1) -> int | None:
    """Return the larger of the known value and a column's number, if it has one."""
    if not number.isdigit():
        return known
    return max(known or 0, min(int(number[:10]), most))
