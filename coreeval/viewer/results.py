"""The findings of a run or release about its targets: scores on both arms, loss, and verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coreeval.evaluation.grading import SCORING
from coreeval.evaluation.report.report_file import read_report
from coreeval.evaluation.scores import Score
from coreeval.meanings import COMPARABILITY
from coreeval.runs.quality import (
    Findings,
    TargetFindings,
    find_ranked_pair,
    read_arm_scores,
    read_findings,
)
from coreeval.schema import TaskKind
from coreeval.tools.workspace import RunFiles


@dataclass(frozen=True, kw_only=True)
class TargetResult:
    """A target's scores on the samples that are in both the original and the updated arm."""

    target: str
    original: Score
    updated: Score
    difference: Score | None
    """Updated minus original, paired by sample; None for a release, which has no differences."""
    all_originals: Score | None
    """The score on all originals, shown if no sample is in both arms."""
    memory: str
    """The verdict on the decomposition of the drop; empty if there is none."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The findings about all targets."""

    score: str
    """The name of the score; empty if it is not recorded."""
    targets: tuple[TargetResult, ...]
    comparability: str
    """The verdict on the comparability of both arms; empty if they were not compared."""
    reasons: tuple[str, ...]
    """The differences between the arms, in sentences."""

    @property
    def has_pairs(self) -> bool:
        """Return whether there is a score on samples in both arms."""
        return any(one.updated.estimate is not None for one in self.targets)

    @property
    def is_comparable(self) -> bool:
        """Return whether scores on both arms may be compared."""
        return self.comparability in ("", "comparable")

    @property
    def comparability_sentence(self) -> str:
        """Return the verdict on both arms in words; empty if there is none."""
        return COMPARABILITY.get(self.comparability, "")

    def find(self, target: str) -> TargetResult | None:
        """Return the results of a target; None if it was not asked."""
        return next((one for one in self.targets if one.target == target), None)


def read_results(files: RunFiles) -> Results | None:
    """Return the findings about targets in a run's report; None if there is no report.

    Raises:
        RunCorrupt: the report is damaged, or not in the format that a run writes.
    """
    report = read_report(files)
    if report is None:
        return None
    found = read_findings(report, where=files.report_json)
    kind: TaskKind = report["arms"].get("kind", "labels")
    losses = {each["target"]: _find_difference(each) for each in report["arms"]["targets"]}
    return build_results(
        found,
        score=SCORING[kind].score.name,
        losses=losses,
        originals={
            target: scores["original"]
            for target, scores in read_arm_scores(report).items()
            if "original" in scores
        },
    )


def build_results(
    found: Findings,
    *,
    score: str = "",
    losses: Mapping[str, Score | None] = {},
    originals: Mapping[str, Score] = {},
) -> Results:
    """Return findings as results.

    Args:
        found: The findings of a run or a release.
        score: The name of the score.
        losses: The difference between both arms, by target.
        originals: The score on all originals, by target.
    """
    return Results(
        score=score,
        targets=tuple(
            _build_target(each, losses.get(each.target), originals.get(each.target))
            for each in found.targets
        ),
        comparability=found.comparability.verdict if found.comparability else "",
        reasons=tuple(found.comparability.sentences) if found.comparability else (),
    )


def _build_target(
    found: TargetFindings, difference: Score | None, originals: Score | None
) -> TargetResult:
    return TargetResult(
        target=found.target,
        original=found.original,
        updated=found.updated,
        difference=difference,
        all_originals=originals if found.updated.estimate is None else None,
        memory=found.drop or "",
    )


def _find_difference(target: Mapping[str, Any]) -> Score | None:
    pair = find_ranked_pair(target)
    return Score.model_validate(pair["macro_f1_difference"]) if pair else None


def find_task_change(tasks: Sequence[str]) -> str:
    """Return a warning if sides are about different tasks, so that scores are not comparable.

    Args:
        tasks: The name of each side's task.
    """
    if len(set(tasks)) < 2:
        return ""
    named = ", ".join(dict.fromkeys(tasks))
    return f"These are different tasks ({named}): their scores and outcomes are not comparable."
