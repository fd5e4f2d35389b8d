"""A recorded answer about a series, its parsed form, and the file of answers.

A `Reply` is a line of a file of recorded answers. Read by the rules of `parsing`, it becomes a
`Point`, a `DateComparison` or a `ContinuationValue`, each beside the published value of its date.
`read_out` gives the entropy of a value's first tokens (NumLeak, appendix R): Shannon's entropy of
the token of the sign and of the first token with digits, over the five most probable tokens and the
remaining mass as one more.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import exp, isclose, isfinite, log2
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, get_args

from pydantic import Field

from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    Object,
    ObjectRow,
    Records,
    collect_records,
    read_records,
    validate_record,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.schema import AnswerKind, Value
from coreeval.tasks.kinds import is_encodable
from coreeval.tools.files import write_text

Variant = Literal[
    "value", "pair", "forced_choice", "fictitious", "blind", "repeated", "description",
    "step_by_step", "phrasing", "contradiction", "continuation", "sentiment", "defended",
    "placebo",
]  # fmt: skip
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
"""The probe variants, by what the question asks for.

In order: the value of a date; which of two dates was higher, freely or as one of two strings; the
value of a series that does not exist; the value of the series without its proper name; the value
repeatedly at temperature 1; a description of a date that ends in its value; the value after
thinking step by step, in other words, or after a wrong one was stated; the next rows of the
publisher's file; the sentiment of investors at a date, from -1 to 1; the value from a model that
was told not to reveal it; the value at an early date, about which little is written.
"""
SIGNAL_VARIANTS: Final[frozenset[Variant]] = frozenset({"sentiment", "placebo"})
"""Variants used only to attribute signals (`leak`); they do not count as values in an audit."""
DEFENCE_VARIANTS: Final[frozenset[Variant]] = frozenset({"defended"})
"""Variants used only to try instructions (`defences`).

Audits leave them out, because they measure something other than memory.
"""
COUNTED_VARIANTS: Final = frozenset(VARIANTS) - SIGNAL_VARIANTS - DEFENCE_VARIANTS
"""The variants on which the numbers of an audit are based."""


class Token(Value):
    """One token of an answer, with its alternatives."""

    text: str
    logprob: Annotated[float, Field(le=0)]
    """Natural logarithm of the token's probability."""
    top: tuple[tuple[str, float], ...] = ()
    """The most probable tokens at this position with their log-probabilities.

    The generated token may be among them.
    """


class Reply(Value):
    """One recorded answer (design: detection)."""

    model: str = Field(min_length=1)
    series: str = Field(min_length=1)
    """The series id; for a fictitious name, the id of the series whose question is reused."""
    date: str
    variant: Variant = "value"
    response: str | None
    """The model's response, unchanged; None if there was none."""
    truth: float | None = None
    """The published value; None to take it from the series."""
    other_date: str | None = None
    """The second date of a comparison."""
    name: str | None = None
    """The fictitious name asked about."""
    seed: int = 0
    """The seed of the drawing that the date belongs to; several drawings are pooled."""
    draw: int = 0
    """The number of a repeated answer, from 0."""
    phrasing: str | None = None
    """The name of the alternative wording of the value question; None for the usual one."""
    stated: float | None = None
    """The wrong value that the question states as a fact, in the unit of the series."""
    shown: Annotated[int, Field(ge=1)] | None = None
    """For a continuation, the number of lines of the file shown in the question."""
    wanted: Annotated[int, Field(ge=1)] | None = None
    """For a continuation, the number of lines asked for; the first holds the value of `date`."""
    defence: str | None = None
    """The name of the instructions against revealing values; None if there were none."""
    suffix: str | None = None
    """The name of the suffix that tries to undo the defence; None for the plain question."""
    shown_date: str | None = None
    """For a sentiment question with figures, the date named in the question.

    `date` is the one that follows the figures; the two differ if dates are scrambled.
    """
    first_tokens: tuple[Token, ...] | None = None
    """The first tokens of the answer; None if no log-probabilities were requested or returned."""
    kind: AnswerKind = "answered"
    """`truncated`: cut off at the token limit; `refused`: by the provider, without any text."""


TOP_TOKENS: Final = 5
"""The number of most probable tokens counted per position; the same as in appendix R."""
TOKEN_DECISIONS: Final = 2
"""The number of decisions at the start of a value: its sign and its first digits."""
_TOO_MUCH: Final = 1.01
"""Largest plausible sum of the probabilities at one position.

Rounding changes the sum far less, so anything above is invalid.
"""
_MINUS: Final = "-\u2010\u2011\u2012\u2013\u2014\u2212"
_NUMBER: Final = re.compile(
    rf"(?<![\w.,])(?<!\d[-/])(?P<sign>[{_MINUS}+])?\s?[$€£¥]?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)"
)


class TokenReading(NamedTuple):
    """The entropy derived from the tokens of one answer."""

    bits: float | None
    """Mean entropy of both decisions; None if it cannot be determined."""
    why: str = ""
    """The reason that `bits` is None."""
    signed: bool = False
    """Whether the sign is a token of its own."""


