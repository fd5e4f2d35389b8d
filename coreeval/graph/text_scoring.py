"""Scores texts with local weights, for a detector that uses log-probabilities.

Scores are stored one by one, so a stop or a kill loses only the texts in progress; a text that the
same weights have scored is not scored again.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from coreeval.evaluation.clusters import find_clusters
from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    TextAnswer,
    read_text_scores,
)
from coreeval.evaluation.detectors.documents import read_document
from coreeval.evaluation.detectors.exchangeability import EXCHANGEABILITY
from coreeval.evaluation.overlap.sources import ReadOptions, read_texts
from coreeval.evaluation.whitebox.exchangeability import (
    ExchangeabilitySettings,
    join_neighbours,
    judge_exchangeability,
    list_orders,
    make_shards,
)
from coreeval.evaluation.whitebox.local_scores import (
    LocalScorer,
    ScoreFile,
    ScoringHeader,
    hash_text,
)
from coreeval.evaluation.whitebox.time_estimate import (
    FORWARD,
    SPEEDS,
    SPREAD,
    count_tokens,
    estimate_memory,
)
from coreeval.graph.campaign import explain_stop
from coreeval.graph.detect import Detection, keep_findings, list_questions, read_inputs
from coreeval.graph.evaluate import refuse_open
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, build_run_context
from coreeval.graph.monitor import Progress, Watch
from coreeval.graph.run import lock_opened_run, open_run, open_workspace
from coreeval.graph.setup import Setup
from coreeval.models.loaded_network import choose_device, choose_precision, free_device_memory
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import Weights, find_weights, require_memory
from coreeval.runs.manifest import Manifest
from coreeval.schema import Value
from coreeval.tools.formatting import format_expected_time
from coreeval.tools.text_scores import TextScorer, TextScores
from coreeval.tools.workspace import RunFiles, workspace_for

SLOWEST: Final = 5
"""The largest factor by which an estimate of time is too short, on a shared CPU (own
measurement)."""
TELL_TIMES: Final = 10
"""Seconds between two reports of the remaining time."""


@dataclass(frozen=True, kw_only=True)
class ScoringRequest:
    """The model and options for scoring."""

    model: str
    device: str = "auto"
    hub: bool = False
    batch: int = 8
    max_tokens: int = 2048
    """Texts with more tokens are left out."""


class ScoringEstimate(Value):
    """The expected time of scoring, an estimate before anything was measured."""

    texts: int
    """The number of different texts."""
    left: int
    """The number of texts that have not been scored."""
    tokens: int
    """The approximate number of their tokens."""
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class TextScoring:
    """Texts and the weights that score them; nothing is loaded yet."""

    detector: Detector
    questions: Sequence[DetectorQuestion]
    judge: Callable[[Mapping[str, TextAnswer]], Json]
    """Returns the finding from the scores by question key."""
    weights: Weights
    device: str
    memory: int
    """The bytes that the model needs on the device."""
    request: ScoringRequest
    results: ScoreFile

    def find_open(self) -> list[str]:
        """Return the different texts that have not been scored.

        Raises:
            RunCorrupt: a result is damaged.
        """
        known = self.results.read()
        every = dict.fromkeys(question.text for question in self.questions)
        return [text for text in every if hash_text(text) not in known]

    def estimate(self) -> ScoringEstimate:
        """Return the expected time for the texts that have not been scored.

        Raises:
            RunCorrupt: a result is damaged.
        """
        left = self.find_open()
        tokens = sum(map(count_tokens, left))
        speed = SPEEDS[self.device.partition(":")[0]]
        seconds = FORWARD * self.weights.parameters * tokens / speed
        return ScoringEstimate(
            texts=len({question.text for question in self.questions}),
            left=len(left),
            tokens=round(tokens),
            seconds=seconds,
            low=seconds / SPREAD,
            high=seconds * SLOWEST,
        )

    def score(self, watch: Watch) -> Json:
        """Score the remaining texts, and return the finding with the digest of the weights.

        Raises:
            CoreEvalError: as in `collect_answers`.
        """
        found = self.judge(self.collect_answers(watch))
        return {"revision": self.weights.revision, **found}

    def collect_answers(self, watch: Watch) -> dict[str, TextAnswer]:
        """Score the remaining texts, and return the scores by question key.

        Raises:
            UsageError: the model does not fit into memory, or cannot be read.
            RunError: the device ran out of memory; scores so far are kept.
            RunCorrupt: a result is damaged.
        """
        stage, left = f"detect {self.detector.name}", len(self.find_open())
        watch(Progress(stage=stage, note=f"{left} texts to score with {self.weights.name}"))
        scorer: TextScorer = LocalScorer(
            self._open_model,
            batch=self.request.batch,
            results=self.results,
            on_batch=_tell_progress(watch, stage, left),
        )
        found = scorer.score_texts(each.text for each in self.questions)
        return {each.key: _to_answer(found[each.text]) for each in self.questions}

    def _open_model(self) -> LocalModel:
        return load_model(
            self.weights,
            self.device,
            needed=self.memory,
            most_tokens=self.request.max_tokens,
        )


def _to_answer(found: TextScores | str) -> TextAnswer:
    if isinstance(found, str):
        return TextAnswer("unparsed", found)
    return TextAnswer("answered", found.model_dump_json())


def _tell_progress(watch: Watch, stage: str, left: int) -> Callable[[int, int], None]:
    """Return a function that reports progress and regularly the remaining time."""
    began, told = monotonic(), 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        here, note = left - (total - done), ""
        if 0 < here < left and TELL_TIMES * here // left > told:
            told = TELL_TIMES * here // left
            rest = (monotonic() - began) / here * (left - here)
            note = f"about {format_expected_time(rest)} left"
        watch(Progress(stage=stage, done=done, total=total, note=note))

    return tell


@dataclass(frozen=True, kw_only=True)
class RunScoring:
    """The scoring of a run's texts, whose finding becomes part of the run's report."""

    files: RunFiles
    manifest: Manifest
    setup: Setup
    inputs: DetectorInputs
    scoring: TextScoring

    @property
    def detector(self) -> Detector:
        """Return the detector."""
        return self.scoring.detector

    def judged_by(self, detector: Detector) -> "RunScoring":
        """Return a copy whose scores are judged by another detector with the same questions."""
        assert detector.score, "a detector with questions has a score"
        judge = partial(detector.score, self.inputs)
        return replace(self, scoring=replace(self.scoring, detector=detector, judge=judge))


def plan_run_scoring(
    detector: Detector,
    run_dir: Path | str,
    request: ScoringRequest,
    *,
    budget_usd: float | None = None,
) -> RunScoring:
    """Return the plan for scoring a run's texts; nothing is loaded or written.

    Args:
        detector: A detector that scores texts.
        run_dir: The run's directory.
        request: With what texts are scored.
        budget_usd: The run's new total budget; weights spend none of it.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        RunCorrupt: the detector's earlier document is damaged.
        UsageError: there are no weights, they do not fit into memory, or torch is not installed.
        DatasetError: the run has no texts that the detector can use.
    """
    files, manifest, setup = open_run(run_dir, budget_usd, may_repeat=True)
    read_document(files, detector)
    weights, device = find_weights(request.model, hub=request.hub), choose_device(request.device)
    workspace = open_workspace(manifest)
    with closing(build_run_context(setup, manifest, files, workspace, DEFAULT_HOOKS)) as run:
        refuse_open(run.store, files)
        found = read_inputs(run)
        samples = list(found.texts())
    inputs = replace(found, texts=lambda: iter(samples))
    assert detector.score, "a detector with questions has a score"
    scoring = plan_scoring(
        detector,
        list_questions(detector, inputs),
        partial(detector.score, inputs),
        weights=weights,
        device=device,
        request=request,
        folder=files.detector_folder(detector.name),
    )
    return RunScoring(files=files, manifest=manifest, setup=setup, inputs=inputs, scoring=scoring)


def run_scoring(plan: RunScoring, *, around: RunHooks = DEFAULT_HOOKS) -> Detection:
    """Score the texts of a run, write the finding into the run and a new report.

    Raises:
        Interrupted: a signal stopped it; the same call continues.
        RunError: the device ran out of memory; scores are kept.
        RunLocked: another process is using the run.
    """
    with explain_stop(plan.files.root), lock_opened_run(plan.files, plan.manifest, plan.setup):
        found = {plan.scoring.weights.name: plan.scoring.score(around.watch)}
        _tell_other_weights(plan, around.watch)
        return keep_findings(plan, found, around)


def _tell_other_weights(plan: RunScoring, watch: Watch) -> None:
    """Report that an earlier finding is replaced, if it is on other weights with the same name."""
    weights = plan.scoring.weights
    before = read_document(plan.files, plan.detector) or {"targets": []}
    for each in before["targets"]:
        known = each.get("revision", weights.revision)  # none in documents of older versions
        if each["target"] == weights.name and known != weights.revision:
            note = f"{weights.name} had other weights ({known[:12]}); their finding is replaced"
            watch(Progress(stage=f"detect {plan.detector.name}", note=note))


def plan_order_scoring(
    source: str,
    how: ReadOptions,
    settings: ExchangeabilitySettings,
    request: ScoringRequest,
    *,
    seed: int = 0,
) -> TextScoring:
    """Return the plan for scoring orders of a file's texts; nothing is loaded or written.

    Args:
        source: A benchmark: a config, or `[FORMAT:]PATH[@SPLIT]`.
        how: How it is read.
        settings: What is scored.
        request: With what.
        seed: The seed of the random orders.

    Raises:
        UsageError: the source does not say how to read it, or there are no weights.
        DatasetError: no two texts fit into a shard.
    """
    entries = read_texts(source, how).entries
    named = ((each.id, each.cluster, {"text": each.text}) for each in entries)
    clusters = find_clusters(named, ("text",))
    texts = join_neighbours((clusters[each.id], each.text.splitlines()) for each in entries)
    weights, device = find_weights(request.model, hub=request.hub), choose_device(request.device)
    shards = make_shards(texts, settings, seed=seed)

    def judge(answers: Mapping[str, TextAnswer]) -> Json:
        number = min(len(texts), settings.texts)
        found = judge_exchangeability(shards, read_text_scores(answers), number)
        return found.model_dump(mode="json")

    return plan_scoring(
        EXCHANGEABILITY,
        [DetectorQuestion(*order) for order in list_orders(shards)],
        judge,
        weights=weights,
        device=device,
        request=request,
        folder=workspace_for(Path.cwd()).scores,
    )


def plan_scoring(
    detector: Detector,
    questions: Sequence[DetectorQuestion],
    judge: Callable[[Mapping[str, TextAnswer]], Json],
    *,
    weights: Weights,
    device: str,
    request: ScoringRequest,
    folder: Path,
) -> TextScoring:
    """Return texts and the weights that score them, if these fit into memory.

    Args:
        detector: The detector that reads the scores.
        questions: The texts.
        judge: Returns the finding from the scores.
        weights: The weights.
        device: The device to load them on.
        request: The model and options.
        folder: The folder of the scores.

    Raises:
        UsageError: the weights do not fit into memory.
    """
    memory = estimate_memory(weights.parameters, choose_precision("auto", device))
    require_memory(weights, memory, free_device_memory(device), device)
    header = ScoringHeader(
        model=weights.name,
        revision=weights.revision,
        device=device.partition(":")[0],
        max_tokens=request.max_tokens,
    )
    known = (header.revision, header.device, str(header.max_tokens))
    name = hashlib.sha256("\0".join(known).encode()).hexdigest()[:12]
    return TextScoring(
        detector=detector,
        questions=questions,
        judge=judge,
        weights=weights,
        device=device,
        memory=memory,
        request=request,
        results=ScoreFile(folder / f"{name}.jsonl", header),
    )
