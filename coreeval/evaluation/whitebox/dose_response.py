"""How recall, rank and margin of true values grow with how often a model has read them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.label_scores import score_draws, score_share_draws
from coreeval.evaluation.numleak.statistics.logprobs import (
    TRUE_CANDIDATE,
    RankingCandidate,
    rank_date,
)
from coreeval.evaluation.pictures import COLOURS, open_figure
from coreeval.evaluation.scores import DRAWS, Score
from coreeval.evaluation.whitebox.dose_data import DatedStatement, DoseCell, DoseData, DoseResult
from coreeval.schema import Value
from coreeval.tools.formatting import format_interval, format_number
from coreeval.tools.tables import Row, Table, numbers, texts

Floats = NDArray[np.float64]
_NUMBER: Final = re.compile(r"[-+\N{MINUS SIGN}]?\d+(?:\.\d+)?")


class DoseMeasure(Value):
    """The recall of a model at one dose, with intervals over dates and seeds."""

    dose: int | None
    """None for the untrained model."""
    seeds: int
    recall: Score
    """Share of dates whose sentence is greedily continued with the true value."""
    first: Score
    """Share of dates on which the true value is more probable than all others."""
    chance: float
    """The expected `first` if all candidates were equally probable."""
    rank: Score
    """Mean rank of the true value; 1 is the best."""
    margin: Score
    """Mean log-probability of the true value minus that of the best other, in nats per token."""
    margin_gained: Score | None
    """Margin minus the margin at dose 0, on the same dates; None without a dose 0."""


class DoseResponse(Value):
    """The finding of a study."""

    doses: tuple[DoseMeasure, ...]
    slope: Score | None
    """The growth of the margin with each doubling of 1 + dose, by least squares over the doses;
    None if fewer than two doses were trained."""


def to_candidates(data: DoseData, result: DoseResult, model: str) -> Iterator[RankingCandidate]:
    """Yield the result of a cell in the form that `detect numleak --rankings` reads."""
    cell = result.cell
    name = model if cell.dose is None else f"{model} dose {cell.dose} seed {cell.seed}"
    for one, logs in zip(data.statements, result.logprobs, strict=True):
        for kind, value in logs.items():
            yield RankingCandidate(
                model=name,
                series=data.series,
                date=one.date,
                candidate=kind,
                text=one.candidates[kind].strip(),
                mean_logprob=min(0.0, value),
            )


def is_recalled(statement: DatedStatement, said: str) -> bool:
    """Return whether a continuation begins with the number of the true value."""
    numbers = [_NUMBER.search(text) for text in (said, statement.candidates[TRUE_CANDIDATE])]
    told, due = (one and one.group().replace("\N{MINUS SIGN}", "-") for one in numbers)
    return told is not None and due is not None and float(told) == float(due)


def measure_response(
    data: DoseData, results: Iterable[DoseResult], *, seed: int, draws: int = DRAWS
) -> DoseResponse:
    """Return the recall at each dose, and its growth.

    Intervals (95 %) are percentile bootstraps: draws resample the dates and, within each dose, the
    seeds; all doses share the draws of dates.
    """
    by_dose: dict[int | None, list[Floats]] = {}
    for result in sorted(results, key=lambda one: _order(one.cell)):
        by_dose.setdefault(result.cell.dose, []).append(_read_cell(data, result))
    chance = np.random.default_rng(seed)
    n = len(data.statements)
    dates = np.vstack([np.arange(n), chance.integers(n, size=(draws, n))])
    means = {dose: _draw_means(np.stack(each), dates, chance) for dose, each in by_dose.items()}
    zero = means.get(0)
    measures = tuple(
        DoseMeasure(
            dose=dose,
            seeds=len(by_dose[dose]),
            recall=score_share_draws(found[:, 0], n),
            first=score_share_draws(found[:, 1], n),
            chance=float(np.mean(by_dose[dose][0][:, 4])),
            rank=score_draws(found[:, 2], n),
            margin=score_draws(found[:, 3], n),
            margin_gained=None
            if zero is None or not dose
            else score_draws(found[:, 3] - zero[:, 3], n),
        )
        for dose, found in means.items()
    )
    trained = {dose: found[:, 3] for dose, found in means.items() if dose is not None}
    return DoseResponse(doses=measures, slope=_fit_slope(trained, n))


def _order(cell: DoseCell) -> tuple[int, int]:
    return -1 if cell.dose is None else cell.dose, cell.seed


def _read_cell(data: DoseData, result: DoseResult) -> Floats:
    """Return recall, first, rank, margin and chance by date, of shape (dates, 5)."""
    rows = list[tuple[float, ...]]()
    every = [*to_candidates(data, result, "model")]
    for one, said in zip(data.statements, result.said, strict=True):
        ranked, _ = rank_date(one.date, [each for each in every if each.date == one.date])
        recalled = float(is_recalled(one, said))
        rows.append(
            (recalled, *(math.nan,) * 4)
            if ranked is None
            else (recalled, ranked.gap > 0, ranked.rank, ranked.gap, 1 / ranked.candidates)
        )
    return np.array(rows, np.float64)


def _draw_means(found: Floats, dates: NDArray[np.int64], chance: np.random.Generator) -> Floats:
    """Return the means of draws, of shape (1 + draws, columns); the first is that of all dates."""
    seeds = len(found)
    lines = [np.arange(seeds), *chance.integers(seeds, size=(len(dates) - 1, seeds))]
    return np.stack(
        [
            np.nanmean(found[line][:, date].reshape(-1, found.shape[2]), axis=0)
            for line, date in zip(lines, dates, strict=True)
        ]
    )


def _fit_slope(margins: Mapping[int, Floats], n: int) -> Score | None:
    if len(margins) < 2:
        return None
    x = np.log2(1 + np.array([*margins], np.float64))
    y = np.stack([*margins.values()], axis=1)
    x = x - x.mean()
    return score_draws(y @ x / (x @ x), n)


# -- how it is shown ------------------------------------------------------------------------------


def response_table(found: DoseResponse) -> Table:
    """Return a row for each dose."""
    columns = [texts("dose", 10), numbers("seeds", 5, gap=2)]
    for head in ("recall", "first", "rank", "margin", "gained"):
        columns += [numbers(head, 6, gap=2), texts("95 % interval", 16, gap=2)]
    slope = found.slope
    note = (
        ""
        if slope is None
        else (
            f"Each doubling of 1 + dose adds {format_number(slope.estimate, '+.3f')} "
            f"({format_interval(slope.ci_low, slope.ci_high, '+.3f')}) to the margin."
        )
    )
    return Table(columns, [_row(one) for one in found.doses], note=note)


def _row(one: DoseMeasure) -> Row:
    shown: Sequence[tuple[Score | None, str]] = (
        (one.recall, ".2f"),
        (one.first, ".2f"),
        (one.rank, ".2f"),
        (one.margin, "+.3f"),
        (one.margin_gained, "+.3f"),
    )
    cells = list[str]()
    for score, form in shown:
        cells += (
            ["", ""]
            if score is None
            else [
                format_number(score.estimate, form),
                format_interval(score.ci_low, score.ci_high, form),
            ]
        )
    return ("as released" if one.dose is None else str(one.dose), str(one.seeds), *cells)


def draw_response(path: Path, found: DoseResponse, title: str) -> Path:
    """Draw recall, first place and margin over the dose."""
    trained = [one for one in found.doses if one.dose is not None]
    with open_figure(path, 7.2, 3.2) as figure:
        shares, margins = figure.subplots(1, 2)
        recalls = [one.recall for one in trained]
        _draw_line(shares, trained, recalls, 0, "continued with the true value")
        _draw_line(shares, trained, [one.first for one in trained], 1, "true value most probable")
        if trained:
            shares.axhline(trained[0].chance, color="black", linestyle=":", linewidth=0.8)
        shares.set(ylim=(-0.03, 1.03), ylabel="share of dates (dotted: chance)")
        shares.legend(fontsize=7)
        _draw_line(margins, trained, [one.margin for one in trained], 0, "")
        margins.axhline(0, color="black", linestyle=":", linewidth=0.8)
        margins.set_ylabel("log-probability, true value minus best other")
        figure.suptitle(title, fontsize=10)
    return path


def _draw_line(
    panel: Any,  # noqa: ANN401 - an Axes
    doses: Sequence[DoseMeasure],
    scores: Sequence[Score],
    colour: int,
    label: str,
) -> None:
    y = np.array([one.estimate for one in scores], np.float64)
    low = np.array([one.ci_low for one in scores], np.float64)
    high = np.array([one.ci_high for one in scores], np.float64)
    x = np.arange(len(doses))
    spread = [np.maximum(y - low, 0), np.maximum(high - y, 0)]
    panel.errorbar(x, y, yerr=spread, fmt="o-", color=COLOURS[colour], markersize=4, label=label)
    panel.set_xticks(x, [str(one.dose) for one in doses])
    panel.set_xlabel("repetitions of each value")
