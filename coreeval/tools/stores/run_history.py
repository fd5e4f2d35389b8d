"""The history of a run: steps with their calls and verdicts, evidence, and train items.

Train items are drawn from the train split and reworded. They are not part of the benchmark:
outcomes, arms and counts exclude them. Their ids begin with `train:`, so that their steps, calls
and answers can be stored beside those of samples.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from sqlalchemy import Update, bindparam, case, func, select, update

from coreeval.errors import DatasetError, RunError
from coreeval.schema import Evidence, RoleName, Sample, TrainEnd, Verdict
from coreeval.tools.chunks import chunks
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.batch_writer import Write
from coreeval.tools.stores.prepared_statements import LookupStatement
from coreeval.tools.stores.run_file import CHUNK, RunCarryOver, RunFile
from coreeval.tools.stores.run_tables import CallRow, StepNote, StepRecord, TrainItem
from coreeval.tools.stores.sqlite import Row

_KEPT_EVIDENCE = 8192
"""The most pieces of evidence kept in memory: those of a few hundred samples."""


class RunHistory:
    """The steps of the samples, which do not determine how a sample ended.

    Args:
        file: The run's run.db.
        carry_over: The samples that the run kept from a release.
    """

    def __init__(self, file: RunFile, carry_over: RunCarryOver) -> None:
        self._file = file
        self._carry_over = carry_over
        self._evidence = dict[str, Evidence]()
        """The evidence read last, by id."""

    def record(self, step: StepRecord) -> None:
        """Queue one step with its calls and verdicts; it is committed before any later result."""
        at = {"sample_id": step.sample_id, "attempt": step.attempt, "node": step.node}
        row = at | {
            "started_at": step.started_at,
            "seconds": step.seconds,
            "error": step.error,
            "detail": step.detail,
        }
        calls = [at | vars(call) for call in step.calls]
        verdicts = [verdict.model_dump() | at for verdict in step.verdicts]
        writes: list[Write] = [
            (self._file.put[t.steps], [row]),
            (self._file.put[t.calls], calls),
            (self._file.put[t.verdicts], verdicts),
        ]
        self._file.submit(writes, waited_for=False).add_done_callback(self._file.note_failure)

    async def flush_steps(self) -> bool:
        """Wait until all queued steps are committed; return whether all of them were stored."""
        with suppress(RunError):
            await asyncio.wrap_future(self._file.submit([]))
        return self._file.lost is None

    def steps(self, sample_id: str) -> list[StepRecord]:
        """Return the steps of one sample in order, with calls and verdicts."""
        query = select(t.steps).where(t.steps.c.sample_id == sample_id)
        calls = list(self._file.rows(select(t.calls).where(t.calls.c.sample_id == sample_id)))
        said = list(self._file.rows(select(t.verdicts).where(t.verdicts.c.sample_id == sample_id)))
        rows = sorted(self._file.rows(query), key=lambda row: str(row["started_at"]))
        return [
            StepRecord(**row, calls=_calls_of(row, calls), verdicts=_verdicts_of(row, said))
            for row in rows
        ]

    def open_start_times(self) -> dict[str, str]:
        """Return the start of the first stored step of each sample that has steps but no result."""
        ended = select(t.results.c.sample_id)
        first = select(t.steps.c.sample_id, func.min(t.steps.c.started_at))
        query = first.where(t.steps.c.sample_id.not_in(ended)).group_by(t.steps.c.sample_id)
        return dict(self._file.tuples(query))

    def verdict_counts(self, name: str) -> tuple[int, int]:
        """Return the number of verdicts of a name on samples, and of the negative ones."""
        known = t.verdict_sums.c
        for passed, failed in self._file.tuples(
            select(known.passed, known.failed).where(known.name == name)
        ):
            return passed + failed, failed
        return 0, 0

    def notes(self, nodes: Sequence[str]) -> Iterator[StepNote]:
        """Stream the notes of these nodes, with each sample's attempts in order."""
        columns = (t.steps.c.sample_id, t.steps.c.node, t.steps.c.detail)
        query = select(*columns).where(t.steps.c.node.in_(nodes))
        return self._file.tuples(query.order_by(t.steps.c.sample_id, t.steps.c.attempt))

    def verdicts(self, names: Sequence[str]) -> Iterator[tuple[str, Verdict]]:
        """Stream the verdicts with these names by sample, with the attempts in order."""
        columns = [t.verdicts.c[name] for name in Verdict.model_fields]
        query = select(t.verdicts.c.sample_id, *columns).where(t.verdicts.c.name.in_(names))
        for row in self._file.stream(query.order_by(t.verdicts.c.sample_id, t.verdicts.c.attempt)):
            yield row.pop("sample_id"), Verdict.model_validate(row)

    def call_totals(self) -> list[Row]:
        """Return calls, tokens and cost by model, separately for paid and cached calls.

        A shared call counts once. `priced` is the number of calls whose price is known; `usd` is
        the sum of these prices.
        """
        sums = t.call_sums.c
        query = select(
            sums.model,
            sums.cached,
            func.sum(sums.calls).label("calls"),
            func.sum(sums.prompt_tokens).label("prompt_tokens"),
            func.sum(sums.cached_tokens).label("cached_tokens"),
            func.sum(sums.completion_tokens).label("completion_tokens"),
            case((func.sum(sums.priced) > 0, func.sum(sums.usd))).label("usd"),
            func.sum(sums.priced).label("priced"),
        ).group_by(sums.model, sums.cached)
        return list(self._file.rows(query))

    def has_call(self, key: str) -> bool:
        """Return whether the run used a call."""
        return (
            next(
                self._file.tuples(select(t.calls.c.key).where(t.calls.c.key == key).limit(1)), None
            )
            is not None
        )

    def count_users(self, sample_id: str) -> dict[str, int]:
        """Return the number of samples that used each call of a sample, by key."""
        used, own = t.calls.c, t.calls.alias().c
        keys = select(own.key).where(own.sample_id == sample_id)
        query = (
            select(used.key, func.count(used.sample_id.distinct()))
            .where(used.key.in_(keys))
            .group_by(used.key)
        )
        return dict(self._file.tuples(query))

    def call_keys(self) -> list[str]:
        """Return the keys of all calls that the run used, including those paid for by others."""
        query = select(t.calls.c.key).distinct().order_by(t.calls.c.key)
        return [key for (key,) in self._file.tuples(query)]

    async def add_evidence(self, items: Iterable[Evidence]) -> None:
        """Store the evidence offered to a sample; stored items are kept."""
        if write := self.insert_evidence(items):
            await asyncio.wrap_future(self._file.submit([write]))

    def insert_evidence(self, items: Iterable[Evidence]) -> Write | None:
        """Return the statement that stores evidence; None if all of it is stored already."""
        rows = [
            {"id": item.id, "body": item.model_dump(mode="json")}
            for item in items
            if item.id not in self._evidence
        ]
        return (self._file.put[t.evidence], rows) if rows else None

    async def replace_evidence(self, items: Iterable[Evidence]) -> None:
        """Store later changes of evidence."""
        writes: list[Write] = [
            (
                update(t.evidence)
                .where(t.evidence.c.id == item.id)
                .values(body=item.model_dump(mode="json")),
                None,
            )
            for item in items
        ]
        if writes:
            await asyncio.wrap_future(self._file.submit(writes))
            self._evidence = {}

    async def load_evidence(self, ids: Sequence[str]) -> dict[str, Evidence]:
        """Return the same as `evidence`; what is not in memory is read in a thread."""
        known = self._find_kept(ids)
        if len(known) == len(set(ids)):
            return known
        return await asyncio.to_thread(self.evidence, ids)

    def evidence(self, ids: Sequence[str]) -> dict[str, Evidence]:
        """Return stored evidence by id, or a release's excerpt if only that is left."""
        found = self._find_kept(ids)
        if missing := [known for known in ids if known not in found]:
            found |= self._read_evidence(missing)
        told = self._carry_over.excerpts(set(ids) - found.keys())
        return found | {evidence_id: each.evidence for evidence_id, each in told.items()}

    def _find_kept(self, ids: Sequence[str]) -> dict[str, Evidence]:
        kept = self._evidence  # another thread may replace it
        return {one: kept[one] for one in ids if one in kept}

    @cached_property
    def _evidence_lookup(self) -> LookupStatement:
        query = select(t.evidence.c.body).where(t.evidence.c.id == bindparam("id"))
        return self._file.prepare_lookup(query)

    def _read_evidence(self, ids: Sequence[str]) -> dict[str, Evidence]:
        if len(self._evidence) >= _KEPT_EVIDENCE:
            self._evidence = {}
        kept = self._evidence  # another thread may replace it during the read
        rows = filter(None, map(self._evidence_lookup.one, ids))
        items = [Evidence.model_validate(row["body"]) for row in rows]
        read = {item.id: item for item in items}
        kept.update(read)
        return read


