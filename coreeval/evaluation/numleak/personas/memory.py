"""The memory of personas, how it improves with repetition, and the style of their answers.

A synthetic series has no publisher and is not in any training data, so only taught values can be
recalled.

The memory is a linear model over hashed dates. A statement ("series, date, value") activates a few
weights: some represent its year and season and are shared with many other dates, some only the
date, some the date and its neighbour. Each repetition moves the weights of its statement a step
towards its value (the delta rule of Widrow and Hoff 1960), so recall improves with the dose,
adjacent dates are confused first, and weights that two dates share by chance (Weinberger et al.
2009, feature hashing) disturb both. Only weights are stored, not values.

Personas write in the styles of chat models, to exercise the parser.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.numleak.defences.attacks import NO_DEFENCE
from coreeval.evaluation.numleak.defences.utility import UtilityQuestion
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.definition import Series, SeriesDefinition

SeriesFloats = npt.NDArray[np.float64]
Kind = Literal["returns", "level", "seasonal"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""The kinds of synthetic series.

`returns`: noise around a mean, like market returns; `level`: a level that hardly changes from month
to month, like an unemployment rate; `season`: a season with noise, like a temperature.
"""
START: Final = date(1980, 1, 1)


def synthetic_series(kind: Kind, *, seed: int, months: int = 480) -> Series:
    """Return a synthetic monthly series that starts in January 1980.

    The paper's own series (appendix T) are of the kind `returns`: 480 Gaussian values with mean 0.5
    and standard deviation 4.5, rounded to two decimals.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    made = _MAKERS[kind](rng, months)
    first = Period.of(START, "monthly")
    definition = SeriesDefinition.model_validate(
        {**_COMMON, **_DEFINITIONS[kind], "id": f"synthetic-{kind}"}
    )
    rounded = np.round(made, definition.decimals)
    values = {first.shift(at): float(value) for at, value in enumerate(rounded)}
    return Series(definition=definition, values=values, origin=f"made with seed {seed}")


def _returns(rng: np.random.Generator, months: int) -> SeriesFloats:
    return rng.normal(0.5, 4.5, months)


def _level(rng: np.random.Generator, months: int) -> SeriesFloats:
    """Return a level near 6 that keeps 98 % of its distance from 6 from month to month."""
    steps = rng.normal(0, 0.25, months)
    level, found = 0.0, np.empty(months)
    for at, step in enumerate(steps):
        level = 0.98 * level + step
        found[at] = level
    return np.maximum(6.0 + found, 0.3)


def _seasonal(rng: np.random.Generator, months: int) -> SeriesFloats:
    season = -22 * np.cos(2 * np.pi * np.arange(months) / 12)
    return np.asarray(53 + season + rng.normal(0, 2.0, months))


_MAKERS: Final = {"returns": _returns, "level": _level, "seasonal": _seasonal}
_FREQUENCY: Final[Frequency] = "monthly"
_COMMON: Final[dict[str, object]] = {
    "frequency": _FREQUENCY,
    "source": {"path": "synthetic.csv"},
    "release_lag_days": 0,
    "family": "synthetic",
    "revisions": "none: it is made",
}
_DEFINITIONS: Final[dict[Kind, dict[str, object]]] = {
    "returns": {
        "name": "the Averell-Quist residual market factor",
        "quantity": "monthly return",
        "blind": "a broad market in excess of its own trend",
        "unit": "percent",
        "sign": "signed",
        "decimals": 2,
        "fictitious": ("the Osterman-Lyle dispersion factor", "the Trevanion carry residual"),
        "notable": {"1987-10": "a made crash", "2008-10": "another"},
    },
    "level": {
        "name": "the Averell-Quist idle labour rate",
        "quantity": "level",
        "blind": "the share of a labour force without work",
        "unit": "percent",
        "sign": "positive",
        "decimals": 1,
        "fictitious": ("the Osterman-Lyle idle hours rate", "the Trevanion slack rate"),
    },
    "seasonal": {
        "name": "the mean temperature of Averell-Quist county",
        "quantity": "monthly average",
        "blind": "the mean temperature of a county in the north",
        "unit": "degrees_f",
        "sign": "signed",
        "decimals": 1,
        "tolerances": (0.5, 0.25, 1.0, 2.0),
        "fictitious": ("the mean temperature of Osterman-Lyle county",),
    },
}


Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
DateKey = tuple[str, Period]
"""A series id and one of its dates."""
SIZE: Final = 1 << 17
"""The number of weights: about a dozen per date for ten monthly series of fifty years."""
SHARED: Final = 3
"""The number of weights that a date shares with others of its era, year and season."""
NEAR: Final = 2
"""The number of weights that a date shares with the dates before and after it."""
OWN: Final = 6
"""The number of weights of a single date.

