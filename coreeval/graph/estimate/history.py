"""Records of earlier runs in the workspace: calls, outcomes of samples, and usage per sample."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coreeval.config import ROLES, ModelConfig, ModelsConfig, RunConfig, load_config
from coreeval.errors import CoreEvalError
from coreeval.graph.estimate.assignments import (
    RoleAssignments,
    find_recorded_name,
    iter_role_models,
)
from coreeval.graph.estimate.call_figures import CallUsage
from coreeval.graph.estimate.workload import measure_prompt
from coreeval.graph.target_questions import ARM_TEXTS, CONTROL_TEXTS
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.schema import Arm, RoleName
from coreeval.tools.catalogs import cost
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import TARGET_SUBJECT, CallRow, SampleResult
from coreeval.tools.workspace import RunFiles, Workspace

MOST_CALLS = 300
"""The most recent calls examined per role."""
MOST_SAMPLES = 200
"""The most samples of earlier runs examined, newest runs first."""
MOST_RUNS = 100
"""The most earlier runs whose calls are read."""
ENOUGH_SAMPLES = 3
"""The fewest samples from which calls are estimated instead of from the graph."""


class _RequestShape(BaseModel):
    model_config = ConfigDict(extra="ignore")
    body: dict[str, object] = Field(alias="schema")


class _RequestText(BaseModel):
    """The parts of a stored request with the model asked and the length."""

    model_config = ConfigDict(extra="ignore")
    provider: str
    model: str
    output_schema: _RequestShape = Field(alias="schema")
    messages: tuple[dict[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class PastRuns:
    """Results of samples in earlier runs of the same task."""

    runs: tuple[str, ...] = ()
    calls: Mapping[RoleName, Sequence[float]]
    """Calls of each role per sample, from runs in which models played the role. A call that several
    samples share, such as one that labels ten originals, counts in equal parts."""
    arms: Mapping[Arm, Sequence[int]]
    """Whether each sample has an arm (1 or 0), by arm."""


# -- calls ----------------------------------------------------------------------------------------


OTHER_ROLES = (
    "target", "target_text", "paraphraser", "target_series", "target_utility", "utility_judge",
)  # fmt: skip
"""Roles outside the team: targets asked for labels, for text and about series, the writer of twins,
and the judges of the cost of defences."""


OF_ONE_KIND = ("target_series", "target_series_prose", "target_utility", "utility_judge")
"""Roles that are always asked the same kind of question."""


def load_recent_calls(
    workspace: Workspace, payers: Sequence[str] = (), questions: Collection[str] = ()
) -> list[CallUsage]:
    """Return the last calls of each role and of targets; empty if there is no call store.

    Calls whose texts a takedown has erased are left out, because their size is not known.

    Args:
        workspace: The workspace.
        payers: The payers whose calls are alike, such as the runs of a task. Their last calls are
            read even if other payers have sent newer ones.
        questions: The texts that targets will be asked to answer in their own words. What else a
            target has answered so says nothing about the length of these answers.

    Raises:
        RunCorrupt: the call store is damaged.
    """
    if not has_store(workspace.calls):
        return []
    with closing(open_calls(workspace.calls)) as store:
        found = {
            record.key: record
            for role in (*ROLES, *OTHER_ROLES)
            for paid_by in ((None, payers) if payers else (None,))
            for record in store.newest(role, MOST_CALLS, paid_by)
            if not record.is_erased
        }
    return [_read_usage(record, payers, questions) for record in found.values()]


def _read_usage(
    record: CallRecord, payers: Collection[str], questions: Collection[str]
) -> CallUsage:
    """Return the usage figures of a call, from which other calls are estimated."""
    asked = _RequestText.model_validate_json(record.request)
    if record.role == "target_text":
        is_alike = asked.messages[-1]["content"] in questions
    else:
        is_alike = record.role in OF_ONE_KIND or record.paid_by in payers
    return CallUsage(
        is_alike=is_alike,
        role=record.role,
        model=f"{asked.provider}:{asked.model}",
        size=measure_prompt(asked.messages, asked.output_schema.body),
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_tokens,
        completion_tokens=record.completion_tokens,
        seconds=record.seconds,
    )


# -- runs -----------------------------------------------------------------------------------------


SAME_SETTINGS = ("pipeline", "label_batch", "arms")
"""Settings under `run` that determine the number of calls by role, independent of the samples."""


def load_past_runs(workspace: Workspace, task: str, run: RunConfig) -> PastRuns:
    """Return the results of samples in the workspace's runs of a task, newest runs first.

    Args:
        workspace: The workspace with the runs.
        task: Name of the task.
        run: The settings of the next run; runs with other values of `SAME_SETTINGS` are left out.
    """
    calls: dict[RoleName, list[float]] = {role: [] for role in ROLES}
    arms: dict[Arm, list[int]] = {arm: [] for arm in ARM_TEXTS}
    looked, names = 0, list[str]()
    for files, manifest in _iter_runs(workspace, task, run):
        if looked >= MOST_SAMPLES:
            break
        if not list_model_roles(manifest):
            continue
        with suppress(CoreEvalError):  # a damaged run has no usable data
            number = _count_role_calls(files, manifest, MOST_SAMPLES - looked, calls, arms)
            looked += number
            names += [manifest.run] if number else []
    return PastRuns(runs=tuple(names), calls=calls, arms=arms)


def find_payers(workspace: Workspace, task: str, run: RunConfig) -> tuple[str, ...]:
    """Return the payers in the call store of the workspace's runs of a task, newest runs first.

    Runs with other values of `SAME_SETTINGS` are left out: their questions are others.
    """
    found = islice(_iter_runs(workspace, task, run), MOST_RUNS)
    return tuple(manifest.payer for _, manifest in found)


def _iter_runs(
    workspace: Workspace, task: str, run: RunConfig
) -> Iterator[tuple[RunFiles, Manifest]]:
    """Yield the runs of a task with such settings, newest first."""
    found = list[tuple[RunFiles, Manifest]]()
    for path in workspace.runs.glob("*/*/manifest.json"):
        with suppress(CoreEvalError, ValidationError):  # from another version
            manifest = read_manifest(path)
            files = RunFiles(path.parent)
            if manifest.task == task and _is_alike(files, run):
                found.append((files, manifest))
    yield from sorted(found, key=lambda one: one[1].created_at, reverse=True)


def _is_alike(files: RunFiles, run: RunConfig) -> bool:
    """Return whether a run asked its models in the same way as the next run."""
    before = load_config(files.config).run
    return all(getattr(before, name) == getattr(run, name) for name in SAME_SETTINGS)


def list_model_roles(manifest: Manifest) -> list[RoleName]:
    """Return the roles that models played in a run."""
    models = ModelsConfig.model_validate(manifest.models)
    return [role for role in ROLES if models.for_role(role).is_asked]


def _count_role_calls(
    files: RunFiles,
    manifest: Manifest,
    most: int,
    calls: Mapping[RoleName, list[float]],
    arms: Mapping[Arm, list[int]],
) -> int:
    """Count how often each role was asked about a run's samples; return the number of samples."""
    roles, number = list_model_roles(manifest), 0
    with RunStore.open(files.require_store(), now=utc_now) as store:
        for ended in islice(_iter_complete_samples(store), most):
            number += 1
            asked, users = (
                defaultdict[str, float](float),
                store.history.count_users(ended.sample.id),
            )
            for step in store.history.steps(ended.sample.id):
                for call in step.calls:
                    asked[call.role] += 1 / users[call.key]
            for role in roles:
                calls[role].append(asked[role])
            for arm, texts in ARM_TEXTS.items():
                arms[arm].append(texts(ended) is not None)
    return number