def read_out(tokens: Sequence[Token], value: float | None) -> TokenReading:
    """Return the mean entropy of the first two decisions of a value, in bits.

    An unwritten sign is decided in the token of the digits. If one token holds both decisions, its
    entropy counts for both. The result therefore does not depend on whether a model writes a plus
    sign, as a mean over tokens would.

    Args:
        tokens: The first tokens of the answer.
        value: The value read from the answer; None if none was read.
    """
    if value is None:
        return TokenReading(None, "no value was read")
    places = _value_tokens(tokens, value)
    if not places:
        return TokenReading(None, "the value that was read does not occur in the first tokens")
    found = [token_entropy(place) for place in places]
    if None in found:
        return TokenReading(
            None, "the probabilities at the value's tokens are missing or add up to more than one"
        )
    bits = sum(each for each in found if each is not None) / TOKEN_DECISIONS
    return TokenReading(bits, signed=len(places) == TOKEN_DECISIONS)


def token_entropy(token: Token) -> float | None:
    """Return Shannon's entropy at one position, in bits.

    The probability that the listed tokens leave up to 1 counts as one more outcome. The token that
    was generated also counts if it is not among the most probable ones. None if no alternatives are
    listed, or if the probabilities add up to more than 1.
    """
    if not token.top:
        return None
    told = sorted(token.top, key=lambda one: -one[1])[:TOP_TOKENS]
    if token.text not in (text for text, _ in told):
        told.append((token.text, token.logprob))
    shares = [exp(min(0.0, logprob)) for _, logprob in told]
    if sum(shares) > _TOO_MUCH:
        return None
    rest = max(0.0, 1.0 - sum(shares))
    return max(0.0, -sum(share * log2(share) for share in (*shares, rest) if share > 0))


def _value_tokens(tokens: Sequence[Token], value: float) -> list[Token]:
    """Return the tokens that hold the sign, if it is written, and the first digit of a value.

    The value is the first number of its size. Anything before it, such as words, quotes and blanks,
    is skipped; a fall may be expressed in words.
    """
    text = "".join(token.text for token in tokens)
    for match in _NUMBER.finditer(text):
        if isclose(float(match["digits"].replace(",", "")), abs(value), rel_tol=1e-9):
            starts = [match.start("digits")]
            starts += [match.start("sign")] if match["sign"] else []
            at = sorted({_token_at(tokens, start) for start in starts})
            return [tokens[each] for each in at]
    return []


def _token_at(tokens: Sequence[Token], place: int) -> int:
    """Return the index of the token that contains the character at a position."""
    end = 0
    for number, token in enumerate(tokens):
        end += len(token.text)
        if end > place:
            return number
    return len(tokens) - 1


Status = Literal["parsed", "refused", "truncated", "unparsed"]
Stratum = Literal["pre", "near", "post", "unknown"]
"""Position of a date relative to the model's cutoff.

Before it, within six months of it, after it, or unknown.
"""
Side = Literal["first", "second"]
NEAR_MONTHS: Final = 6.0
"""Months from the cutoff within which a date is neither before nor after it.

See research: numleak, appendix O.
"""
LARGEST_VALUE: Final = 1e15
"""Largest absolute size of a value or an answer.

Larger numbers are mistakes, and doubles cannot represent their units.
"""


def find_stratum(period: Period, cutoff: date | None) -> Stratum:
    """Return the stratum of a date relative to the cutoff."""
    if cutoff is None:
        return "unknown"
    months = period.months_after(cutoff)
    if abs(months) <= NEAR_MONTHS:
        return "near"
    return "pre" if months < 0 else "post"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One question for a value, with the answer and the truth."""

    period: Period
    variant: Variant
    truth: float | None
    """The true value in the unit of the series; None for a fictitious name."""
    estimate: float | None
    """The answered value in the same unit; None unless `status` is `parsed`."""
    status: Status
    why: str = ""
    """The reason for a missing estimate, or the rule by which the estimate was found."""
    stratum: Stratum = "unknown"
    months_after_cutoff: float | None = None
    notable: bool = False
    """Whether the series lists the date as well known."""
    name: str | None = None
    seed: int = 0
    draw: int = 0
    read_out: TokenReading | None = None
    """Entropy of the value's first tokens; None without log-probabilities."""
    phrasing: str | None = None
    """The name of the alternative wording; None for the usual one."""
    stated: float | None = None
    """The wrong value that the question states; None if it states none."""
    disputed: bool = False
    """Whether the answer says in words that the stated value is wrong."""
    echoed: bool = False
    """Whether the answer names the stated value and another one."""


