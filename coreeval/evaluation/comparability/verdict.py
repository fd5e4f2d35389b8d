"""Measures of two arms, the ranges that count as alike, and the verdict on all measures.

A measure is alike if its whole interval is in the range of its limit. This module does not compute
intervals and does not import numpy: releases, gates and pages read these values without it.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log, log10
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.scores import Score
from coreeval.languages import ENGLISH
from coreeval.schema import Value
from coreeval.tools.formatting import format_quantity

ENGLISH_ONLY: Final[Mapping[str, str]] = {
    "grade": "the readability of texts, whose index is made for English",
    "topic": "whether texts are about the same topic, by embeddings trained on English",
}
"""The measures for English, with what they measure."""


def list_unmeasured(language: str) -> list[str]:
    """Return the missing measures for arms in a language, as phrases; none for English."""
    return [] if language == ENGLISH else list(ENGLISH_ONLY.values())


Word = Literal["alike", "differs", "cannot_tell"]
Unit = Literal["ratio", "share", "number", "accuracy"]
Verdict = Literal["comparable", "not_comparable", "cannot_tell"]
FEWEST: Final = 6
"""The fewest samples for a word: with fewer, no two values enclose the median with 95 % confidence
(2 x 0.5^5 is 0.06), so an interval has no meaning."""
MOST_ALIKE: Final = 0.05
"""The largest adjusted p-value at which a difference counts as one."""
OFTEN: Final = 2
"""The number of samples that may use one event (own choice)."""
SHARED: Final = (0.6, 1.5)
"""The ratios of words at which readers find two texts about as long (own choice)."""
NAMED: Final = 4
"""The most measures that a sentence names (own choice)."""
MOST_NEEDED: Final = 100_000
"""The most samples to name (own choice): if more are needed, the value is almost at its limit."""


class Limit(NamedTuple):
    """A measure: its title, the range that counts as alike, and the words for a difference."""

    title: str
    unit: Unit
    """The form of its values; for a number or an accuracy, the difference is judged."""
    low: float | None
    """The lower end of the range that counts as alike; None if there is none, or if it is a
    quarter of a standard deviation of the texts."""
    high: float | None
    source: str
    """The source of the range."""
    less: str
    """The predicate of the updated texts if the value is below the range."""
    more: str
    decides: bool = True
    """Whether the measure decides the verdict; otherwise it explains the others."""
    means: str = ""
    """The meaning of the values of both arms, if the name does not say it."""


_QUARTER: Final = (
    "a quarter of a standard deviation: beyond that, differences between groups cannot be "
    "adjusted for (What Works Clearinghouse, Procedures and Standards Handbook 5.0, 2022)"
)


def _in_deviations(title: str, less: str, more: str) -> Limit:
    """Return a measure whose range is a quarter of a standard deviation to either side."""
    return Limit(title, "number", None, None, _QUARTER, less, more)


LIMITS: Final[Mapping[str, Limit]] = {
    "length_ratio": Limit(
        "median ratio of words in the updated text to words in the original",
        "ratio",
        0.8,
        1.25,
        "the ratios that are accepted as equivalent in trials of medicines (FDA, Statistical "
        "Approaches to Establishing Bioequivalence, 2001)",
        "are shorter",
        "are longer",
        means="median number of words",
    ),
    "length_share": Limit(
        f"share of texts with {SHARED[0]} to {SHARED[1]} times the words of their original",
        "share",
        0.8,
        None,
        "our choice: one text in five may be shorter or longer than that",
        "often change their length",
        "",
    ),
    "sentences": _in_deviations(
        "sentences per sample", "have fewer sentences", "have more sentences"
    ),
    "grade": _in_deviations(
        "readability in school years (Coleman-Liau)", "are easier to read", "are harder to read"
    ),
    "rare_words": _in_deviations(
        "% of words that occur in no other cluster of samples",
        "have fewer rare words",
        "have more rare words",
    ),
    "oddness": _in_deviations(
        "bits per character under a neutral model", "are less unusual", "are more unusual"
    ),
    "numbers": _in_deviations("% of words with a digit", "have fewer numbers", "have more numbers"),
    "capitals": _in_deviations(
        "% of words with a capital", "have fewer capitals", "have more capitals"
    ),
    "field_overlap": _in_deviations(
        "% of the second field's content words that also occur in the first field",
        "share fewer words between their two fields",
        "share more words between their two fields",
    ),
    "topic": Limit(
        "share of cases in which an updated text is closer to its own original than to another "
        "original",
        "share",
        0.75,
        None,
        "our choice: half-way between chance (0.5) and the case in which no other original is "
        "closer (1)",
        "are about a different topic",
        "",
        means="median cosine distances: between two originals, and between an updated text and its "
        "original",
    ),
    "difficulty": Limit(
        "accuracy of the reference models",
        "accuracy",
        -0.05,
        0.05,
        "the drops that an updated set is to explain are 0.036 to 0.054 (CoreEval, section 4.2)",
        "are harder for the reference models",
        "are easier for the reference models",
    ),
    "structure": Limit(
        "share of samples whose news is similar to them only in structure",
        "share",
        None,
        0.3,
        "our choice: with more such samples, the set reflects whatever the news was about",
        "",
        "often rest on news that is similar only in structure",
    ),
    "reuse": Limit(
        f"share of samples that rest on an event used by more than {OFTEN} samples",
        "share",
        None,
        0.1,
        "our choice: samples that rest on the same event say about as much as one sample",
        "",
        "often rest on the same event",
    ),
    "headline_only": Limit(
        "share of samples that rest on headlines alone",
        "share",
        None,
        0.5,
        "our choice: a headline is one short sentence, whatever the original was",
        "",
        "mostly rest on headlines alone",
        decides=False,
    ),
}
"""The measures in the order of a report."""


class Measure(Value):
    """One measure of both arms, over the accepted samples."""

    name: str
    """A key of `LIMITS`."""
    part: str = ""
    """The field that it measures; empty if it measures the whole sample."""
    original: float | None = None
    """The value of the original texts; None if the measure has no value for each arm."""
    updated: float | None = None
    score: Score
    """The value that is compared with the range: a difference is updated minus original."""
    low: float | None
    """The lower end of the range that counts as alike, in the unit of `score`."""
    high: float | None
    effect: float | None = None
    """A difference in standard deviations of the texts (Cohen's d)."""
    p_adjusted: float | None = None
    """The p-value for the hypothesis of no difference, adjusted over all differences (Holm
    1979)."""
    word: Word
    decides: bool

    @property
    def beyond(self) -> float:
        """Return the distance of the value from perfect likeness, with the range's end as 1."""
        value = self.score.estimate
        if value is None:
            return 0.0
        if self.low is not None and self.high is not None:
            return _two_sided(value, self.low, self.high)
        if self.low is not None:
            return (1 - value) / (1 - self.low)
        return value / self.high if self.high else 0.0

    @property
    def sentence(self) -> str:
        """Return a sentence on the difference, with the value, its interval and the range."""
        limit, value = LIMITS[self.name], self.score.estimate or 0.0
        phrase = limit.less if self.low is not None and value < self.low else limit.more
        where = f"The updated texts of the field {self.part}" if self.part else "The updated texts"
        return (
            f"{where} {phrase} ({limit.title}): {format_arms(self)}{format_value(self)}; "
            f"values of {format_range(self)} are equivalent."
        )


def _two_sided(value: float, low: float, high: float) -> float:
    if low > 0:
        end = high if value >= 1 else low
        return log(max(value, 1e-9)) / log(end)
    return abs(value) / high if high else 0.0


class Comparability(Value):
    """The comparison of the updated arm with the original in length, difficulty and topics."""

    verdict: Verdict
    sentences: tuple[str, ...]
    """One sentence for each difference of the arms, the largest first; if the verdict is open, the
    reasons."""
    samples: int
    """The number of accepted samples."""
    compared: int
    """The number of samples whose texts were compared."""
    needed: int | None = None
    """The approximate number of samples needed for a verdict; None if there are enough, or if no
    number is enough."""
    measures: tuple[Measure, ...]
    absent: dict[str, str] = {}
    """The reason why a measure is missing, by name."""
    events: dict[str, int] = {}
    """The number of events by the number of samples that use them."""
    most_reused: int | None = None
    """The most samples that use one event; None if no sample uses any."""
    rungs: dict[str, int] = {}
    """The number of samples by rung of the knowledge ladder."""
    depths: dict[str, int] = {}
    """The number of samples by the deepest evidence that they use."""

    def find(self, name: str, part: str = "") -> Measure | None:
        """Return a measure by name; None if it is missing."""
        found = (each for each in self.measures if (each.name, each.part) == (name, part))
        return next(found, None)


def choose_word(
    score: Score, low: float | None, high: float | None, p_adjusted: float | None = None
) -> Word:
    """Return whether a value counts as equivalent.

    It does if its interval is inside the range (Schuirmann 1987, Journal of Pharmacokinetics and
    Biopharmaceutics 15, 657-680). It differs if the value and its interval are outside the range; a
    difference with a p-value, if the p-value is at most 0.05, as in `covariates`.
    """
    value, least, most = score.estimate, score.ci_low, score.ci_high
    if value is None or least is None or most is None or score.n < FEWEST:
        return "cannot_tell"
    bottom, top = _ends(low, high)
    if bottom <= least and most <= top:
        return "alike"
    if bottom <= value <= top:
        return "cannot_tell"
    if p_adjusted is None:
        return "differs" if most < bottom or least > top else "cannot_tell"
    return "differs" if p_adjusted <= MOST_ALIKE else "cannot_tell"


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return (-float("inf") if low is None else low, float("inf") if high is None else high)


def judge_measures(measures: Sequence[Measure]) -> tuple[Verdict, tuple[str, ...], int | None]:
    """Return the verdict on both arms, its sentences, and the number of samples needed for one."""
    told = sorted((each for each in measures if each.decides), key=lambda each: -each.beyond)
    differ = [each for each in told if each.word == "differs"]
    if differ:
        return "not_comparable", tuple(each.sentence for each in differ), None
    open_ones = [each for each in told if each.word == "cannot_tell"]
    if told and not open_ones:
        return "comparable", (), None
    if not told:
        return "cannot_tell", ("No accepted sample has texts to compare.",), FEWEST
    needed = [samples_needed(each) for each in open_ones]
    known = [each for each in needed if each is not None]
    most = max(known) if len(known) == len(needed) else None
    return "cannot_tell", (_too_few(open_ones, most),), most


def _too_few(measures: Sequence[Measure], needed: int | None) -> str:
    every = list(dict.fromkeys(_name(each) for each in measures))
    left = len(every) - NAMED
    names = "; ".join(
        [*every[:NAMED], *([f"and {format_quantity(left, 'more measure')}"] if left > 0 else [])]
    )
    n = max(each.score.n for each in measures)
    judged = "this measure" if len(every) == 1 else "these measures"
    if needed is None and n >= FEWEST:
        return (
            f"{format_quantity(n, 'sample')} cannot decide {judged}: {names}. More samples would "
            "hardly help, because a value is at the limit of its range."
        )
    wanted = (
        "So few cannot show how many would suffice"
        if needed is None
        else f"About {needed:,} samples would suffice"
    )
    return (
        f"{format_quantity(n, 'sample is', 'samples are')} too few to judge {judged}: {names}. "
        f"{wanted}."
    )


def _name(measure: Measure) -> str:
    title = LIMITS[measure.name].title
    return f"{title}, {measure.part}" if measure.part else title


def samples_needed(measure: Measure) -> int | None:
    """Return the approximate number of samples needed to judge whether a measure is alike.

    With this number, the interval, which shrinks with its square root, fits between the value and
    the nearest end of its range; this distance counts as at least a quarter of the range, because
    the value will change. Return None if more than 100,000 are needed.
    """
    score = measure.score
    if score.ci_low is None or score.ci_high is None or score.estimate is None:
        return FEWEST
    wide = _width(measure)
    ends = [end for end in (measure.low, measure.high) if end is not None]
    room = max(min(abs(score.estimate - end) for end in ends), wide / 4)
    half = (score.ci_high - score.ci_low) / 2
    if not room:
        return None
    wanted = max(FEWEST, score.n + 1, ceil(score.n * (half / room) ** 2))
    return _round_up(wanted) if wanted <= MOST_NEEDED else None


def _width(measure: Measure) -> float:
    """Return the width of a range; a share's ends at 0 or at 1."""
    low = 0.0 if measure.low is None else measure.low
    return (1.0 if measure.high is None else measure.high) - low


def _round_up(number: int) -> int:
    """Round up to two digits: a planned number of samples is approximate."""
    step = int(10 ** max(0, floor(log10(number)) - 1))
    return ceil(number / step) * step


def format_number(value: float, unit: Unit) -> str:
    """Format a value of a measure, without its unit unless it is a share."""
    if unit == "share":
        return f"{100 * value:.0f} %"
    return format(value, {"accuracy": ".3f", "ratio": ".2f"}.get(unit, ".3g"))


def format_arms(measure: Measure) -> str:
    """Format the values of both arms if their difference is judged; otherwise return ""."""
    if not is_difference(measure) or measure.original is None or measure.updated is None:
        return ""
    unit = LIMITS[measure.name].unit
    before, after = (format_number(each, unit) for each in (measure.original, measure.updated))
    return f"{before} before, {after} after, difference "


def format_value(measure: Measure) -> str:
    """Format the judged value, with its interval and n."""
    score = measure.score
    if score.estimate is None:
        return "not measured"
    span = format_span(measure)
    return f"{_signed(measure, score.estimate)} ({span}{', ' if span else ''}n = {score.n:,})"


def format_span(measure: Measure) -> str:
    """Format the ends of the interval; "" if there is none."""
    low, high = measure.score.ci_low, measure.score.ci_high
    if low is None or high is None:
        return ""
    return f"{_signed(measure, low)} to {_signed(measure, high)}"


def format_estimate(measure: Measure) -> str:
    """Format the judged value, without its interval."""
    value = measure.score.estimate
    return "not measured" if value is None else _signed(measure, value)


def format_range(measure: Measure) -> str:
    """Format the range that counts as equivalent."""
    if measure.low is None and measure.high is None:
        return "anything"
    if measure.low is None or measure.high is None:
        least = "at most" if measure.low is None else "at least"
        end = measure.high if measure.low is None else measure.low
        return f"{least} {_signed(measure, end or 0.0)}"
    return f"{_signed(measure, measure.low)} to {_signed(measure, measure.high)}"


def is_difference(measure: Measure) -> bool:
    """Return whether a measure's value is a difference of the arms."""
    return LIMITS[measure.name].unit not in {"ratio", "share"}


def _signed(measure: Measure, value: float) -> str:
    told = format_number(value, LIMITS[measure.name].unit)
    return f"+{told}" if is_difference(measure) and value > 0 else told
