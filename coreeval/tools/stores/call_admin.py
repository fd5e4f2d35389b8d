"""Counts a call store's calls by model, role and payer, and deletes those that are not needed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, Connection, Engine, delete, select

from coreeval.errors import RunError, RunLocked
from coreeval.tools.chunks import chunks
from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores import sqlite as stores
from coreeval.tools.stores.batch_records import OPEN_STAGES
from coreeval.tools.stores.call_ledger import insert_lasting_reservation
from coreeval.tools.stores.call_records import (
    CallRecord,
    decode_record,
    decompress,
    is_recorded,
    model_of,
    text_hash,
)
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import find_schema
from coreeval.tools.stores.sqlite import is_postgresql


@dataclass
class CallTally:
    """Totals of some calls."""

    calls: int = 0
    valid: int = 0
    invalid: Counter[str] = field(default_factory=Counter)
    """The number of calls without an answer, by kind: `truncated`, `refusal`, `empty`,
    `invalid`."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """The prompt tokens that were in a provider's cache."""
    completion_tokens: int = 0
    usd: float = 0.0
    """The cost of the calls with a known price."""
    unpriced: int = 0
    """The number of calls without a known price."""

    def add(self, call: CallRecord) -> None:
        """Count one call."""
        self.calls += 1
        self.valid += call.valid
        if not call.valid:
            self.invalid[call.error.partition(":")[0]] += 1
        self.prompt_tokens += call.prompt_tokens
        self.cached_tokens += call.cached_tokens
        self.completion_tokens += call.completion_tokens
        self.usd += call.usd or 0.0
        self.unpriced += call.usd is None

    @property
    def total_usd(self) -> float | None:
        """The cost of the calls with a known price; None if no price is known."""
        return None if self.unpriced == self.calls > 0 else self.usd

    @property
    def cache_share(self) -> float | None:
        """The share of the prompt tokens that were cached; None if none were counted."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass
class CallStats:
    """Totals of all undamaged calls of a store."""

    total: CallTally = field(default_factory=CallTally)
    by_player: dict[tuple[str, str], CallTally] = field(default_factory=dict)
    """The totals by model, as spelled in the config, and role."""
    by_payer: dict[str, CallTally] = field(default_factory=dict)
    """The totals by payer, without recorded answers, which cost nothing."""

    def add(self, call: CallRecord) -> None:
        """Count one call."""
        player = (model_of(call.request), call.role)
        self.total.add(call)
        self.by_player.setdefault(player, CallTally()).add(call)
        if not is_recorded(player[0]):
            self.by_payer.setdefault(call.paid_by, CallTally()).add(call)


def count_calls(calls: Iterable[CallRecord]) -> CallStats:
    """Return the totals of some calls."""
    stats = CallStats()
    for call in calls:
        stats.add(call)
    return stats


def size_on_disk(path: Path) -> int:
    """Return the size in bytes of a store, including the files that SQLite adds beside its file."""
    if find_schema(path):
        with open_readonly(path, what="the call store") as store:
            return int(store.execute(_SIZE).fetchone()[0])
    files = (path.with_name(path.name + end) for end in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())


_SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind = 'r'
"""
AT_ONCE = 500
"""The number of rows read or deleted by one statement."""
LONGEST_BATCH: Final = timedelta(days=30)
"""How long a provider stores a batch: results are available for 29 days at Anthropic and 30 at
OpenAI (https://platform.claude.com/docs/en/build-with-claude/batch-processing,
https://developers.openai.com/api/docs/guides/batch)."""
PATIENCE_MS = 1000
"""The milliseconds to wait for another process to release the file."""


@dataclass(frozen=True, kw_only=True)
class RetentionRule:
    """The rule that decides which calls are kept in a store."""

    keys: Set[str]
    """The keys of calls that a run refers to."""
    payer: Callable[[str], bool]
    """Returns whether a payer's calls are kept because its budget counts them."""
    since: str
    """The start of the period in which all calls, reservations and batches are kept, as ISO 8601 in
    UTC."""
    open_since: str
    """The start of the period in which all open batches are kept, as ISO 8601 in UTC."""

    def holds_batch(self, batch: Mapping[str, Any]) -> bool:
        """Return whether a batch is kept: an open one, or one with answers to be stored."""
        if self.payer(batch["payer"]):
            return True
        if batch["state"] in OPEN_STAGES:
            return bool(batch["made_at"] >= self.open_since)
        return bool((batch["ended_at"] or batch["made_at"]) >= self.since)

    def holds(self, call: CallRecord) -> bool:
        """Return whether a call is kept."""
        return call.key in self.keys or call.started_at >= self.since or self.payer(call.paid_by)


@dataclass(frozen=True, kw_only=True)
class SentGarbage:
    """The batches and reservations of a store to delete."""

    batches: Sequence[str]
    """The ids of batches, which are deleted with their questions."""
    queues: Sequence[str]
    """The payers whose questions outside batches are deleted."""
    reservations: Sequence[str]
    """The ids of reservations."""
    kept_open: int
    """The number of open batches that are kept although no run in the workspace has made them."""

    def __bool__(self) -> bool:
        return bool(self.batches or self.queues or self.reservations)


@dataclass(frozen=True, kw_only=True)
class Garbage:
    """The parts of a store to delete."""

    calls: Mapping[str, str]
    """The payers of the calls, by call key."""
    damaged: Mapping[str, bool]
    """The keys of rows that do not match their checksum, and whether their payer is kept."""
    texts: Sequence[str]
    """The hashes of shared texts that no call refers to."""
    sent: SentGarbage

    def __bool__(self) -> bool:
        return bool(self.calls or self.damaged or self.texts or self.sent)

    @property
    def by_payer(self) -> dict[str, int]:
        """The number of calls to delete, by payer."""
        return dict(Counter(self.calls.values()))


