"""Worlds of NumLeak's verdicts: who remembers a series, who does not, and what confounds it.

Each study makes a series and a speaker, draws dates as the probe `value` does, writes the answers
as text, and audits them as `coreeval detect numleak --responses` does. The series are made like a
rate of unemployment (slow, one decimal), 12-month inflation (slow, one decimal), a temperature
(seasonal, two decimals) and a market's monthly returns (noise, two decimals).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.verdicts import World
from coreeval.evaluation.numleak.audit import audit_replies
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.probes.date_samples import draw_dates
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.statistics import AuditSettings

Floats = NDArray[np.float64]
Kind = Literal["unemployment", "inflation", "temperature", "returns"]
KINDS: Final[tuple[Kind, ...]] = ("unemployment", "inflation", "temperature", "returns")
Speaker = Callable[[Floats, np.random.Generator], Floats]
"""From a series' values, shape (months,), to what is said of each of them."""
MONTHS: Final = 480
CUTOFF: Final = date(2018, 6, 30)
"""Of the speakers whose cutoff is known; the series end in December 2019."""
DATES: Final = 40
"""As many as `detect.numleak` asks about by default."""
DRAWS: Final = 200
FIRST: Final = Period.of(date(1980, 1, 1), "monthly")
DECIMALS: Final[Mapping[Kind, int]] = {
    "unemployment": 1, "inflation": 1, "temperature": 2, "returns": 2,
}  # fmt: skip


# -- series ---------------------------------------------------------------------------------------


def make_values(kind: Kind, rng: np.random.Generator) -> Floats:
    """Return the values of a made series, shape (months,), with its published decimals."""
    return np.round(_MAKERS[kind](rng), DECIMALS[kind])


def _unemployment(rng: np.random.Generator) -> Floats:
    """Return a level about 6 whose steps go on for months, and jump up now and then."""
    level, step, found = 0.0, 0.0, np.empty(MONTHS)
    for month in range(MONTHS):
        jump = 1.5 * rng.exponential() if rng.random() < 0.005 else 0.0
        step = 0.6 * step + rng.normal(0, 0.1)
        level = 0.985 * level + step + jump
        found[month] = level
    return np.maximum(5.8 + found, 2.5)


def _inflation(rng: np.random.Generator) -> Floats:
    """Return the change over 12 months of prices that rise by a drifting rate."""
    rate, monthly = 0.25, np.empty(MONTHS + 12)
    for month in range(MONTHS + 12):
        rate = 0.25 + 0.97 * (rate - 0.25) + rng.normal(0, 0.04)
        monthly[month] = rate + rng.normal(0, 0.2)
    prices = np.cumsum(monthly)
    return np.asarray(prices[12:] - prices[:-12])


def _temperature(rng: np.random.Generator) -> Floats:
    season = -21 * np.cos(2 * np.pi * (np.arange(MONTHS) - 0.5) / 12)
    return np.asarray(52.5 + season + 0.004 * np.arange(MONTHS) + rng.normal(0, 1.9, MONTHS))


def _returns(rng: np.random.Generator) -> Floats:
    return np.asarray(0.7 + 4.3 * rng.standard_t(5, MONTHS) / np.sqrt(5 / 3))


_MAKERS: Final[Mapping[Kind, Callable[[np.random.Generator], Floats]]] = {
    "unemployment": _unemployment,
    "inflation": _inflation,
    "temperature": _temperature,
    "returns": _returns,
}


def make_series(kind: Kind, name: str, values: Floats) -> Series:
    """Return made values as a series."""
    unit = "degrees_f" if kind == "temperature" else "percent"
    definition = SeriesDefinition.model_validate(
        {
            "id": name,
            "name": f"the {kind} of Averell",
            "quantity": "monthly value",
            "unit": unit,
            "sign": "positive" if kind == "unemployment" else "signed",
            "decimals": DECIMALS[kind],
            "frequency": "monthly",
            "source": {"path": f"{name}.csv"},
            "release_lag_days": 0,
            "tolerances": (0.25, 0.1, 0.5, 1.0),
        }
    )
    said = {FIRST.shift(month): float(value) for month, value in enumerate(values)}
    return Series(definition=definition, values=said, origin="made")


# -- speakers -------------------------------------------------------------------------------------


def remember(values: Floats, rng: np.random.Generator) -> Floats:
    """Know every value."""
    return values


def remember_share(values: Floats, rng: np.random.Generator, share: float) -> Floats:
    """Know some of the values, and guess the others."""
    return np.where(rng.random(len(values)) < share, values, guess(values, rng))


def remember_roughly(values: Floats, rng: np.random.Generator) -> Floats:
    """Know every value but for an error of a sixteenth of their spread."""
    return np.asarray(values + rng.normal(0, np.std(values) / 16, len(values)))


