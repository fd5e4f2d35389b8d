"""The number of samples, and the length of each role's prompts.

A few samples are drawn at random with a fixed seed. Prompts are fully rendered, with rules in the
roles before the measured one.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from statistics import fmean

from coreeval.agents.kinds import item_kind
from coreeval.agents.llm_role import item_data
from coreeval.errors import DatasetError, KnowledgeError, UsageError
from coreeval.evaluation.benchmarks import find_target, iter_benchmark
from coreeval.evaluation.benchmarks.subset import Subset
from coreeval.evaluation.grading import scoring_of
from coreeval.evaluation.targets import TargetQuestion, make_message, questions_about
from coreeval.graph.bundled import DATASETS
from coreeval.graph.estimate.call_figures import RETRY_PROMPT
from coreeval.graph.estimate.model import FigureBasis, KnownRange, estimate_mean
from coreeval.graph.prompt_lab.lab import PromptLab, open_bundled_lab
from coreeval.graph.prompt_lab.role_inputs import (
    DryRun,
    FirstRoleInputs,
    RoleInput,
    RoleRequest,
    SkippedSample,
    load_sample_task,
    render_request,
)
from coreeval.graph.setup import Setup, check_subset
from coreeval.graph.train_split import iter_train_rows, max_train_items
from coreeval.prompts import to_prompt_json
from coreeval.releases.carry_over import CarryOver
from coreeval.schema import RoleName, Sample, Task, TaskKind
from coreeval.tasks import ALL_TARGETS
from coreeval.tools.stores.call_records import canonical_json

DRAWN_SAMPLES = 40
"""The number of samples to draw; prompts are rendered for the first few that reach a role."""


@dataclass(frozen=True, kw_only=True)
class SampleCount:
    """The number of samples in a benchmark, by their treatment in a run."""

    samples: int
    kept: int = 0
    """Samples kept from the previous release, about which no role is asked."""
    train: int = 0
    """Items of the train split drawn for PCR."""
    by_target: dict[str, int]
    """Samples per stance target, if there are several."""
    drawn: tuple[Sample, ...]
    """A draw from the samples that are not kept; empty if the benchmark is not on this machine."""
    notes: tuple[str, ...] = ()
    """Notes on the count."""

    @property
    def refresh_count(self) -> int:
        """Return the number of samples that go through the run."""
        return self.samples - self.kept


def count_samples(
    setup: Setup,
    limit: int | None,
    keeper: CarryOver | None = None,
    *,
    subset: Subset | None = None,
    rows: int | None = None,
) -> SampleCount:
    """Count the samples that a run would take and draw some, without downloading.

    Args:
        setup: The setup built from the config.
        limit: Take only this many samples from the start of the benchmark.
        keeper: Selects the samples that a run takes from the previous release.
        subset: Take only these samples, with a limit of its own.
        rows: Count as if the benchmark had this many samples like its own.

    Raises:
        DatasetError: the files cannot be read, a named id or label does not exist, or the
            benchmark is on a hub and no limit says how many of its samples are taken.
        UsageError: the benchmark has more than `rows` samples.
    """
    dataset = setup.config.dataset
    if subset:
        limit, subset = subset.limit, subset.model_copy(update={"seed": setup.config.run.seed})
    if dataset.is_on_hub:
        return _count_on_hub(setup, rows or limit)
    chance, drawn, by_target = random.Random(setup.config.run.seed), list[Sample](), Counter[str]()
    number = 0
    for sample in _iter_chosen(setup, limit, subset):
        by_target[find_target(sample.id) or ""] += 1
        if keeper and keeper.carry_over(sample):
            continue
        number += 1
        if len(drawn) < DRAWN_SAMPLES:
            drawn.append(sample)
        elif (place := chance.randrange(number)) < DRAWN_SAMPLES:
            drawn[place] = sample
    chance.shuffle(drawn)
    several, kept = dataset.target == ALL_TARGETS, keeper.kept if keeper else 0
    there = number + kept
    return SampleCount(
        samples=rows or there,
        kept=kept,
        train=_count_train(setup, there if subset else limit),
        by_target=dict(by_target) if several and rows is None else {},
        drawn=tuple(drawn),
        notes=tuple(_compare_rows(there, limit, rows)),
    )


def _iter_chosen(setup: Setup, limit: int | None, subset: Subset | None) -> Iterator[Sample]:
    if subset is None:
        return islice(_iter_samples(setup), limit)
    ids = check_subset(setup, subset)
    return (sample for sample in _iter_samples(setup) if sample.id in ids)


def _compare_rows(there: int, limit: int | None, rows: int | None) -> Iterator[str]:
    """Yield a note if more samples were requested than there are."""
    if rows and rows < there:
        raise UsageError(
            f"the benchmark has {there:,} samples, but --rows is {rows:,}",
            where="--rows",
            hint=f"use --limit {rows} to take fewer samples",
        )
    if rows:
        yield f"the benchmark has {there:,} samples: the figures are for {rows:,} similar samples"
    elif limit and limit > there:
        yield (
            f"only {there:,} samples can be taken, not {limit:,}: the figures are for "
            f"{there:,}; use --rows {limit} to estimate for {limit:,} similar samples"
        )


def _count_train(setup: Setup, limit: int | None) -> int:
    most = max_train_items(setup.config, limit)
    return sum(1 for _ in islice(iter_train_rows(setup), most)) if most else 0


def _iter_samples(setup: Setup) -> Iterator[Sample]:
    rows = iter_benchmark(setup.config.dataset, setup.task)
    return (row for row in rows if isinstance(row, Sample))


def _count_on_hub(setup: Setup, limit: int | None) -> SampleCount:
    if limit is None:
        raise DatasetError(
            "an estimate downloads nothing, so it cannot count the samples of a hub dataset",
            where=setup.config.dataset.path,
            hint="set their number with --limit N",
        )
    train = max_train_items(setup.config, limit)
    return SampleCount(samples=limit, train=train, by_target={}, drawn=())


MEASURED_SAMPLES = 8
"""The number of samples for which each role's prompt is rendered."""
FIRST_ROLES: Sequence[RoleName] = ("extractor", "label_judge")
"""Roles that see only the sample and have no retries."""
_ReadInput = Callable[[Sample], Awaitable[RoleInput | SkippedSample]]


