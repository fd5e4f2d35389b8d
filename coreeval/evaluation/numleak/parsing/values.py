"""Reads a value from an answer by the rules in docs/numleak_parsing.md.

Candidates are the numbers that may be the value: of the date and the series asked about, ranked by
how clearly each is stated as the value.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import normalise_text
from coreeval.evaluation.numleak.parsing.dates import (
    DateRelation,
    find_dates,
    find_owners,
    strike_dates,
)
from coreeval.evaluation.numleak.parsing.phrases import (
    drop_retracted,
    is_cut_off,
    is_labelled,
    is_no_statement,
    rank_endorsement,
    sends_away,
    sentence_before,
    strike_asides,
    strike_other_series,
)
from coreeval.evaluation.numleak.parsing.quantities import (
    AnswerNumber,
    ends_plainly,
    find_numbers,
    find_rivals,
    has_unclear_sign,
    is_difference,
    is_index_level,
    is_of_another_span,
    says_change,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import LARGEST_VALUE, Status
from coreeval.evaluation.numleak.series.definition import Unit, load_units
from coreeval.evaluation.refusals import declines
from coreeval.schema import AnswerKind

_BEFORE_BARE: Final = re.compile(
    r"(?:^|[:=~]|[=-]>|% to|\b(?:was|is|were|at|(?:level|value|reading|total) of|approximately"
    r"|(?:percent|points?) to"
    r"|approx\.?|about|around|roughly|nearly|circa|etwa|rund|environ))[\s(]*$",
    re.IGNORECASE,
)
_BRACKET_BEFORE: Final = re.compile(r"(?:^|[:=\n])[^\S\n]*\(\s*$")
_BRACKET_BEHIND: Final = re.compile(r"\s*\)")
_DASH_BEFORE: Final = re.compile(r"(?:^|\n)[^\S\n]*-[^\S\n]+$")
_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s|$)|\n")
_HEDGES: Final = re.compile(
    r"[^\w]*(?:(?:approximately|approx|about|around|roughly|nearly|probably|likely|circa|perhaps|maybe)"
    r"[^\w]+)*",
    re.IGNORECASE,
)
"""Words before the number that an answer begins with."""
_OFFERS: Final = re.compile(r"\b(?:but|however)\W*$", re.IGNORECASE)
_LABEL_WORDS: Final = 6
"""The largest number of other words on a line that still states a value by itself."""
_NEAR: Final = 20
_LINE: Final = 200
"""The largest number of characters of such a line."""
_NOUN_WORDS: Final = 3
"""The largest number of words after a number among which is what it counts."""
RANKS: Final = (
    "a number in its unit", "told with its date or its series", "a line of its own",
    "said to be it", "a point estimate",
)  # fmt: skip
TOLD, ALONE, SAID = 1, 2, 3
NumberOwners = Sequence[tuple[AnswerNumber, DateRelation | None]]
"""Numbers, each with the relation of its date to the one asked about; None if it has no date."""


class ValueQuery(NamedTuple):
    """The series and unit that a value is sought for."""

    unit: Unit
    period: Period
    name: str
    """All names of the series, separated by commas; may be empty."""
    signed: bool
    """Whether values can be negative."""


class ValueCandidate(NamedTuple):
    """A number that may be the estimate, ranked by how clearly the text says so."""

    value: float
    rank: int
    """An index into `RANKS`."""
    start: int


class ValueCandidates(NamedTuple):
    """The numbers in an answer that may be the value."""

    told: list[ValueCandidate]
    held_back: bool
    """Whether there is another number that may be the value."""


def find_candidates(text: str, owned: NumberOwners, asked: ValueQuery) -> ValueCandidates:
    """Return the numbers that may be the value; those labelled with the series take precedence.

    A fraction is not a candidate if its percentage is given too.

    Args:
        text: The plain text without its dates.
        owned: Its numbers, with the dates they belong to.
        asked: The series and unit that the value is sought for.
    """
    kept = [pair for pair in owned if not _is_excluded(pair[0], text, asked)]
    starts = [quantity.start for quantity, _ in kept]
    whole = {round(one.value, 6) for one, _ in kept if one.measure == "own"}
    said, named = list[ValueCandidate](), list[ValueCandidate]()
    for one, owner in kept:
        if owner == "other" or (one.measure == "bare" and round(100 * one.value, 6) in whole):
            continue
        before = sentence_before(text, one.start)
        is_named = bool(asked.name) and is_labelled(before, asked.name)
        candidate = _make_candidate(one, text, starts, asked, known=is_named or owner == "asked")
        if candidate and owner is None and not rank_endorsement(before):
            candidate = _doubt(candidate, one, kept, text)
        if candidate:
            said.append(candidate)
            named += [candidate] * is_named
    own = [owner for one, owner in owned if one.measure == "own" and not one.aside]
    return ValueCandidates(named or said, held_back=len(own) > len(said))


def _doubt(
    candidate: ValueCandidate, quantity: AnswerNumber, owned: NumberOwners, text: str
) -> ValueCandidate | None:
    """Downgrade or drop an undated candidate if other numbers of its sentence contradict it."""
    before = sentence_before(text, quantity.start)
    if candidate.rank < SAID and _follows_other_date(quantity, owned, before, text):
        return None
    if _is_contradicted(quantity, owned, text):
        return candidate._replace(rank=0)
    return candidate


def _is_excluded(quantity: AnswerNumber, text: str, asked: ValueQuery) -> bool:
    """Return whether a number is about something else, is a change, or has an uncertain sign."""
    before = sentence_before(text, quantity.start)
    behind = text[quantity.end : quantity.end + _LINE]
    level = asked.unit.basis_points and quantity.measure == "bare" and is_index_level(before)
    other = level or is_of_another_span(before, behind, asked.period.frequency, asked.name)
    other = other or (not asked.unit.basis_points and is_difference(behind))
    return quantity.unsure or other or _unclear(quantity, text, signed=asked.signed)


def _follows_other_date(
    quantity: AnswerNumber, owned: NumberOwners, before: str, text: str
) -> bool:
    """Return whether a sentence first gives another date's value: `3.5% in February, then 4.4%`."""
    begins = quantity.start - len(before)
    return any(
        owner == "other"
        and begins <= one.start < quantity.start
        and not text[: one.start].endswith("(")
        for one, owner in owned
    )