def shift(values: Floats, rng: np.random.Generator, months: int) -> Floats:
    """Know every value, and take it for that of a later month."""
    return np.roll(values, months)


def shift_roughly(values: Floats, rng: np.random.Generator, months: int) -> Floats:
    """Know every value roughly, and take it for that of a later month."""
    return remember_roughly(np.roll(values, months), rng)


def scale(values: Floats, rng: np.random.Generator, factor: float) -> Floats:
    """Know every value in another unit."""
    return values * factor


def say_mean(values: Floats, rng: np.random.Generator) -> Floats:
    """Say the mean of all values each time."""
    return np.full(len(values), values.mean())


def guess(values: Floats, rng: np.random.Generator) -> Floats:
    """Draw each answer at random, with the mean and spread of the series."""
    return rng.normal(values.mean(), np.std(values), len(values))


def walk(values: Floats, rng: np.random.Generator) -> Floats:
    """Make up a path whose steps are as large as those of the series, from a usual level on."""
    steps = rng.normal(0, np.std(np.diff(values)), len(values))
    return np.asarray(rng.choice(values) + np.cumsum(steps))


def invent(values: Floats, rng: np.random.Generator, kind: Kind) -> Floats:
    """Recite another series of the same kind."""
    return make_values(kind, rng)


def trend(values: Floats, rng: np.random.Generator) -> Floats:
    """Make up a straight line through the range of the series, with some noise."""
    ends = rng.choice(values, 2)
    noise = rng.normal(0, np.std(values) / 5, len(values))
    return np.asarray(np.linspace(ends[0], ends[1], len(values)) + noise)


def know_years(values: Floats, rng: np.random.Generator) -> Floats:
    """Know each year's mean."""
    return np.repeat(values.reshape(-1, 12).mean(axis=1), 12)


