"""Runs one detector on an ended run: asks the targets, writes its document and the report.

The questions go through the call store and are paid for by the run, so a stop or a kill loses only
questions in flight, and the same command continues.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from coreeval.config import TargetConfig
from coreeval.errors import ConfigError
from coreeval.evaluation.clusters import find_shared
from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    SampleTexts,
    TextAnswer,
)
from coreeval.evaluation.detectors.documents import read_document, write_document
from coreeval.graph.campaign import Campaign, ask_text, explain_stop, score_text
from coreeval.graph.evaluate import refuse_open
from coreeval.graph.execute import (
    DEFAULT_HOOKS,
    RunHooks,
    RunSummary,
    build_run_context,
    execute,
    open_store,
)
from coreeval.graph.pool import handle_signals
from coreeval.graph.run import lock_opened_run, open_run, open_workspace
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import Setup, check_targets
from coreeval.graph.target_questions import (
    ARM_TEXTS,
    CONTROL_TEXTS,
    build_step,
    open_run_campaign,
    record_asking,
)
from coreeval.models import record_calls
from coreeval.runs.manifest import Manifest
from coreeval.tasks import kind_of
from coreeval.tools.loops import run_coroutine
from coreeval.tools.plugin_origin import PluginOrigin
from coreeval.tools.plugins import allow_target
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command

DETECTOR_ROLE: Final = "target_text"
"""The role under which calls are recorded: a target that answers in free text."""
TOP_TOKENS: Final = 5
"""The number of log-probabilities requested at each position."""
Found = TypeVar("Found")
Finish = Callable[[DetectorInputs, Mapping[str, TextAnswer]], Found]
"""Converts a target's answers by question key."""


@dataclass(frozen=True, kw_only=True)
class DetectionPlan:
    """A run, a detector, and the targets to ask."""

    detector: Detector
    files: RunFiles
    manifest: Manifest
    setup: Setup
    targets: Sequence[TargetConfig]


@dataclass(frozen=True, kw_only=True)
class Detection:
    """The result of running a detector."""

    document: Mapping[str, Any]
    """The detector's document, with a finding for every target asked so far."""
    summary: RunSummary


def plan_detection(
    detector: Detector, run_dir: Path | str, targets: Sequence[str], budget_usd: float | None
) -> DetectionPlan:
    """Return which questions a detector would ask which targets of a run; nothing is written.

    Args:
        detector: A detector with questions.
        run_dir: The run's directory.
        targets: Names of targets of the run; by default all that answer in text. Naming a plugin
            allows it to run.
        budget_usd: The run's new total budget, including its cost so far.

    Raises:
        RunStateError: the run does not exist.
        RunCorrupt: the detector's earlier document, which would be extended, is damaged.
        ConfigError: the run has no such target, or none that answers in text.
    """
    for name in targets:  # before the run's config is opened, which names them as well
        allow_target(name)
    files, manifest, setup = open_run(run_dir, budget_usd, may_repeat=True)
    read_document(files, detector)
    able = {each.model: each for each in setup.config.models.targets if not each.is_embedded}
    for name in targets:
        if name not in able:
            raise ConfigError(
                f"the run has no target {name!r} that answers in text",
                where="--target",
                hint=f"it has {', '.join(able) or 'none'}; add another with "
                f"{command('evaluate', files.root)} --target NAME",
            )
    chosen = [able[name] for name in dict.fromkeys(targets)] or list(able.values())
    if not chosen:
        raise ConfigError(
            "the run has no target that answers in text",
            where="models.targets",
            hint=f"add one: {command('evaluate', files.root)} --target provider:name",
        )
    if detector.plugin:
        origin = PluginOrigin.model_validate(detector.plugin["origin"])
        manifest = manifest.name_plugins([origin])
    return DetectionPlan(
        detector=detector, files=files, manifest=manifest, setup=setup, targets=chosen
    )


def run_detector(plan: DetectionPlan, *, around: RunHooks = DEFAULT_HOOKS) -> Detection:
    """Ask the targets, write the detector's document and a new report.

    Raises:
        RunStateError: some of the run's samples are unfinished.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        Interrupted: a signal stopped it; the same call continues.
        RunError: a target left questions without an answer; the others are stored.
    """
    assert plan.detector.score, "a detector with questions has a score"
    check_endpoints(plan)
    with lock_opened_run(plan.files, plan.manifest, plan.setup):
        found = _ask(plan, around, plan.detector.score)
        return keep_findings(plan, found, around)


def collect_answers(
    plan: DetectionPlan, *, around: RunHooks = DEFAULT_HOOKS
) -> dict[str, Mapping[str, TextAnswer]]:
    """Ask the targets and return their answers by target and question key, without a verdict.

    Raises:
        CoreEvalError: as `run_detector` does.
    """
    check_endpoints(plan)
    with lock_opened_run(plan.files, plan.manifest, plan.setup):
        return _ask(plan, around, lambda _inputs, answers: answers)


def check_endpoints(plan: DetectionPlan) -> None:
    """Raise an error if a target of a plan cannot be asked.

    Raises:
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
    """
    check_targets(plan.setup, plan.targets, open_workspace(plan.manifest))


