"""The run store: samples, how each ended, and what happened on the way.

A row in `results` is the truth about a sample; everything else tells the story.
"""

import asyncio
import itertools
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Engine,
    Executable,
    Integer,
    Select,
    cast,
    delete,
    func,
    select,
)

from coreeval.schema import (
    BadRow,
    Evidence,
    Prediction,
    ReplacedFact,
    Result,
    Sample,
    Verdict,
)
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_rows import Beat, CallRow, Ended, Step
from coreeval.tools.stores.sql import Row, Writer, explain_errors, migrate, open_engine, upsert

CHUNK = 2000
"""Rows read or written at a time, so that memory does not grow with the dataset."""
Clock = Callable[[], datetime]
Write = tuple[Executable, Sequence[Row]]
T = TypeVar("T")


class RunStore:
    """Everything that one run knows, in run.db."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        migrate(engine, t.MIGRATIONS, what="run.db")
        explain_errors(engine, what="run.db")
        self._engine = engine
        self._writer = Writer(engine)
        self._now = now
        self._lost: BaseException | None = None
        """Why a queued write, for which nobody waits, came to nothing."""

    @classmethod
    def open(cls, path: Path, *, now: Clock) -> "RunStore":
        """Open or create the store.

        Raises:
            RunCorrupt: the file is damaged or from a newer version.
        """
        return cls(open_engine(f"sqlite:///{path}"), now=now)

    def close(self) -> None:
        """Write what is queued and close the file."""
        self._writer.close()
        self._engine.dispose()

    # -- samples --------------------------------------------------------------------------------

    def add_samples(self, rows: Iterable[Sample | BadRow], *, limit: int | None = None) -> None:
        """Store samples and bad rows as they stream by, up to `limit` samples, in one commit."""
        with self._engine.begin() as connection:
            for chunk in _chunks(_first_samples(rows, limit)):
                good = [row.model_dump() for row in chunk if isinstance(row, Sample)]
                bad = [row.model_dump() for row in chunk if isinstance(row, BadRow)]
                if good:
                    connection.execute(t.samples.insert(), good)
                if bad:
                    connection.execute(t.bad_rows.insert(), bad)

    def sample(self, sample_id: str) -> Sample:
        """Return one sample.

        Raises:
            KeyError: there is none with this id.
        """
        for row in self._rows(select(*_SAMPLE).where(t.samples.c.id == sample_id)):
            return Sample.model_validate(row)
        raise KeyError(sample_id)

    def pending(self) -> list[str]:
        """Return the ids of samples without a result, in the benchmark's order."""
        query = (
            select(t.samples.c.id)
            .outerjoin(t.results, t.results.c.sample_id == t.samples.c.id)
            .where(t.results.c.sample_id.is_(None))
            .order_by(t.samples.c.seq)
        )
        with self._engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def total(self) -> int:
        """Return the number of samples."""
        return self._count(select(func.count()).select_from(t.samples))

    def bad_rows(self) -> list[BadRow]:
        """Return the lines that were no sample."""
        columns = [t.bad_rows.c[name] for name in BadRow.model_fields]
        return [BadRow.model_validate(row) for row in self._rows(select(*columns))]

    # -- results --------------------------------------------------------------------------------

    async def commit(self, result: Result) -> None:
        """Store how a sample ended; when this returns, a kill cannot undo it.

        Raises:
            RunCorrupt: the store is damaged, be it that earlier steps could not be written.
            RunError: it cannot be written to.
        """
        row = result.model_dump(exclude={"facts"}) | {"ended_at": self._stamp()}
        writes: list[Write] = [
            (delete(t.facts).where(t.facts.c.sample_id == result.sample_id), []),
            (upsert(self._engine, t.results), [row]),
            (t.facts.insert(), [_fact_row(n, fact) for n, fact in enumerate(result.facts)]),
        ]
        await asyncio.wrap_future(self._submit(writes))
        if self._lost:
            raise self._lost

    def counts(self) -> dict[str, int]:
        """Return how many samples ended in each outcome."""
        query = select(t.results.c.outcome, func.count()).group_by(t.results.c.outcome)
        with self._engine.connect() as connection:
            return {outcome: count for outcome, count in connection.execute(query)}

    def ended(self, outcomes: Sequence[str] = ()) -> Iterator[Ended]:
        """Stream samples with their results, in the benchmark's order."""
        query = (
            select(*_SAMPLE, *_RESULT)
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )
        if outcomes:
            query = query.where(t.results.c.outcome.in_(outcomes))
        for row in self._stream(query):
            sample = Sample.model_validate({name: row[name] for name in Sample.model_fields})
            rest = {column.name: row[column.name] for column in _RESULT}
            yield Ended(sample=sample, result=Result.model_validate(rest))

    def result(self, sample_id: str) -> Result | None:
        """Return how one sample ended, with its replaced facts; None while it is open."""
        for row in self._rows(select(*_RESULT).where(t.results.c.sample_id == sample_id)):
            facts = tuple(self.facts(sample_id))
            return Result.model_validate({**row, "facts": facts})
        return None

    def facts(self, sample_id: str | None = None) -> Iterator[ReplacedFact]:
        """Stream the replaced facts of one sample or of all, in the benchmark's order."""
        query = (
            select(t.facts)
            .join(t.samples, t.samples.c.id == t.facts.c.sample_id)
            .order_by(t.samples.c.seq, t.facts.c.ord)
        )
        if sample_id is not None:
            query = query.where(t.facts.c.sample_id == sample_id)
        for row in self._stream(query):
            row.pop("ord")
            yield ReplacedFact.model_validate(row)

    def forget(self, outcome: str) -> int:
        """Drop the results of one outcome, so that those samples are pending again."""
        return self._submit(
            [(delete(t.results).where(t.results.c.outcome == outcome), [])]
        ).result()

    # -- the story ------------------------------------------------------------------------------

    def record(self, step: Step) -> None:
        """Queue one step with its calls and verdicts; it is committed before any later result."""
        at = {"sample_id": step.sample_id, "attempt": step.attempt, "node": step.node}
        row = at | {
            "started_at": step.started_at,
            "seconds": step.seconds,
            "error": step.error,
            "detail": step.detail,
        }
        calls = [at | asdict(call) for call in step.calls]
        verdicts = [verdict.model_dump() | at for verdict in step.verdicts]
        writes: list[Write] = [
            (upsert(self._engine, t.steps), [row]),
            (upsert(self._engine, t.calls, keep=["cached"]), calls),
            (upsert(self._engine, t.verdicts), verdicts),
        ]
        self._submit(writes).add_done_callback(self._written)

    def steps(self, sample_id: str) -> list[Step]:
        """Return the steps of one sample as they happened, with calls and verdicts."""
        query = select(t.steps).where(t.steps.c.sample_id == sample_id)
        calls = list(self._rows(select(t.calls).where(t.calls.c.sample_id == sample_id)))
        said = list(self._rows(select(t.verdicts).where(t.verdicts.c.sample_id == sample_id)))
        rows = sorted(self._rows(query), key=lambda row: str(row["started_at"]))
        return [
            Step(**row, calls=_calls_of(row, calls), verdicts=_verdicts_of(row, said))
            for row in rows
        ]

    def call_totals(self) -> list[Row]:
        """Return calls and tokens by model, paid and found apart; a shared call counts once."""
        once = (
            select(
                t.calls.c.key,
                t.calls.c.model,
                func.min(cast(t.calls.c.cached, Integer)).label("cached"),
                func.max(t.calls.c.prompt_tokens).label("prompt_tokens"),
                func.max(t.calls.c.completion_tokens).label("completion_tokens"),
            )
            .group_by(t.calls.c.key, t.calls.c.model)
            .subquery()
        )
        query = select(
            once.c.model,
            once.c.cached,
            func.count().label("calls"),
            func.sum(once.c.prompt_tokens).label("prompt_tokens"),
            func.sum(once.c.completion_tokens).label("completion_tokens"),
        ).group_by(once.c.model, once.c.cached)
        return [row | {"cached": bool(row["cached"])} for row in self._rows(query)]

    # -- evidence, targets, stages, life --------------------------------------------------------

    async def add_evidence(self, items: Iterable[Evidence]) -> None:
        """Store the evidence that a sample was offered; what is there already stays."""
        rows = [{"id": item.id, "body": item.model_dump(mode="json")} for item in items]
        if rows:
            write: Write = (upsert(self._engine, t.evidence, keep=["body"]), rows)
            await asyncio.wrap_future(self._submit([write]))

    def evidence(self, ids: Sequence[str]) -> dict[str, Evidence]:
        """Return stored evidence by id."""
        query = select(t.evidence.c.body).where(t.evidence.c.id.in_(ids))
        with self._engine.connect() as connection:
            items = [Evidence.model_validate(body) for body in connection.execute(query).scalars()]
        return {item.id: item for item in items}

    def add_predictions(self, rows: Iterable[Prediction]) -> None:
        """Store what a target answered."""
        for chunk in _chunks(rows):
            write: Write = (
                upsert(self._engine, t.predictions),
                [row.model_dump() for row in chunk],
            )
            self._submit([write]).result()

    def predictions(self) -> list[Prediction]:
        """Return all stored answers of targets."""
        return [Prediction.model_validate(row) for row in self._rows(select(t.predictions))]

    def finish_stage(self, name: str, detail: dict[str, Any]) -> None:
        """Note that a stage of the run is done."""
        row = {"name": name, "ended_at": self._stamp(), "detail": detail}
        self._submit([(upsert(self._engine, t.stages), [row])]).result()

    def stage(self, name: str) -> dict[str, Any] | None:
        """Return what a finished stage noted, or None."""
        query = select(t.stages.c.detail).where(t.stages.c.name == name)
        for row in self._rows(query):
            return dict(row["detail"])
        return None

    def reopen_stages(self) -> None:
        """Forget that stages after planning were done; they run again."""
        self._submit([(delete(t.stages).where(t.stages.c.name != "plan"), [])]).result()

    def beat(self, in_flight: dict[str, dict[str, str]]) -> None:
        """Leave a sign of life."""
        row = {"id": 1, "pid": os.getpid(), "host": socket.gethostname(), "at": self._stamp()}
        write: Write = (upsert(self._engine, t.heartbeat), [row | {"in_flight": in_flight}])
        self._submit([write]).add_done_callback(self._written)

    def last_beat(self) -> Beat | None:
        """Return the last sign of life, if there was one."""
        for row in self._rows(select(t.heartbeat)):
            row.pop("id")
            return Beat(**row)
        return None

    # -- below ----------------------------------------------------------------------------------

    def _submit(self, writes: Sequence[Write]) -> Future[int]:
        return self._writer.submit_all(
            [(s, rows or None) for s, rows in writes if rows or _bare(s)]
        )

    def _written(self, write: Future[int]) -> None:
        """Keep the first failure of a queued write, for the next caller who waits for one."""
        self._lost = self._lost or write.exception()

    def _rows(self, query: Select[Any]) -> Iterator[Row]:
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        return (dict(row) for row in rows)

    def _stream(self, query: Select[Any]) -> Iterator[Row]:
        with self._engine.connect().execution_options(yield_per=CHUNK) as connection:
            for row in connection.execute(query).mappings():
                yield dict(row)

    def _count(self, query: Select[Any]) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


