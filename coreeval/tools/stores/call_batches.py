"""The batches of the call store: queued questions, and batches that were sent.

A question is queued, becomes part of a batch, and gets its answer when the batch is collected. The
answer stays here until the question is asked again, which stores it as a call. One transaction
reserves a batch's cost and records its questions as being sent, before it is sent.
"""

import asyncio
import math
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from sqlalchemy import ColumnElement, Engine, bindparam, delete, func, select, text, update

from coreeval.tools.chunks import chunks
from coreeval.tools.files import decompress_within
from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores.batch_records import (
    LIVE,
    OPEN_STAGES,
    TOO_MUCH,
    Batch,
    BatchedRequest,
    CollectedAnswer,
    QueuedRequest,
    QueueLength,
    SentRequest,
)
from coreeval.tools.stores.batch_writer import BatchWriter, Write
from coreeval.tools.stores.call_ledger import Ledger, Reservation
from coreeval.tools.stores.prepared_statements import InsertStatement, LookupStatement
from coreeval.tools.stores.sqlite import Row

PROCESS = uuid.uuid4().hex
"""This process, which only sends questions that it has queued itself."""
_LEVEL = 1
_ROWS_AT_ONCE = 500
_CREATE = text(
    "INSERT INTO batches "
    "(id, payer, endpoint, model, key_env, state, total, most_usd, folder, made_at) "
    "SELECT :id, :payer, :endpoint, :model, :key_env, 'sending', :total, :most_usd, :folder, "
    ":made_at "
    "WHERE :free = 1 OR EXISTS (SELECT 1 FROM reservations WHERE id = :id) "
    "ON CONFLICT (id) DO NOTHING"
)
_TAKE = text(
    "UPDATE batch_requests SET batch = :id WHERE payer = :payer AND key = :key AND batch = '' "
    "AND EXISTS (SELECT 1 FROM batches WHERE id = :id)"
)
_RESERVE_EACH = text(
    "INSERT INTO reservations (id, payer, key, usd, made_at) "
    "SELECT q.reservation, q.payer, q.key, q.most_usd, whole.made_at "
    "FROM batch_requests AS q JOIN reservations AS whole ON whole.id = q.batch "
    "WHERE q.batch = :id AND q.most_usd IS NOT NULL ON CONFLICT (id) DO NOTHING"
)
_DIVIDED = text("DELETE FROM reservations WHERE id = :id")
_KEEP_ANSWER = text(
    "UPDATE batch_requests SET answer = :answer, usd = :usd "
    "WHERE payer = :payer AND key = :key AND batch = :id"
)
_KEEP_COST = text("UPDATE reservations SET usd = :usd WHERE id = :reservation")
_RELEASE = text("DELETE FROM reservations WHERE id = :reservation")
_PUT_BACK = text(
    "UPDATE batch_requests SET batch = :to, process = :process, tries = :tries "
    "WHERE payer = :payer AND key = :key AND batch = :id AND answer IS NULL"
)
_FORGET = text("DELETE FROM batch_requests WHERE payer = :payer AND key = :key")


