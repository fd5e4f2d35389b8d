"""Ratings: the rows of sheets, their errors, and the values of annotation.json."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from coreeval.errors import UsageError
from coreeval.evaluation.annotation.criteria import (
    FORMS,
    LABEL_STUDY,
    Criterion,
    CriterionName,
    GivenAnswer,
    Level,
    RatedText,
    StudyDesign,
)
from coreeval.evaluation.annotation.rating_study import MOST_RATERS, RatedArm, StudySource
from coreeval.evaluation.scores import Score
from coreeval.schema import Value

ProblemKind = Literal[
    "unknown_item", "no_rater", "not_a_rating", "double", "contradiction", "missing", "empty"
]
"""Problems in this order: an item of no study or of another one; a row without a rater's name; an
invalid value; the same rating twice; two different ratings by one rater, neither of which counts;
no rating; a rater without any rating."""


@dataclass(frozen=True, kw_only=True)
class SheetRow:
    """A row of a sheet as filled in."""

    where: str
    """The file and line."""
    item: str
    rater: str
    cells: Mapping[str, str]
    """The text under each criterion; empty if there is no rating."""
    note: str = ""
    text: str = ""
    """The text in the row; empty if its column was removed."""


class RatingProblem(Value):
    """A problem that excludes a rating, or that a reader must know about."""

    kind: ProblemKind
    rater: str = ""
    item: str = ""
    criterion: str = ""
    where: str = ""
    """The file and line; empty for something that is missing everywhere."""
    said: str = ""
    """The text found there."""


class Remark(Value):
    """A rater's note on an item."""

    item: str
    rater: str
    note: str


@dataclass(frozen=True, kw_only=True)
class RatingCollection:
    """All ratings that count, and all problems."""

    ratings: Mapping[CriterionName, Mapping[str, Mapping[str, int]]]
    """criterion -> item -> rater -> value, with every item of the key in its order."""
    answers: Mapping[CriterionName, Mapping[str, Mapping[str, GivenAnswer]]]
    """The same for criteria that are not scales: the answer of each rater."""
    texts: Mapping[str, RatedText]
    """The texts by item, if a criterion is not a scale."""
    raters: tuple[str, ...]
    """The raters with at least one rating that counts."""
    problems: tuple[RatingProblem, ...]
    remarks: tuple[Remark, ...]


@dataclass
class _RatingCell:
    """All ratings of one item by one rater on one criterion, from any sheet."""

    given: list[GivenAnswer] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    agrees: bool = True
    """Whether all of them are the same."""


_About = tuple[CriterionName, str, str]
"""Criterion, item and rater."""


def collect_ratings(
    rows: Iterable[SheetRow],
    items: Sequence[str],
    *,
    design: StudyDesign = LABEL_STUDY,
    texts: Mapping[str, RatedText] = MappingProxyType({}),
) -> RatingCollection:
    """Collect the ratings from the rows of all sheets; case does not tell raters apart.

    Args:
        rows: The rows of all sheets.
        items: The items of the study, as listed in the key.
        design: The questions to the raters.
        texts: The texts by item; needed if a criterion is not a scale.

    Raises:
        UsageError: the sheets name more than `MOST_RATERS` raters.
    """
    problems: list[RatingProblem] = []
    remarks: list[Remark] = []
    said: dict[_About, _RatingCell] = defaultdict(_RatingCell)
    seen: dict[str, None] = {}
    spellings: dict[str, str] = {}
    known = set(items)
    for row in rows:
        if wrong := _find_row_problem(row, known):
            problems.append(wrong)
            continue
        row = replace(row, rater=spellings.setdefault(row.rater.casefold(), row.rater))
        seen[row.rater] = None
        if len(seen) > MOST_RATERS:
            raise UsageError(
                f"the sheets name more than {MOST_RATERS} raters",
                where=row.where,
                hint="write one name for each rater; score a larger study in parts",
            )
        if row.note:
            remarks.append(Remark(item=row.item, rater=row.rater, note=row.note))
        text = texts.get(row.item, RatedText({}, ""))
        for criterion in design.criteria:
            cell = said[criterion.name, row.item, row.rater]
            problems += _take_rating(row, criterion, text, cell)
    problems += _find_repeats(said)
    counting = {about: cell.given[0] for about, cell in said.items() if cell.given and cell.agrees}
    heard = {rater for _, _, rater in counting}
    raters = tuple(rater for rater in seen if rater in heard)
    problems += _find_missing(said, items, raters, seen, design)
    ratings = _group_by_criterion(counting, items, design)
    worded = {each.name for each in design.criteria if each.form != "scale"}
    return RatingCollection(
        ratings={
            name: {
                item: {rater: given.value for rater, given in by.items()}
                for item, by in found.items()
            }
            for name, found in ratings.items()
        },
        answers={name: found for name, found in ratings.items() if name in worded},
        texts=texts,
        raters=raters,
        problems=tuple(problems),
        remarks=tuple(remarks),
    )


