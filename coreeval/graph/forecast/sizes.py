"""How long the prompts of each role are: rendered for real, with rules in the roles before it."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from statistics import fmean

from coreeval.errors import KnowledgeError, UsageError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.label_shape import LabelShape
from coreeval.evaluation.targets import Question, question, questions_about
from coreeval.graph.bench.opening import Bench, bundled_bench
from coreeval.graph.bench.rehearsal import FirstLook, Rehearsal
from coreeval.graph.bench.shown import Shown, shown_in
from coreeval.graph.bench.situations import Missed, Situation, task_for
from coreeval.graph.bundled import DATASETS
from coreeval.graph.forecast.ranges import Basis, Known, interval
from coreeval.graph.forecast.stated import RETRY_PROMPT
from coreeval.schema import RoleName, Sample, Task
from coreeval.tools.stores.call_records import canonical_json

SHOWN = 8
"""Samples on which the prompt of each role is rendered."""
FIRST: Sequence[RoleName] = ("extractor", "label_judge")
"""Roles that are shown nothing but the sample; nobody tells them to try again."""
_SituationOf = Callable[[Sample], Awaitable[Situation | Missed]]


@dataclass(frozen=True, kw_only=True)
class Size:
    """The characters of a prompt with the schema of its answer."""

    fixed: int
    """Of instructions and schema, the same in every call."""
    varied: Known
    """Of the rest."""


def size_of(messages: Sequence[Mapping[str, str]], schema: Mapping[str, object]) -> int:
    """Return the characters of messages and schema; recorded calls are measured in the same way."""
    return _length(messages) + len(canonical_json(schema))


def _length(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)


async def size_of_role(bench: Bench, role: RoleName, drawn: Sequence[Sample]) -> Size:
    """Return how long a role's prompts are on samples of the bench, else on bundled ones."""
    if drawn and (shown := await _shown(bench, role, drawn)):
        return _size(role, shown, "the benchmark")
    with bundled_bench(_like(bench.setup.task)) as bundled:
        shown = await _shown(_worded(bundled, bench), role, _all(bundled))
    return _size(role, shown, "the bundled demo")


def size_of_target(bench: Bench, drawn: Sequence[Sample]) -> Size:
    """Return how long the questions to a target are; nothing in them is the same in every call."""
    if drawn:
        return _questions(bench, drawn, "the benchmark")
    with bundled_bench(_like(bench.setup.task)) as bundled:
        return _questions(bundled, _all(bundled), "the bundled demo")


def _questions(bench: Bench, samples: Sequence[Sample], whose: str) -> Size:
    sizes = []
    for sample in samples[:SHOWN]:
        task = task_for(bench.setup, sample)
        sizes += [size_of_question(asked, task) for asked in questions_about([sample], task)]
    return Size(
        fixed=0,
        varied=Known(range=interval(sizes), basis=_rendered(samples[:SHOWN], whose)),
    )


def size_of_question(asked: Question, task: Task) -> int:
    """Return the characters of a question to a target, with the schema of its answer."""
    message = question(task, asked.sample.fields, asked.template)
    return size_of([message], LabelShape(task).schema)


async def _shown(bench: Bench, role: RoleName, samples: Sequence[Sample]) -> list[Shown]:
    """Return what a role is shown on the first samples that come to it; none without news."""
    found = list[Shown]()
    try:
        with _source(bench, role) as situation_of:
            for sample in samples:
                if len(found) == SHOWN:
                    break
                found += await _heard(bench, await situation_of(sample))
    except KnowledgeError:
        return []
    return found


@contextmanager
def _source(bench: Bench, role: RoleName) -> Iterator[_SituationOf]:
    if role in FIRST:
        yield FirstLook(bench.setup, role).situation
        return
    with closing(Rehearsal(bench.setup, role, bench.config, bench.workspace)) as rehearsal:
        yield rehearsal.situation


async def _heard(bench: Bench, one: Situation | Missed) -> list[Shown]:
    if isinstance(one, Missed):
        return []
    try:
        return [await shown_in(one, bench.setup.prompts)]
    except UsageError:  # there is nothing to ask about
        return []


def _size(role: RoleName, shown: Sequence[Shown], whose: str) -> Size:
    fixed = [size_of(one.messages[:1], one.schema) for one in shown]
    varied = interval([_length(one.messages[1:]) for one in shown])
    if role not in FIRST:
        varied = varied * RETRY_PROMPT
    return Size(
        fixed=round(fmean(fixed)),
        varied=Known(range=varied, basis=_rendered(shown, whose)),
    )


def _rendered(what: Sequence[object], whose: str) -> Basis:
    return Basis(origin=f"rendered on samples of {whose}", n=len(what))


def _all(bench: Bench) -> list[Sample]:
    rows = iter_benchmark(bench.setup.config.dataset, bench.setup.task)
    return [row for row in rows if isinstance(row, Sample)]


def _like(task: Task) -> str:
    """Return the bundled task that is most like a task."""
    if task.name in DATASETS:
        return task.name
    return "mrpc" if len(task.fields) > 1 else "emotion"


def _worded(bundled: Bench, bench: Bench) -> Bench:
    """Return a bundled bench with the prompts of another."""
    return replace(bundled, setup=replace(bundled.setup, prompts=bench.setup.prompts))
