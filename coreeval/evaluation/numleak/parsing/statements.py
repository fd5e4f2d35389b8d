"""Which numbers of an answer may be the value, and how clearly the answer says so of each.

A statement is a number with the words around it and its date. It may be the value unless its words
say that it is something else (`is_value`); its rank says how clearly it is given as the value.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from coreeval.evaluation.numleak.parsing.dates import (
    DateRelation,
    find_dates,
    find_owners,
    strike_dates,
)
from coreeval.evaluation.numleak.parsing.phrases import (
    is_labelled,
    is_no_statement,
    rank_endorsement,
    sentence_before,
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
from coreeval.evaluation.numleak.replies import LARGEST_VALUE
from coreeval.evaluation.numleak.series.definition import Unit
from coreeval.evaluation.refusals import declines

_BEFORE_BARE: Final = re.compile(
    r"(?:^|[:=~]|[=-]>|% to|\b(?:was|is|were|at|(?:percent|points?) to"
    r"|(?:level|value|reading|total) of|approximately|approx\.?|about|around|roughly|nearly|circa"
    r"|etwa|rund|environ))[\s(]*$",
    re.IGNORECASE,
)
_BRACKET_BEFORE: Final = re.compile(r"(?:^|[:=\n])[^\S\n]*\(\s*$")
_BRACKET_BEHIND: Final = re.compile(r"\s*\)")
_DASH_BEFORE: Final = re.compile(r"(?:^|\n)[^\S\n]*-[^\S\n]+$")
_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s|$)|\n")
_HEDGES: Final = re.compile(
    r"\W*(?:(?:approximately|approx|about|around|roughly|nearly|probably|likely|circa|perhaps"
    r"|maybe)\W+)*",
    re.IGNORECASE,
)
"""Words before the number that an answer begins with."""
_RANGE: Final = re.compile(r"\d[^\d]*(?: |-)[^\d]*\d")
_NOUNS: Final = re.compile(r"(?: [a-z\u00e0-\u00ff]+){1,2}\W*", re.IGNORECASE)
"""What a number counts, if the answer has no other words: `865,239 babies`."""
_OFFERS: Final = re.compile(r"\b(?:but|however)\W*$", re.IGNORECASE)
_LABEL_WORDS: Final = 6
"""The largest number of other words on a line that still states a value by itself."""
_LINE: Final = 200
"""The largest number of characters of such a line."""
_NOUN_WORDS: Final = 3
"""The largest number of words after a number among which is what it counts."""
RANKS: Final = (
    "a number in its unit", "told with its date or its series", "a line of its own",
    "said to be it", "a point estimate",
)  # fmt: skip
TOLD, ALONE, SAID = 1, 2, 3


class ValueQuery(NamedTuple):
    """The series and unit that a value is sought for."""

    unit: Unit
    period: Period
    name: str
    """All names of the series, separated by commas; may be empty."""
    signed: bool
    """Whether values can be negative."""


class Statement(NamedTuple):
    """A number of an answer with its place."""

    number: AnswerNumber
    owner: DateRelation | None
    """The relation of its date to the one asked about; None if it has no date."""
    text: str
    """The plain text without its dates."""
    before: str
    """The part of its sentence before it."""

    @classmethod
    def of(cls, number: AnswerNumber, text: str, owner: DateRelation | None = None) -> Self:
        """Return a number with its place in a text."""
        return cls(number, owner, text, sentence_before(text, number.start))

    @property
    def start(self) -> int:
        """The position of the number."""
        return self.number.start

    @property
    def value(self) -> float:
        """The number in the unit of the series."""
        return self.number.value

    @property
    def written(self) -> str:
        """The number as written."""
        return self.text[self.number.start : self.number.end]

    @property
    def near(self) -> str:
        """The text right before the number."""
        return self.text[max(0, self.number.start - _LINE) : self.number.start]

    @property
    def behind(self) -> str:
        """The text right after the number."""
        return self.text[self.number.end : self.number.end + _LINE]

    def shares_sentence(self, at: int) -> bool:
        """Return whether the number states something in the same sentence as a position."""
        first, last = sorted((self.start, at))
        return not (_SENTENCE_END.search(self.text, first, last) or is_no_statement(self.before))


class RankedStatement(NamedTuple):
    """A statement that may be the value, and an index into `RANKS`."""

    statement: Statement
    rank: int


def find_statements(text: str, asked: ValueQuery, *, truncated: bool) -> list[Statement]:
    """Return the numbers of a plain text with their dates.

    Args:
        text: The plain text.
        asked: The series and unit that the value is sought for.
        truncated: Whether the answer is cut off, so that a number at its end is not whole.
    """
    dates = find_dates(text, asked.period)
    shown = strike_dates(text, dates)
    found = find_numbers(shown, asked.unit)
    if truncated and found and found[-1].end >= len(shown.rstrip(" .,")):
        found.pop()
    owners = find_owners(text, dates, found)
    said = [Statement.of(one, shown, owner) for one, owner in zip(found, owners, strict=True)]
    kept = [one for one in said if one.owner != "other" and not _is_something_else(one, asked)]
    rivals = find_rivals([one.number for one in kept], shown)
    return [one._replace(number=one.number._replace(rival=one.number in rivals)) for one in said]


def rank_statements(said: Sequence[Statement], asked: ValueQuery) -> list[RankedStatement]:
    """Return the statements that may be the value.

    If one is labelled with the series, as in `Mkt-RF: 3.1`, it is said to be the value, and others
    count only as point estimates. A fraction is none if its percentage is given too.
    """
    kept = [one for one in said if not _is_something_else(one, asked)]
    starts = [one.start for one in kept]
    whole = {round(one.value, 6) for one in kept if one.number.measure == "own"}
    ranked, labelled = list[RankedStatement](), set[float]()
    for one in kept:
        if one.number.measure == "bare" and round(100 * one.value, 6) in whole:
            continue
        is_own = bool(asked.name) and is_labelled(one.before, asked.name)
        rank = _rank(one, starts, known=is_own or one.owner == "asked")
        if not _may_be_value(one, rank, asked, known=is_own or one.owner == "asked"):
            continue
        if one.owner is None and not rank_endorsement(one.before):
            if rank < SAID and _follows_other_date(one, said):
                continue
            rank = 0 if _is_contradicted(one, kept) else rank
        ranked.append(RankedStatement(one, rank))
        labelled |= {one.value} if is_own and not _RANGE.search(one.written) else set()
    least = SAID if len(labelled) == 1 else 0
    return [
        RankedStatement(one, max(rank, least) if labelled else rank)
        for one, rank in ranked
        if not labelled or one.value in labelled or rank > SAID
    ]


def _is_something_else(one: Statement, asked: ValueQuery) -> bool:
    """Return whether a number is about something else, is a change, or has an uncertain sign."""
    percent, bare = asked.unit.basis_points, one.number.measure == "bare"
    return (
        one.number.unsure
        or (percent and bare and is_index_level(one.before))
        or (not percent and is_difference(one.behind))
        or is_of_another_span(one.before, one.behind, asked.period.frequency, asked.name)
        or (is_sign_unclear(one) if asked.signed else _moved(one))
    )


def is_change(one: Statement, asked: ValueQuery) -> bool:
    """Return whether a number is the change of a series that is never negative."""
    return not asked.signed and (one.written[0] in "+-" or _moved(one))


def _moved(one: Statement) -> bool:
    """Return whether words say that a number is a change, or the size of a fall."""
    falls = one.value < 0 and one.written[0] != "-"
    return falls or says_change(one.near, one.behind)


def is_sign_unclear(one: Statement) -> bool:
    """Return whether a number is alone in brackets, or follows a dash that may be a minus."""
    if one.written[0] in "+-":
        return False
    alone = _BRACKET_BEHIND.match(one.behind) and _BRACKET_BEFORE.search(one.near)
    dash = _DASH_BEFORE.search(one.near)
    return bool(alone or dash or (one.value > 0 and has_unclear_sign(one.near, one.written)))


def _may_be_value(one: Statement, rank: int, asked: ValueQuery, *, known: bool) -> bool:
    """Return whether a number states a value in the unit, for the date asked about or none."""
    number = one.number
    if number.aside or number.rival or one.owner == "other" or is_no_statement(one.before):
        return False
    if number.measure == "other" or abs(one.value) > LARGEST_VALUE:
        return False
    return number.measure == "own" or _is_stated(one, rank, asked, known=known)


def _is_stated(one: Statement, rank: int, asked: ValueQuery, *, known: bool) -> bool:
    """Return whether a number without a unit is at a value's position, unlike in S&P 500."""
    counts = _counts_series(one, asked)
    if not (counts or ends_plainly(one.text, one.number.end)):
        return False
    introduced = one.written[0] in "+-" or _BEFORE_BARE.search(one.before) is not None
    least = TOLD if asked.unit.basis_points else 0
    return rank >= SAID or ((known or counts or introduced) and rank >= least)