class FindingPlace(Protocol):
    """A run, and a detector with findings in it."""

    @property
    def detector(self) -> Detector:
        """Return the detector."""

    @property
    def files(self) -> RunFiles:
        """Return the run's files."""

    @property
    def manifest(self) -> Manifest:
        """Return the run's manifest."""

    @property
    def setup(self) -> Setup:
        """Return the run's setup."""


def keep_findings(
    place: FindingPlace, found: Mapping[str, Mapping[str, Any]], around: RunHooks
) -> Detection:
    """Write findings by target into a detector's document, and a new report, under the lock."""
    document = write_document(place.files, place.detector, found)
    with open_store(place.files, around.now) as store:
        store.reopen_stages(("report",))
    workspace = open_workspace(place.manifest)
    summary = execute(place.setup, place.manifest, place.files, workspace, around)
    return Detection(document=document, summary=summary)


def read_inputs(run: RunContext) -> DetectorInputs:
    """Return the texts of a run in the form for detectors."""
    compare = kind_of(run.task).compared

    @cache
    def find_passages() -> dict[str, str]:
        return find_shared(run.store.clusters(), run.task.shown_fields)

    def read_fields() -> Iterator[SampleTexts]:
        shared = find_passages()
        control = _control_texts(run.control.store) if run.control else {}
        for ended in run.store.sample_results():
            arms = {arm: fields for arm, read in ARM_TEXTS.items() if (fields := read(ended))}
            if ended.sample.id in control:
                arms["control"] = control[ended.sample.id]
            sample = ended.sample
            if sample.id in shared:
                sample = sample.model_copy(update={"cluster": shared[sample.id]})
            yield SampleTexts(sample, arms)

    def read_texts() -> Iterator[SampleTexts]:
        for sample, arms in read_fields():
            compared = {arm: compare(run.task, fields) for arm, fields in arms.items()}
            yield SampleTexts(sample, compared)

    seed = run.config.run.seed
    return DetectorInputs(task=run.task, seed=seed, texts=read_texts, fields=read_fields)


def _control_texts(store: RunStore) -> dict[str, Mapping[str, str]]:
    read = CONTROL_TEXTS["control"]
    return {one.sample.id: fields for one in store.sample_results() if (fields := read(one))}


def list_questions(detector: Detector, inputs: DetectorInputs) -> list[DetectorQuestion]:
    """Return the questions of a detector."""
    assert detector.questions, "only detectors with questions are run"
    return list(detector.questions(inputs))


def _ask(plan: DetectionPlan, around: RunHooks, finish: Finish[Found]) -> dict[str, Found]:
    """Ask the targets live and return the converted answers; the caller holds the lock.

    Raises:
        Interrupted: a signal stopped it.
    """
    workspace = open_workspace(plan.manifest)
    context = build_run_context(plan.setup, plan.manifest, plan.files, workspace, around)
    with closing(replace(context, batching=None)) as run:
        refuse_open(run.store, plan.files)
        with explain_stop(plan.files.root):
            return run_coroutine(_ask_targets(plan, run, finish))


async def _ask_targets(
    plan: DetectionPlan, run: RunContext, finish: Finish[Found]
) -> dict[str, Found]:
    inputs, found = read_inputs(run), dict[str, Found]()
    questions = await asyncio.to_thread(list_questions, plan.detector, inputs)
    stage = f"detect {plan.detector.name}"
    with handle_signals(
        run.stop, lambda: run.tell("stopping", note="press Ctrl-C again to stop immediately")
    ):
        async with open_run_campaign(run, stage) as campaign:
            for target in plan.targets:
                answers = await _ask_target(plan, run, campaign, target, questions, stage)
                found[target.model] = await asyncio.to_thread(finish, inputs, answers)
    return found


async def _ask_target(
    plan: DetectionPlan,
    run: RunContext,
    campaign: Campaign,
    target: TargetConfig,
    questions: Sequence[DetectorQuestion],
    stage: str,
) -> dict[str, TextAnswer]:
    """Return a target's answers by question key, and record its calls with the run."""
    scores_texts = plan.detector.scores_texts
    logprobs = TOP_TOKENS if plan.detector.access == "log_probabilities" and not scores_texts else 0
    clients = {
        temperature: campaign.models.open_client(
            _set_temperature(target, temperature),
            DETECTOR_ROLE,
            max_draws=1,
            settle=True,
            logprobs=logprobs,
            scores_texts=scores_texts,
        )
        for temperature in {question.temperature for question in questions}
    }

    async def ask(question: DetectorQuestion) -> TextAnswer:
        client = clients[question.temperature]
        messages = [{"role": "user", "content": question.text}]
        if scores_texts:
            return await score_text(client, messages)
        return await ask_text(client, messages, draw=question.draw)

    with record_calls() as made:
        try:
            answers = await campaign.gather(
                target.model, stage, questions, ask, lambda answer: answer.kind
            )
        finally:
            if made:
                record_asking(run, build_step(run, target.model, 0, stage, made), made)
                await run.store.history.flush_steps()
    return {question.key: answer for question, answer in answers.items()}


def _set_temperature(target: TargetConfig, temperature: float | None) -> TargetConfig:
    """Return a target at a temperature, without a seed, which would repeat its answers."""
    if temperature is None:
        return target
    return target.model_copy(update={"temperature": temperature, "seed": None})