def _find_row_problem(row: SheetRow, known: Collection[str]) -> RatingProblem | None:
    """Return the problem of a row without a known item or without a rater, or None."""
    if row.item not in known:
        return RatingProblem(kind="unknown_item", rater=row.rater, item=row.item, where=row.where)
    if not row.rater:
        return RatingProblem(kind="no_rater", item=row.item, where=row.where)
    return None


def _take_rating(
    row: SheetRow, criterion: Criterion, text: RatedText, into: _RatingCell
) -> Iterator[RatingProblem]:
    """Add a row's rating to its cell; yield a problem if it is not a valid rating."""
    said = row.cells.get(criterion.name, "").strip()
    if not said:
        return
    form = FORMS[criterion.form]
    given = form.read(criterion, text, said)
    if given is not None:
        into.agrees &= not into.given or form.is_same(text, into.given[0], given)
        into.given.append(given)
        into.places.append(row.where)
        return
    yield RatingProblem(
        kind="not_a_rating",
        rater=row.rater,
        item=row.item,
        criterion=criterion.name,
        where=row.where,
        said=said,
    )


def _find_repeats(said: Mapping[_About, _RatingCell]) -> Iterator[RatingProblem]:
    for (criterion, item, rater), cell in said.items():
        if len(cell.given) < 2:
            continue
        yield RatingProblem(
            kind="double" if cell.agrees else "contradiction",
            rater=rater,
            item=item,
            criterion=criterion,
            where="; ".join(cell.places),
            said=", ".join(given.words or str(given.value) for given in cell.given),
        )


def _find_missing(
    said: Mapping[_About, _RatingCell],
    items: Sequence[str],
    raters: Sequence[str],
    seen: Iterable[str],
    design: StudyDesign,
) -> Iterator[RatingProblem]:
    """Yield the ratings that are missing; a rater without any rating is reported once."""
    yield from (RatingProblem(kind="empty", rater=rater) for rater in seen if rater not in raters)
    for rater in raters:
        for item in items:
            for criterion in design.criteria:
                cell = said.get((criterion.name, item, rater))
                if cell is None or not cell.given:
                    yield RatingProblem(
                        kind="missing", rater=rater, item=item, criterion=criterion.name
                    )


def _group_by_criterion(
    counting: Mapping[_About, GivenAnswer], items: Sequence[str], design: StudyDesign
) -> Mapping[CriterionName, Mapping[str, Mapping[str, GivenAnswer]]]:
    found: dict[CriterionName, dict[str, dict[str, GivenAnswer]]] = {
        criterion.name: {item: {} for item in items} for criterion in design.criteria
    }
    for (criterion, item, rater), given in counting.items():
        found[criterion][item][rater] = given
    return found


class RatingDifference(Value):
    """The mean of updated texts minus that of originals: different samples, same labels."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n: tuple[int, int]
    """The numbers of updated texts and originals."""


class Reliability(Value):
    """The agreement of raters on one criterion."""

    items: int
    """The number of items with at least one rating."""
    agreement: Score
    """The share of pairs of raters that agree; n: items with two or more ratings."""
    kappa: Score
    """Fleiss' kappa; n: items that all raters rated."""
    alpha: Score
    """Krippendorff's alpha; n: items with two or more ratings."""


class CriterionResult(Value):
    """The results of all ratings by one criterion."""

    criterion: CriterionName
    level: Level
    """The level of alpha: the distance of two different values."""
    values: tuple[int, ...]
    ratings: int
    prevalence: dict[int, float]
    """The share of all ratings, by value."""
    arms: dict[RatedArm, Score]
    """The mean rating; n: texts with at least one rating."""
    difference: RatingDifference
    reliability: Reliability
    of_updated: Reliability
    """The same for only the updated texts."""
    notes: tuple[str, ...]


class Rater(Value):
    """A rater and the number of their ratings."""

    name: str
    ratings: int
    missing: int
    """The number of ratings that do not count or were not given."""
    means: dict[CriterionName, float | None]


class ItemRatings(Value):
    """An item with all its ratings."""

    item: str
    sample: str
    arm: RatedArm
    label: str
    text_sha256: str
    """The sha256 of the sample's texts in this arm, as in releases."""
    ratings: dict[CriterionName, dict[str, int | str]]
    """The ratings by criterion, then by rater; a letter or an answer as given."""


class Disagreement(Value):
    """A text on which raters disagree."""

    item: str
    sample: str
    arm: RatedArm
    label: str
    criterion: CriterionName
    ratings: dict[str, int | str]
    """The ratings by rater, as given."""
    text: str


class Annotation(Value):
    """annotation.json: the ratings of a run's texts by people."""

    version: Literal[1] = 1
    study: str
    made_of: StudySource
    run: str
    """The name of the run whose texts were rated; empty if it is not available."""
    scored_at: str
    scale: str
    items: int
    raters: tuple[Rater, ...]
    criteria: tuple[CriterionResult, ...]
    disagreements: tuple[Disagreement, ...]
    """The texts, with the largest disagreements first."""
    remarks: tuple[Remark, ...]
    problems: tuple[RatingProblem, ...]
    ratings: tuple[ItemRatings, ...]
    seed: int
    draws: int