def _is_contradicted(quantity: AnswerNumber, owned: NumberOwners, text: str) -> bool:
    """Return whether another number follows in the sentence: `4.4% adjusted, 4.5% unadjusted`."""
    return any(
        one.start > quantity.end
        and owner is None
        and one.measure == quantity.measure == "own"
        and abs(one.value) != abs(quantity.value)
        and not (one.aside or one.rival)
        and not _SENTENCE_END.search(text, quantity.end, one.start)
        and text.count("(", quantity.end, one.start) <= text.count(")", quantity.end, one.start)
        and not is_no_statement(sentence_before(text, one.start))
        for one, owner in owned
    )


def _is_change(quantity: AnswerNumber, text: str, *, signed: bool) -> bool:
    """Return whether a number is the change of a series that is never negative."""
    changed = _unclear(quantity, text, signed=False)
    return not signed and (changed or quantity.value < 0 or text[quantity.start] in "+-")


def _unclear(quantity: AnswerNumber, text: str, *, signed: bool) -> bool:
    """Return whether a number may be a change of the value, or has an uncertain sign."""
    before = text[max(0, quantity.start - _LINE) : quantity.start]
    if not signed:
        return says_change(before, text[quantity.end : quantity.end + _LINE])
    written = text[quantity.start : quantity.end]
    return _sign_unclear(quantity, text) or (
        quantity.value > 0 and written[:1] not in "+-" and has_unclear_sign(before, written)
    )


def _sign_unclear(quantity: AnswerNumber, text: str) -> bool:
    """Return whether a number is alone in brackets, or follows a dash that may be a minus."""
    if text[quantity.start] in "+-":
        return False
    before = text[max(0, quantity.start - _LINE) : quantity.start]
    alone = _BRACKET_BEHIND.match(text, quantity.end) and _BRACKET_BEFORE.search(before)
    return bool(alone) or _DASH_BEFORE.search(before) is not None