@contextmanager
def open_store(path: Path) -> Iterator[Connection]:
    """Open a store for reading."""
    with _open_current_engine(path) as engine, engine.connect() as connection:
        yield connection


@contextmanager
def open_exclusively(path: Path) -> Iterator[Connection]:
    """Open a store exclusively: no other process can use it inside the block.

    A process that has it open remembers the texts stored in it, and could refer to a deleted one.

    Raises:
        RunLocked: another process uses it.
        RunStateError: the folder that names it is a copy.
    """
    with open_store(path) as connection:
        if is_postgresql(connection):
            from coreeval.tools.stores.postgresql_engine import claim_store, take_lock

            take_lock(connection, "exclusive")
            with connection.begin():
                claim_store(connection)
            yield connection
            return
        connection.exec_driver_sql(f"PRAGMA busy_timeout={PATIENCE_MS}")
        connection.exec_driver_sql("PRAGMA locking_mode=EXCLUSIVE")
        _lock_file(connection, path)
        yield connection


@contextmanager
def _open_current_engine(path: Path) -> Iterator[Engine]:
    open_calls(path).close()  # refuses a store of another version
    engine = stores.open_store(path, t.CALL_SCHEMA, what="the call store")
    try:
        there = is_postgresql(engine)
        yield engine if there else engine.execution_options(isolation_level="AUTOCOMMIT")
    finally:
        engine.dispose()


def _lock_file(connection: Connection, path: Path) -> None:
    """Start an empty write, which makes SQLite lock the file for this connection alone."""
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("COMMIT")
    except RunError as error:
        if "locked" not in error.message:
            raise
        raise RunLocked(
            "another process is using the call store",
            where=str(path),
            hint="wait until the run or trial ends; --dry-run works now, because it only reads",
        ) from None


def find_garbage(connection: Connection, keep: RetentionRule) -> Garbage:
    """Return the parts of a store that the rule does not keep; damaged rows are never kept."""
    texts = _texts(connection)
    calls, damaged, needed = dict[str, str](), dict[str, bool](), set[str]()
    rows = connection.execute(select(t.calls), execution_options={"yield_per": AT_ONCE})
    for row in rows.mappings():
        used: list[str] = []

        def text_of(sha: str, used: list[str] = used) -> str:
            used.append(sha)
            return texts[sha]

        try:
            call = decode_record(dict(row), text_of)
        except (ValueError, TypeError, KeyError):
            damaged[row["key"]] = keep.payer(row["paid_by"])
            continue
        if keep.holds(call):
            needed.update(used)
        else:
            calls[call.key] = call.paid_by
    there = connection.scalars(select(t.texts.c.sha256))
    return Garbage(
        calls=calls,
        damaged=damaged,
        texts=[sha for sha in there if sha not in needed],
        sent=_find_sent_garbage(connection, keep),
    )


def _texts(connection: Connection) -> dict[str, str]:
    """Return the shared texts that are not damaged."""
    found: dict[str, str] = {}
    for sha, body in connection.execute(select(t.texts.c.sha256, t.texts.c.body)):
        try:
            text = decompress(body)
        except (ValueError, TypeError):
            continue
        if text_hash(text) == sha:
            found[sha] = text
    return found


def _find_sent_garbage(connection: Connection, keep: RetentionRule) -> SentGarbage:
    """Return the batches, unbatched questions and reservations that the rule does not keep."""
    b, q, r = t.batches.c, t.batch_requests.c, t.reservations.c
    listed = select(b.id, b.payer, b.state, b.made_at, b.ended_at)
    rows = [dict(row) for row in connection.execute(listed).mappings()]
    kept = {row["id"]: row for row in rows if keep.holds_batch(row)}
    payers = {row["payer"] for row in kept.values()}
    reserved = {
        reservation
        for batch, reservation in connection.execute(select(q.batch, q.reservation))
        if batch in kept
    }
    return SentGarbage(
        batches=[row["id"] for row in rows if row["id"] not in kept],
        queues=[
            payer
            for payer in connection.scalars(select(q.payer).distinct())
            if payer not in payers and not keep.payer(payer)
        ],
        reservations=[
            each
            for each, payer, made_at in connection.execute(select(r.id, r.payer, r.made_at))
            if each not in reserved and made_at < keep.since and not keep.payer(payer)
        ],
        kept_open=sum(
            row["state"] in OPEN_STAGES and not keep.payer(row["payer"]) for row in kept.values()
        ),
    )


def delete_garbage(connection: Connection, waste: Garbage) -> None:
    """Delete the garbage in one transaction, and release its disk space.

    The cost of damaged rows still counts as spent if the payer is kept.
    """
    there = is_postgresql(connection)
    if not there:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    for key, payer_stays in waste.damaged.items():
        if payer_stays:
            connection.execute(insert_lasting_reservation(key))
    _delete(connection, t.calls.c.key, [*waste.calls, *waste.damaged])
    _delete(connection, t.texts.c.sha256, waste.texts)
    _delete(connection, t.reservations.c.id, waste.sent.reservations)
    _delete(connection, t.batches.c.id, waste.sent.batches)
    _delete(connection, t.batch_requests.c.batch, waste.sent.batches)
    _delete(connection, t.batch_requests.c.payer, waste.sent.queues)
    if there:  # which releases the disk space itself
        connection.commit()
        return
    connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("VACUUM")


def _delete(connection: Connection, column: "Column[str]", values: Sequence[str]) -> None:
    for some in chunks(values, AT_ONCE):
        connection.execute(delete(column.table).where(column.in_(some)))
