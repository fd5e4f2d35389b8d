"""Reads a value from an answer by the rules in docs/numleak_parsing.md.

In this order: the answer becomes plain text; what it takes back, and numbers of other series, go;
each remaining number gets a value with its sign, a unit and a date; numbers that are something
else, such as another date's value, a change, a bound or an example, are left out; of the others,
the one that is given most clearly as the value is read. Numbers that are equally clear and differ,
and a number without a unit beside one in the unit, leave it open: then nothing is read.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import normalise_text
from coreeval.evaluation.numleak.parsing.phrases import (
    drop_retracted,
    is_cut_off,
    sends_away,
    strike_asides,
    strike_other_series,
)
from coreeval.evaluation.numleak.parsing.quantities import find_numbers, says_change
from coreeval.evaluation.numleak.parsing.statements import (
    RANKS,
    SAID,
    TOLD,
    RankedStatement,
    Statement,
    ValueQuery,
    find_statements,
    is_change,
    is_sign_unclear,
    rank_statements,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Status
from coreeval.evaluation.numleak.series.definition import Unit, load_units
from coreeval.evaluation.refusals import declines
from coreeval.schema import AnswerKind

BESIDE_VALUE: Final = "a number without a unit beside one that may be the value"
_POINTS: Final = re.compile(r"point|pp|bp", re.IGNORECASE)
"""A form of percent that only changes have."""
NO_NUMBER: Final = ("no number that is stated as the value", "no words")
"""Reasons for a missing value if no number in the answer could be the value."""


class ReadValue(NamedTuple):
    """The reading of an answer to a value question."""

    value: float | None
    """The value in the unit of the series; None unless `status` is `parsed`."""
    status: Status
    note: str
    """The reason for a missing value, or the rule by which the value was found."""


def read_value(
    response: str | None,
    *,
    unit: Unit,
    period: Period,
    name: str = "",
    signed: bool = True,
    kind: AnswerKind = "answered",
) -> ReadValue:
    """Read the single value that an answer gives for a period (rules: docs/numleak_parsing.md).

    Args:
        response: The model's response.
        unit: The unit of the series.
        period: The date asked about.
        name: All names of the series, separated by commas; if empty, numbers of other series are
            not recognised as such.
        signed: Whether values can be negative; `- 4.4` may then contain a dash or a minus.
        kind: How the answer ended.
    """
    if kind == "refused":
        return ReadValue(None, "refused", "declined by its provider")
    text = drop_retracted(normalise_text(response or ""))
    if not text and response and response.strip():
        return ReadValue(None, "truncated", "thoughts and no answer")
    text = strike_asides(strike_other_series(text, name) if name else text)
    asked = ValueQuery(unit, period, name, signed)
    said = find_statements(text, asked, truncated=kind == "truncated")
    ranked = rank_statements(said, asked)
    cut = kind == "truncated" or is_cut_off(text)
    rivals = [one.value for one in said if one.number.rival and one.number.measure == "own"]
    chosen = _choose(ranked, rivals, least=SAID if declines(text) else TOLD if cut else 0)
    if chosen is None:
        return _explain_silence(text, said, ranked, asked, cut=cut)
    if chosen.rank <= SAID and _is_beside_value(chosen, said, asked):
        return ReadValue(None, "unparsed", BESIDE_VALUE)
    return ReadValue(chosen.statement.value, "parsed", RANKS[chosen.rank])


def _choose(
    ranked: Sequence[RankedStatement], rivals: Sequence[float], *, least: int
) -> RankedStatement | None:
    """Return the clearest statement: the last one endorsed as an estimate, otherwise the only one.

    Args:
        ranked: The statements that may be the value.
        rivals: Values that the answer gives as alternatives.
        least: The least rank that counts.
    """
    rank = max((one.rank for one in ranked), default=-1)
    best = [one for one in ranked if one.rank == rank]
    values = {*rivals, *(one.statement.value for one in best)}
    if not best or rank < least or (rank < SAID and len(values) > 1):
        return None
    return best[-1]


def _is_beside_value(chosen: RankedStatement, said: Sequence[Statement], asked: ValueQuery) -> bool:
    """Return whether a number without a unit stands beside one that may be the value in its unit.

    If the unit is unknown, that is a percentage; one that follows as a change may stand there.
    A number said to be the value yields only to those of its sentence, and none yields to another
    sentence's value for another date.

    Args:
        chosen: The number that would be read.
        said: All numbers of the answer.
        asked: The series and unit that the value is sought for.
    """
    unit, is_said, (number, _, text, _) = asked.unit, chosen.rank == SAID, chosen.statement
    if not (unit.symbol or unit.forms or is_said):
        percents = [Statement.of(one, text) for one in find_numbers(text, load_units()["percent"])]
        said = [one for one in percents if not _follows_as_change(one, number.start)]
    own = [
        one
        for one in said
        if one.number.measure == "own" and not (one.number.aside or is_change(one, asked))
    ]
    if {number.value, round(100 * number.value, 6)} & {one.value for one in own}:
        return False
    for one in own:
        near, other = one.shares_sentence(number.start), one.owner == "other"
        points = unit.basis_points and _POINTS.search(one.written)
        if not points and ((near and not other) if is_said else (near or not other)):
            return True
    return False


def _follows_as_change(one: Statement, start: int) -> bool:
    """Return whether a percentage follows a number as its change: `1,312.40, up 1.1%`."""
    follows = one.start - len(one.before) <= start < one.start
    return follows and says_change(one.before, one.behind)


def _explain_silence(
    text: str,
    said: Sequence[Statement],
    ranked: Sequence[RankedStatement],
    asked: ValueQuery,
    *,
    cut: bool,
) -> ReadValue:
    """Return the reason why an answer gives no value."""
    if declines(text) or (sends_away(text) and not ranked):
        return ReadValue(None, "refused", "declined in words")
    if cut:
        return ReadValue(None, "truncated", "cut off before it says a value")
    numbers = [one.number for one in said]
    if len({one.statement.value for one in ranked}) > 1 or any(one.rival for one in numbers):
        return ReadValue(None, "unparsed", "several different numbers")
    if any(one.measure == "other" for one in numbers):
        return ReadValue(None, "unparsed", "a number in another unit")
    if asked.signed and any(is_sign_unclear(one) for one in said):
        return ReadValue(None, "unparsed", "a number in brackets or after a dash, perhaps negative")
    if sum(one.measure == "own" and not one.aside for one in numbers) > len(ranked):
        return ReadValue(None, "unparsed", "a number that is not clearly the value")
    return ReadValue(None, "unparsed", NO_NUMBER[0 if text else 1])