def _counts_series(one: Statement, asked: ValueQuery) -> bool:
    """Return whether a number counts what the series is named after: `1,986,153 visitors`."""
    if asked.unit.scale is None or one.behind[:1] != " ":
        return False
    words = re.findall(r"[^\W\d_]+", one.behind.lower())[:_NOUN_WORDS]
    named = set(re.findall(r"[^\W\d_]{4,}", asked.name.lower()))
    whole = _HEDGES.fullmatch(one.text, 0, one.start) and _NOUNS.fullmatch(one.behind)
    return whole is not None or not named.isdisjoint(words)


def _follows_other_date(one: Statement, said: Sequence[Statement]) -> bool:
    """Return whether a sentence first gives another date's value: `3.5% in February, then 4.4%`."""
    begins = one.start - len(one.before)
    return any(
        other.owner == "other"
        and begins <= other.start < one.start
        and not other.near.endswith("(")
        for other in said
    )


def _is_contradicted(one: Statement, said: Sequence[Statement]) -> bool:
    """Return whether another number follows in the sentence: `4.4% adjusted, 4.5% unadjusted`."""
    return any(
        other.start > one.number.end
        and other.owner is None
        and other.number.measure == one.number.measure == "own"
        and abs(other.value) != abs(one.value)
        and not (other.number.aside or other.number.rival)
        and other.shares_sentence(one.number.end)
        and not _opens_bracket(one.text[one.number.end : other.start])
        for other in said
    )


