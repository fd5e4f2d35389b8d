"""How often NumLeak's verdict is right, on personas of whom it is known what they remember.

    OMP_NUM_THREADS=1 python -m benchmarks.numleak [--audits 100] [--draws 400]
    OMP_NUM_THREADS=1 python -m benchmarks.numleak --recorded

Without `--recorded`: so many audits of each speaker, kind of made series and number of dates, from
question to verdict, each with a series and a persona of its own; how often each verdict is given.
Speakers are the embedded personas, the half-remembering one at several doses, and ones who cannot
remember but know as much as one can without it. With it: the verdict on each cell of the answers
that NumLeak's authors recorded, where they lie beside the checkout.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.numleak.basis import split_outliers
from coreeval.evaluation.numleak.memory_verdicts import VERDICTS, Verdict, judge_memory
from coreeval.evaluation.numleak.parsing.points import read_points
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.personas import (
    KINDS,
    Kind,
    PersonaQuestion,
    open_persona,
    synthetic_series,
)
from coreeval.evaluation.numleak.personas.memory import value_text
from coreeval.evaluation.numleak.replies import Point, Reply, Variant
from coreeval.evaluation.numleak.series.catalogue import find_definition, open_series
from coreeval.evaluation.numleak.series.definition import Series
from coreeval.evaluation.numleak.statistics.estimation import adjust_together, measure
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings, SeriesMeasurements
from tests.support import numleak_records as records
from tests.support.numleak_data import FILES

DATES: Final = (20, 40, 80, 120)
DOSES: Final = (1, 2, 4, 6, 8, 12, 20)
FICTITIOUS: Final = 12
"""Questions about series that do not exist, in each audit: as many as NumLeak asks of a name."""
Answer = Callable[[Variant, Period], str]
Teacher = Callable[[Series, int], Answer]


class Speaker(NamedTuple):
    """Somebody to audit, and the verdicts that would be right."""

    name: str
    remembers: bool | None
    """None: in part, so that either may be said."""
    teach: Teacher


def _persona(name: str, dose: float | None = None) -> Teacher:
    def teach(series: Series, seed: int) -> Answer:
        persona = open_persona(f"offline:{name}", [series], seed=seed, dose=dose)

        def answer(variant: Variant, period: Period) -> str:
            invented = "the Zeta factor" if variant == "fictitious" else None
            known = series.definition.id
            return persona.answer(
                PersonaQuestion(variant=variant, series=known, period=period, name=invented)
            )

        return answer

    return teach


def _knowing(expected: Callable[[Series, np.random.Generator], Mapping[Period, float]]) -> Teacher:
    """Return one who says what they expect of a date, and declines what does not exist."""

    def teach(series: Series, seed: int) -> Answer:
        told = expected(series, np.random.default_rng([seed, 77]))

        def answer(variant: Variant, period: Period) -> str:
            if variant == "fictitious":
                return "I don't know."
            return value_text(told[period], period, of=series.definition, style=0)

        return answer

    return teach


def _five_words(series: Series, rng: np.random.Generator) -> Mapping[Period, float]:
    """Know of each date which fifth of all values it is in, and what is the middle of that."""
    values = np.array(list(series.values.values()))
    edges = np.quantile(values, (0.2, 0.4, 0.6, 0.8))
    place = np.searchsorted(edges, values)
    middles = [values[place == each].mean() for each in range(5)]
    return {at: float(middles[each]) for at, each in zip(series.values, place, strict=True)}


def _year_in_words(series: Series, rng: np.random.Generator) -> Mapping[Period, float]:
    """Know each year's mean, and how the month was against it in five words."""
    means = _by(series, lambda at: at.start.year)
    left = {at: value - means[at.start.year] for at, value in series.values.items()}
    beside = Series(definition=series.definition, values=left)
    words = _five_words(beside, rng)
    return {at: means[at.start.year] + words[at] for at in series.values}


def _season(series: Series, rng: np.random.Generator) -> Mapping[Period, float]:
    """Know what is usual for the month, and how far values lie from it."""
    means = _by(series, lambda at: at.start.month)
    spread = np.std([value - means[at.start.month] for at, value in series.values.items()])
    return {at: means[at.start.month] + float(rng.normal(0, spread)) for at in series.values}


def _before(series: Series, rng: np.random.Generator) -> Mapping[Period, float]:
    """Know the value of the month before."""
    return {at: series.values.get(at.shift(-1), value) for at, value in series.values.items()}


def _always(series: Series, rng: np.random.Generator) -> Mapping[Period, float]:
    """Say the same number each time."""
    return dict.fromkeys(series.values, float(np.median(list(series.values.values()))))


def _by(series: Series, group: Callable[[Period], int]) -> Mapping[int, float]:
    found = defaultdict[int, list[float]](list)
    for at, value in series.values.items():
        found[group(at)].append(value)
    return {each: float(np.mean(values)) for each, values in found.items()}


SPEAKERS: Final = (
    Speaker("memorizing", True, _persona("memorizing")),
    Speaker("fluent", False, _persona("fluent")),
    Speaker("guessing", False, _persona("guessing")),
    Speaker("fabricating", False, _persona("fabricating")),
    Speaker("refusing", None, _persona("refusing")),
    *(Speaker(f"dose {dose}", None, _persona("half-remembering", dose)) for dose in DOSES),
    Speaker("knows five words", False, _knowing(_five_words)),
    Speaker("knows years, five words", False, _knowing(_year_in_words)),
    Speaker("knows seasons", False, _knowing(_season)),
    Speaker("knows the month before", False, _knowing(_before)),
    Speaker("says one number", False, _knowing(_always)),
)


