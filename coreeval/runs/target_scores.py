"""The score of each target on each arm, as a run's report states them."""

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
        `{target, arms}`, where `arms` has the score with its interval by arm.
    """
    try:
        report = read_report(RunFiles(run))
        if report is None:
            return None
        asked = {
            target: {arm: score.model_dump() for arm, score in scores.items()}
            for target, scores in read_arm_scores(report).items()
        }
        return {
            "score": SCORING[report["arms"].get("kind", "labels")].score.name,
            "texts": {arm: n for arm, n in report["arm_rows"].items() if arm in ARMS},
            "targets": [{"target": name, "arms": arms} for name, arms in asked.items()],
        }
    except (RunCorrupt, ValueError, KeyError, TypeError, AttributeError):
        return None
