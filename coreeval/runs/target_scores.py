"""The score of each target on each arm, from a run's report."""

from pathlib import Path
from typing import Any

from coreeval.errors import RunCorrupt
from coreeval.evaluation.grading import SCORING
from coreeval.evaluation.report.report_file import read_report
from coreeval.evaluation.scores import ARMS
from coreeval.runs.quality import read_arm_scores
from coreeval.tools.workspace import RunFiles


def read_scores(run: Path) -> dict[str, Any] | None:
    """Return each target's score by arm; None if there is no report, or it cannot be read.

    Returns:
        `score`, the name of the score; `texts`, the number of texts by arm; `targets`, a list of
        `{target, arms, paired}`, where `arms` has the score with its interval by arm, and `paired`
        compares the updated arm with the original on the samples that both have, if any.
    """
    try:
        report = read_report(RunFiles(run))
        if report is None:
            return None
        scoring = SCORING[report["arms"].get("kind", "labels")]
        asked = {
            target: {arm: score.model_dump() for arm, score in scores.items()}
            for target, scores in read_arm_scores(report, scoring.headline).items()
        }
        return {
            "score": scoring.headline_name,
            "texts": {arm: n for arm, n in report["arm_rows"].items() if arm in ARMS},
            "targets": [
                {"target": name, "arms": arms, "paired": _find_pair(report, name, scoring.headline)}
                for name, arms in asked.items()
            ],
        }
    except (RunCorrupt, ValueError, KeyError, TypeError, AttributeError):
        return None


def _find_pair(report: dict[str, Any], target: str, key: str) -> dict[str, Any] | None:
    """Return `{original, updated, difference}` on shared samples; None if there is none."""
    (scores,) = (each for each in report["arms"]["targets"] if each["target"] == target)
    for pair in scores["all_samples"].get("comparisons", ()):
        sides = {one["arm"]: one[key]["estimate"] for one in (pair["first"], pair["second"])}
        difference = pair[f"{key}_difference"]
        if [*sides] == ["original", "updated"] and difference["estimate"] is not None:
            return {**sides, "difference": difference}
    return None
