"""The run store: the samples, their results, and the history of the run.

A row in `results` determines how a sample ended; the other tables are its history.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import Engine, Text, bindparam, cast, delete, func, select

from coreeval.schema import (
    BadRow,
    Freshness,
    Outcome,
    Prediction,
    ReplacedFact,
    Result,
    Sample,
)
from coreeval.tools.chunks import chunks
from coreeval.tools.clock import Clock
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.batch_writer import Write
from coreeval.tools.stores.heartbeat import ProgressSnapshot
from coreeval.tools.stores.prepared_statements import LookupStatement
from coreeval.tools.stores.run_check import find_odd_detail, odd_row_error
from coreeval.tools.stores.run_correctness import TargetAnswers
from coreeval.tools.stores.run_events import RunEvents
from coreeval.tools.stores.run_figures import RunFigures
from coreeval.tools.stores.run_file import (
    CHUNK,
    FirstResult,
    RunCarryOver,
    RunFile,
    to_fact_row,
    to_result_row,
)
from coreeval.tools.stores.run_history import RunHistory, RunInputs, RunTrain
from coreeval.tools.stores.run_queries import SampleListing, SampleStates
from coreeval.tools.stores.run_tables import (
    Fetch,
    ReleaseSample,
    SampleResult,
    TargetAnswer,
)

_KEPT_SAMPLES = 1024
"""The most samples kept in memory: more than those in flight and in their batches of labels."""
BenchmarkRow = Sample | BadRow | ReleaseSample


class RunStore(RunFile):
    """All data of one run, in run.db; the arguments are those of `RunFile`."""

    def __init__(self, engine: Engine, *, now: Clock, rests_on: Path | None = None) -> None:
        super().__init__(engine, now=now, rests_on=rests_on)
        self._samples = dict[str, Sample]()
        """The samples read last, by id; they never change."""
        self._numbering = threading.Lock()
        """Held while a request is stored: only one process does so, but in several threads."""
        self.carry_over = RunCarryOver(self)
        self.history = RunHistory(self, self.carry_over)
        self.train = RunTrain(self)
        self.events = RunEvents(self)
        self.figures = RunFigures(self)
        self.inputs = RunInputs(self)

    @property
    def listing(self) -> SampleListing:
        """The samples as a list, and the totals of the run."""
        return SampleListing(self.engine)

    @property
    def target_answers(self) -> TargetAnswers:
        """The answers of targets about each sample, for readers."""
        return TargetAnswers(self.engine)

    @property
    def sample_states(self) -> SampleStates:
        """The states of the samples, for comparing two runs."""
        return SampleStates(self.engine)

    # -- samples --------------------------------------------------------------------------------

    def add_samples(self, rows: Iterable[BenchmarkRow], *, limit: int | None = None) -> None:
        """Store up to `limit` samples and the bad rows from a stream, in one commit.

        A sample kept from a release is stored with its result.
        """
        with self.engine.begin() as connection:
            for chunk in chunks(_first_samples(rows, limit), CHUNK):
                kept = [row for row in chunk if isinstance(row, ReleaseSample)]
                samples = [row.sample if isinstance(row, ReleaseSample) else row for row in chunk]
                good = [row.model_dump() for row in samples if isinstance(row, Sample)]
                bad = [row.model_dump() for row in chunk if isinstance(row, BadRow)]
                if good:
                    connection.execute(t.samples.insert(), good)
                if bad:
                    connection.execute(t.bad_rows.insert(), bad)
                self.carry_over.write(connection, kept)

    def sample(self, sample_id: str) -> Sample:
        """Return one sample of the benchmark, or one train item as a sample.

        Raises:
            KeyError: there is no sample with this id.
        """
        if (known := self._samples.get(sample_id)) is not None:
            return known
        row = self._sample_lookup.one(sample_id)
        read = Sample.model_validate(row) if row else self.train.item(sample_id).sample
        if len(self._samples) >= _KEPT_SAMPLES:
            self._samples = {}
        self._samples[sample_id] = read
        return read

    async def load_sample(self, sample_id: str) -> Sample:
        """Return the same as `sample`; what is not in memory is read in a thread."""
        if (known := self._samples.get(sample_id)) is not None:
            return known
        return await asyncio.to_thread(self.sample, sample_id)

    @cached_property
    def _sample_lookup(self) -> LookupStatement:
        return self.prepare_lookup(select(*_SAMPLE).where(t.samples.c.id == bindparam("id")))

    def sample_ids(self) -> list[str]:
        """Return the ids of all samples, in the benchmark's order."""
        query = select(t.samples.c.id).order_by(t.samples.c.seq)
        with self.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def iter_texts(self) -> Iterator[tuple[str, str]]:
        """Yield each sample's id with its texts in one string, in the benchmark's order."""
        query = select(t.samples.c.id, cast(t.samples.c.fields, Text)).order_by(t.samples.c.seq)
        return self.tuples(query)

    def pending(self) -> list[str]:
        """Return the ids of samples without a result, in the benchmark's order."""
        query = (
            select(t.samples.c.id)
            .outerjoin(t.results, t.results.c.sample_id == t.samples.c.id)
            .where(t.results.c.sample_id.is_(None))
            .order_by(t.samples.c.seq)
        )
        with self.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def total(self) -> int:
        """Return the number of samples."""
        return self.count(select(func.count()).select_from(t.samples))

    def bad_rows(self) -> list[BadRow]:
        """Return the lines that were not valid samples."""
        columns = [t.bad_rows.c[name] for name in BadRow.model_fields]
        return [BadRow.model_validate(row) for row in self.rows(select(*columns))]

    # -- results --------------------------------------------------------------------------------

    async def commit(self, result: Result) -> bool:
        """Store the result of a sample durably: a kill after the return does not undo it.

        Return whether it was stored: an existing result, such as one of another process that took
        over the sample, is not replaced.

        Raises:
            RunCorrupt: the store is damaged, which includes earlier steps that could not be
                written.
            RunError: the store cannot be written to.
        """
        row = to_result_row(result, self.stamp())
        facts = [to_fact_row(n, fact) for n, fact in enumerate(result.facts)]
        written = self.submit([(FirstResult(self, facts), [row])])
        is_first = await asyncio.wrap_future(written) > 0
        if self.lost:
            raise self.lost
        return is_first

    def keep(self, kept: Sequence[ReleaseSample]) -> None:
        """Replace the run's own results with those of a release, all or none.

        Raises:
            RunCorrupt: the store is damaged.
            RunError: the store cannot be written to.
        """
        ids = [one.result.sample_id for one in kept]
        self.submit([(delete(t.facts).where(t.facts.c.sample_id.in_(ids)), None)]).result()
        with self.engine.begin() as connection:
            self.carry_over.write(connection, kept)

    def counts(self) -> dict[str, int]:
        """Return the number of samples by outcome.

        Raises:
            RunCorrupt: a stored outcome is not a valid outcome.
        """
        query = select(t.results.c.outcome, func.count()).group_by(t.results.c.outcome)
        found: dict[str, int] = dict(self.tuples(query))
        for odd in found.keys() - set(get_args(Outcome)):  # such a run would never be complete
            raise odd_row_error(self.engine, f"results with the outcome {str(odd)[:80]!r}")
        return found

    def sample_results(self, outcomes: Sequence[str] = ()) -> Iterator[SampleResult]:
        """Stream samples with their results, in the benchmark's order."""
        query = (
            select(*_SAMPLE, *_RESULT)
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )
        if outcomes:
            query = query.where(t.results.c.outcome.in_(outcomes))
        for row in self.stream(query):
            sample = Sample.model_validate({name: row[name] for name in Sample.model_fields})
            rest = {column.name: row[column.name] for column in _RESULT}
            yield SampleResult(sample=sample, result=Result.model_validate(rest))

    def result(self, sample_id: str) -> Result | None:
        """Return the result of one sample with its replaced facts; None while it is open."""
        for row in self.rows(select(*_RESULT).where(t.results.c.sample_id == sample_id)):
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
        for row in self.stream(query):
            row.pop("ord")
            yield ReplacedFact.model_validate(row)

    def freshness(
        self, samples: Sequence[str] | None = None
    ) -> Iterator[tuple[str, Freshness | None]]:
        """Stream all accepted samples, or these, with their evidence's freshness, in any order."""
        columns = (t.results.c.sample_id, t.results.c.freshness)
        query = select(*columns).where(t.results.c.outcome == "accepted")
        if samples is not None:
            query = query.where(t.results.c.sample_id.in_(samples))
        for sample_id, known in self.tuples(query):
            yield sample_id, known and Freshness.model_validate(known)

    def labels(self) -> Iterator[tuple[str, str, Outcome]]:
        """Stream the id, label name and outcome of finished samples, in the benchmark's order."""
        return self.tuples(
            select(t.samples.c.id, t.samples.c.label_text, t.results.c.outcome)
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )

    def clusters(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Stream the id, cluster and texts of finished samples, in the benchmark's order."""
        return self.tuples(
            select(t.samples.c.id, t.samples.c.cluster, t.samples.c.fields)
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )

    def forget(self, outcome: str) -> int:
        """Delete the results and steps of the samples with one outcome: they are pending again.

        Calls stay, because they were paid for. Returns the number of samples.
        """
        forgotten = self.counts().get(outcome, 0)
        ids = select(t.results.c.sample_id).where(t.results.c.outcome == outcome)
        writes: list[Write] = [
            (delete(table).where(table.c.sample_id.in_(ids)), None)
            for table in (t.facts, t.steps, t.verdicts, t.predictions, t.results)
        ]
        self.submit(writes).result()
        return forgotten

    # -- targets, stages, life ------------------------------------------------------------------

    def add_predictions(self, rows: Iterable[Prediction]) -> None:
        """Store the answers of a target."""
        for chunk in chunks(rows, CHUNK):
            write: Write = (self.put[t.predictions], [row.model_dump() for row in chunk])
            self.submit([write]).result()

    def answers(self, target: str, sources: Sequence[str]) -> Iterator[TargetAnswer]:
        """Stream a target's answers about the texts of some sources, one template at a time."""
        said = t.predictions.c
        graded = (said.right, said.score)
        columns = (said.source, said.template, said.sample_id, said.answer, said.kind)
        return self.tuples(
            select(*columns, *graded).where(said.target == target, said.source.in_(sources))
        )

    def targets(self) -> set[str]:
        """Return the targets that have given any answers."""
        return set(self.target_answers.targets())

    def answer_keys(
        self, target: str, source: str, version: str, samples: Sequence[str]
    ) -> set[tuple[str, int]]:
        """Return (id, template) of the answers about these samples to one prompt version."""
        known = t.predictions.c
        query = select(known.sample_id, known.template).where(
            known.target == target,
            known.source == source,
            known.version == version,
            known.sample_id.in_(samples),
        )
        return {(sample_id, template) for sample_id, template in self.tuples(query)}

    def finish_stage(self, name: str, detail: dict[str, Any]) -> None:
        """Record that a stage of the run is finished."""
        row = {"name": name, "ended_at": self.stamp(), "detail": detail}
        self.submit([(self.put[t.stages], [row])]).result()

    def stage(self, name: str) -> dict[str, Any] | None:
        """Return the detail that a finished stage stored; None if the stage is not finished.

        Raises:
            RunCorrupt: the detail is not valid for the stage.
        """
        query = select(t.stages.c.detail).where(t.stages.c.name == name)
        for row in self.rows(query):
            if odd := find_odd_detail(name, row["detail"]):  # it is written to the manifest
                raise odd_row_error(self.engine, f"stages of {name!r}: detail: {odd}")
            return dict(row["detail"])
        return None

    def reopen_stages(self, names: Sequence[str] = ()) -> None:
        """Mark all stages, or these, as not finished, so that they run again."""
        chosen = delete(t.stages)
        if names:
            chosen = chosen.where(t.stages.c.name.in_(names))
        self.submit([(chosen, None)]).result()

    def add_fetch(self, fetch: Fetch, number: int | None = None) -> int:
        """Store the outcome of a request to a remote news source, and return its number.

        It is numbered here, so that a commit that is repeated does not count it twice.

        Args:
            fetch: The request.
            number: The number of the row that it replaces; None to add a row.
        """
        row = asdict(fetch) | {"at": self.stamp(), "notes": list(fetch.notes)}
        with self._numbering:
            if number is None:
                number = self.count(select(func.coalesce(func.max(t.fetches.c.seq), 0) + 1))
            self.submit([(self.put[t.fetches], [row | {"seq": number}])]).result()
        return number

    def fetches(self) -> list[Fetch]:
        """Return the requests to remote news sources, in order."""
        columns = [t.fetches.c[field.name] for field in fields(Fetch)]
        rows = self.rows(select(*columns).order_by(t.fetches.c.seq))
        return [Fetch(**row | {"notes": tuple(row["notes"])}) for row in rows]

    def beat(
        self, in_flight: dict[str, dict[str, str]], pulse: ProgressSnapshot | None = None
    ) -> None:
        """Write a heartbeat with a snapshot of the run."""
        row = {"id": 1, "pid": os.getpid(), "host": socket.gethostname(), "at": self.stamp()}
        known = {"in_flight": in_flight, "pulse": asdict(pulse) if pulse else None}
        write: Write = (self.put[t.heartbeat], [row | known])
        self.submit([write]).add_done_callback(self.note_failure)


_SAMPLE = [t.samples.c[name] for name in Sample.model_fields]
_RESULT = [t.results.c[name] for name in Result.model_fields if name != "facts"]


def _first_samples(rows: Iterable[BenchmarkRow], limit: int | None) -> Iterator[BenchmarkRow]:
    """Yield rows up to the last sample within the limit, without reading any row after it."""
    taken = 0
    if limit == 0:
        return
    for row in rows:
        yield row
        taken += not isinstance(row, BadRow)
        if taken == limit:
            return
