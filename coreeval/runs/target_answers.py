"""The targets' answers about one sample, and whether each is right."""

from collections.abc import Iterable, Iterator

from coreeval.schema import AnswerKind, Arm, Prediction, Value
from coreeval.tools.stores.run_correctness import ARMS, SampleCorrectness

SOURCES = {str(arm): arm for arm in ARMS}
"""The arms, by the predictions' name of the source."""


class TargetAnswer(Value):
    """A target's answer about a sample's text in one arm."""

    target: str
    arm: Arm
    template: int
    """Number of the task's template, from 1; 0 for a target without templates."""
    kind: AnswerKind
    answer: str
    """A label, the letter of an option, or the target's words; empty if there is no answer."""
    right: bool | None
    """Whether it is right; None if the target refused, which counts neither way."""
    score: float | None
    """The score from 0 to 1; None if the task does not grade answers."""
    reason: str
    """Why there is no answer; empty if there is one."""


def judge_answers(found: Iterable[Prediction], label: str) -> Iterator[TargetAnswer]:
    """Yield the targets' answers, each with whether it is right.

    Args:
        found: Answers about texts of the arms.
        label: The sample's label, for tasks whose answers are compared with it.
    """
    for one in found:
        right = one.answer == label if one.right is None else one.right
        yield TargetAnswer(
            target=one.target,
            arm=SOURCES[one.source],
            template=one.template,
            kind=one.kind,
            answer=one.answer,
            right=None if one.kind == "refused" else right,
            score=one.score,
            reason=one.reason,
        )


def count_right(found: SampleCorrectness, arm: Arm) -> tuple[int, int]:
    """Return the numbers of right answers and of all answers to a sample in an arm."""
    known = [arms[arm] for arms in found.values() if arm in arms]
    return known.count("right"), len(known)


def describe_right(found: SampleCorrectness, arm: Arm) -> str:
    """Summarise the targets' answers to a sample in an arm, as `wrong` or `2 of 3`; "" if none.

    A single target's answer is described directly; for several, the number of right ones is given.
    """
    known = [arms[arm] for arms in found.values() if arm in arms]
    if len(found) == 1 and known:
        return known[0]
    right, total = count_right(found, arm)
    return f"{right} of {total}" if total else ""
