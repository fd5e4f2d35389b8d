"""From the rows of sheets to ratings; whatever is wrong with a row is kept and told."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from coreeval.evaluation.annotation.guideline import CRITERIA, Criterion, CriterionName
from coreeval.schema import Value

Trouble = Literal[
    "unknown_item", "no_rater", "not_a_rating", "double", "contradiction", "missing", "empty"
]
"""An item of no or another study; a row without a rater's name; a value that may not be given; the
same rating twice; two ratings of one rater that differ, neither of which counts; no rating; a rater
who has rated nothing."""


@dataclass(frozen=True, kw_only=True)
class SheetRow:
    """One row of a sheet as it was filled in."""

    where: str
    """File and line."""
    item: str
    rater: str
    cells: Mapping[str, str]
    """What stands under each criterion; empty where there is no rating."""
    note: str = ""


class Problem(Value):
    """Something that keeps a rating from counting, or that a reader must know."""

    kind: Trouble
    rater: str = ""
    item: str = ""
    criterion: str = ""
    where: str = ""
    """File and line; empty for what is missing everywhere."""
    said: str = ""
    """What stands there."""


class Remark(Value):
    """What a rater noted beside an item."""

    item: str
    rater: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Collected:
    """All ratings that count, and all that was wrong."""

    ratings: Mapping[CriterionName, Mapping[str, Mapping[str, int]]]
    """criterion -> item -> rater -> value; every item of the key is there, in its order."""
    raters: tuple[str, ...]
    """Who gave at least one rating that counts."""
    problems: tuple[Problem, ...]
    remarks: tuple[Remark, ...]


@dataclass
class _Cell:
    """What one rater said of one item by one criterion, wherever it stands."""

    values: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


_About = tuple[CriterionName, str, str]
"""Criterion, item, rater."""


def collect(rows: Iterable[SheetRow], items: Sequence[str]) -> Collected:
    """Return the ratings of sheets.

    Args:
        rows: Of all sheets.
        items: The study's, as the key has them.
    """
    problems: list[Problem] = []
    remarks: list[Remark] = []
    said: dict[_About, _Cell] = defaultdict(_Cell)
    seen: dict[str, None] = {}
    known = set(items)
    for row in rows:
        if wrong := _misplaced(row, known):
            problems.append(wrong)
            continue
        seen[row.rater] = None
        if row.note:
            remarks.append(Remark(item=row.item, rater=row.rater, note=row.note))
        for criterion in CRITERIA:
            problems += _take(row, criterion, said[criterion.name, row.item, row.rater])
    problems += _repeated(said)
    counting = {about: cell.values[0] for about, cell in said.items() if len({*cell.values}) == 1}
    raters = tuple(rater for rater in seen if any(about[2] == rater for about in counting))
    problems += _absent(said, items, raters, seen)
    return Collected(
        ratings=_by_criterion(counting, items),
        raters=raters,
        problems=tuple(problems),
        remarks=tuple(remarks),
    )


def _misplaced(row: SheetRow, known: Collection[str]) -> Problem | None:
    """Return what is wrong with a row that is about nothing or by nobody."""
    if row.item not in known:
        return Problem(kind="unknown_item", rater=row.rater, item=row.item, where=row.where)
    if not row.rater:
        return Problem(kind="no_rater", item=row.item, where=row.where)
    return None


def _take(row: SheetRow, criterion: Criterion, into: _Cell) -> Iterator[Problem]:
    """Put a row's rating where it belongs; yield what is none."""
    said = row.cells.get(criterion.name, "").strip()
    if not said:
        return
    value = _number(said)
    if value in criterion.values:
        into.values.append(value)
        into.places.append(row.where)
        return
    yield Problem(
        kind="not_a_rating",
        rater=row.rater,
        item=row.item,
        criterion=criterion.name,
        where=row.where,
        said=said,
    )


def _number(said: str) -> int:
    """Return a whole number, be it written as 3.0; one that is no rating for anything else."""
    whole, _, rest = said.replace(",", ".").partition(".")
    short = len(whole) < 4 and whole.isascii() and whole.isdigit()
    return int(whole) if short and not rest.strip("0") else -1


def _repeated(said: Mapping[_About, _Cell]) -> Iterator[Problem]:
    for (criterion, item, rater), cell in said.items():
        if len(cell.values) < 2:
            continue
        yield Problem(
            kind="double" if len({*cell.values}) == 1 else "contradiction",
            rater=rater,
            item=item,
            criterion=criterion,
            where="; ".join(cell.places),
            said=", ".join(map(str, cell.values)),
        )


def _absent(
    said: Mapping[_About, _Cell], items: Sequence[str], raters: Sequence[str], seen: Iterable[str]
) -> Iterator[Problem]:
    """Yield the ratings that nobody gave; a rater without any is named once."""
    yield from (Problem(kind="empty", rater=rater) for rater in seen if rater not in raters)
    for rater in raters:
        for item in items:
            for criterion in CRITERIA:
                cell = said.get((criterion.name, item, rater))
                if cell is None or not cell.values:
                    yield Problem(kind="missing", rater=rater, item=item, criterion=criterion.name)


def _by_criterion(
    counting: Mapping[_About, int], items: Sequence[str]
) -> Mapping[CriterionName, Mapping[str, Mapping[str, int]]]:
    found: dict[CriterionName, dict[str, dict[str, int]]] = {
        criterion.name: {item: {} for item in items} for criterion in CRITERIA
    }
    for (criterion, item, rater), value in counting.items():
        found[criterion][item][rater] = value
    return found
