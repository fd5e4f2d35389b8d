"""What is said of targets on the arms: the numbers of the report, each with n and interval."""

from typing import get_args

from coreeval.evaluation.scoring.classification import LEVEL, Score
from coreeval.schema import AnswerKind, Arm, Value

ARMS: tuple[Arm, ...] = get_args(Arm)
COMPARISONS: tuple[tuple[Arm, Arm], ...] = (
    ("original", "semantic"),
    ("semantic", "updated"),
    ("original", "updated"),
)
"""What is lost by rewording (surface memory), by new facts (knowledge), and by both."""
RANKED: tuple[Arm, Arm] = ("original", "updated")
"""The arms on which the order of targets is compared."""
DEFINITIONS = {
    "macro_f1": "mean of the F1 of each label of the task, 0 for a label neither given nor due; "
    "the mean over the task's templates (CoreEval paper, section 4.2)",
    "accuracy": "share of right answers; the mean over the task's templates",
    "intervals": "percentile bootstrap over samples (clusters of them where the benchmark has "
    "some), each drawn with its answers to all templates and in all arms; accuracy with one "
    "template: Wilson score interval; a difference: expanded percentile interval (Hesterberg 2015)",
    "difference": "second arm minus first on the samples both have (negative: the score drops), "
    "without those that either was refused for",
    "unparsed": "answers that are no label of the task: wrong, and no class of the F1",
    "truncated": "answers cut off at the length limit: wrong, and no class of the F1",
    "refused": "questions that the target or its endpoint declined: in no score, counted here",
    "n": "samples with an answer that is no refusal, to one template at least",
    "ranking": "rank correlation of the targets' macro-F1 on original and updated, each target on "
    "the samples that it answered in both; n counts targets",
}


class TemplateScore(Value):
    """How a target did with one template on some samples of one arm."""

    template: int
    """Number in the task, from 1; 0 for a target that is shown none."""
    macro_f1: Score
    accuracy: Score
    answers: dict[AnswerKind, int]
    """By kind: answered, refused, truncated, unparsed."""


class ArmScore(Value):
    """How a target did on some samples of one arm, with all templates."""

    arm: Arm
    macro_f1: Score
    accuracy: Score
    answers: dict[AnswerKind, int]
    """Of all templates, by kind: answered, refused, truncated, unparsed."""
    templates: tuple[TemplateScore, ...]


class LabelCoverage(Value):
    """How many of a label's samples both arms have, of how many in the benchmark."""

    label: str
    shared: int
    total: int


class Comparison(Value):
    """Two arms on the samples that both have."""

    first: ArmScore
    second: ArmScore
    macro_f1_difference: Score
    accuracy_difference: Score
    coverage: tuple[LabelCoverage, ...]


class ArmScores(Value):
    """The arms each on all its samples, then in pairs on shared ones."""

    arms: tuple[ArmScore, ...]
    comparisons: tuple[Comparison, ...]


class TargetScores(Value):
    """One target, with and without the samples whose own label no judge could recover."""

    target: str
    all_samples: ArmScores
    recoverable: ArmScores


class Ranking(Value):
    """Whether targets stand in the same order on the original arm and on the updated one."""

    targets: tuple[str, ...]
    kendall: Score
    """Kendall's tau-b of their macro-F1, -1 to 1; `n` is the number of targets."""
    spearman: Score
    """Spearman's rho of the same."""


class ArmTable(Value):
    """All targets on all arms, and how the numbers were made."""

    targets: tuple[TargetScores, ...]
    ranking: Ranking | None = None
    """None with fewer than three targets that answered both arms."""
    unrecoverable: int
    """Samples of the benchmark that ended as label_unrecoverable."""
    level: float = LEVEL
    draws: int
    seed: int
    definitions: dict[str, str] = DEFINITIONS