def know_season(values: Floats, rng: np.random.Generator) -> Floats:
    """Know what is usual for the month, and how far values lie from it."""
    means = np.tile(values.reshape(-1, 12).mean(axis=0), len(values) // 12)
    return np.asarray(means + rng.normal(0, np.std(values - means), len(values)))


def know_level(values: Floats, rng: np.random.Generator) -> Floats:
    """Know about how the series stood the month before, within its usual steps."""
    return np.asarray(np.roll(values, 1) + rng.normal(0, np.std(np.diff(values)), len(values)))


def know_words(values: Floats, rng: np.random.Generator) -> Floats:
    """Know the fifth of all values that each is in, and say its middle."""
    fifth = np.searchsorted(np.quantile(values, (0.2, 0.4, 0.6, 0.8)), values)
    middles = np.array([values[fifth == each].mean() for each in range(5)])
    return np.asarray(middles[fifth])


def round_to_halves(values: Floats, rng: np.random.Generator) -> Floats:
    """Know every value to the nearest half."""
    return np.asarray(np.round(values * 2) / 2)


# -- studies --------------------------------------------------------------------------------------


def study(seed: int, kind: Kind, speaker: Speaker, *, cutoff: date | None, digits: int = 0) -> str:
    """Return the verdict on one speaker and one series.

    Args:
        seed: Of the series, the speaker and the dates.
        kind: Of the series.
        speaker: What is said of each date; after the cutoff the last value before it.
        cutoff: Of the speaker's knowledge; None: all is known, and nobody says until when.
        digits: Decimals of the answers beyond those of the series.
    """
    return _verdicts(seed, (kind,), speaker, cutoff, digits)[0]


def study_of_six(seed: int, kinds: Sequence[Kind], speaker: Speaker) -> str:
    """Return a verdict of an audit of several series: the strongest of those that were given."""
    given = set(_verdicts(seed, kinds, speaker, None, 0))
    order = ("memorized", "partly_memorized", "fluent", "inconclusive")
    return next((each for each in order if each in given), "no_recall")


def _verdicts(
    seed: int, kinds: Sequence[Kind], speaker: Speaker, cutoff: date | None, digits: int
) -> list[str]:
    series, replies = dict[str, Series](), list[Reply]()
    for number, kind in enumerate(kinds):
        rng = np.random.default_rng([seed, number, 41])
        values = make_values(kind, rng)
        made = make_series(kind, f"{kind}-{number}", values)
        said = dict(zip(made.values, speaker(values, rng).tolist(), strict=True))
        series[made.definition.id] = made
        replies += _answers(made, said, seed, cutoff, digits)
    cutoffs = {"made": cutoff}
    return [
        one.verdict for one in audit_replies(replies, series, AuditSettings(draws=DRAWS), cutoffs)
    ]


def _answers(
    series: Series, said: Mapping[Period, float], seed: int, cutoff: date | None, digits: int
) -> Iterator[Reply]:
    """Yield an answer for each drawn date."""
    (drawing,) = draw_dates(series.values, count=DATES, seeds=[seed], cutoff=cutoff)
    known = [period for period in said if cutoff is None or period.last_day <= cutoff]
    decimals = series.definition.decimals + digits
    for period in drawing.dates:
        value = said[min(period, known[-1])]
        yield Reply(
            model="made",
            series=series.definition.id,
            date=str(period),
            response=f"{value:.{decimals}f}",
        )


# -- worlds ---------------------------------------------------------------------------------------

MEMORY: Final = frozenset({"memorized", "partly_memorized"})
SOMETHING: Final = MEMORY | {"fluent"}
OPEN: Final = frozenset({"inconclusive", "refusing"})


def _clean(
    name: str, kind: Kind, speaker: Speaker, false: frozenset[str], before: float | None = None
) -> World:
    """Return a world of one who remembers no value; one who knows something may be fluent."""
    return World(
        detector="numleak",
        name=f"{kind}: {name}",
        study=partial(study, kind=kind, speaker=speaker, cutoff=None),
        false=false,
        found=frozenset({"fluent"}) if before is not None else frozenset(),
        withheld=OPEN,
        before=before,
    )


def _planted(
    name: str,
    kind: Kind,
    speaker: Speaker,
    found: frozenset[str],
    before: float | None,
    cutoff: date | None = None,
    digits: int = 0,
    headline: str = "",
) -> World:
    """Return a world of one who remembers values."""
    return World(
        detector="numleak",
        name=f"{kind}: {name}",
        study=partial(study, kind=kind, speaker=speaker, cutoff=cutoff, digits=digits),
        false=frozenset({"no_recall", "fabricating"}),
        found=found,
        withheld=OPEN,
        before=before,
        headline=headline,
    )


SIX: Final[tuple[Kind, ...]] = (
    "unemployment", "inflation", "unemployment", "inflation", "temperature", "returns",
)  # fmt: skip
EXTREMES: Final[tuple[Kind, ...]] = ("unemployment", "returns")
"""The slowest series, and the one without any order."""
WHOLE: Final = frozenset({"memorized"})
PLAIN: Final = "remembers all, known until a cutoff"
WORLDS: Final[Sequence[World]] = (
    _clean("says one number", "unemployment", say_mean, SOMETHING),
    *(_clean("guesses at random", kind, guess, SOMETHING) for kind in KINDS),
    *(_clean("made-up random walk", kind, walk, SOMETHING) for kind in KINDS[:2]),
    *(
        _clean("recites another such series", kind, partial(invent, kind=kind), SOMETHING)
        for kind in KINDS[:2]
    ),
    _clean("made-up trend", "unemployment", trend, SOMETHING),
    World(
        detector="numleak",
        name="six series at once: made-up random walks",
        study=partial(study_of_six, kinds=SIX, speaker=walk),
        false=SOMETHING,
        withheld=OPEN,
    ),
    _clean("knows each year's mean", "unemployment", know_years, MEMORY, 0.98),
    _clean("knows each year's mean", "inflation", know_years, MEMORY, 1.0),
    _clean("knows the season", "temperature", know_season, MEMORY, 1.0),
    _clean("knows the level of the month before", "unemployment", know_level, MEMORY, 0.98),
    _clean("knows values to the nearest half", "unemployment", round_to_halves, MEMORY),
    _clean("knows five words", "returns", know_words, MEMORY, 0.76),
    *(
        _planted(PLAIN, kind, remember, WHOLE, before, CUTOFF)
        for kind, before in zip(KINDS, (0.0, 0.01, 0.0, 0.69), strict=True)
    ),
    *(_planted("remembers all, no cutoff known", kind, remember, WHOLE, 1.0) for kind in KINDS),
    *(
        _planted("remembers half", kind, partial(remember_share, share=0.5), MEMORY, None)
        for kind in EXTREMES
    ),
    *(
        _planted(
            "remembers a quarter",
            kind,
            partial(remember_share, share=0.25),
            MEMORY,
            None,
            headline="numleak" if kind == "unemployment" else "",
        )
        for kind in KINDS
    ),
    *(
        _planted(f"shifted by {months}", kind, partial(shift, months=months), MEMORY, None)
        for kind in EXTREMES
        for months in (1, 3)
    ),
    _planted("roughly, shifted by 1", "returns", partial(shift_roughly, months=1), WHOLE, None),
    _planted("100 times", "returns", partial(scale, factor=100.0), WHOLE, None),
    _planted("0.01 times", "inflation", partial(scale, factor=0.01), WHOLE, None, digits=2),
    _planted("remembers roughly", "returns", remember_roughly, WHOLE, 1.0),
)
"""One in each line of the table."""