def _make_candidate(
    quantity: AnswerNumber, text: str, starts: list[int], asked: ValueQuery, *, known: bool
) -> ValueCandidate | None:
    """Return a number as a candidate; None if it does not state a value in the unit.

    Args:
        quantity: The number.
        text: The plain text without its dates.
        starts: The start positions of the numbers.
        asked: The series and unit that the value is sought for.
        known: Whether its date or series is given with it and is the one asked about.
    """
    before = sentence_before(text, quantity.start)
    if quantity.aside or quantity.rival or quantity.measure == "other" or is_no_statement(before):
        return None
    if abs(quantity.value) > LARGEST_VALUE:
        return None
    told = known or not before.strip()
    begins = quantity.start - len(before)
    offered = known and _OFFERS.search(text, max(0, begins - _NEAR), begins)
    rank = max(_rank(quantity, before, text, starts), SAID if offered else TOLD * told)
    stated = quantity.measure == "own" or _is_stated(quantity, rank, text, asked, known=known)
    return ValueCandidate(quantity.value, rank, quantity.start) if stated else None


def _is_stated(
    quantity: AnswerNumber, rank: int, text: str, asked: ValueQuery, *, known: bool
) -> bool:
    """Return whether a number without a unit is at a value's position, unlike in S&P 500."""
    counts = _counts(quantity, text, asked)
    if not (counts or ends_plainly(text, quantity.end)):
        return False
    before = sentence_before(text, quantity.start)
    plainly = (
        known or counts or text[quantity.start] in "+-" or _BEFORE_BARE.search(before) is not None
    )
    return rank >= SAID or (plainly and (rank > 0 or not asked.unit.basis_points))


def _counts(quantity: AnswerNumber, text: str, asked: ValueQuery) -> bool:
    """Return whether a number counts what the series is named after: `1,986,153 visitors`."""
    behind = text[quantity.end : quantity.end + _LINE].lower()
    words = re.findall(r"[^\W\d_]+", behind)[:_NOUN_WORDS]
    named = set(re.findall(r"[^\W\d_]{4,}", asked.name.lower()))
    return asked.unit.scale is not None and behind[:1] == " " and not named.isdisjoint(words)


def _rank(quantity: AnswerNumber, before: str, text: str, starts: list[int]) -> int:
    if said := rank_endorsement(before):
        return said + ALONE
    if _HEDGES.fullmatch(text, 0, quantity.start) or _ends_alone(quantity, text):
        return SAID
    return ALONE * _alone(quantity, text, starts)


def _ends_alone(quantity: AnswerNumber, text: str) -> bool:
    """Return whether a number is the whole last line."""
    line = text[text.rfind("\n", 0, quantity.start) + 1 : quantity.start]
    return not re.search(r"\w", text[quantity.end :]) and not (
        line.strip(" *~") and not line.rstrip().endswith("=")
    )


def _alone(quantity: AnswerNumber, text: str, starts: list[int]) -> bool:
    """Return whether a line consists of one number and little else."""
    start = text.rfind("\n", 0, quantity.start) + 1
    end = len(text) if (end := text.find("\n", quantity.end)) < 0 else end
    if end - start > _LINE or bisect_left(starts, end) - bisect_left(starts, start) > 1:
        return False
    rest = re.findall(r"\w+", text[start : quantity.start] + " " + text[quantity.end : end])
    return len(rest) <= _LABEL_WORDS


