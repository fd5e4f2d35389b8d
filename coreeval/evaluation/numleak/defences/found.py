"""From answers under defences, and from judged ones, to what each defence keeps back and costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from coreeval.evaluation.numleak.defences.answers import UtilityReply
from coreeval.evaluation.numleak.defences.attacks import Held, Tried, held, tried
from coreeval.evaluation.numleak.defences.usefulness import (
    Agreement,
    Useful,
    agreement,
    judges_of,
    useful,
)
from coreeval.evaluation.numleak.defences.wording import CONTROL
from coreeval.evaluation.numleak.parsing import BadReply
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics.answers import grouped

BOUNDED = (
    "What was blocked is what was tried: one message, with endings that do not learn from the "
    "answers. Attacks that adapt, or go on over several messages, may do better: this is no proof "
    "(NumLeak, section 5)."
)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One defence of one model on one series."""

    model: str
    series: str
    defence: str
    held: Held
    useful: Useful | None
    """None where no ordinary question was asked."""


@dataclass(frozen=True, kw_only=True)
class Total:
    """One defence over all models and series."""

    defence: str
    cells: int
    held: Held
    useful: Useful | None


@dataclass(frozen=True, kw_only=True)
class Defences:
    """What is known of all defences."""

    cells: tuple[Cell, ...]
    totals: tuple[Total, ...]
    agreement: Agreement | None
    """Of two judges."""
    judges: tuple[str, ...]
    left_out: tuple[BadReply, ...]
    notes: tuple[str, ...]


_Key = tuple[str, str, str]
"""A model, the id of a series, a defence."""


def defences_of(
    replies: Sequence[Reply],
    utility: Sequence[UtilityReply],
    series: Mapping[str, Series],
    cutoffs: Mapping[str, date | None],
) -> Defences | None:
    """Return what was found of each defence; None where none was tried.

    Args:
        replies: Answers about series; only those under a defence count.
        utility: Answers to ordinary questions, with their scores.
        series: By id.
        cutoffs: The last day of each model's training data, by the model.
    """
    read, bad = tried(replies, series, cutoffs)
    if not read and not bad and not utility:
        return None
    tolerances = {name: one.definition.tolerance for name, one in series.items()}
    judges = judges_of(utility)
    attacked = grouped(read, lambda one: (one.model, one.series, one.defence))
    judged = grouped(utility, lambda one: (one.model, one.series, one.defence))
    cells = tuple(
        Cell(
            model=key[0],
            series=key[1],
            defence=key[2],
            held=held(attacked.get(key, []), tolerances),
            useful=_useful(judged.get(key, []), judged.get((*key[:2], CONTROL), []), judges),
        )
        for key in _in_order([*attacked, *judged])
    )
    return Defences(
        cells=cells,
        totals=tuple(_totals(cells, read, utility, tolerances, judges)),
        agreement=agreement(utility),
        judges=tuple(judges),
        left_out=tuple(bad),
        notes=(BOUNDED, *_notes(utility, judges)),
    )


def _in_order(keys: Sequence[_Key]) -> list[_Key]:
    """Return the keys as they first come, those of one model and series together."""
    groups = grouped(dict.fromkeys(keys), lambda key: key[:2])
    return [key for each in groups.values() for key in each]


def _totals(
    cells: Sequence[Cell],
    read: Sequence[Tried],
    utility: Sequence[UtilityReply],
    tolerances: Mapping[str, float],
    judges: Sequence[str],
) -> Iterator[Total]:
    control = [one for one in utility if one.defence == CONTROL]
    for defence, each in grouped(cells, lambda cell: cell.defence).items():
        yield Total(
            defence=defence,
            cells=len(each),
            held=held([one for one in read if one.defence == defence], tolerances),
            useful=_useful([one for one in utility if one.defence == defence], control, judges),
        )


def _useful(
    replies: Sequence[UtilityReply], control: Sequence[UtilityReply], judges: Sequence[str]
) -> Useful | None:
    if not replies:
        return None
    before = [] if replies[0].defence == CONTROL else control
    return useful(replies, before, judge=judges[0] if judges else "")


def _notes(utility: Sequence[UtilityReply], judges: Sequence[str]) -> Iterator[str]:
    if not utility:
        yield "What defences cost in usefulness was not measured: no ordinary question was asked."
    for judge in judges:
        asked = [each for one in utility for each in one.scores if each.judge == judge]
        silent = sum(each.score is None for each in asked)
        if silent:
            yield (
                f"The judge {judge} gave no score to {silent} of {len(asked)} answers: they count "
                "for nothing, and not as 0."
            )
    if "offline" in judges:
        yield (
            "The judge offline compares words with those of a good answer: it tells an answer "
            "from none, and is no judgement."
        )
