"""The call store, calls.db: each model call by the hash of its request, and what runs spent.

A row carries a checksum of its own: one that does not match counts as absent, so that a damaged
answer is asked for again and never used. What was answered and committed is never paid for twice.
What requests in flight may cost is committed before they are sent.
"""

import asyncio
import math
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import (
    Engine,
    Insert,
    Integer,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores.call_records import (
    CallRecord,
    compress,
    decode_record,
    decompress,
    encode_record,
    text_hash,
)
from coreeval.tools.stores.heartbeat import DIGITS, refuse_special_file
from coreeval.tools.stores.prepared_statements import InsertStatement, LookupStatement
from coreeval.tools.stores.sqlite import (
    BatchWriter,
    Row,
    Write,
    explain_errors,
    open_engine,
    prepare_database,
)

MOST_USD = 1000.0
"""More than any call costs, twenty million tokens at the dearest price in prices.yaml: what a
damaged row says above it is the damage."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Money put aside for one request: the most that it can cost, in US dollars."""

    id: str
    usd: float


@dataclass(frozen=True, kw_only=True)
class SpendingTotal:
    """What a payer has spent, in US dollars."""

    billed_usd: float
    """Of answers that are stored."""
    unknown_usd: float
    """The worst case of requests that nobody knows the end of: those in flight at a kill."""


_RESERVE = text("""
    INSERT INTO reservations (id, payer, key, usd) SELECT :id, :payer, :key, :usd
    WHERE :billed + :usd
        + (SELECT coalesce(sum(min(max(usd, 0.0), :most)), 0.0) FROM calls NOT INDEXED
           WHERE rowid > :seen AND paid_by = :payer)
        + (SELECT coalesce(sum(usd), 0.0) FROM reservations WHERE payer = :payer) <= :budget
""")
"""Looks at the budget and takes from it at once: no other process comes in between."""
_BILLED_SINCE = text("""
    SELECT coalesce(max(rowid), :seen),
        coalesce(sum(CASE WHEN paid_by = :payer THEN min(max(usd, 0.0), :most) END), 0.0)
    FROM calls NOT INDEXED WHERE rowid > :seen
""")
_MOST_ADDED_ANEW = 64
"""Reservations until what was billed meanwhile is added to what is known: of 100,000 calls all
take 16 ms to add up, the newest 64 take 0.03 ms."""


class Ledger:
    """Reservations beside the calls that settle them, in one file and one transaction.

    A reservation that nothing settles counts as spent for ever: after a kill nobody knows whether
    the request was billed.
    """

    def __init__(self, engine: Engine, writer: BatchWriter, payer: str) -> None:
        self._engine = engine
        self._writer = writer
        self._payer = payer
        self._seen, self._billed = 0, 0.0
        """The last row of calls that is added up, and what the payer was billed until there."""
        self._not_added = _MOST_ADDED_ANEW
        """Reservations since then."""

    def spent(self) -> SpendingTotal:
        """Return what the payer has spent so far: no call less than nothing, none `MOST_USD`."""
        possible = func.min(func.max(t.calls.c.usd, 0.0), MOST_USD)  # of one row: SQLite's
        billed = select(func.coalesce(func.sum(possible), 0.0)).where(
            t.calls.c.paid_by == self._payer
        )
        open_ = select(func.coalesce(func.sum(t.reservations.c.usd), 0.0)).where(
            t.reservations.c.payer == self._payer
        )
        with self._engine.connect() as connection:
            return SpendingTotal(
                billed_usd=connection.execute(billed).scalar_one(),
                unknown_usd=connection.execute(open_).scalar_one(),
            )

    def open_usd_by_payer(self) -> dict[str, float]:
        """Return the worst case of what is not settled, in US dollars, by payer."""
        query = select(t.reservations.c.payer, func.sum(t.reservations.c.usd)).group_by(
            t.reservations.c.payer
        )
        with self._engine.connect() as connection:
            return {payer: usd for payer, usd in connection.execute(query)}

    async def reserve(
        self, key: str, usd: float, *, budget_usd: float = math.inf
    ) -> Reservation | None:
        """Put money aside for a request; when this returns, no kill or power cut can undo it.

        Args:
            key: Of the request.
            usd: The most that it can cost.
            budget_usd: What all processes of the payer may spend together.

        Returns:
            None where they have not left enough.
        """
        if self._not_added >= _MOST_ADDED_ANEW:
            self._add_up()
        self._not_added += 1
        reservation = Reservation(id=uuid.uuid4().hex, usd=usd)
        if await self._insert(reservation, key, budget_usd):
            return reservation
        self._seen, self._billed = 0, 0.0  # rows may have been deleted meanwhile
        self._add_up()
        return reservation if await self._insert(reservation, key, budget_usd) else None

    def _add_up(self) -> None:
        about = {"payer": self._payer, "seen": self._seen, "most": MOST_USD}
        with self._engine.connect() as connection:
            self._seen, billed = connection.execute(_BILLED_SINCE, about).one()
        self._billed += billed
        self._not_added = 0

    async def _insert(self, reservation: Reservation, key: str, budget_usd: float) -> bool:
        row = {
            "id": reservation.id,
            "payer": self._payer,
            "key": key,
            "usd": reservation.usd,
            "billed": self._billed,
            "seen": self._seen,
            "most": MOST_USD,
            "budget": budget_usd + 10**-DIGITS,
        }
        try:
            written = self._writer.submit([(_RESERVE, [row])], lasting=True)
            return await asyncio.wrap_future(written) > 0
        except BaseException:
            self.release(reservation)  # what was not sent costs nothing
            raise

    def release(self, reservation: Reservation) -> None:
        """Give back what a request did not cost; lost in a kill, it counts as spent."""
        self._writer.submit(self.settle_writes(reservation, 0.0))

    def keep_as_spent(self, reservation: Reservation, usd: float | None) -> None:
        """Let a reservation stand for what a paid call cost that is not stored."""
        if usd is not None:
            ours = t.reservations.c.id == reservation.id
            self._writer.submit([(update(t.reservations).where(ours).values(usd=usd), None)])

    @staticmethod
    def settle_writes(reservation: Reservation, usd: float | None) -> list[Write]:
        """Return what ends a reservation, to go with the record of a call that cost so much.

        Where nobody knows what it cost, the reservation stands for it.
        """
        if usd is None:
            return []
        return [(delete(t.reservations).where(t.reservations.c.id == reservation.id), None)]


def insert_lasting_reservation(key: str) -> Insert:
    """Return what lets the cost of a damaged row stay spent: a reservation that outlives it."""
    row = select(literal(uuid.uuid4().hex), t.calls.c.paid_by, t.calls.c.key, t.calls.c.usd)
    paid = row.where(t.calls.c.key == key, t.calls.c.usd > 0, t.calls.c.usd <= MOST_USD)
    return insert(t.reservations).from_select(["id", "payer", "key", "usd"], paid)


Origin = Literal["sent", "shared", "stored"]
"""Where a call came from: sent for this caller, for another one meanwhile, or earlier."""
_READ_AT_ONCE = 200


def open_calls(path: Path, payer: str = "") -> "CallStore":
    """Open the call store in a file, or create it there.

    Args:
        path: The file.
        payer: The run whose calls are put into it; they carry its name as `paid_by`.

    Raises:
        RunCorrupt: the file is damaged or no call store; it is left as it is.
    """
    refuse_special_file(path.resolve())  # one's own may be reached by a link
    path.parent.mkdir(parents=True, exist_ok=True)
    url = str(URL.create("sqlite", database=str(path)))
    engine = open_engine(url, checked=True, flushing=False)
    return CallStore(engine, payer)


def describe_damage(rows: int) -> str:
    """Return what to tell people of damaged rows, on one line; empty where there are none.

    Args:
        rows: How many there are, as `CallStore.corrupt_rows` counts them.
    """
    told = f"damaged rows in the call store: {rows}; what they held is asked again when needed"
    return f"{told} (coreeval calls gc removes them)" if rows else ""


class CallStore:
    """Calls by key; one writer commits, any number of readers look up."""

    def __init__(self, engine: Engine, payer: str = "") -> None:
        prepare_database(engine, t.CALL_SCHEMA, what="the call store")
        explain_errors(engine, what="the call store")
        self._engine = engine
        self._payer = payer
        self._writer = BatchWriter(engine)
        self.ledger = Ledger(engine, self._writer, payer)
        self._add = InsertStatement(engine, t.calls, twice="fails")
        self._add_text = InsertStatement(engine, t.texts, twice="replaces")
        self._add_ability = InsertStatement(engine, t.abilities, twice="replaces")
        self._find = LookupStatement(engine, select(t.calls).where(t.calls.c.key == bindparam("k")))
        self._texts: dict[str, str] = {}
        """Shared texts that are known to be in the file, by their hash."""
        self._damaged: set[str] = set()
        """Keys of rows that are damaged and were not yet asked for again."""
        self._corrupt: set[str] = set()
        self._flights: dict[str, asyncio.Task[CallRecord]] = {}

    @property
    def corrupt_rows(self) -> int:
        """How many rows were found not to match their checksum and not yet asked for again."""
        return len(self._damaged)

    @property
    def corrupt_found(self) -> int:
        """How many rows were found not to match their checksum since the store was opened."""
        return len(self._corrupt)

    def get(self, key: str) -> CallRecord | None:
        """Return the call with this key, or None where there is none that is whole."""
        row = self._find.one(key)
        return self._decode(row) if row else None

    def records(self) -> Iterator[CallRecord]:
        """Yield every whole call, by the time it was started.

        No connection is held between two of them: whoever looks at the first few may just stop.
        """
        ordered = select(t.calls.c.key).order_by(t.calls.c.started_at, t.calls.c.key)
        with self._engine.connect() as connection:
            keys = list(connection.scalars(ordered))
        yield from filter(None, map(self._find_or_note_damage, keys))

    def records_of(self, keys: Sequence[str]) -> Iterator[CallRecord]:
        """Yield the whole calls among these keys, in their order; likewise without a connection."""
        yield from filter(None, map(self.get, keys))

    def count_missing(self, keys: Sequence[str]) -> int:
        """Return how many of these keys have no row."""
        there = 0
        for first in range(0, len(keys), _READ_AT_ONCE):
            asked = t.calls.c.key.in_(keys[first : first + _READ_AT_ONCE])
            with self._engine.connect() as connection:
                there += connection.scalar(select(func.count()).where(asked)) or 0
        return len(keys) - there

    def _find_or_note_damage(self, key: str) -> CallRecord | None:
        """Return the call of a key that is in the file; where it is not found, it is damaged."""
        row = self._find.one(key)
        if row is None:
            self._note_damage(key)
        return self._decode(row) if row else None

    def newest(self, role: str, most: int) -> Iterator[CallRecord]:
        """Yield the whole calls among the last that were stored of a role, in no order."""
        stored = literal_column("rowid", Integer).desc()  # read from the end, not sorted
        query = select(t.calls.c.key).where(t.calls.c.role == role).order_by(stored).limit(most)
        with self._engine.connect() as connection:
            keys = list(connection.scalars(query))
        yield from filter(None, map(self._find_or_note_damage, keys))

    async def put(self, record: CallRecord, reservation: Reservation | None = None) -> CallRecord:
        """Commit a call in the payer's name and return what the store holds under its key.

        That is another record than the one given where another process was faster: the first
        answer stays, since somebody may have used it. The reservation is settled all the same.
        """
        record = replace(record, paid_by=self._payer)
        row, texts = encode_record(record)
        new = {sha: text for sha, text in texts.items() if sha not in self._texts}
        rows = [{"sha256": sha, "body": compress(text)} for sha, text in new.items()]
        settled = self.ledger.settle_writes(reservation, record.usd) if reservation else []
        repair: list[Write] = []
        if record.key in self._damaged:
            damaged = delete(t.calls).where(t.calls.c.key == record.key)
            repair = [(insert_lasting_reservation(record.key), None), (damaged, None)]
        writes = [*settled, *repair, (self._add_text, rows), (self._add, [row])]
        try:
            await asyncio.wrap_future(self._writer.submit(writes))
        except IntegrityError:
            if reservation:  # it was paid for twice, once by each process
                self.ledger.keep_as_spent(reservation, record.usd)
            return self.get(record.key) or record
        self._texts.update(new)
        self._damaged.discard(record.key)
        return record

    async def answer(
        self, key: str, send: Callable[[], Coroutine[Any, Any, CallRecord]]
    ) -> tuple[CallRecord, Origin]:
        """Return the stored call, or send it once; and which of these it was.

        Callers with the same key share one call. It runs on where its callers are cancelled: it
        is paid for, so its answer is kept.

        Args:
            key: Of the request.
            send: Sends the request, commits the call with `put`, and returns what `put` does.
        """
        if (flight := self._flights.get(key)) is not None:
            return await asyncio.shield(flight), "shared"
        if (stored := self.get(key)) is not None:
            return stored, "stored"
        flight = asyncio.ensure_future(send())
        self._flights[key] = flight
        flight.add_done_callback(lambda done: self._end_flight(key, done))
        return await asyncio.shield(flight), "sent"

    def _end_flight(self, key: str, flight: "asyncio.Task[CallRecord]") -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # seen here, because its callers may all be gone

    # -- what was found out about models --------------------------------------------------------

    def ability(self, endpoint: str, model: str) -> dict[str, str]:
        """Return what was learnt about a model at an endpoint."""
        query = select(t.abilities.c.name, t.abilities.c.value).where(
            t.abilities.c.endpoint == endpoint, t.abilities.c.model == model
        )
        with self._engine.connect() as connection:
            return {name: value for name, value in connection.execute(query)}

    def learn(self, endpoint: str, model: str, found: dict[str, str]) -> None:
        """Remember what was learnt about a model."""
        rows = [
            {"endpoint": endpoint, "model": model, "name": name, "value": value}
            for name, value in found.items()
        ]
        self._writer.submit([(self._add_ability, rows)])

    def close(self) -> None:
        """Commit what waits and let go of the file."""
        try:
            self._writer.close()
        finally:
            self._find.close()
            self._engine.dispose()

    def _decode(self, row: Row) -> CallRecord | None:
        try:
            return decode_record(row, self._text)
        except (ValueError, TypeError, KeyError):
            self._note_damage(row["key"])
            return None

    def _note_damage(self, key: str) -> None:
        self._damaged.add(key)
        self._corrupt.add(key)

    def _text(self, sha: str) -> str:
        """Return a shared text.

        Raises:
            ValueError: it is damaged or gone.
        """
        if sha not in self._texts:
            query = select(t.texts.c.body).where(t.texts.c.sha256 == sha)
            with self._engine.connect() as connection:
                body = connection.execute(query).scalar_one_or_none()
            text = decompress(body) if body is not None else ""
            if text_hash(text) != sha:
                raise ValueError("the instructions of the request are damaged")
            self._texts[sha] = text
        return self._texts[sha]
