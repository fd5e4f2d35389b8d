"""Scores a run's texts with a model and with a reference that cannot have read the originals.

Both score in the same way, each into its own score file or through the call store, so a stop loses
only the texts in progress. The reference comes first, because the finding on the model needs both.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.evaluation.detectors.base import Detector, read_text_scores
from coreeval.evaluation.detectors.membership import make_membership
from coreeval.evaluation.whitebox.membership_reference import ReferenceScores
from coreeval.evaluation.whitebox.membership_texts import MembershipSettings
from coreeval.graph.campaign import explain_stop
from coreeval.graph.detect import (
    Detection,
    DetectionPlan,
    check_endpoints,
    collect_answers,
    plan_detection,
    run_detector,
)
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks
from coreeval.graph.run import lock_opened_run
from coreeval.graph.text_scoring import (
    RunScoring,
    ScoringRequest,
    plan_run_scoring,
    run_scoring,
)
from coreeval.models.weights import PREFIX

ModelPlan = RunScoring | DetectionPlan
"""Weights on this machine, or a target of the run."""


@dataclass(frozen=True, kw_only=True)
class ReferencePlan:
    """The plan for scoring a run's texts; nothing is loaded, asked or written yet."""

    settings: MembershipSettings
    model: ModelPlan
    reference: ModelPlan


def plan_with_reference(
    run_dir: Path | str,
    settings: MembershipSettings,
    model: ScoringRequest,
    reference: str,
    *,
    budget_usd: float | None = None,
) -> ReferencePlan:
    """Return the plan for scoring a run's texts with two models.

    Args:
        run_dir: The run's directory.
        settings: Which texts are scored.
        model: The model, and how weights are used.
        reference: The reference, named as the model is.
        budget_usd: The run's new total budget.

    Raises:
        CoreEvalError: as `plan_run_scoring` and `plan_detection` do.
        UsageError: the reference is the model.
    """
    detector = make_membership(settings)
    first, second = (
        _plan_model(detector, run_dir, replace(model, model=name), budget_usd)
        for name in (model.model, reference)
    )
    if _identify(first) == _identify(second):
        raise UsageError(
            f"the reference {reference!r} is the model itself",
            where="--reference",
            hint="choose a model that is older than the benchmark",
        )
    return ReferencePlan(settings=settings, model=first, reference=second)


def _plan_model(
    detector: Detector, run_dir: Path | str, request: ScoringRequest, budget_usd: float | None
) -> ModelPlan:
    if request.model.startswith(PREFIX):
        return plan_run_scoring(detector, run_dir, request, budget_usd=budget_usd)
    return plan_detection(detector, run_dir, [request.model], budget_usd)


def _identify(plan: ModelPlan) -> str:
    if isinstance(plan, RunScoring):
        return f"weights {plan.scoring.weights.revision}"
    return plan.targets[0].model


def run_with_reference(plan: ReferencePlan, *, around: RunHooks = DEFAULT_HOOKS) -> Detection:
    """Score the texts, write the finding on the model into the run and a new report.

    Raises:
        CoreEvalError: as in `run_scoring` and `run_detector`; scores so far are kept.
    """
    for each in (plan.reference, plan.model):
        if isinstance(each, DetectionPlan):
            check_endpoints(each)
    reference = _score_reference(plan.reference, around)
    detector = make_membership(plan.settings, reference)
    if isinstance(plan.model, RunScoring):
        return run_scoring(plan.model.judged_by(detector), around=around)
    return run_detector(replace(plan.model, detector=detector), around=around)


def _score_reference(plan: ModelPlan, around: RunHooks) -> ReferenceScores:
    if isinstance(plan, RunScoring):
        weights = plan.scoring.weights
        with explain_stop(plan.files.root), lock_opened_run(plan.files, plan.manifest, plan.setup):
            scores = read_text_scores(plan.scoring.collect_answers(around.watch))
        return ReferenceScores(name=weights.name, revision=weights.revision, scores=scores)
    ((name, answers),) = collect_answers(plan, around=around).items()
    return ReferenceScores(name=name, scores=read_text_scores(answers))