@dataclass(frozen=True, kw_only=True)
class PromptSize:
    """The characters of a prompt and its answer's schema."""

    fixed: int
    """Characters of instructions and schema, the same in every call."""
    varied: KnownRange
    """Characters of the rest."""
    kind: TaskKind = "labels"
    """The kind of the task, since some kinds have longer answers."""


def measure_prompt(messages: Sequence[Mapping[str, str]], schema: Mapping[str, object]) -> int:
    """Return the number of characters of messages and schema, counted as for recorded calls."""
    return _length(messages) + len(canonical_json(schema))


def _length(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)


async def measure_role(lab: PromptLab, role: RoleName, drawn: Sequence[Sample]) -> PromptSize:
    """Return the length of a role's prompts for samples of the lab, or else for bundled ones."""
    return replace(await _measure_prompts(lab, role, drawn), kind=lab.setup.task.kind)


async def _measure_prompts(lab: PromptLab, role: RoleName, drawn: Sequence[Sample]) -> PromptSize:
    by_rules = item_kind(lab.setup.task).plain_text or role in FIRST_ROLES
    if drawn and by_rules and (shown := await _collect_requests(lab, role, drawn)):
        return _summarize_sizes(role, shown, "the benchmark")
    with open_bundled_lab(_find_similar_task(lab.setup.task)) as bundled:
        shown = await _collect_requests(_use_prompts_of(bundled, lab), role, _iter_all(bundled))
    size = _summarize_sizes(role, shown, "the bundled demo")
    return size if by_rules or not drawn else _add_items(size, lab.setup.task, drawn)


