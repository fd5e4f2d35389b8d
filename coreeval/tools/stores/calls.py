"""The call store: every model call by the hash of what was asked, written before it is used.

A row carries a checksum of its own: one that does not match counts as absent, so that a damaged
answer is asked for again and never used. What was answered and committed is never paid for twice.
"""

import asyncio
import hashlib
import json
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from coreeval.tools.stores.sql import (
    Migration,
    Row,
    Writer,
    explain_errors,
    migrate,
    open_engine,
)

Json = Mapping[str, object]
Messages = Sequence[Mapping[str, str]]
Origin = Literal["sent", "shared", "stored"]
"""Where a call came from: sent for this caller, for another one meanwhile, or earlier."""

_READ_AT_ONCE = 200
_METADATA = MetaData()
_CALLS = Table(
    "calls",
    _METADATA,
    Column("key", String(64), primary_key=True),
    Column("draw", Integer, nullable=False),
    Column("role", String(64), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
    Column("valid", Boolean, nullable=False),
    Column("error", Text, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("model_returned", Text, nullable=False),
    Column("finish_reason", Text, nullable=False),
    Column("started_at", String(40), nullable=False),
    Column("seconds", Float, nullable=False),
    Column("checksum", String(64), nullable=False),
    Column("paid_by", Text, nullable=False, server_default=""),
)


def _create(connection: Connection) -> None:
    _METADATA.create_all(connection)


def _add_payer(connection: Connection) -> None:
    """Add `paid_by` to a file of version 1; a new file is created with it."""
    if "paid_by" not in {column["name"] for column in inspect(connection).get_columns("calls")}:
        connection.execute(text("ALTER TABLE calls ADD COLUMN paid_by TEXT NOT NULL DEFAULT ''"))


MIGRATIONS: tuple[Migration, ...] = (_create, _add_payer)


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """One call as it is kept: what was asked, what came back and whether it was an answer."""

    key: str
    draw: int
    role: str
    request: str
    """Canonical JSON of what was asked; holds no key and no header."""
    response: str
    """The model's words, as they came."""
    valid: bool
    error: str = ""
    """Why it is no answer: `truncated`, `refusal`, `empty` or `invalid: …`."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the provider had in its own cache (part of `prompt_tokens`)."""
    completion_tokens: int = 0
    model_returned: str = ""
    finish_reason: str = ""
    started_at: str = ""
    seconds: float = 0.0
    paid_by: str = ""
    """The run that the call was sent for, as the store was opened; empty where nobody said."""


def canonical(value: Json) -> str:
    """Return JSON that is the same for equal values, whatever the order of their keys."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def call_request(
    *,
    provider: str,
    endpoint: str,
    model: str,
    parameters: Json,
    schema: Json,
    messages: Messages,
    draw: int,
) -> str:
    """Return the canonical JSON of a request: all that decides its answer."""
    return canonical(
        {
            "provider": provider,
            "endpoint": endpoint,
            "model": model,
            "parameters": parameters,
            "schema": schema,
            "messages": list(messages),
            "draw": draw,
        }
    )


def call_key(request: str) -> str:
    """Return the key of a request made by `call_request`."""
    return hashlib.sha256(request.encode()).hexdigest()


def open_calls(path: Path, payer: str = "") -> "CallStore":
    """Open the call store in a file, or create it there.

    Args:
        path: The file.
        payer: The run whose calls are put into it; they carry its name as `paid_by`.

    Raises:
        RunCorrupt: the file is damaged or no call store; it is left as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return CallStore(open_engine(str(URL.create("sqlite", database=str(path)))), payer)


class CallStore:
    """Calls by key; one writer commits, any number of readers look up."""

    def __init__(self, engine: Engine, payer: str = "") -> None:
        migrate(engine, MIGRATIONS, what="the call store")
        explain_errors(engine, what="the call store")
        self._engine = engine
        self._payer = payer
        self._writer = Writer(engine)
        self._damaged: set[str] = set()
        self._corrupt_rows = 0
        self._flights: dict[str, asyncio.Task[CallRecord]] = {}

    @property
    def corrupt_rows(self) -> int:
        """How many rows were found not to match their checksum, and were treated as absent."""
        return self._corrupt_rows

    def get(self, key: str) -> CallRecord | None:
        """Return the call with this key, or None where there is none that is whole."""
        with self._engine.connect() as connection:
            row = connection.execute(select(_CALLS).where(_CALLS.c.key == key)).mappings()
            found = row.one_or_none()
        return self._decode(found) if found else None

    def records(self) -> Iterator[CallRecord]:
        """Yield every whole call, by the time it was started.

        No connection is held between two of them: whoever looks at the first few may just stop.
        """
        ordered = select(_CALLS.c.key).order_by(_CALLS.c.started_at, _CALLS.c.key)
        with self._engine.connect() as connection:
            keys = list(connection.scalars(ordered))
        for first in range(0, len(keys), _READ_AT_ONCE):
            yield from self._several(keys[first : first + _READ_AT_ONCE])

    def _several(self, keys: Sequence[str]) -> list[CallRecord]:
        """Return the whole calls among these, in the order of the keys."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(_CALLS).where(_CALLS.c.key.in_(keys))).mappings()
            found = {row["key"]: self._decode(row) for row in rows}
        return [record for key in keys if (record := found.get(key))]

    async def put(self, record: CallRecord) -> CallRecord:
        """Commit a call in the payer's name and return what the store holds under its key.

        That is another record than the one given where another process was faster: the first
        answer stays, since somebody may have used it.
        """
        record = replace(record, paid_by=self._payer)
        remove = delete(_CALLS).where(_CALLS.c.key == record.key)
        repair = [(remove, None)] if record.key in self._damaged else []
        writes = [*repair, (insert(_CALLS), _encode(record))]
        try:
            await asyncio.wrap_future(self._writer.submit_all(writes))
        except IntegrityError:
            return self.get(record.key) or record
        self._damaged.discard(record.key)
        return record

    async def answer(
        self, key: str, send: Callable[[], Awaitable[CallRecord]]
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

    async def _send(self, send: Callable[[], Awaitable[CallRecord]]) -> CallRecord:
        return await self.put(await send())

    def _landed(self, key: str, flight: "asyncio.Task[CallRecord]") -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # seen here, because its callers may all be gone

    def close(self) -> None:
        """Commit what waits and let go of the file."""
        self._writer.close()
        self._engine.dispose()

    def _decode(self, row: RowMapping) -> CallRecord | None:
        try:
            values = _decoded(row)
            whole = _checksum(values) == row["checksum"]
        except (zlib.error, ValueError, TypeError):
            whole = False
        if whole:
            return values
        self._corrupt_rows += row["key"] not in self._damaged
        self._damaged.add(row["key"])
        return None


def _encode(record: CallRecord) -> Row:
    packed = {
        "request": zlib.compress(record.request.encode()),
        "response": zlib.compress(record.response.encode()),
        "checksum": _checksum(record),
    }
    return vars(record) | packed


def _decoded(row: RowMapping) -> CallRecord:
    values = {name: value for name, value in row.items() if name != "checksum"}
    unpacked = {name: zlib.decompress(row[name]).decode() for name in ("request", "response")}
    return CallRecord(**(values | unpacked))


def _checksum(record: CallRecord) -> str:
    """Return the checksum of a record; an empty payer adds nothing, as before there were payers."""
    values = vars(record) | {"seconds": float(record.seconds)}
    if not record.paid_by:
        del values["paid_by"]
    return hashlib.sha256(canonical(values).encode()).hexdigest()
