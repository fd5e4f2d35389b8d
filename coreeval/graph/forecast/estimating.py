"""Estimating a run without spending anything: what is here is counted, rendered and remembered."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coreeval.evaluation.embedded import is_classifier
from coreeval.graph.bench.opening import Bench, open_bench
from coreeval.graph.drawing import TEST_MOST
from coreeval.graph.forecast.benchmark import Counted, count
from coreeval.graph.forecast.estimates import Estimate, Line, fit_of, keep, summed
from coreeval.graph.forecast.history import ENOUGH, Earlier, earlier, remembered
from coreeval.graph.forecast.learning import STATED, Seen, spread
from coreeval.graph.forecast.lines import REUSED, expected
from coreeval.graph.forecast.players import Cast, cast_of, rules_note
from coreeval.graph.forecast.ranges import Basis, Known, total
from coreeval.graph.forecast.reckoning import seconds_of_run
from coreeval.graph.forecast.sizes import Size, size_of_role, size_of_target
from coreeval.graph.forecast.stated import AFTER_NEWS, ARMS, ASKED_AGAIN, REWORDING, calls_of
from coreeval.graph.lineage import followed, keeper_of, lineage_of
from coreeval.graph.numleak.estimating import lines_of
from coreeval.graph.numleak.plan import run_audits
from coreeval.schema import Arm, RoleName
from coreeval.tools.clock import Clock, utc_now

THOUGHTS = (
    "a model that thinks before it answers pays its thoughts as answers; how long they are is "
    "known once it has been asked: --preview N"
)


def estimate(
    config: Path,
    *,
    limit: int | None = None,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
    now: Clock = utc_now,
) -> Estimate:
    """Return what a run will cost, and keep the estimate in the workspace.

    Args:
        config: Path of the YAML config.
        limit: Take only the first so many samples.
        overrides: `key.path=value` settings over the config's.
        parent: The release whose samples are kept where they are still good.
        stale_after: How old the evidence of a kept sample may be.
        now: The time of day.

    Raises:
        UsageError: the config, the benchmark, the prices or the release cannot be used.
        RunCorrupt: the call store is damaged.
    """
    lineage, bench = lineage_of(parent, stale_after), open_bench(config, overrides)
    before = followed(lineage, bench.setup, bench.workspace) if lineage else None
    keeper = keeper_of(before, bench.setup) if before else None
    counted, cast = count(bench.setup, limit, keeper), cast_of(bench.setup.config)
    memory = _Memory(
        seen=remembered(bench.workspace),
        earlier=earlier(bench.workspace, bench.setup.task.name),
        max_attempts=bench.setup.config.run.max_attempts,
    )
    lines = tuple(asyncio.run(_lines(bench, counted, cast, memory)))
    told = [keeper.told(before)] if keeper and before else []
    notes = [*told, *_notes(bench, lines, memory.seen)]
    made = composed(bench, counted, cast, lines, now=now, notes=notes)
    keep(bench.workspace, made)
    return made


def composed(
    bench: Bench,
    counted: Counted,
    cast: Cast,
    lines: tuple[Line, ...],
    *,
    now: Clock,
    notes: Sequence[str],
) -> Estimate:
    """Return an estimate made of lines."""
    config, totals = bench.setup.config, summed(lines)
    return Estimate(
        name=config.name,
        task=bench.setup.task.name,
        config=str(bench.config),
        made_at=now().isoformat(timespec="seconds"),
        samples=counted.samples,
        to_pay=counted.renewed,
        window=bench.setup.window,
        window_start=bench.setup.window_start,
        by_target=counted.by_target,
        lines=lines,
        totals=totals,
        seconds=seconds_of_run(
            lines, cast.lanes(), concurrency=cast.concurrency, samples=counted.samples
        ),
        concurrency=cast.concurrency,
        unpriced=cast.unpriced(lines),
        budget=fit_of(config.run.budget_usd, totals),
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """What is known from earlier runs, and how often a run may try."""

    seen: Sequence[Seen]
    earlier: Earlier
    max_attempts: int

    def calls(self, role: RoleName) -> Known:
        """Return how often a role is asked about a sample."""
        counts = self.earlier.calls[role]
        if len(counts) >= ENOUGH:
            return Known(range=spread(counts), basis=self._of_runs(len(counts)))
        return Known(range=calls_of(role, self.max_attempts), basis=STATED)

    def questions(self, templates: int) -> Known:
        """Return how often a target is asked about a sample: in each of its arms, each template."""
        arms = self.arms()
        return arms.model_copy(update={"range": arms.range.times(templates)})

    def rewordings(self, role: RoleName) -> Known:
        """Return how often a role is asked about a train item."""
        if role == "label_judge":
            return Known(range=REWORDING[role] * ASKED_AGAIN, basis=STATED)
        return self.calls(role)

    def share(self, arm: Arm) -> Known:
        """Return how likely it is that an arm has a sample."""
        counts = self.earlier.arms[arm]
        if len(counts) >= ENOUGH:
            return Known(range=spread(counts), basis=self._of_runs(len(counts)))
        return Known(range=ARMS[arm], basis=STATED)

    def arms(self) -> Known:
        """Return in how many arms a sample is."""
        each = list(self.earlier.arms.values())
        if all(len(shares) >= ENOUGH for shares in each):
            counts = [sum(arms) for arms in zip(*each, strict=True)]
            return Known(range=spread(counts), basis=self._of_runs(len(counts)))
        return Known(range=total(ARMS.values()), basis=STATED)

    def _of_runs(self, samples: int) -> Basis:
        newest, more = self.earlier.runs[0], len(self.earlier.runs) - 1
        others = f" and {more} more" if more else ""
        return Basis(origin=f"samples of the run {newest}{others}", n=samples)


async def _lines(bench: Bench, counted: Counted, cast: Cast, memory: _Memory) -> list[Line]:
    sizes = {role: await size_of_role(bench, role, counted.drawn) for role in cast.roles}
    lines = [
        expected(role, model, memory.calls(role), sizes[role], counted.renewed, cast, memory.seen)
        for role, model in cast.roles.items()
    ]
    rewording = _rewording(counted, cast, memory, sizes)
    lines += _second_pass(bench, counted, cast, memory, sizes)
    audit = await asyncio.to_thread(_audit, bench, cast, memory)
    if not cast.targets:
        return [*lines, *rewording, *audit]
    size = size_of_target(bench, counted.drawn)
    return [*lines, *_evaluation(bench, counted, cast, memory, size), *rewording,
            *_comparison(bench, counted, cast, memory, size), *audit]  # fmt: skip


def _evaluation(
    bench: Bench, counted: Counted, cast: Cast, memory: _Memory, size: Size
) -> list[Line]:
    """Return what asking about the arms costs."""
    if not bench.setup.config.detect.evaluate:
        return []
    templates, samples = len(bench.setup.task.templates), counted.samples
    questions = memory.questions(templates)
    lines = [
        expected("target", model, questions, size, samples, cast, memory.seen)
        for model in cast.targets
    ]
    if bench.setup.control is None:
        return lines
    share = memory.share("updated")  # the same pipeline writes the control arm
    more = share.model_copy(update={"range": share.range.times(templates)})
    return lines + [
        expected("target", model, more, size, samples, cast, memory.seen, stage="control")
        for model in cast.targets
    ]


def _second_pass(
    bench: Bench, counted: Counted, cast: Cast, memory: _Memory, sizes: Mapping[RoleName, Size]
) -> list[Line]:
    """Return what writing the control arm costs: what comes after the news is asked anew.

    Of samples that are kept from a release, what comes before it too. Each new text is read by the
    label judge as often as by the fact judge.
    """
    if bench.setup.control is None:
        return []
    asked: list[tuple[RoleName, Known, int]] = [
        (role, memory.calls("fact_judge" if role == "label_judge" else role), counted.samples)
        for role in AFTER_NEWS
    ]
    asked += [(role, memory.rewordings(role), counted.kept) for role in REWORDING if counted.kept]
    return [
        expected(
            role, cast.roles[role], calls, sizes[role], number, cast, memory.seen, stage="control"
        )
        for role, calls, number in asked
        if role in cast.roles
    ]


def _rewording(
    counted: Counted, cast: Cast, memory: _Memory, sizes: Mapping[RoleName, Size]
) -> list[Line]:
    """Return what rewording train items costs."""
    return [
        expected(
            role,
            cast.roles[role],
            memory.rewordings(role),
            sizes[role],
            counted.train,
            cast,
            memory.seen,
            stage="pcr",
        )
        for role in REWORDING
        if role in cast.roles and counted.train
    ]


def _comparison(
    bench: Bench, counted: Counted, cast: Cast, memory: _Memory, size: Size
) -> list[Line]:
    """Return what asking for PCR costs: about each reworded item as it is and reworded.

    About those of the test split targets are asked already where they are asked about the arms.
    """
    if not counted.train:
        return []
    test = 0 if bench.setup.config.detect.evaluate else min(counted.samples, TEST_MOST)
    texts = 2 * (counted.train + test)
    share = memory.share("semantic")
    questions = share.range.times(len(bench.setup.task.templates) * texts)
    calls = share.model_copy(update={"range": questions})
    return [
        expected("target", model, calls, size, 1, cast, memory.seen, stage="pcr")
        for model in cast.targets
    ]


def _audit(bench: Bench, cast: Cast, memory: _Memory) -> list[Line]:
    """Return what asking about series costs, and judging what is said under defences."""
    config, setup = bench.setup.config, bench.setup
    if config.detect.numleak is None or not (cast.targets or cast.judges):
        return []
    chosen = [target for target in config.models.targets if not is_classifier(target.model)]
    _, audits = run_audits(
        config, chosen, source=bench.config, workspace=bench.workspace, today=setup.now.date()
    )
    return list(lines_of(audits, cast, memory.seen, stage="numleak"))


def _notes(bench: Bench, lines: Sequence[Line], seen: Sequence[Seen]) -> Iterator[str]:
    yield from rules_note(bench.setup.config)
    if any(line.rests_on["answers"] == STATED for line in lines):
        yield THOUGHTS
    if {line.model for line in lines} & {one.model for one in seen}:
        yield REUSED