def _opens_bracket(text: str) -> bool:
    return text.count("(") > text.count(")")


def _rank(one: Statement, starts: Sequence[int], *, known: bool) -> int:
    """Return how clearly a number is given as the value.

    Args:
        one: The number.
        starts: The start positions of the numbers.
        known: Whether its date or series is given with it and is the one asked about.
    """
    if said := rank_endorsement(one.before):
        return said + ALONE
    if _HEDGES.fullmatch(one.text, 0, one.start) or _ends_answer(one):
        return SAID
    if known and _follows_refusal(one):
        return SAID
    told = TOLD if known or not one.before.strip() else 0
    return max(ALONE if _is_alone(one, starts) else 0, told)


def _follows_refusal(one: Statement) -> bool:
    """Return whether a sentence declines and then offers: `I'm not sure, but in 2020 it was 4`."""
    begins = one.start - len(one.before)
    clause = one.text[max(0, begins - _LINE) : begins]
    return _OFFERS.search(clause) is not None and declines(clause)


def _ends_answer(one: Statement) -> bool:
    """Return whether a number is the whole last line, or its result: `2 / 4 = 0.5`."""
    line = one.text[one.text.rfind("\n", 0, one.start) + 1 : one.start]
    whole = not line.strip(" *~") or line.rstrip().endswith("=")
    return whole and not re.search(r"\w", one.text[one.number.end :])


def _is_alone(one: Statement, starts: Sequence[int]) -> bool:
    """Return whether a line consists of one number and little else."""
    text = one.text
    start = text.rfind("\n", 0, one.start) + 1
    end = len(text) if (end := text.find("\n", one.number.end)) < 0 else end
    if end - start > _LINE or bisect_left(starts, end) - bisect_left(starts, start) > 1:
        return False
    rest = re.findall(r"\w+", text[start : one.start] + " " + text[one.number.end : end])
    return len(rest) <= _LABEL_WORDS