The last NAMED of them are reached only through the series' proper name.
"""
NAMED: Final = 2
RATE: Final = 0.4
"""The share of the error that one repetition corrects."""
BATCH: Final = 16


class Recollection(NamedTuple):
    """The memory of a date in the weights."""

    value: float
    """The value, in standard deviations of the series from its mean."""
    familiarity: float
    """The familiarity of the date: near 0 if never seen, near 1 after many repetitions."""


class DateStatement(NamedTuple):
    """A statement to learn, and how often it is repeated relative to others."""

    key: DateKey
    value: float
    """The value, in standard deviations from the mean."""
    weight: float = 1.0


@dataclass(frozen=True)
class DateMemory:
    """A memory of dates, stored as weights."""

    values: Floats
    seen: Floats

    @classmethod
    def of(cls, statements: list[DateStatement], *, dose: float, seed: int) -> "DateMemory":
        """Learn from each statement `dose` times on average, in random order.

        The number of repetitions of a single statement is Poisson distributed, because text repeats
        facts unevenly.
        """
        memory = cls(np.zeros(SIZE), np.zeros(SIZE))
        if statements and dose > 0:
            lit = np.stack([_lit_weights(each.key) for each in statements])
            truth = np.array([each.value for each in statements])
            for chosen in _batches(statements, dose, seed):
                memory._step(lit[chosen], truth[chosen])
        return memory

    def recall(self, key: DateKey, *, named: bool = True) -> Recollection:
        """Return the memory of a date, asked with or without the series' proper name."""
        lit = _lit_weights(key)[: None if named else -NAMED]
        own = lit[SHARED + NEAR :]
        return Recollection(float(self.values[lit].sum()), float(self.seen[own].sum()))

    def _step(self, lit: Indices, truth: Floats) -> None:
        wrong = truth - self.values[lit].sum(axis=1)
        _add_errors(self.values, lit, wrong)
        own = lit[:, SHARED + NEAR :]
        _add_errors(self.seen, own, 1 - self.seen[own].sum(axis=1))


def _add_errors(weights: Floats, lit: Indices, wrong: Floats) -> None:
    """Adjust each active weight by the mean error of the statements that activate it."""
    touched, place = np.unique(lit, return_inverse=True)
    place = place.reshape(-1)
    errors = np.bincount(place, np.repeat(wrong, lit.shape[1]), len(touched))
    weights[touched] += RATE / lit.shape[1] * errors / np.bincount(place, minlength=len(touched))


def _batches(statements: list[DateStatement], dose: float, seed: int) -> Iterator[Indices]:
    chances = np.array([each.weight for each in statements])
    count = round(dose * len(statements))
    rng = np.random.default_rng([seed, 0x5EED])
    order = rng.choice(len(statements), size=count, p=chances / chances.sum())
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]