@dataclass(frozen=True, kw_only=True)
class DateComparison:
    """A question about which of two dates was higher, with the choice and the truth."""

    first: Period
    second: Period
    variant: Variant
    higher: Side
    """The date that was really higher."""
    chosen: Side | None
    """The chosen date; None unless `status` is `parsed`."""
    status: Status
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ContinuationValue:
    """One value that the continuation of a file should contain."""

    period: Period
    window: Period
    """The part of the file with the value, identified by the first date asked for."""
    truth: float
    estimate: float | None
    """The answered value; None unless `status` is `parsed`."""
    status: Status
    last: float
    """The last value shown in the question."""
    mean: float
    """The mean of the values shown."""
    told: bool
    """Whether the true value is among those shown, so that it may have been copied."""


_KEYS: Final = frozenset(Reply.model_fields)
_QUESTION: Final = (
    "model", "series", "date", "variant", "other_date", "name", "phrasing", "stated", "defence",
    "suffix", "shown_date", "seed", "draw",
)  # fmt: skip
"""The fields that identify a question; lines that agree in all of them answer the same one."""
_ASKED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "phrasing": ("phrasing",), "contradiction": ("stated",), "continuation": ("shown", "wanted"),
}  # fmt: skip
_PROSE: Final = "a line is {model, series, date, variant, response, truth?}"


def read_replies(path: Path) -> Records[Reply]:
    """Read JSON Lines, plain or .gz; if several lines answer one question, the first counts.

    Blank lines and keys that `Reply` does not have are ignored.

    Raises:
        DatasetError: the file cannot be read, is empty, or no line of it is a reply.
    """
    found = read_records(path, _read_object, key=_question_key, twice=_describe_duplicate)
    return found.require_records(path, what="an answer", whats="answers", prose=_PROSE)


def collect_replies(name: str, rows: Iterable[ObjectRow]) -> Records[Reply]:
    """Return the replies in rows that are in memory; see `read_replies`.

    Args:
        name: The name of the rows in reports of invalid ones.
        rows: The rows.

    Raises:
        DatasetError: there are no rows, or none is a reply.
    """
    found = collect_records(name, rows, _read_object, key=_question_key, twice=_describe_duplicate)
    return found.require_records(name, what="an answer", whats="answers", prose=_PROSE)


def _question_key(reply: Reply) -> tuple[object, ...]:
    return tuple(getattr(reply, key) for key in _QUESTION)


def _describe_duplicate(_: Reply, first: int) -> str:
    return (
        f"duplicate question, first in line {first}; distinguish draws by `draw` and samples of "
        "dates by `seed`"
    )


# -- one line -------------------------------------------------------------------------------------


def _read_object(values: Object) -> Reply | BadRecord:
    """Return the reply in a line, or the defect of the line."""
    defect = next(_defects(values), None)
    return BadRecord(defect) if defect else _parse_reply(values)


def _parse_reply(values: Mapping[str, object]) -> Reply | BadRecord:
    known = {key: value for key, value in values.items() if key in _KEYS}
    known |= {key: str(known[key]) for key in ("date", "other_date", "shown_date")
              if isinstance(known.get(key), int)}  # fmt: skip
    return validate_record(Reply, known)


def _defects(values: Mapping[str, object]) -> Iterator[str]:
    """Yield the defects of an object that the types of `Reply` do not report well."""
    for key in ("model", "series", "date", "response"):
        if key not in values:
            yield f"{key} is missing"
    yield from _variant_defects(values.get("variant", "value"), values)
    for key in ("truth", "stated"):
        value = values.get(key)
        if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
            yield f"{key} must be a number, not {value}"
        elif isinstance(value, int | float) and abs(value) > LARGEST_VALUE:
            yield f"{key} is larger than {LARGEST_VALUE:g}"
    for key in _KEYS & values.keys():
        text = values[key]
        if isinstance(text, str) and not is_encodable(text):
            yield f"{key} contains an incomplete character (a lone surrogate)"


def _variant_defects(variant: object, values: Mapping[str, object]) -> Iterator[str]:
    if variant not in VARIANTS:
        yield f"there is no variant {variant!r}; available variants: {', '.join(VARIANTS)}"
    if variant in ("pair", "forced_choice") and values.get("other_date") is None:
        yield f"a {variant} question compares two dates: `other_date` is missing"
    for key in _ASKED_WITH.get(str(variant), ()):
        if values.get(key) is None:
            yield f"a {variant} question must state what was asked: `{key}` is missing"
    if variant == "fictitious" and not values.get("name"):
        yield "a fictitious series must have a name: `name` is missing"
    if variant == "defended" and not values.get("defence"):
        yield "an answer under a defence must name the defence: `defence` is missing"


_ALWAYS = ("model", "series", "date", "variant", "response")


def write_replies(path: Path, replies: Iterable[Reply]) -> None:
    """Write one line for each reply, atomically; keys with default values are left out."""
    write_text(path, "".join(f"{_format_line(reply)}\n" for reply in replies))


def _format_line(reply: Reply) -> str:
    said = reply.model_dump(mode="json")
    unusual = reply.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({key: said[key] for key in _ALWAYS} | unusual, ensure_ascii=False)
