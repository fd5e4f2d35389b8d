"""The call store, calls.db: model calls by the hash of their requests, and what runs spent.

Each row has a checksum; a row that does not match it counts as missing, so that a damaged answer is
requested again and never used. A committed answer is never paid for twice. The most that a request
may cost is committed before it is sent.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sqlalchemy import (
    Engine,
    Integer,
    bindparam,
    delete,
    func,
    literal_column,
    select,
)
from sqlalchemy.exc import IntegrityError

from coreeval.errors import RunStateError
from coreeval.tools.chunks import chunks
from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores.batch_writer import BatchWriter, Write
from coreeval.tools.stores.call_batches import CallBatches
from coreeval.tools.stores.call_ledger import Ledger, Reservation, insert_lasting_reservation
from coreeval.tools.stores.call_records import (
    CallRecord,
    compress,
    decode_record,
    decompress,
    encode_record,
    text_hash,
)
from coreeval.tools.stores.heartbeat import refuse_special_file
from coreeval.tools.stores.places import StoreKind, store_kind
from coreeval.tools.stores.prepared_statements import InsertStatement, LookupStatement
from coreeval.tools.stores.sqlite import Row, create_store, is_postgresql, open_store

Origin = Literal["sent", "shared", "stored"]
"""The origin of a call: sent for this caller, shared with another one, or stored earlier."""
_Flight: TypeAlias = "asyncio.Task[tuple[CallRecord, Origin]]"
_READ_AT_ONCE = 200
_WHAT = "the call store"
_KIND_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def open_calls(path: Path, payer: str = "") -> "CallStore":
    """Open the call store in a file, creating it if needed.

    Args:
        path: The file.
        payer: The run whose calls are stored; they record its name as `paid_by`.

    Raises:
        RunCorrupt: the file is damaged or not a call store; it is not changed.
        RunStateError: calls should be stored, and the folder that names the store is a copy.
    """
    refuse_special_file(path.resolve())  # the user's own file may be reached by a link
    path.parent.mkdir(parents=True, exist_ok=True)
    return CallStore(open_store(path, t.CALL_SCHEMA, what=_WHAT, checked=True), payer)


def create_calls(path: Path, kind: StoreKind) -> None:
    """Create the call store of a workspace if it has none; it can have only one.

    Raises:
        RunStateError: it has a store of the other kind.
        ConfigError: it should be in PostgreSQL, and `COREEVAL_STORE_URL` is missing.
        RunError: the database cannot be used.
    """
    there = store_kind(path)
    if there is None and kind == "postgresql":
        create_store(path, t.CALL_SCHEMA, what=_WHAT)
    elif there not in (None, kind):
        raise RunStateError(
            f"the answers of this workspace are in {_KIND_NAMES[there]}, "
            f"not in {_KIND_NAMES[kind]}",
            where="run.store",
            hint=f"set run.store: {there}, or use another workspace with COREEVAL_HOME=DIR",
        )


def describe_damage(rows: int) -> str:
    """Return a message about damaged rows on one line; "" if there are none.

    Args:
        rows: The number of damaged rows, as in `CallStore.corrupt_rows`.
    """
    told = f"damaged rows in the call store: {rows}; their calls are sent again when needed"
    return f"{told} (`coreeval calls gc` removes the damaged rows)" if rows else ""


class CallStore:
    """Calls by key, with one writer and any number of readers."""

    def __init__(self, engine: Engine, payer: str = "") -> None:
        self._engine = engine
        self._payer = payer
        self._reads_remotely = is_postgresql(engine)
        with ExitStack() as opened:  # closed if the store cannot be used
            opened.callback(engine.dispose)
            self._writer = BatchWriter(engine, lock="shared", on_lost=self._forget_texts)
            opened.callback(self._writer.close)
            if payer:
                self._writer.claim()
            opened.pop_all()
        self.ledger = Ledger(engine, self._writer, payer)
        self.batches = CallBatches(engine, self._writer, self.ledger, payer)
        self._add = InsertStatement(engine, t.calls, twice="fails")
        self._add_text = InsertStatement(engine, t.texts, twice="replaces")
        self._add_ability = InsertStatement(engine, t.abilities, twice="replaces")
        by_key = select(t.calls).where(t.calls.c.key == bindparam("k"))
        self._find = LookupStatement(engine, by_key, as_stored=True)
        self._texts: dict[str, str] = {}
        """The shared texts known to be in the file, by hash."""
        self._damaged: set[str] = set()
        """The keys of damaged rows that have not been requested again."""
        self._corrupt: set[str] = set()
        self._flights: dict[str, _Flight] = {}

    def _forget_texts(self) -> None:
        """Clear the memory of stored texts, since they may have been deleted meanwhile."""
        self._texts = {}

    @property
    def payer(self) -> str:
        """The run that pays for stored calls."""
        return self._payer

    @property
    def corrupt_rows(self) -> int:
        """The number of rows that do not match their checksum and have not been requested again."""
        return len(self._damaged)

    @property
    def corrupt_found(self) -> int:
        """The number of rows found not to match their checksum since the store was opened."""
        return len(self._corrupt)

    def get(self, key: str, request: str = "") -> CallRecord | None:
        """Return the call with this key; None if it is missing or damaged.

        Args:
            key: The key.
            request: The request, if it is known; it is then not read from the store.
        """
        row = self._find.one(key)
        return self._decode(row, request) if row else None

    async def find(self, key: str, request: str = "") -> CallRecord | None:
        """Return the same as `get`; a remote database is read in a thread."""
        if self._reads_remotely:
            return await asyncio.to_thread(self.get, key, request)
        return self.get(key, request)

    def records(self) -> Iterator[CallRecord]:
        """Yield every undamaged call in order of its start.

        No connection is held between two calls, so callers may stop early.
        """
        ordered = select(t.calls.c.key).order_by(t.calls.c.started_at, t.calls.c.key)
        with self._engine.connect() as connection:
            keys = list(connection.scalars(ordered))
        yield from filter(None, map(self._find_or_note_damage, keys))

    def records_of(self, keys: Sequence[str]) -> Iterator[CallRecord]:
        """Yield the undamaged calls among these keys, in order, without holding a connection."""
        yield from filter(None, map(self.get, keys))

    def count_missing(self, keys: Sequence[str]) -> int:
        """Return the number of these keys without a row."""
        there = 0
        for some in chunks(keys, _READ_AT_ONCE):
            asked = t.calls.c.key.in_(some)
            with self._engine.connect() as connection:
                there += connection.scalar(select(func.count()).where(asked)) or 0
        return len(keys) - there

    def _find_or_note_damage(self, key: str) -> CallRecord | None:
        """Return the call of a key in the file; if its row is damaged, record that."""
        row = self._find.one(key)
        if row is None:
            self._note_damage(key)
        return self._decode(row) if row else None

    def newest(
        self, role: str, most: int, payers: Sequence[str] | None = None
    ) -> Iterator[CallRecord]:
        """Yield the undamaged calls among the last stored ones of a role, in any order.

        Args:
            role: The role.
            most: The most calls to look at.
            payers: Only calls that these payers sent; None for all.
        """
        stored = literal_column("rowid", Integer).desc()  # reads from the end instead of sorting
        query = select(t.calls.c.key).where(t.calls.c.role == role).order_by(stored).limit(most)
        if payers is not None:
            query = query.where(t.calls.c.paid_by.in_(payers))
        with self._engine.connect() as connection:
            keys = list(connection.scalars(query))
        yield from filter(None, map(self._find_or_note_damage, keys))

    async def put(
        self,
        record: CallRecord,
        reservation: Reservation | None = None,
        also: Sequence[Write] = (),
    ) -> CallRecord:
        """Commit a call in the payer's name and return the call stored under its key.

        If another process stored one first, that record is returned and kept, since somebody may
        have used it. The reservation is settled either way.

        Args:
            record: The call.
            reservation: The reservation for it.
            also: Writes to commit in the same transaction.
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
        writes = [*settled, *repair, *also, (self._add_text, rows), (self._add, [row])]
        try:
            await asyncio.wrap_future(self._writer.submit(writes))
        except IntegrityError:
            stored = await self.find(record.key)
            if stored == record:  # written before the connection was lost
                return record
            if reservation:  # paid for twice, once by each process
                self.ledger.keep_as_spent(reservation, record.usd)
            return stored or record
        self._texts.update(new)
        self._damaged.discard(record.key)
        return record

    def is_in_flight(self, key: str) -> bool:
        """Return whether this process has sent the request and has no answer yet."""
        return key in self._flights

    async def answer(
        self, key: str, send: Callable[[], Coroutine[Any, Any, CallRecord]], request: str = ""
    ) -> tuple[CallRecord, Origin]:
        """Return the stored call, or send and commit it; also return which of these happened.

        Callers with the same key share one call. It continues if its callers are cancelled: it is
        paid for, so its answer is stored.

        Args:
            key: The key of the request.
            send: Sends the request, commits the call with `put`, and returns what `put` returns.
            request: The request, if it is known.
        """
        if (flight := self._flights.get(key)) is not None:
            return (await asyncio.shield(flight))[0], "shared"
        if not self._reads_remotely and (stored := self.get(key, request)) is not None:
            return stored, "stored"
        flight = asyncio.ensure_future(self._find_or_send(key, send, request))
        self._flights[key] = flight
        flight.add_done_callback(lambda done: self._end_flight(key, done))
        return await asyncio.shield(flight)

    async def _find_or_send(
        self, key: str, send: Callable[[], Coroutine[Any, Any, CallRecord]], request: str
    ) -> tuple[CallRecord, Origin]:
        """Return the result of `answer` for the first caller with this key."""
        if self._reads_remotely and (stored := await self.find(key, request)) is not None:
            return stored, "stored"
        return await send(), "sent"

    def _end_flight(self, key: str, flight: "_Flight") -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # retrieved here, because its callers may all be gone

    # -- what was found out about models --------------------------------------------------------

    def ability(self, endpoint: str, model: str) -> dict[str, str]:
        """Return what is known about a model at an endpoint."""
        query = select(t.abilities.c.name, t.abilities.c.value).where(
            t.abilities.c.endpoint == endpoint, t.abilities.c.model == model
        )
        with self._engine.connect() as connection:
            return {name: value for name, value in connection.execute(query)}

    def learn(self, endpoint: str, model: str, found: dict[str, str]) -> None:
        """Store what is known about a model."""
        rows = [
            {"endpoint": endpoint, "model": model, "name": name, "value": value}
            for name, value in found.items()
        ]
        self._writer.submit([(self._add_ability, rows)])

    def close(self) -> None:
        """Commit the queued writes and close the file."""
        try:
            self._writer.close()
        finally:
            self._find.close()
            self.batches.close()
            self._engine.dispose()

    def _decode(self, row: Row, request: str = "") -> CallRecord | None:
        try:
            return decode_record(row, self._text, request)
        except (ValueError, TypeError, KeyError):
            self._note_damage(row["key"])
            return None

    def _note_damage(self, key: str) -> None:
        self._damaged.add(key)
        self._corrupt.add(key)

    def _text(self, sha: str) -> str:
        """Return a shared text.

        Raises:
            ValueError: the text is damaged or missing.
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
