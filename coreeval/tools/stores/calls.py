"""The call store: every model call by the hash of what was asked, written before it is used.

A row carries a checksum of its own: one that does not match counts as absent, so that a damaged
answer is asked for again and never used. What was answered and committed is never paid for twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sqlalchemy import Engine, Integer, bindparam, delete, func, literal_column, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores.call_rows import (
    CallRecord,
    decoded,
    encoded,
    packed,
    text_hash,
    unpacked,
)
from coreeval.tools.stores.ledger import Ledger, Reservation, outliving
from coreeval.tools.stores.prepared import PreparedInsert, PreparedLookup
from coreeval.tools.stores.sql import (
    Row,
    Write,
    Writer,
    explain_errors,
    migrate,
    open_engine,
)

Origin = Literal["sent", "shared", "stored"]
"""Where a call came from: sent for this caller, for another one meanwhile, or earlier."""
_READ_AT_ONCE = 200


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A call that came back, and the reservation that its record settles."""

    record: CallRecord
    reservation: Reservation | None = None


def open_calls(path: Path, payer: str = "") -> "CallStore":
    """Open the call store in a file, or create it there.

    Args:
        path: The file.
        payer: The run whose calls are put into it; they carry its name as `paid_by`.

    Raises:
        RunCorrupt: the file is damaged or no call store; it is left as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    url = str(URL.create("sqlite", database=str(path)))
    engine = open_engine(url, checked=True, flushing=False)
    return CallStore(engine, payer)


def damage_note(rows: int) -> str:
    """Return what to tell people of damaged rows, on one line; empty where there are none.

    Args:
        rows: How many there are, as `CallStore.corrupt_rows` counts them.
    """
    told = f"damaged rows in the call store: {rows}; what they held is asked again when needed"
    return f"{told} (coreeval calls gc removes them)" if rows else ""


class CallStore:
    """Calls by key; one writer commits, any number of readers look up."""

    def __init__(self, engine: Engine, payer: str = "") -> None:
        migrate(engine, t.MIGRATIONS, what="the call store")
        explain_errors(engine, what="the call store")
        self._engine = engine
        self._payer = payer
        self._writer = Writer(engine)
        self.ledger = Ledger(engine, self._writer, payer)
        self._add = PreparedInsert(engine, t.calls, twice="fails")
        self._add_text = PreparedInsert(engine, t.texts, twice="replaces")
        self._add_ability = PreparedInsert(engine, t.abilities, twice="replaces")
        self._find = PreparedLookup(engine, select(t.calls).where(t.calls.c.key == bindparam("k")))
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
        yield from filter(None, map(self._listed, keys))

    def records_of(self, keys: Sequence[str]) -> Iterator[CallRecord]:
        """Yield the whole calls among these keys, in their order; likewise without a connection."""
        yield from filter(None, map(self.get, keys))

    def lacking(self, keys: Sequence[str]) -> int:
        """Return how many of these keys have no row."""
        there = 0
        for first in range(0, len(keys), _READ_AT_ONCE):
            asked = t.calls.c.key.in_(keys[first : first + _READ_AT_ONCE])
            with self._engine.connect() as connection:
                there += connection.scalar(select(func.count()).where(asked)) or 0
        return len(keys) - there

    def _listed(self, key: str) -> CallRecord | None:
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
        yield from filter(None, map(self._listed, keys))

    async def put(self, record: CallRecord, reservation: Reservation | None = None) -> CallRecord:
        """Commit a call in the payer's name and return what the store holds under its key.

        That is another record than the one given where another process was faster: the first
        answer stays, since somebody may have used it. The reservation is settled all the same.
        """
        record = replace(record, paid_by=self._payer)
        row, texts = encoded(record)
        new = {sha: text for sha, text in texts.items() if sha not in self._texts}
        rows = [{"sha256": sha, "body": packed(text)} for sha, text in new.items()]
        settled = self.ledger.settling(reservation, record.usd) if reservation else []
        repair: list[Write] = []
        if record.key in self._damaged:
            damaged = delete(t.calls).where(t.calls.c.key == record.key)
            repair = [(outliving(record.key), None), (damaged, None)]
        writes = [*settled, *repair, (self._add_text, rows), (self._add, [row])]
        try:
            await asyncio.wrap_future(self._writer.submit(writes))
        except IntegrityError:
            if reservation:  # it was paid for twice, once by each process
                self.ledger.spent_in_vain(reservation, record.usd)
            return self.get(record.key) or record
        self._texts.update(new)
        self._damaged.discard(record.key)
        return record

    async def answer(
        self, key: str, send: Callable[[], Awaitable[Answered]]
    ) -> tuple[CallRecord, Origin]:
        """Return the stored call, or send it once and commit it; and which of these it was.

        Callers with the same key share one call. It runs on where its callers are cancelled: it
        is paid for, so its answer is kept.
        """
        if (flight := self._flights.get(key)) is not None:
            return await asyncio.shield(flight), "shared"
        if (stored := self.get(key)) is not None:
            return stored, "stored"
        flight = asyncio.ensure_future(self._send(send))
        self._flights[key] = flight
        flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight), "sent"

    async def _send(self, send: Callable[[], Awaitable[Answered]]) -> CallRecord:
        done = await send()
        return await self.put(done.record, done.reservation)

    def _landed(self, key: str, flight: "asyncio.Task[CallRecord]") -> None:
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
            return decoded(row, self._text)
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
            text = unpacked(body) if body is not None else ""
            if text_hash(text) != sha:
                raise ValueError("the instructions of the request are damaged")
            self._texts[sha] = text
        return self._texts[sha]