def _calls_of(step: Row, calls: Iterable[Row]) -> tuple[CallRow, ...]:
    names = CallRow.__dataclass_fields__
    return tuple(
        CallRow(**{name: call[name] for name in names}) for call in _rows_of_step(step, calls)
    )


def _verdicts_of(step: Row, verdicts: Iterable[Row]) -> tuple[Verdict, ...]:
    names = Verdict.model_fields
    return tuple(
        Verdict(**{name: row[name] for name in names}) for row in _rows_of_step(step, verdicts)
    )


def _rows_of_step(step: Row, rows: Iterable[Row]) -> list[Row]:
    """Return the rows that belong to a step."""
    return [r for r in rows if r["attempt"] == step["attempt"] and r["node"] == step["node"]]


CallUse = tuple[str, RoleName, str]
"""The id of a sample, a role, and the key of a call that it made in the role."""
RetrievalNote = tuple[str, int, dict[str, Any]]
"""The id of a sample, an attempt, and the note of the step that searched for news."""
StepError = tuple[str, str, str]
"""The id of a sample, a node, and the error of its step."""


class RunInputs:
    """The calls, news and errors of the samples, without those of train items."""

    def __init__(self, file: RunFile) -> None:
        self._file = file

    def call_uses(self) -> Iterator[CallUse]:
        """Stream the calls of samples, by role and key."""
        known = t.calls.c
        query = select(known.sample_id, known.role, known.key).join(
            t.samples, t.samples.c.id == known.sample_id
        )
        return self._file.tuples(query.order_by(known.role, known.key, known.sample_id))

    def retrieval_notes(self) -> Iterator[RetrievalNote]:
        """Stream the evidence offered to samples, in the benchmark's order and by attempt."""
        known = t.steps.c
        query = select(known.sample_id, known.attempt, known.detail).join(
            t.samples, t.samples.c.id == known.sample_id
        )
        chosen = query.where(known.node == "retrieve")
        return self._file.tuples(chosen.order_by(t.samples.c.seq, known.attempt))

    def step_errors(self) -> Iterator[StepError]:
        """Stream the failed steps of samples, in the benchmark's order."""
        known = t.steps.c
        query = select(known.sample_id, known.node, known.error).join(
            t.samples, t.samples.c.id == known.sample_id
        )
        return self._file.tuples(
            query.where(known.error != "").order_by(t.samples.c.seq, known.started_at)
        )