_SAMPLE = [t.samples.c[name] for name in Sample.model_fields]
_RESULT = [t.results.c[name] for name in Result.model_fields if name != "facts"]


def _bare(statement: Executable) -> bool:
    """Tell statements that need no rows (deletes) from inserts."""
    return bool(getattr(statement, "is_delete", False))


def _first_samples(rows: Iterable[Sample | BadRow], limit: int | None) -> Iterator[Sample | BadRow]:
    taken = 0
    for row in rows:
        if taken == limit:
            return
        taken += isinstance(row, Sample)
        yield row


def _chunks(rows: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


def _fact_row(number: int, fact: ReplacedFact) -> Row:
    return fact.model_dump() | {"ord": number}


def _calls_of(step: Row, calls: Iterable[Row]) -> tuple[CallRow, ...]:
    names = CallRow.__dataclass_fields__
    return tuple(CallRow(**{name: call[name] for name in names}) for call in _of(step, calls))


def _verdicts_of(step: Row, verdicts: Iterable[Row]) -> tuple[Verdict, ...]:
    names = Verdict.model_fields
    return tuple(Verdict(**{name: row[name] for name in names}) for row in _of(step, verdicts))


def _of(step: Row, rows: Iterable[Row]) -> list[Row]:
    """Return the rows that belong to a step."""
    return [r for r in rows if r["attempt"] == step["attempt"] and r["node"] == step["node"]]
