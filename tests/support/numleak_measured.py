"""What a study of one series measured, as a stand-in for answers: to be varied with `replace`."""

import math
from typing import Final

from coreeval.evaluation.numleak.statistics.measurements import (
    Baseline,
    Chance,
    Exactness,
    Lift,
    Metric,
    Null,
    Ranks,
    Repeats,
    SeriesMeasurements,
    Signature,
)

NOT_ASKED: Final = Metric(math.nan, math.nan, math.nan, 0, 0)


def metric(estimate: float, half: float, n: int = 40) -> Metric:
    """Return a number with an interval of so much on either side."""
    return Metric(estimate, estimate - half, estimate + half, n, n)


def signature(n: int = 40, parsed: int = 40, r: Metric | None = None) -> Signature:
    """Return the signature of one who remembers Mkt-RF; what was not parsed was refused."""
    return Signature(
        n=n,
        parsed=parsed,
        dates=n,
        statuses={"parsed": parsed, "refused": n - parsed, "truncated": 0, "unparsed": 0},
        parse_rate=Metric(parsed / n, max(0, parsed / n - 0.1), min(1, parsed / n + 0.1), n, n)
        if n
        else NOT_ASKED,
        pearson_r=r or metric(0.98, 0.015, parsed),
        mae=metric(0.5, 0.1, parsed),
        within_tolerance=metric(0.5, 0.14, parsed),
        sign_accuracy=metric(0.97, 0.03, parsed),
    )


def null(p_value: float) -> Null:
    """Return a null with this p-value of r."""
    chance = Chance(0.9, 0.0, -0.3, 0.3, p_value)
    return Null(40, 40, chance, chance, chance)


def baseline(mae: float, gain: Metric, within: float = 0.05) -> Baseline:
    """Return what one scores who knows no date."""
    return Baseline(0.0, mae, within, NOT_ASKED, gain, NOT_ASKED)


_EMPTY: Final = signature(0, 0, NOT_ASKED)
_LIFT: Final = Lift(_EMPTY, _EMPTY, NOT_ASKED, NOT_ASKED, NOT_ASKED)
_RANKS: Final = Ranks(0, NOT_ASKED, NOT_ASKED, NOT_ASKED, NOT_ASKED, NOT_ASKED)
REMEMBERED: Final = SeriesMeasurements(
    overall=signature(),
    tolerance=0.25,
    ladder={0.1: metric(0.3, 0.13), 0.25: metric(0.5, 0.14), 0.5: metric(0.7, 0.13)},
    hits_of_asked=metric(0.5, 0.14),
    slope=metric(1.0, 0.05),
    r_without_one=0.97,
    modal=metric(0.05, 0.05),
    sign_base_rate=metric(0.6, 0.15),
    nulls={"any_date": null(0.0001), "same_era": null(0.0001), "same_season": null(0.0001)},
    cross_series={},
    baselines={
        "constant": baseline(3.4, metric(0.85, 0.03)),
        "year": baseline(3.5, metric(0.86, 0.03)),
        "previous": baseline(4.8, metric(0.9, 0.03)),
    },
    strata={},
    eras={},
    seeds={},
    gradient=NOT_ASKED,
    notable=_LIFT,
    recent=_LIFT,
    ranks=_RANKS,
    forced_ranks=_RANKS,
    blind=_EMPTY,
    fictitious=Metric(0.0, 0.0, 0.06, 60, 60),
    fictitious_names={},
    repeats=Repeats(0, NOT_ASKED, NOT_ASKED, math.nan),
    exactness=Exactness(share=metric(0.05, 0.05), near=20, expected=0.1, scanned=29, p_value=0.4),
    entropy=None,
    p_value=0.0001,
    p_adjusted=math.nan,
    follows_p=0.0001,
    follows_p_adjusted=math.nan,
    notes=(),
)
"""Direct answers with the values of a stock market, half of them within 25 basis points."""
