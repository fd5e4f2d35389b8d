"""Numbers that may be the value: of the date and the series asked, and how plainly each is told."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.changes import (
    is_index_level,
    of_another_span,
    says_change,
    sign_untold,
)
from coreeval.evaluation.numleak.parsing.dates import Whose
from coreeval.evaluation.numleak.parsing.others import labelled
from coreeval.evaluation.numleak.parsing.quantities import Quantity
from coreeval.evaluation.numleak.parsing.wording import endorsement, no_statement, sentence_before
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import LARGEST
from coreeval.evaluation.numleak.series.units import Unit

_BEHIND_BARE: Final = re.compile(
    r"\W*$|[.,;:)!\"\n±]| ?\||\+/-| (?:in|for|as|during|or|\(|±)", re.IGNORECASE
)
_BEFORE_BARE: Final = re.compile(
    r"(?:^|[:=~]|[=-]>|\b(?:was|is|were|at|approximately|approx\.?|about|around|roughly|nearly|circa))"
    r"[\s(]*$",
    re.IGNORECASE,
)
_BRACKET_BEFORE: Final = re.compile(r"(?:^|[:=\n])[^\S\n]*\(\s*$")
_BRACKET_BEHIND: Final = re.compile(r"\s*\)")
_DASH_BEFORE: Final = re.compile(r"(?:^|\n)[^\S\n]*-[^\S\n]+$")
_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s|$)|\n")
_LABEL_WORDS: Final = 6
"""A line of its own says a value with at most so many words beside it."""
_LINE: Final = 200
"""Characters of such a line."""
RANKS: Final = (
    "a number in its unit", "told with its date or its series", "a line of its own",
    "said to be it", "a point estimate",
)  # fmt: skip
TOLD, ALONE, SAID = 1, 2, 3
Owned = Sequence[tuple[Quantity, Whose | None]]
"""Numbers, each with whose date it has."""


class Asked(NamedTuple):
    """What a value is asked of."""

    unit: Unit
    period: Period
    name: str
    """All that the series is called, comma by comma; it may be empty."""
    signed: bool
    """Whether values can be below zero."""


class Candidate(NamedTuple):
    """A number that may be the estimate, and how plainly it is said to be it."""

    value: float
    rank: int
    """Index of `RANKS`."""


class Candidates(NamedTuple):
    """The numbers of an answer that may be the value."""

    told: list[Candidate]
    held_back: bool
    """Whether there is another number, of which it is not sure that it is not the value."""


def candidates_of(text: str, owned: Owned, asked: Asked) -> Candidates:
    """Return the numbers that may be the value; those said to be of its series go first.

    A fraction beside its percentage is none.

    Args:
        text: The plain text without its dates.
        owned: Its numbers.
        asked: What the value is asked of.
    """
    kept = [pair for pair in owned if not _left_out(pair[0], text, asked)]
    starts = [quantity.start for quantity, _ in kept]
    whole = {round(one.value, 6) for one, _ in kept if one.measure == "own"}
    said, named = list[Candidate](), list[Candidate]()
    for one, owner in kept:
        if owner == "other" or (one.measure == "bare" and round(100 * one.value, 6) in whole):
            continue
        before = sentence_before(text, one.start)
        is_named = bool(asked.name) and labelled(before, asked.name)
        candidate = _candidate(one, text, starts, known=is_named or owner == "asked")
        if candidate and owner is None and not endorsement(before):
            candidate = _doubted(candidate, one, kept, text)
        if candidate:
            said.append(candidate)
            named += [candidate] * is_named
    own = [owner for one, owner in owned if one.measure == "own" and not one.aside]
    return Candidates(named or said, held_back=len(own) > len(said))


def _doubted(candidate: Candidate, quantity: Quantity, owned: Owned, text: str) -> Candidate | None:
    """Return a candidate without a date as far as other numbers of its sentence leave it one."""
    before = sentence_before(text, quantity.start)
    if candidate.rank < SAID and _follows_other_date(quantity, owned, before, text):
        return None
    if _contradicted(quantity, owned, text):
        return candidate._replace(rank=0)
    return candidate


def _left_out(quantity: Quantity, text: str, asked: Asked) -> bool:
    """Whether a number is told of something else, is a change, or has a sign that is not sure."""
    before = sentence_before(text, quantity.start)
    behind = text[quantity.end : quantity.end + _LINE]
    level = asked.unit.basis_points and quantity.measure == "bare" and is_index_level(before)
    other = level or of_another_span(before, behind, asked.period.frequency, asked.name)
    return quantity.unsure or other or _unclear(quantity, text, signed=asked.signed)


def _follows_other_date(quantity: Quantity, owned: Owned, before: str, text: str) -> bool:
    """Whether a sentence tells the value of another date first: `3.5% in February, then 4.4%`."""
    begins = quantity.start - len(before)
    return any(
        owner == "other"
        and begins <= one.start < quantity.start
        and not text[: one.start].endswith("(")
        for one, owner in owned
    )


def _contradicted(quantity: Quantity, owned: Owned, text: str) -> bool:
    """Whether another number follows in the sentence: `4.4% adjusted, 4.5% unadjusted`."""
    return any(
        one.start > quantity.end
        and owner is None
        and one.measure == quantity.measure == "own"
        and abs(one.value) != abs(quantity.value)
        and not (one.aside or one.rival)
        and not _SENTENCE_END.search(text, quantity.end, one.start)
        and not no_statement(sentence_before(text, one.start))
        for one, owner in owned
    )


def _unclear(quantity: Quantity, text: str, *, signed: bool) -> bool:
    """Whether a number may be a change of the value, or its sign is not sure."""
    before = text[max(0, quantity.start - _LINE) : quantity.start]
    if not signed:
        return says_change(before, text[quantity.end : quantity.end + _LINE])
    written = text[quantity.start : quantity.end]
    return _sign_unclear(quantity, text) or (
        quantity.value > 0 and written[:1] not in "+-" and sign_untold(before, written)
    )


def _sign_unclear(quantity: Quantity, text: str) -> bool:
    """Whether a number stands in brackets of its own, or behind a dash that may be its minus."""
    if text[quantity.start] in "+-":
        return False
    before = text[max(0, quantity.start - _LINE) : quantity.start]
    alone = _BRACKET_BEHIND.match(text, quantity.end) and _BRACKET_BEFORE.search(before)
    return bool(alone) or _DASH_BEFORE.search(before) is not None


def _candidate(
    quantity: Quantity, text: str, starts: list[int], *, known: bool
) -> Candidate | None:
    """Return a number as a candidate; None where it is no statement of a value in the unit.

    Args:
        quantity: The number.
        text: The plain text without its dates.
        starts: Where numbers begin.
        known: Whether its date or its series is told with it, and is the one asked about.
    """
    before = sentence_before(text, quantity.start)
    if quantity.aside or quantity.rival or quantity.measure == "other" or no_statement(before):
        return None
    if abs(quantity.value) > LARGEST:
        return None
    told = known or not before.strip()
    rank = max(_rank(quantity, before, text, starts), TOLD * told)
    stated = quantity.measure == "own" or _stated(quantity, rank, before, text, known=known)
    return Candidate(quantity.value, rank) if stated else None


def _stated(quantity: Quantity, rank: int, before: str, text: str, *, known: bool) -> bool:
    """Whether a number without a unit stands where a value does: not the 500 of S&P 500."""
    if not _BEHIND_BARE.match(text, quantity.end):
        return False
    plainly = known or text[quantity.start] in "+-" or _BEFORE_BARE.search(before) is not None
    return rank >= SAID or (rank in (TOLD, ALONE) and plainly)


def _rank(quantity: Quantity, before: str, text: str, starts: list[int]) -> int:
    if said := endorsement(before):
        return said + ALONE
    if not re.search(r"\w", text[: quantity.start]) or _ends_alone(quantity, text):
        return SAID
    return ALONE * _alone(quantity, text, starts)


def _ends_alone(quantity: Quantity, text: str) -> bool:
    """Whether a number is the whole last line."""
    line = text[text.rfind("\n", 0, quantity.start) + 1 : quantity.start]
    return not re.search(r"\w", text[quantity.end :]) and not line.strip(" *~")


def _alone(quantity: Quantity, text: str, starts: list[int]) -> bool:
    """Whether a line has one number and little else."""
    start = text.rfind("\n", 0, quantity.start) + 1
    end = len(text) if (end := text.find("\n", quantity.end)) < 0 else end
    if end - start > _LINE or bisect_left(starts, end) - bisect_left(starts, start) > 1:
        return False
    rest = re.findall(r"\w+", text[start : quantity.start] + " " + text[quantity.end : end])
    return len(rest) <= _LABEL_WORDS