BESIDE_VALUE: Final = "a number without a unit beside one that may be the value"
_POINTS: Final = re.compile(r"point|pp|bp", re.IGNORECASE)
"""A form of percent that only changes have."""
_BRACKETED: Final = re.compile(r"\(\s*[\d.,]+\s*[^\s\d)]{0,3}\)\W*$")
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
    dates = find_dates(text, period)
    shown = strike_dates(text, dates)
    found = find_numbers(shown, unit)
    if kind == "truncated" and found and found[-1].end >= len(shown.rstrip(" .,")):
        found.pop()
    if _BRACKETED.match(text):
        return ReadValue(None, "unparsed", "a number in brackets, which may mean a minus")
    owned = list(zip(found, find_owners(text, dates, found), strict=True))
    alternatives = find_rivals([one for one, owner in owned if owner != "other"], shown)
    owned = [(one._replace(rival=one in alternatives), owner) for one, owner in owned]
    asked = ValueQuery(unit, period, name, signed)
    candidates = find_candidates(shown, owned, asked)
    cut = kind == "truncated" or is_cut_off(text)
    rivals = [one.value for one in alternatives if one.measure == "own"]
    chosen = _choose(candidates.told, rivals, least=SAID if declines(text) else TOLD if cut else 0)
    if chosen is not None and chosen.rank <= SAID and _is_beside_value(chosen, shown, owned, asked):
        return ReadValue(None, "unparsed", BESIDE_VALUE)
    if chosen is not None:
        return ReadValue(chosen.value, "parsed", RANKS[chosen.rank])
    return _explain_silence(text, [one for one, _ in owned], candidates, cut=cut)


def _is_beside_value(
    chosen: ValueCandidate, text: str, owned: NumberOwners, asked: ValueQuery
) -> bool:
    """Return whether a number without a unit stands beside one that may be the value in its unit.

    If the unit is unknown, that is a percentage; one that follows as a change may stand there.
    A number said to be the value yields only to those of its sentence, and none yields to another
    sentence's value for another date.

    Args:
        chosen: The number that would be read.
        text: The plain text without its dates.
        owned: Its numbers, with the dates they belong to.
        asked: The series and unit that the value is sought for.
    """
    unit, said = asked.unit, chosen.rank == SAID
    if not (unit.symbol or unit.forms or said):
        percents = find_numbers(text, load_units()["percent"])
        owned = [(one, None) for one in percents if not _follows_as_change(one, chosen, text)]
    own = [
        (one, owner)
        for one, owner in owned
        if one.measure == "own" and not (one.aside or _is_change(one, text, signed=asked.signed))
    ]
    if {chosen.value, round(100 * chosen.value, 6)} & {one.value for one, _ in own}:
        return False
    for one, owner in own:
        near, other = _in_sentence(one, chosen, text), owner == "other"
        points = unit.basis_points and _POINTS.search(text[one.start : one.end])
        if not points and ((near and not other) if said else (near or not other)):
            return True
    return False


def _in_sentence(quantity: AnswerNumber, chosen: ValueCandidate, text: str) -> bool:
    """Return whether a number states something in the same sentence as a candidate."""
    first, last = sorted((quantity.start, chosen.start))
    before = sentence_before(text, quantity.start)
    return not (_SENTENCE_END.search(text, first, last) or is_no_statement(before))


def _follows_as_change(quantity: AnswerNumber, chosen: ValueCandidate, text: str) -> bool:
    """Return whether a percentage follows a candidate as its change: `1,312.40, up 1.1%`."""
    before = sentence_before(text, quantity.start)
    follows = quantity.start - len(before) <= chosen.start < quantity.start
    return follows and says_change(before, text[quantity.end :])


def _choose(
    said: list[ValueCandidate], rivals: Sequence[float], *, least: int
) -> ValueCandidate | None:
    """Return the best candidate: the last one endorsed as an estimate, otherwise the only one."""
    rank = max((one.rank for one in said), default=-1)
    best = [one for one in said if one.rank == rank]
    if rank < least or (rank < SAID and len({*rivals, *(one.value for one in best)}) > 1):
        return None
    return best[-1] if best else None


def _explain_silence(
    text: str, found: list[AnswerNumber], candidates: ValueCandidates, *, cut: bool
) -> ReadValue:
    """Return the reason why an answer gives no value."""
    if declines(text) or (sends_away(text) and not candidates.told):
        return ReadValue(None, "refused", "declined in words")
    if cut:
        return ReadValue(None, "truncated", "cut off before it says a value")
    if len({one.value for one in candidates.told}) > 1 or any(one.rival for one in found):
        return ReadValue(None, "unparsed", "several different numbers")
    if any(quantity.measure == "other" for quantity in found):
        return ReadValue(None, "unparsed", "a number in another unit")
    if candidates.held_back:
        return ReadValue(None, "unparsed", "a number that is not clearly the value")
    return ReadValue(None, "unparsed", NO_NUMBER[0 if text else 1])