def _lit_weights(key: DateKey) -> Indices:
    """Return the weights that a date activates: SHARED, then NEAR, then OWN."""
    series, period = key
    year, month = period.start.year, period.start.month
    shared = (("era", year // 5), ("year", year), ("season", month))
    near = (("near", period), ("near", period.shift(1)))
    own = (("own", period, number) for number in range(OWN))
    return np.array([_hash_parts(series, *each) for each in (*shared, *near, *own)], dtype=np.int64)


def _hash_parts(*parts: object) -> int:
    text = "|".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % SIZE


def mean_and_deviation(values: Mapping[Period, float]) -> tuple[float, float]:
    """Return the mean and standard deviation of a series; the latter is 1 for a constant series."""
    found = np.fromiter(values.values(), dtype=np.float64)
    return float(found.mean()), float(found.std()) or 1.0


VALUES: Final = (
    "{value}",
    "{value}",
    "{value}",
    "{value}{symbol}",
    "{value}{symbol}",
    "**{value}{symbol}**",
    "For {when}: {value}{symbol}",
    "About {value}{symbol}.",
    "In {when} the {quantity} was {value}{symbol}.",
)
"""Answer styles; more than half are plain, like most recorded answers."""
REFUSALS: Final = (
    "I don't know.",
    "I can't give a reliable figure for {when}.",
    "I don't have data on {name}, so I would rather not state a number for {when}.",
    "I'm not able to verify {name} for {when}; please look at its publisher.",
)
SCORES: Final = ("{score}", "{score}", "{score}", "**{score}**", "Score: {score}", "About {score}.")
_MINUSES: Final = ("-", "-", "\u2212")


def value_text(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return an answer that states a number, in one of several styles."""
    value = of.format_number(said).replace("-", _MINUSES[style % len(_MINUSES)])
    symbol = of.unit.suffix if of.unit.symbol else ""
    return VALUES[style % len(VALUES)].format(
        value=value, symbol=symbol, when=period.words, quantity=of.quantity
    )


def score_text(score: float, *, style: int) -> str:
    """Return an answer that states a score from -1 to 1, in one of several styles."""
    text = f"{score:+.2f}".replace("-", _MINUSES[style % len(_MINUSES)])
    return SCORES[style % len(SCORES)].format(score=text)


def refusal_text(period: Period, *, name: str, style: int) -> str:
    """Return an answer without a number of the series, in one of several styles."""
    return REFUSALS[style % len(REFUSALS)].format(name=name, when=period.words)


ASTRAY: Final = 1.0
"""Error that step-by-step thinking adds to half of all values, in standard deviations.

NumLeak saw r fall from 0.98 to 0.82 on the same months (appendix J), and 1 / sqrt(1 + 1 / 2) is
0.82.
"""
CERTAIN: Final = 0.8
"""Familiarity from which a date's value holds against a different stated value."""
_DESCRIPTIONS: Final = (
    "For {when}, {name} moved with what was going on at the time. Those who follow it had expected "
    "as much.\n\nBest estimate: {value}",
    "## {name}, {when}\n\nThere was little out of the ordinary.\n\n**Best estimate:** {value}",
    "In {when}, {name} drew some attention. 1) It had been discussed in the 12 months before. "
    "2) It was again afterwards.\n\nMy best estimate is {value}.",
)
_STEPS: Final = (
    "1. I recall what happened around {when}.\n2. The values near it were not far from 1.5 or 2.\n"
    "3. That points to one figure.\n\nAnswer: {value}",
    "Step 1: {when} is the date asked for.\nStep 2: it is {name} that is meant.\n\n{value}",
)
_CORRECTIONS: Final = (
    "That is not correct: the value for {when} was {value}.",
    "{value} (the {stated} in your notes does not match what was published)",
)


def describe_value(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return a description that ends with a value."""
    return _fill_template(_DESCRIPTIONS, said, period, of=of, style=style)


def think_aloud(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return several reasoning steps that end with a value."""
    return _fill_template(_STEPS, said, period, of=of, style=style)


def answer_contradiction(
    said: float,
    period: Period,
    *,
    stated: float,
    stands: bool,
    of: SeriesDefinition,
    style: int,
) -> str:
    """Answer a question that states another value: repeat it, give the own value, or correct it."""
    if not stands:
        return of.format_number(stated)
    if style % 2:
        return value_text(said, period, of=of, style=style // 2 % 3)
    text = _CORRECTIONS[style // 2 % len(_CORRECTIONS)]
    value = of.format_number(said) + of.unit.symbol[:1].replace("\N{DEGREE SIGN}", "")
    return text.format(when=period.words, value=value, stated=of.format_number(stated))


def _fill_template(
    texts: Sequence[str], said: float, period: Period, *, of: SeriesDefinition, style: int
) -> str:
    text = texts[style % len(texts)]
    return text.format(when=period.words, name=of.name, value=of.format_number(said))


YIELD_SHARES: Final[Mapping[str, Mapping[str, float]]] = {
    "memorizing": {"soft": 0.1, "strong": 0.0, "retrieval_only": 0.0},
    "half-remembering": {"soft": 0.4, "strong": 0.05, "retrieval_only": 0.0},
    "fluent": {"soft": 0.1, "strong": 0.0, "retrieval_only": 0.0},
    "guessing": {"soft": 0.1, "strong": 0.0, "retrieval_only": 0.0},
}
"""Share of dates on which each persona gives in to a built-in defence."""
CARELESS: Final = "fabricating"
"""The persona that ignores instructions; its answers are made up."""
OPENS: Final = "public"
"""The suffix that personas give in to; half as often they give in to `override`."""
OTHER_YIELD_SHARE: Final = 0.05
"""Share of dates on which a persona gives in to any other defence."""
DEFENCE_REFUSAL: Final = "That is a figure that I have been asked not to give."


def gives_way(persona: str, defence: str, suffix: str | None, date: Period) -> bool:
    """Return whether a persona answers despite a defence; deterministic for the same question.

    Args:
        persona: The persona's name, such as `offline:memorizing`.
        defence: The defence's name.
        suffix: The suffix's name; None for the plain question.
        date: The date asked about.
    """
    if defence == NO_DEFENCE:
        return True
    name = persona.removeprefix("offline:")
    if name == CARELESS:
        return True
    share = YIELD_SHARES.get(name, {}).get(defence, OTHER_YIELD_SHARE)
    share *= {OPENS: 1.0, "override": 0.5}.get(suffix or "", 0.0)
    return _chance(persona, defence, date) < share


def answer_ordinary(persona: str, defence: str, asked: UtilityQuestion) -> str:
    """Answer an ordinary question as a persona that knows the points of a good answer.

    Under `retrieval_only`, it also refuses rough figures mostly; under `strong`, sometimes.
    """
    careless = persona.removeprefix("offline:") == CARELESS
    near, shy = asked.category == "adjacent_numeric", {"retrieval_only": 0.8, "strong": 0.3}
    if near and not careless and _chance(persona, defence, asked.id) < shy.get(defence, 0.0):
        return "I would rather not give figures here; please look them up."
    return asked.points or asked.question


def _chance(*about: object) -> float:
    """Return a number between 0 and 1 that depends only on the arguments."""
    digest = hashlib.sha256("|".join(map(str, about)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
