"""What people said of texts, as values: annotation.json and its parts."""

from typing import Literal

from coreeval.evaluation.annotation.collecting import Problem, Remark
from coreeval.evaluation.annotation.drawing import RatedArm
from coreeval.evaluation.annotation.guideline import CriterionName, Level
from coreeval.evaluation.annotation.key import MadeOf
from coreeval.evaluation.scoring.classification import Score
from coreeval.schema import Value


class Difference(Value):
    """Mean of the updated texts minus that of the originals; other samples of the same labels."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n: tuple[int, int]
    """Updated texts, originals."""


class Reliability(Value):
    """How well raters agree by one criterion."""

    items: int
    """Rated by at least one."""
    agreement: Score
    """Share of pairs of raters who say the same; n: items that two or more rated."""
    kappa: Score
    """Fleiss'; n: items that all rated."""
    alpha: Score
    """Krippendorff's; n: items that two or more rated."""


class Rated(Value):
    """What all ratings by one criterion show."""

    criterion: CriterionName
    level: Level
    """Of alpha: what two different values count."""
    values: tuple[int, ...]
    ratings: int
    prevalence: dict[int, float]
    """Share of all ratings by value."""
    arms: dict[RatedArm, Score]
    """Mean rating; n: texts that anybody rated."""
    difference: Difference
    reliability: Reliability
    of_updated: Reliability
    """The same on the updated texts alone."""
    notes: tuple[str, ...]


class Rater(Value):
    """One rater."""

    name: str
    ratings: int
    missing: int
    """Ratings that do not count or were not given."""
    means: dict[CriterionName, float | None]


class RatedItem(Value):
    """One item with all its ratings."""

    item: str
    sample: str
    arm: RatedArm
    label: str
    ratings: dict[CriterionName, dict[str, int]]
    """By criterion, by rater."""


class Disagreement(Value):
    """A text of which raters do not say the same."""

    item: str
    sample: str
    arm: RatedArm
    label: str
    criterion: CriterionName
    ratings: dict[str, int]
    text: str


class Annotation(Value):
    """annotation.json: what people said of a run's texts."""

    version: Literal[1] = 1
    study: str
    made_of: MadeOf
    run: str
    """Name of the run whose texts were rated; empty where it is not at hand."""
    scored_at: str
    scale: str
    items: int
    raters: tuple[Rater, ...]
    criteria: tuple[Rated, ...]
    disagreements: tuple[Disagreement, ...]
    """Those that are furthest apart first."""
    remarks: tuple[Remark, ...]
    problems: tuple[Problem, ...]
    ratings: tuple[RatedItem, ...]
    seed: int
    draws: int
