"""The scores of a run's targets on each arm, shown by commands after a run."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coreeval.cli.output import Document, command, one_line
from coreeval.schema import Arm
from coreeval.tools.formatting import format_estimate
from coreeval.tools.tables import Foreign, Table, text_lines, texts

SHOWN_ARMS: tuple[Arm, ...] = ("original", "semantic", "updated")
MOST_NAME = 40
"""The most characters of a target's name or a score."""


def score_lines(found: Document | None, run: Path) -> Iterator[str]:
    """Yield a line for each target with its score on each arm, or the reason that there is none."""
    if found is None:
        yield f"scores:  the report cannot be read; write it again: {command('evaluate', run)}"
        return
    if not found["targets"]:
        ask = command("evaluate", run, "--target", "PROVIDER:NAME")
        yield f"scores:  no target was evaluated; evaluate one: {ask}"
        return
    yield f"scores:  {found['score']} with its 95 % interval, n: samples"
    shown = [*SHOWN_ARMS, *(["control"] if found["texts"].get("control") else [])]
    of_arms = [texts(arm, gap=2, most=MOST_NAME) for arm in shown]
    rows = [
        (Foreign(each["target"]), *(_arm_cell(each["arms"], arm, found["texts"]) for arm in shown))
        for each in found["targets"]
    ]
    yield from text_lines(Table([texts("target", most=MOST_NAME), *of_arms], rows), "  ")
    yield from _pair_lines(found["targets"])


def _pair_lines(targets: Sequence[Document]) -> Iterator[str]:
    """Yield the comparison of two arms: the scores on samples in both."""
    from coreeval.evaluation.scores import Score

    for each in targets:
        if pair := each["paired"]:
            change = Score.model_validate(pair["difference"])
            said = format_estimate(change, "+.3f", n=change.n)
            yield (
                f"  {one_line(each['target'])[:MOST_NAME]} on the same samples: original "
                f"{pair['original']:.3f}, updated {pair['updated']:.3f}, difference {said}"
            )


def _arm_cell(scores: Document, arm: str, texts_of: Mapping[str, int]) -> str:
    from coreeval.evaluation.scores import Score

    if arm in scores:
        score = Score.model_validate(scores[arm])
        return format_estimate(score, ".3f", n=score.n, undefined="every question was refused")
    return "not evaluated" if texts_of.get(arm, 0) or arm == "original" else "there are no texts"