def _iter_complete_samples(store: RunStore) -> Iterator[SampleResult]:
    """Yield the samples that were fully processed: neither failed nor kept."""
    for ended in store.sample_results():
        if ended.result.outcome != "failed" and ended.result.kept_from is None:
            yield ended


RolePair = tuple[str, str]
"""A role, or `target`, and its model's name."""


@dataclass(frozen=True)
class Usage:
    """The usage of some calls; the cost is 0 if the model has no price."""

    calls: float = 0.0
    prompt_tokens: float = 0.0
    cached_tokens: float = 0.0
    completion_tokens: float = 0.0
    call_seconds: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Self) -> Self:
        """Return the sum of two usages."""
        return type(self)(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: float) -> Self:
        """Return the usage multiplied by a factor."""
        return type(self)(*(each * factor for each in astuple(self)))


MEASURES = tuple(field.name for field in fields(Usage))
BySample = list[Mapping[RolePair, Usage]]


@dataclass(frozen=True, kw_only=True)
class RunUsage:
    """The usage of a run per sample, and the paid part."""

    by_sample: BySample
    """Usage per sample, with that for its text in the control arm."""
    by_train: BySample
    """Usage per item of the train split."""
    paid: Usage


def read_run_usage(
    files: RunFiles,
    workspace: Workspace,
    assignments: RoleAssignments,
    *,
    templates: int,
    arms: bool,
) -> RunUsage:
    """Return the usage of a finished run; its answers must still be in the call store.

    `templates` is the number of its task's templates: a target is asked once per text and template;
    `arms` says whether it is asked about all arms or only about what PCR compares.
    """
    with ExitStack() as opened:
        calls = opened.enter_context(closing(open_calls(workspace.calls)))
        store = opened.enter_context(RunStore.open(files.require_store(), now=utc_now))
        control = None
        if has_store(files.control.store):
            control = opened.enter_context(RunStore.open(files.control.store, now=utc_now))
        clerk = _UsageReader(store, control, calls, assignments, templates)
        by_sample, by_train = clerk.by_sample(arms=arms), clerk.by_train()
        return RunUsage(by_sample=by_sample, by_train=by_train, paid=clerk.sum_paid())