TRAIN_PREFIX = "train:"
"""The prefix of the ids of train items."""


class RunTrain:
    """The train items of a run."""

    def __init__(self, file: RunFile) -> None:
        self._file = file

    def add(self, drawn: Sequence[Sample]) -> None:
        """Store the drawn items in one commit, so that all or none are stored.

        Raises:
            DatasetError: an item has the same id as a sample of the benchmark.
        """
        items = [one.model_copy(update={"id": f"{TRAIN_PREFIX}{one.id}"}) for one in drawn]
        self._refuse_taken([one.id for one in items])
        rows = [one.model_dump() | TrainEnd().model_dump() for one in items]
        with self._file.engine.begin() as connection:
            connection.execute(t.train_items.insert(), rows)

    def _refuse_taken(self, ids: Sequence[str]) -> None:
        for some in chunks(ids, CHUNK):
            for (taken,) in self._file.tuples(
                select(t.samples.c.id).where(t.samples.c.id.in_(some))
            ):
                raise DatasetError(
                    f"the sample id {taken!r} of the benchmark is also the id of a train item",
                    where="detect.pcr",
                    hint=f"no sample id of the benchmark may begin with {TRAIN_PREFIX!r}",
                )

    def item(self, item_id: str) -> TrainItem:
        """Return one train item with its outcome.

        Raises:
            KeyError: there is no item with this id.
        """
        for row in self._file.rows(select(*_TRAIN_ITEM).where(t.train_items.c.id == item_id)):
            return _to_train_item(row)
        raise KeyError(item_id)

    def open_ids(self) -> list[str]:
        """Return the ids of the items without an outcome, in the order drawn."""
        known = t.train_items.c
        query = select(known.id).where(known.status == "open").order_by(known.seq)
        return [item_id for (item_id,) in self._file.tuples(query)]

    def ids(self) -> list[str]:
        """Return the ids of all items, in the order drawn."""
        query = select(t.train_items.c.id).order_by(t.train_items.c.seq)
        return [item_id for (item_id,) in self._file.tuples(query)]

    def counts(self) -> dict[str, int]:
        """Return the number of items by status."""
        status = t.train_items.c.status
        return dict(self._file.tuples(select(status, func.count()).group_by(status)))

    def rewordings(self) -> Iterator[TrainItem]:
        """Stream the items that also have a rewording, in the order drawn."""
        query = select(*_TRAIN_ITEM).where(t.train_items.c.status == "reworded")
        return map(_to_train_item, self._file.stream(query.order_by(t.train_items.c.seq)))

    async def end(self, item_id: str, end: TrainEnd) -> None:
        """Store an item's outcome durably: a kill after the return does not undo it.

        Raises:
            RunCorrupt: the store is damaged, which includes earlier steps that could not be
                written.
            RunError: the store cannot be written to.
        """
        known = t.train_items.c
        write = update(t.train_items).where(known.id == item_id).values(end.model_dump())
        await asyncio.wrap_future(self._file.submit([(write, None)]))
        if self._file.lost:
            raise self._file.lost

    def forget_failed(self) -> int:
        """Reopen the failed items and return their number."""
        failed = self.counts().get("failed", 0)
        if failed:
            self._file.submit([(_reopen_failed(), None)]).result()
        return failed


_TRAIN_COLUMNS = (*Sample.model_fields, *TrainEnd.model_fields)
_TRAIN_ITEM = [t.train_items.c[name] for name in _TRAIN_COLUMNS]


def _to_train_item(row: Mapping[str, object]) -> TrainItem:
    sample = Sample.model_validate({name: row[name] for name in Sample.model_fields})
    end = TrainEnd.model_validate({name: row[name] for name in TrainEnd.model_fields})
    return TrainItem(sample=sample, end=end)


def _reopen_failed() -> Update:
    known = t.train_items.c
    return update(t.train_items).where(known.status == "failed").values(TrainEnd().model_dump())
