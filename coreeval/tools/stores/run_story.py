"""The story of a run: steps with their calls and verdicts, and the evidence that was offered."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from sqlalchemy import case, func, select

from coreeval.errors import RunError
from coreeval.schema import Evidence, Verdict
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_kept import RunKept
from coreeval.tools.stores.run_rows import CallRow, Note, Step
from coreeval.tools.stores.sql import Row, Write


class RunStory(RunKept):
    """What happened on the way; nothing here decides how a sample ended."""

    def record(self, step: Step) -> None:
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
            (self._put[t.steps], [row]),
            (self._put[t.calls], calls),
            (self._put[t.verdicts], verdicts),
        ]
        self._submit(writes, waited_for=False).add_done_callback(self._written)

    async def recorded(self) -> bool:
        """Wait until all queued steps are committed; return whether none of them was lost."""
        with suppress(RunError):
            await asyncio.wrap_future(self._submit([]))
        return self._lost is None

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

    def begun(self) -> dict[str, str]:
        """Return when the first stored step was started of what has steps and no result."""
        ended = select(t.results.c.sample_id)
        first = select(t.steps.c.sample_id, func.min(t.steps.c.started_at))
        query = first.where(t.steps.c.sample_id.not_in(ended)).group_by(t.steps.c.sample_id)
        return dict(self._tuples(query))

    def verdict_counts(self, name: str) -> tuple[int, int]:
        """Return how many verdicts of a name are about samples, and how many were against."""
        known = t.verdict_sums.c
        for passed, failed in self._tuples(
            select(known.passed, known.failed).where(known.name == name)
        ):
            return passed + failed, failed
        return 0, 0

    def notes(self, nodes: Sequence[str]) -> Iterator[Note]:
        """Stream what these nodes noted, the attempts of each sample in their order."""
        columns = (t.steps.c.sample_id, t.steps.c.node, t.steps.c.detail)
        query = select(*columns).where(t.steps.c.node.in_(nodes))
        return self._tuples(query.order_by(t.steps.c.sample_id, t.steps.c.attempt))

    def verdicts(self, names: Sequence[str]) -> Iterator[tuple[str, Verdict]]:
        """Stream the verdicts of these names by sample, the attempts in their order."""
        columns = [t.verdicts.c[name] for name in Verdict.model_fields]
        query = select(t.verdicts.c.sample_id, *columns).where(t.verdicts.c.name.in_(names))
        for row in self._stream(query.order_by(t.verdicts.c.sample_id, t.verdicts.c.attempt)):
            yield row.pop("sample_id"), Verdict.model_validate(row)

    def call_totals(self) -> list[Row]:
        """Return calls, tokens and money by model, paid and found apart; a shared call counts once.

        `priced` is the number of calls whose price is known, of which `usd` is the sum.
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
        return list(self._rows(query))

    def has_call(self, key: str) -> bool:
        """Tell whether the run used a call."""
        return (
            next(self._tuples(select(t.calls.c.key).where(t.calls.c.key == key).limit(1)), None)
            is not None
        )

    def call_keys(self) -> list[str]:
        """Return the keys of all calls that the run used, whoever paid for them."""
        query = select(t.calls.c.key).distinct().order_by(t.calls.c.key)
        return [key for (key,) in self._tuples(query)]

    async def add_evidence(self, items: Iterable[Evidence]) -> None:
        """Store the evidence that a sample was offered; what is there already stays."""
        rows = [{"id": item.id, "body": item.model_dump(mode="json")} for item in items]
        if rows:
            write: Write = (self._put[t.evidence], rows)
            await asyncio.wrap_future(self._submit([write]))

    def evidence(self, ids: Sequence[str]) -> dict[str, Evidence]:
        """Return stored evidence by id; what only a release told of it where there is no more."""
        query = select(t.evidence.c.body).where(t.evidence.c.id.in_(ids))
        with self._engine.connect() as connection:
            items = [Evidence.model_validate(body) for body in connection.execute(query).scalars()]
        found = {item.id: item for item in items}
        told = self.excerpts(set(ids) - found.keys())
        return found | {evidence_id: each.evidence for evidence_id, each in told.items()}


def _calls_of(step: Row, calls: Iterable[Row]) -> tuple[CallRow, ...]:
    names = CallRow.__dataclass_fields__
    return tuple(CallRow(**{name: call[name] for name in names}) for call in _of(step, calls))


def _verdicts_of(step: Row, verdicts: Iterable[Row]) -> tuple[Verdict, ...]:
    names = Verdict.model_fields
    return tuple(Verdict(**{name: row[name] for name in names}) for row in _of(step, verdicts))


def _of(step: Row, rows: Iterable[Row]) -> list[Row]:
    """Return the rows that belong to a step."""
    return [r for r in rows if r["attempt"] == step["attempt"] and r["node"] == step["node"]]
