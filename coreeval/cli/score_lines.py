"""The scores of a run's targets on each arm, as commands show them when a run has ended."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from coreeval.cli.output import Document, command
from coreeval.errors import RunCorrupt
from coreeval.schema import Arm
from coreeval.tools.formatting import format_estimate
from coreeval.tools.tables import Foreign, Table, text_lines, texts

SHOWN_ARMS: tuple[Arm, ...] = ("original", "semantic", "updated")
MOST_NAME = 40
"""Most characters of a target's name or a score."""


def read_scores(run: Path) -> Document | None:
    """Return each target's score by arm; None if there is no report, or it cannot be read.

    Returns:
        `score`, the name of the score; `texts`, the number of texts by arm; `targets`, a list of
        `{target, arms}`, where `arms` has the score with its interval by arm.
    """
    from coreeval.evaluation.grading import SCORING  # for no --help: it loads the stores
    from coreeval.evaluation.report.report_file import read_report
    from coreeval.evaluation.scores import ARMS
    from coreeval.runs.quality import read_arm_scores
    from coreeval.tools.workspace import RunFiles

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


def score_lines(found: Document | None, run: Path) -> Iterator[str]:
    """Yield a line for each target with its score on each arm, or why there is none."""
    if found is None:
        yield f"scores:  the report cannot be read; write it again: {command('evaluate', run)}"
        return
    if not found["targets"]:
        ask = command("evaluate", run, "--target", "PROVIDER:NAME")
        yield f"scores:  no target was asked; name one: {ask}"
        return
    yield f"scores:  {found['score']} with its 95 % interval, n: samples"
    shown = [*SHOWN_ARMS, *(["control"] if found["texts"].get("control") else [])]
    of_arms = [texts(arm, gap=2, most=MOST_NAME) for arm in shown]
    rows = [
        (Foreign(each["target"]), *(_arm_cell(each["arms"], arm, found["texts"]) for arm in shown))
        for each in found["targets"]
    ]
    yield from text_lines(Table([texts("target", most=MOST_NAME), *of_arms], rows), "  ")


def _arm_cell(scores: Document, arm: str, texts_of: Mapping[str, int]) -> str:
    from coreeval.evaluation.scores import Score

    if arm in scores:
        score = Score.model_validate(scores[arm])
        return format_estimate(score, ".3f", n=score.n, undefined="every question was refused")
    return "not asked" if texts_of.get(arm, 0) or arm == "original" else "there are no texts"