class CallBatches:
    """The batches and queued questions of one payer."""

    def __init__(self, engine: Engine, writer: BatchWriter, ledger: Ledger, payer: str) -> None:
        self._engine, self._writer, self._ledger, self._payer = engine, writer, ledger, payer
        self._add = InsertStatement(engine, t.batch_requests, twice="replaces")
        self._find: LookupStatement | None = None

    # -- questions ----------------------------------------------------------------------------

    def find(self, key: str) -> BatchedRequest | None:
        """Return the state of a question; None if it is neither queued nor in a batch."""
        if self._find is None:
            wanted = select(*(column for column in t.batch_requests.c if column.name != "body"))
            self._find = LookupStatement(
                self._engine,
                wanted.where(
                    t.batch_requests.c.payer == bindparam("p"),
                    t.batch_requests.c.key == bindparam("k"),
                ),
            )
        row = self._find.one(self._payer, key)
        if row is None:
            return None
        known = row["most_usd"] is not None and row["batch"] not in ("", LIVE)
        return BatchedRequest(
            batch=row["batch"],
            process=row["process"],
            method=row["method"],
            plain_limit=bool(row["plain_limit"]),
            tries=row["tries"].splitlines(),
            reservation=Reservation(id=row["reservation"], usd=row["most_usd"]) if known else None,
            answer=row["answer"] and decompress_within(row["answer"]),
            usd=row["usd"],
        )

    def is_queued_here(self, found: BatchedRequest) -> bool:
        """Return whether this process has queued a question and will send it."""
        return not found.batch and found.process == PROCESS

    async def queue(self, request: QueuedRequest) -> None:
        """Queue a question for the next batch of its model."""
        values = {each.name: getattr(request, each.name) for each in fields(request)}
        row = values | {
            "payer": self._payer,
            "batch": "",
            "process": PROCESS,
            "body": zlib.compress(request.body, _LEVEL),
            "tries": "\n".join(request.tries),
            "reservation": uuid.uuid4().hex,
            "answer": None,
            "usd": None,
        }
        await asyncio.wrap_future(self._writer.submit([(self._add, [row])]))

    def forget_writes(self, key: str) -> list[Write]:
        """Return the statements that delete a question, to be written with its call."""
        return [(_FORGET, [{"payer": self._payer, "key": key}])]

    async def forget(self, key: str) -> None:
        """Delete a question."""
        await self._write(self.forget_writes(key))

    def queue_lengths(self) -> list[QueueLength]:
        """Return the number of questions queued by this process, by model."""
        c = t.batch_requests.c
        query = (
            select(c.endpoint, c.model, c.key_env, func.count())
            .where(c.payer == self._payer, c.batch == "", c.process == PROCESS)
            .group_by(c.endpoint, c.model, c.key_env)
            .order_by(c.endpoint, c.model, c.key_env)
        )
        with self._engine.connect() as connection:
            return [
                QueueLength(endpoint=endpoint, model=model, key_env=key_env, requests=number)
                for endpoint, model, key_env, number in connection.execute(query)
            ]

    def read_queue(
        self, queue: QueueLength, *, most: int, most_bytes: int
    ) -> list[tuple[str, bytes]]:
        """Return the first questions of a queue, within both limits.

        Returns:
            Their keys and bodies; the bodies are compressed with zlib.
        """
        c, taken, size = t.batch_requests.c, list[tuple[str, bytes]](), 0
        query = (
            select(c.key, c.body)
            .where(
                c.payer == self._payer,
                c.batch == "",
                c.process == PROCESS,
                c.endpoint == queue.endpoint,
                c.model == queue.model,
                c.key_env == queue.key_env,
            )
            .order_by(c.key)
            .limit(most)
        )
        streamed = query.execution_options(yield_per=100)
        with self._engine.connect() as connection, connection.execute(streamed) as rows:
            for key, packed in rows:
                size += len(zlib.decompress(packed))
                if taken and size > most_bytes:
                    break
                taken.append((key, packed))
        return taken

    def most_usd(self, keys: Sequence[str]) -> float | None:
        """Return the most that queued questions can cost together; None if it is not known."""
        c, total = t.batch_requests.c, None
        for some in chunks(keys, _ROWS_AT_ONCE):
            query = select(func.sum(c.most_usd)).where(c.payer == self._payer, c.key.in_(some))
            with self._engine.connect() as connection:
                found = connection.scalar(query)
            total = total if found is None else (total or 0.0) + found
        return total

    async def leave_queue(self, queue: QueueLength) -> None:
        """Mark the questions of a queue to be asked without a batch."""
        c = t.batch_requests.c
        here = update(t.batch_requests).where(
            c.payer == self._payer,
            c.batch == "",
            c.endpoint == queue.endpoint,
            c.model == queue.model,
            c.key_env == queue.key_env,
        )
        await self._write([(here.values(batch=LIVE), None)])

    async def drop_stale(self) -> None:
        """Delete the questions that only earlier processes queued: they are no longer asked."""
        c = t.batch_requests.c
        stale = delete(t.batch_requests).where(
            c.payer == self._payer, c.batch == "", c.process != PROCESS
        )
        await self._write([(stale, None)])

    def count_calls(self) -> int:
        """Return the number of calls that the payer has stored."""
        query = select(func.count()).where(t.calls.c.paid_by == self._payer)
        with self._engine.connect() as connection:
            return connection.scalar(query) or 0

    # -- batches ------------------------------------------------------------------------------

    async def begin(
        self,
        queue: QueueLength,
        keys: Sequence[str],
        *,
        made_at: datetime,
        budget_usd: float | None,
        folder: str = "",
    ) -> Batch | None:
        """Create a batch of queued questions as `sending`, and reserve the most it can cost.

        Args:
            queue: The queue of its model.
            keys: The questions.
            made_at: The time.
            budget_usd: The budget of the run; None for no limit.
            folder: The folder that it is written to, from `Workspace.record_path`; "" if it is sent
                to the endpoint.

        Returns:
            The batch; None if the budget does not cover it: the questions stay queued.
        """
        most = self.most_usd(keys)
        reservation = Reservation(id=uuid.uuid4().hex, usd=most or 0.0)
        about: Row = {
            "id": reservation.id,
            "payer": self._payer,
            "endpoint": queue.endpoint,
            "model": queue.model,
            "key_env": queue.key_env,
            "total": len(keys),
            "most_usd": most,
            "folder": folder,
            "made_at": made_at.isoformat(timespec="milliseconds"),
        }
        writes: list[Write] = []
        if most is not None:
            limit = math.inf if budget_usd is None else budget_usd
            writes = await self._ledger.reserve_writes(reservation, "", limit)
        writes += [
            (_CREATE, [about | {"free": int(most is None)}]),
            (_TAKE, [{"id": reservation.id, "payer": self._payer, "key": key} for key in keys]),
            (_RESERVE_EACH, [{"id": reservation.id}]),
            (_DIVIDED, [{"id": reservation.id}]),
        ]
        await self._write(writes)
        return self.batch(reservation.id)

    def batch(self, batch_id: str) -> Batch | None:
        """Return a batch; None if there is none."""
        return next(iter(self._select(t.batches.c.id == batch_id)), None)

    def open_batches(self) -> list[Batch]:
        """Return the batches that may still have answers, the oldest first."""
        return self._select(t.batches.c.payer == self._payer, t.batches.c.state.in_(OPEN_STAGES))

    def provider_ids(self, endpoint: str) -> set[str]:
        """Return an endpoint's ids of all recorded batches, of all payers."""
        c = t.batches.c
        query = select(c.provider_id).where(c.endpoint == endpoint, c.provider_id != "")
        with self._engine.connect() as connection:
            return set(connection.scalars(query))

    def too_large_batches(self, queue: QueueLength) -> list[Batch]:
        """Return a model's refused batches that the provider might accept later or smaller."""
        return self._select(
            t.batches.c.payer == self._payer,
            t.batches.c.endpoint == queue.endpoint,
            t.batches.c.model == queue.model,
            t.batches.c.key_env == queue.key_env,
            t.batches.c.state == "refused",
            t.batches.c.status == TOO_MUCH,
        )

    def with_files(self) -> list[Batch]:
        """Return the collected batches whose files the provider still has."""
        return self._select(
            t.batches.c.payer == self._payer,
            t.batches.c.files != "",
            t.batches.c.state.not_in(OPEN_STAGES),
        )

    def requests_of(self, batch: Batch) -> dict[str, SentRequest]:
        """Return the questions of a batch by key, including those with an answer."""
        c = t.batch_requests.c
        query = select(
            c.key, c.reservation, c.size, c.max_tokens, c.tries, c.answer.is_not(None)
        ).where(c.payer == self._payer, c.batch == batch.id)
        with self._engine.connect() as connection:
            return {
                key: SentRequest(
                    reservation=reservation,
                    size=size,
                    max_tokens=max_tokens,
                    tries=tries,
                    has_answer=bool(has_answer),
                )
                for key, reservation, size, max_tokens, tries, has_answer in connection.execute(
                    query
                )
            }

    async def update(self, batch: Batch, changes: Row) -> Batch:
        """Change fields of a batch, and return the new batch."""
        ours = update(t.batches).where(t.batches.c.id == batch.id).values(changes)
        await self._write([(ours, None)])
        return Batch(**vars(batch) | changes)

    async def keep(self, batch: Batch, answers: Sequence[CollectedAnswer], changes: Row) -> Batch:
        """Store answers of a batch, with their costs, until their questions are asked again.

        Returns:
            The new batch.
        """
        rows: list[Row] = [
            {
                "id": batch.id,
                "payer": self._payer,
                "key": each.key,
                "answer": zlib.compress(each.answer, _LEVEL),
                "usd": each.usd,
            }
            for each in answers
        ]
        costs = [{"usd": each.usd, "reservation": each.reservation} for each in answers if each.usd]
        free = [{"reservation": each.reservation} for each in answers if each.usd == 0]
        ours = update(t.batches).where(t.batches.c.id == batch.id).values(changes)
        await self._write(
            [(_KEEP_ANSWER, rows), (_KEEP_COST, costs), (_RELEASE, free), (ours, None)]
        )
        return Batch(**vars(batch) | changes)

    async def put_back(
        self,
        batch: Batch,
        requests: Mapping[str, SentRequest],
        *,
        reason: str,
        to: str = "",
        is_billed: bool = False,
        stays_queued: bool = False,
    ) -> None:
        """Remove questions from a batch that did not answer them.

        Args:
            batch: The batch.
            requests: The questions, by key; those with an answer stay as they are.
            reason: The reason that they have no answer; "" if they were not sent.
            to: `LIVE` to ask them without a batch, "" to wait for the next one.
            is_billed: Whether they may have cost something: their reservations then stay spent.
            stays_queued: Whether this process has just queued them, so that it sends them even if
                they are not asked again.
        """
        process = PROCESS if stays_queued else ""
        rows, released = list[Row](), list[Row]()
        for key, each in requests.items():
            if not each.has_answer:
                tries = "\n".join([*each.tries.splitlines(), *filter(None, [reason])])
                about = {"id": batch.id, "payer": self._payer, "key": key}
                rows.append(about | {"to": to, "process": process, "tries": tries})
                released += [] if is_billed else [{"reservation": each.reservation}]
        await self._write([(_PUT_BACK, rows), (_RELEASE, released)])

    def close(self) -> None:
        """Close the connection for lookups."""
        if self._find is not None:
            self._find.close()

    def _select(self, *conditions: ColumnElement[bool]) -> list[Batch]:
        query = select(t.batches).where(*conditions).order_by(t.batches.c.made_at, t.batches.c.id)
        with self._engine.connect() as connection:
            return [Batch(**row) for row in connection.execute(query).mappings()]

    async def _write(self, writes: list[Write]) -> None:
        await asyncio.wrap_future(self._writer.submit(writes, lasting=True))