class _UsageReader:
    """Reader of a run's calls; each counts once for a sample and once for the bill.

    `control` is the store of the pass that writes the control arm.
    """

    def __init__(
        self,
        store: RunStore,
        control: RunStore | None,
        calls: CallStore,
        assignments: RoleAssignments,
        templates: int,
    ) -> None:
        self._store, self._control = store, control
        self._calls, self._templates = calls, templates
        self._prices = {
            (role, find_recorded_name(model)): _find_price(assignments, model)
            for role, model in iter_role_models(assignments)
        }
        self._targets = [model for role, model in iter_role_models(assignments) if role == "target"]
        self._bought: dict[str, Usage] = {}

    def by_sample(self, *, arms: bool) -> BySample:
        """Return the usage of each sample, targets included."""
        asked_as = _count_arms if arms else _count_compared_texts
        used = {
            ended.sample.id: self._of(ended.sample.id, asked_as(ended))
            for ended in self._store.sample_results()
        }
        for ended in self._control.sample_results() if self._control else ():
            sample_id = ended.sample.id
            texts = int(arms and CONTROL_TEXTS["control"](ended) is not None)
            used[sample_id] = _add_usage(used[sample_id], self._in_control(sample_id, texts))
        return list(used.values())

    def by_train(self) -> BySample:
        """Return the usage of each train item, targets included."""
        ids = dict.fromkeys(self._store.train.ids(), 0)
        ids |= {item.sample.id: 2 for item in self._store.train.rewordings()}
        return [self._of(item, texts) for item, texts in ids.items()]

    def sum_paid(self) -> Usage:
        """Return the usage that was paid for; call it after all samples have been read."""
        return sum(self._bought.values(), Usage())

    @cached_property
    def _per_call(self) -> Mapping[str, Usage]:
        return {find_recorded_name(target): self._mean_of(target) for target in self._targets}

    def _of(self, sample_id: str, texts: int) -> Mapping[RolePair, Usage]:
        """Return the usage of a sample, with the given number of its texts put to targets.

        A call that several samples share is counted in equal parts.
        """
        used: dict[RolePair, Usage] = {}
        users = self._store.history.count_users(sample_id)
        for key, player, one in self._calls_of(self._store, sample_id):
            used[player] = used.get(player, Usage()) + one.times(1 / users[key])
        return used | self._of_targets(texts)

    def _in_control(self, sample_id: str, texts: int) -> Mapping[RolePair, Usage]:
        """Return what the second pass used for a sample, without the answers of the first pass."""
        assert self._control, "there is a second pass"
        used: dict[RolePair, Usage] = {}
        users = self._control.history.count_users(sample_id)
        for key, player, one in self._calls_of(self._control, sample_id):
            if not self._store.history.has_call(key):
                used[player] = used.get(player, Usage()) + one.times(1 / users[key])
        return used | self._of_targets(texts)

    def _of_targets(self, texts: int) -> dict[RolePair, Usage]:
        asked = texts * self._templates
        return {("target", name): each.times(asked) for name, each in self._per_call.items()}

    def _mean_of(self, target: ModelConfig) -> Usage:
        """Return the mean usage of one question to a target."""
        subject = TARGET_SUBJECT + target.model
        found = [one for _, _, one in self._calls_of(self._store, subject)]
        return sum(found, Usage()).times(1 / len(found)) if found else Usage()

    def _calls_of(self, store: RunStore, sample_id: str) -> Iterator[tuple[str, RolePair, Usage]]:
        """Yield the calls of a sample, or about one batch of a target: key, player and usage."""
        rows = {call.key: call for step in store.history.steps(sample_id) for call in step.calls}
        for call in rows.values():
            player = (call.role, call.model)
            one = self._measure_call(player, call)
            if not call.cached:
                self._bought[call.key] = one
            yield call.key, player, one

    def _measure_call(self, player: RolePair, call: CallRow) -> Usage:
        record = self._calls.get(call.key)
        price = self._prices.get(player, _price_nothing)
        usd = price(call.prompt_tokens, record.cached_tokens if record else 0,
                    call.completion_tokens)  # fmt: skip
        known = record.usd if record and record.usd is not None else usd
        return Usage(
            calls=1.0,
            prompt_tokens=call.prompt_tokens,
            cached_tokens=call.cached_tokens,
            completion_tokens=call.completion_tokens,
            call_seconds=call.seconds,
            usd=known,
        )


def _add_usage(
    one: Mapping[RolePair, Usage], other: Mapping[RolePair, Usage]
) -> Mapping[RolePair, Usage]:
    return {
        player: one.get(player, Usage()) + other.get(player, Usage())
        for player in dict.fromkeys([*one, *other])
    }


def _count_arms(ended: SampleResult) -> int:
    return sum(texts(ended) is not None for texts in ARM_TEXTS.values())


def _count_compared_texts(ended: SampleResult) -> int:
    return 2 if ARM_TEXTS["original"](ended) and ARM_TEXTS["semantic"](ended) else 0


_PriceTokens = Callable[[int, int, int], float]


def _find_price(assignments: RoleAssignments, model: ModelConfig) -> _PriceTokens:
    """Return the function that prices a call's tokens: prompt, cached prompt and answer."""
    price = assignments.find_price(model).price
    if price is None:
        return _price_nothing
    return lambda prompt, cached, answer: cost(
        price, prompt=prompt, cached=cached, written=0, completion=answer
    )


def _price_nothing(_prompt: int, _cached: int, _answer: int) -> float:
    return 0.0