def _add_items(size: PromptSize, task: Task, drawn: Sequence[Sample]) -> PromptSize:
    """Return the length of prompts that show an item in addition to the demo's prompts.

    Rules do not write or judge items, so prompts about them cannot be rendered before a run.
    """
    items = [len(to_prompt_json(item_data(task, sample))) for sample in drawn]
    basis = FigureBasis(origin="of the bundled demo, with items of the benchmark", n=len(items))
    varied = KnownRange(range=size.varied.range + estimate_mean(items), basis=basis)
    return PromptSize(fixed=size.fixed, varied=varied)


def measure_target(lab: PromptLab, drawn: Sequence[Sample]) -> PromptSize:
    """Return the length of the questions to a target, which share no common prefix."""
    if drawn:
        return _measure_questions(lab, drawn, "the benchmark")
    with open_bundled_lab(_find_similar_task(lab.setup.task)) as bundled:
        return _measure_questions(bundled, _iter_all(bundled), "the bundled demo")


def _measure_questions(lab: PromptLab, samples: Sequence[Sample], whose: str) -> PromptSize:
    sizes = []
    for sample in samples[:MEASURED_SAMPLES]:
        task = load_sample_task(lab.setup, sample)
        sizes += [measure_question(asked, task) for asked in questions_about([sample], task)]
    return PromptSize(
        fixed=0,
        varied=KnownRange(
            range=estimate_mean(sizes), basis=_rendered_basis(samples[:MEASURED_SAMPLES], whose)
        ),
        kind=lab.setup.task.kind,
    )


def measure_question(asked: TargetQuestion, task: Task) -> int:
    """Return the number of characters of a question to a target and its answer schema."""
    message = make_message(task, asked.sample.fields, asked.template)
    shape = scoring_of(task).make_shapes(task)(asked.sample)
    return measure_prompt([message], shape.schema)


async def _collect_requests(
    lab: PromptLab, role: RoleName, samples: Sequence[Sample]
) -> list[RoleRequest]:
    """Return the role's requests on the first samples that reach it; none without news."""
    found = list[RoleRequest]()
    try:
        with _open_source(lab, role) as situation_of:
            for sample in samples:
                if len(found) == MEASURED_SAMPLES:
                    break
                found += await _capture_input(lab, await situation_of(sample))
    except KnowledgeError:
        return []
    return found


@contextmanager
def _open_source(lab: PromptLab, role: RoleName) -> Iterator[_ReadInput]:
    if role in FIRST_ROLES:
        yield FirstRoleInputs(lab.setup, role).situation
        return
    with closing(DryRun(lab.setup, role, lab.config, lab.workspace)) as dry_run:
        yield dry_run.situation


async def _capture_input(lab: PromptLab, one: RoleInput | SkippedSample) -> list[RoleRequest]:
    if isinstance(one, SkippedSample):
        return []
    try:
        return [await render_request(one, lab.setup.prompts)]
    except UsageError:  # there is nothing to ask about
        return []


def _summarize_sizes(role: RoleName, shown: Sequence[RoleRequest], whose: str) -> PromptSize:
    fixed = [measure_prompt(one.messages[:1], one.schema) for one in shown]
    varied = estimate_mean([_length(one.messages[1:]) for one in shown])
    if role not in FIRST_ROLES:
        varied = varied * RETRY_PROMPT
    return PromptSize(
        fixed=round(fmean(fixed)),
        varied=KnownRange(range=varied, basis=_rendered_basis(shown, whose)),
    )


def _rendered_basis(what: Sequence[object], whose: str) -> FigureBasis:
    return FigureBasis(origin=f"rendered with samples of {whose}", n=len(what))


def _iter_all(lab: PromptLab) -> list[Sample]:
    rows = iter_benchmark(lab.setup.config.dataset, lab.setup.task)
    return [row for row in rows if isinstance(row, Sample)]


def _find_similar_task(task: Task) -> str:
    """Return the bundled task that is most similar to a task."""
    if task.name in DATASETS:
        return task.name
    return "mrpc" if len(task.fields) > 1 else "emotion"


def _use_prompts_of(bundled: PromptLab, lab: PromptLab) -> PromptLab:
    """Return a bundled lab that uses the prompts of another lab."""
    return replace(bundled, setup=replace(bundled.setup, prompts=lab.setup.prompts))
