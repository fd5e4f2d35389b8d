"""`coreeval detect membership --reference`: compares a model's scores with an older model's."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from coreeval.cli.detect_scores import scoring_document, scoring_lines
from coreeval.cli.options import budget_arguments
from coreeval.cli.output import Document, command, one_line, show

if TYPE_CHECKING:
    from coreeval.evaluation.whitebox.membership_texts import MembershipSettings
    from coreeval.graph.reference_scoring import ModelPlan
    from coreeval.graph.text_scoring import ScoringRequest


def score_beside(
    run: Path,
    settings: "MembershipSettings",
    model: "ScoringRequest",
    reference: str,
    budget: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Score a run's texts with a model and a reference, and show the finding on the model."""
    from coreeval.api.progress import show_progress
    from coreeval.cli.detect_run import detection_lines
    from coreeval.evaluation.detectors.membership import MEMBERSHIP
    from coreeval.graph.execute import RunHooks
    from coreeval.graph.reference_scoring import plan_with_reference, run_with_reference

    plan = plan_with_reference(run, settings, model, reference, budget_usd=budget)
    if dry_run:
        words = ("--model", model.model, "--reference", reference, *budget_arguments(budget))
        following = command(*MEMBERSHIP.command_words, run, *words)
        own, lines = _estimate(plan.model, budget, following)
        other, more = _estimate(plan.reference, budget, following)
        title = f"reference {one_line(reference)}:"
        show({**own, "reference": other}, as_json, lambda: "\n".join([*lines, "", title, *more]))
        return
    with show_progress() as watch:
        found = run_with_reference(plan, around=RunHooks(watch=watch))
    show(found.document, as_json, lambda: "\n".join(detection_lines(MEMBERSHIP, found)))
    if found.summary.manifest.status == "interrupted":
        raise typer.Exit(130)


def _estimate(
    plan: "ModelPlan", budget: float | None, following: str
) -> tuple[Document, Iterator[str]]:
    """Return the expected work of scoring with one model, as a document and as lines."""
    from coreeval.cli.estimate import estimate_document, estimate_lines
    from coreeval.graph.estimate.evaluation_estimate import estimate_detection
    from coreeval.graph.text_scoring import RunScoring

    if isinstance(plan, RunScoring):
        document = scoring_document(plan.scoring)
        return document, scoring_lines(document)
    made = estimate_detection(plan, budget_usd=budget)
    return estimate_document(made), estimate_lines(made, following)
