"""One request to BigQuery: its deadline, cost and result, and its rows as articles.

Rows are converted to articles by the same rules as GDELT's files. The price is that of an on-demand
query.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from coreeval.config.knowledge import BigQueryConfig, Feed
from coreeval.errors import BudgetSpent, CoreEvalError
from coreeval.schema import EntityType, NamedEntity, NoEvidence
from coreeval.tools.gdelt.bigquery.statements import TABLES, BigQueryStatement
from coreeval.tools.gdelt.page_text import clean_title
from coreeval.tools.gdelt.rows import Article, host_of, parse_stamp

Row = Mapping[str, object]
_KINDS: dict[str, EntityType] = {"1": "person", "2": "organisation", "3": "place", "4": "other"}
"""The type of each list of names, by its number in the statement."""


class OddRow(Exception):
    """The row does not have the form that the statement requests."""


_MOST_SITES = 10**6
"""The most sites with the same title; GDELT reads fewer than a tenth of that (own choice)."""


def count_sites(row: Row) -> int:
    """Return the number of sites on which a row's title was seen.

    Raises:
        OddRow: the row does not contain it.
    """
    told = str(row.get("sites"))
    if not (told.isascii() and told.isdigit() and len(told) <= len(str(_MOST_SITES))):
        raise OddRow("sites")
    return min(int(told), _MOST_SITES)


def to_article(feed: Feed, row: Row) -> Article | None:
    """Return the article of a row; None if it is not a web page with a title and a time.

    Raises:
        OddRow: a column is missing, or has an invalid value.
    """
    url, title = _text(row, "url"), clean_title(_text(row, "title"))
    crawled = str(_value(row, "crawled"))
    crawled_at = parse_stamp(crawled)
    if not title or not host_of(url) or crawled_at is None:
        return None
    return Article(
        url=url,
        title=title,
        snippet=clean_title(_text(row, "description")),
        crawled_at=crawled_at,
        stated_at=parse_stamp(_text(row, "stated")),
        entities=_entities(_value(row, "names")),
        origin=f"{TABLES[feed]}:{_text(row, 'record') or crawled}",
    )


def _entities(names: object) -> tuple[NamedEntity, ...]:
    """Return `kind,name` items as entities, each name once with the type of the first list."""
    found: dict[str, NamedEntity] = {}
    for item in names if isinstance(names, list) else []:
        kind, _, name = _encodable(str(item)).partition(",")
        if kind not in _KINDS:
            raise OddRow("names")
        found.setdefault(name.casefold(), NamedEntity(name=name, type=_KINDS[kind]))
    return tuple(found.values())


def _text(row: Row, column: str) -> str:
    value = _value(row, column)
    return _encodable(value) if isinstance(value, str) else ""


def _value(row: Row, column: str) -> object:
    if column not in row:
        raise OddRow(column)
    return row[column]


def _encodable(text: str) -> str:
    """Return a text that can be stored; JSON may contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OddRow("half a character") from None
    return text


class BigQueryRefusal(Exception):
    """BigQuery gave no answer, for a reason that the user need not fix.

    Args:
        reason: The reason that there is no news.
        message: What happened, perhaps in Google's words, which may name a project or an account.
        note: The same in our words, for manifests and releases; by default the message.
    """

    def __init__(self, reason: NoEvidence, message: str, *, note: str | None = None) -> None:
        super().__init__(message)
        self.reason: NoEvidence = reason
        self.note = message if note is None else note