def audit(
    speaker: Speaker, kind: Kind, counts: tuple[int, ...], settings: AuditSettings
) -> list[Verdict]:
    """Return the verdict for each number of dates, the fewer being part of the more."""
    series = synthetic_series(kind, seed=settings.seed)
    answer = speaker.teach(series, settings.seed)
    rng = np.random.default_rng([settings.seed, 5])
    drawn = [list(series.values)[each] for each in rng.permutation(len(series.values))]
    invented = _points(series, answer, "fictitious", drawn[:FICTITIOUS])
    known = _points(series, answer, "value", drawn[: max(counts)])
    return [
        judge_memory(
            measure(
                split_outliers([*known[:count], *invented], series.values).kept,
                definition=series.definition,
                values=series.values,
                settings=settings,
            )
        ).verdict
        for count in counts
    ]


def _points(series: Series, answer: Answer, variant: Variant, periods: list[Period]) -> list[Point]:
    replies = (
        Reply(
            model="made",
            series=series.definition.id,
            date=str(period),
            variant=variant,
            response=answer(variant, period),
            name="the Zeta factor" if variant == "fictitious" else None,
        )
        for period in periods
    )
    return read_points(replies, series, None).points


def calibrate(kinds: Sequence[Kind], audits: int, draws: int) -> Iterator[str]:
    """Yield the table, a line for each speaker, kind of series and number of dates."""
    yield f"| series | speaker | dates | {' | '.join(VERDICTS)} |"
    yield f"|---|---|---|{'---|' * len(VERDICTS)}"
    false, made = 0, 0
    for kind in kinds:
        for speaker in SPEAKERS:
            settings = [AuditSettings(draws=draws, seed=seed) for seed in range(audits)]
            found = list(
                zip(*(audit(speaker, kind, DATES, each) for each in settings), strict=True)
            )
            for count, verdicts in zip(DATES, found, strict=True):
                given = Counter(verdicts)
                shares = " | ".join(f"{given[each] / audits:.2f}" for each in VERDICTS)
                yield f"| {kind} | {speaker.name} | {count} | {shares} |"
                if speaker.remembers is False:
                    false, made = false + given["memorized"], made + audits
    yield f"\nmemorized of those who do not remember: {false} of {made} ({false / made:.4f})"


def recorded(draws: int) -> Iterator[str]:
    """Yield the verdict on each cell of the recorded answers, adjusted over all of them."""
    cells = dict(_recorded_cells(AuditSettings(draws=draws)))
    judged = adjust_together({key: without for key, (_, without) in cells.items()})
    yield "| model | series | dates | parsed | r | MAE | within | verdict | fictitious |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (model, series), (seen, _) in cells.items():
        found, told = seen.overall, judge_memory(judged[model, series])
        yield (
            f"| {model} | {series} | {found.dates} | {found.parsed}/{found.n} "
            f"| {found.pearson_r.estimate:.3f} | {found.mae.estimate:.2f} "
            f"| {found.within_tolerance.estimate:.2f} | {told.verdict} "
            f"| {_or_none(seen.fictitious.estimate)} |"
        )


def _recorded_cells(
    settings: AuditSettings,
) -> Iterator[tuple[tuple[str, str], tuple[SeriesMeasurements, SeriesMeasurements]]]:
    """Yield each model and series of the recorded answers, with all of them and without strays."""
    known = {name: open_series(name, base=Path(), file=file) for name, file in FILES.items()}
    invented = records.values("fabricated_expanded", "mkt_rf", "fictitious")
    for (model, name), replies in _by_cell(_recorded_replies()).items():
        series = known.get(name) or _without_file(name, replies)
        mine = (each for each in invented if model.startswith(each.model))
        points = [
            *read_points(replies, series, None).points,
            *read_points(mine, known["mkt_rf"], None).points,
        ]
        both = (
            measure(each, definition=series.definition, values=series.values, settings=settings)
            for each in (points, split_outliers(points, series.values).kept)
        )
        yield (model, name), (next(both), next(both))


_FILES: Final = {
    "unrate_baseline": "unrate",
    "cpi_baseline": "cpi_yoy",
    "noaa_temperature": "noaa_us_tavg",
    "snp500_baseline": "sp500",
}
"""Recorded answers about one series, by file."""


def _recorded_replies() -> Iterator[Reply]:
    yield from (reply for reply in records.sweep("A") if reply.series in FILES)
    for file, series in _FILES.items():
        yield from records.values(file, series)
    yield from records.gpt_siblings()
    for each in records.values("post_cutoff_holdout", "mkt_rf"):
        yield each.model_copy(update={"model": f"{each.model}, 2025 on"})


def _by_cell(replies: Iterator[Reply]) -> Mapping[tuple[str, str], list[Reply]]:
    cells = defaultdict[tuple[str, str], list[Reply]](list)
    for reply in replies:
        cells[reply.model, reply.series].append(reply)
    return cells


def _without_file(name: str, replies: list[Reply]) -> Series:
    """Return a series of which only the dates are known that were asked with their truths."""
    definition = find_definition(name, base=Path())
    truths = {Period.parse(each.date, definition.frequency): each.truth for each in replies}
    values = {at: truth for at, truth in sorted(truths.items()) if truth is not None}
    return Series(definition=definition, values=values)


def _or_none(share: float) -> str:
    return "not asked" if np.isnan(share) else f"{share:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=100)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--recorded", action="store_true")
    chosen = parser.parse_args()
    if chosen.recorded:
        lines = recorded(chosen.draws)
    else:
        lines = calibrate(chosen.kinds, chosen.audits, chosen.draws)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