class DeadlineExpired(BigQueryRefusal):
    """The time is up, or the request was stopped."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True, kw_only=True)
class StatementResult:
    """The result of a statement, and the bytes that it is billed."""

    rows: tuple[Row, ...] = ()
    billed: int = 0
    """The bytes billed."""
    refused: BigQueryRefusal | CoreEvalError | None = None
    """The reason that there are no rows; None if the rows are the answer. A CoreEvalError is what
    the user has to fix."""


class RequestDeadline:
    """The deadline of one request; safe to stop from another thread."""

    def __init__(
        self, config: BigQueryConfig, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + config.timeout_s
        self._allowed_s = config.timeout_s
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the request at its next step."""
        self._stopped.set()

    def wait(self, seconds: float) -> None:
        """Wait, but not past the deadline."""
        self._stopped.wait(max(0.0, min(seconds, self._end - self._clock())))

    def remaining_s(self) -> float:
        """Return the number of seconds left.

        Raises:
            DeadlineExpired: no time is left, or the request was stopped.
        """
        if self._stopped.is_set():
            raise DeadlineExpired("the request was stopped")
        left = self._end - self._clock()
        if left <= 0:
            raise DeadlineExpired(
                f"no answer within {self._allowed_s:g} s (knowledge.bigquery.timeout_s)"
            )
        return left


USD_PER_TIB = 6.25
AS_OF = date(2026, 6, 1)
SOURCE = "on-demand, US, as public code quotes https://cloud.google.com/bigquery/pricing"
"""The source and date of the price; the free first TiB of each month is not counted here."""
TIB = 1 << 40
GB = 10**9
LEAST_BILLED = 10 * (1 << 20)
"""The least bytes billed for each table of a statement, however little it reads."""


def least_billed_bytes(statement: BigQueryStatement, scanned: int) -> int:
    """Return the bytes that a statement will be billed if it scans this many."""
    return max(scanned, LEAST_BILLED * len(statement.tables))


def list_price_usd(billed: int) -> float:
    """Return the list price in US dollars."""
    return billed / TIB * USD_PER_TIB


def format_cost(billed: int) -> str:
    """Format bytes and their price: `12.40 GB (0.0705 USD)`."""
    return f"{billed / GB:,.2f} GB ({list_price_usd(billed):,.4f} USD)"


class BillRecord(Protocol):
    """The record of what a run is billed, which outlives this process."""

    def read_others(self) -> int:
        """Return the bytes billed to the run by other processes and passes."""
        ...

    def write(self, billed: int, cost_usd: float) -> None:
        """Record the bytes that this process is billed, or may be for what it is about to send."""
        ...


class BytesBudget:
    """The budget of one run in bytes: reserved before a request, settled after it. Thread-safe.

    Args:
        max_gb: The most that may be billed, in GB.
        record: Has what earlier processes of the run were billed, and receives each change before
            anything is sent; None if nothing but this process uses the budget.
    """

    def __init__(self, max_gb: float, record: BillRecord | None = None) -> None:
        self._most = int(max_gb * GB)
        self._record = record
        self._taken = 0
        self._reserved = 0
        self._lock = threading.Lock()

    def reserve(self, expected: int, *, held: int = 0) -> None:
        """Reserve bytes for a request, for which some may be reserved already.

        Raises:
            BudgetSpent: the run would exceed its cap; nothing is sent, and `held` stays reserved.
            RunError: it cannot be recorded; the same holds.
        """
        with self._lock:
            others = self._record.read_others() if self._record else 0
            left = self._most - others - self._taken + held
            if expected > left:
                raise BudgetSpent(
                    f"BigQuery would read {format_cost(expected)}, but the run may read only "
                    f"{format_cost(left)} more",
                    where="knowledge.bigquery.max_gb",
                    hint="raise knowledge.bigquery.max_gb, shorten knowledge.window, or remove a "
                    "table from knowledge.bigquery.feeds; this was not billed",
                )
            self._write(self._taken + expected - held)
            self._taken += expected - held
            self._reserved += expected - held

    def settle(self, expected: int, billed: int) -> None:
        """Replace the bytes reserved for a request by the bytes that were billed."""
        with self._lock:
            self._taken += billed - expected
            self._reserved -= expected
            with suppress(CoreEvalError):  # the record has at least that much
                self._write(self._taken)

    def _write(self, billed: int) -> None:
        if self._record:
            self._record.write(billed, list_price_usd(billed))

    @property
    def reserved(self) -> int:
        """The bytes reserved for requests that are not settled."""
        with self._lock:
            return self._reserved
