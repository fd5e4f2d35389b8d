"""From the answers that were read to everything that is known of one model and one series."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Comparison, Point
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.statistics.answers import grouped
from coreeval.evaluation.numleak.statistics.baselines import baselines
from coreeval.evaluation.numleak.statistics.drift import drift_null
from coreeval.evaluation.numleak.statistics.entropies import entropies, notes_on_entropies
from coreeval.evaluation.numleak.statistics.exactness import exactness_of
from coreeval.evaluation.numleak.statistics.measured import Measured, Null, NullName, Settings
from coreeval.evaluation.numleak.statistics.metrics import (
    hits_of_asked,
    modal,
    parse_rate,
    r_without_one,
    sign_base_rate,
    signature,
    slope,
    within_tolerance,
)
from coreeval.evaluation.numleak.statistics.notes import notes_on
from coreeval.evaluation.numleak.statistics.nulls import shuffled
from coreeval.evaluation.numleak.statistics.ranks import ranks
from coreeval.evaluation.numleak.statistics.repeats import repeats
from coreeval.evaluation.numleak.statistics.siblings import cross_series, within_date
from coreeval.evaluation.numleak.statistics.strata import (
    drawings,
    eras,
    gradient,
    notable_lift,
    recent_contrast,
    strata,
)
from coreeval.evaluation.statistics import adjust_benjamini_hochberg

Cell = TypeVar("Cell", bound=Hashable)
DEFAULTS: Final = Settings()
FOLLOWS: Final[tuple[NullName, ...]] = ("any_date", "drift")
"""Nulls that are refuted by whoever knows anything of the dates."""


def measure(
    points: Sequence[Point],
    comparisons: Sequence[Comparison] = (),
    *,
    definition: SeriesDefinition,
    others: Mapping[str, Sequence[Point]] | None = None,
    values: Mapping[Period, float] | None = None,
    settings: Settings = DEFAULTS,
) -> Measured:
    """Measure one model's answers about one series.

    `others` are its answers about the siblings, by id. `values` is the whole series: what one
    would score without memory is computed from it, and nothing says so where it is not given.
    """
    tolerance = definition.tolerance
    probes = grouped(points, lambda point: point.variant)
    value, invented = probes.get("value", []), probes.get("fictitious", [])
    siblings = {
        name: [point for point in each if point.variant == "value"]
        for name, each in (others or {}).items()
    }
    known = values or {}
    asked = grouped(comparisons, lambda each: each.variant)
    nulls = shuffled(value, known, tolerance=tolerance, settings=settings)
    if drift := drift_null(value, known, tolerance=tolerance, settings=settings):
        nulls["drift"] = drift
    dealt = within_date(value, siblings, tolerance=tolerance, settings=settings)
    found = Measured(
        overall=signature(value, tolerance=tolerance, settings=settings),
        tolerance=tolerance,
        ladder={each: within_tolerance(value, each) for each in sorted(definition.tolerances)},
        hits_of_asked=hits_of_asked(value, tolerance),
        slope=slope(value),
        r_without_one=r_without_one(value),
        modal=modal(value),
        sign_base_rate=sign_base_rate(value),
        nulls=nulls | ({"within_date": dealt} if dealt else {}),
        cross_series=cross_series(value, siblings, tolerance=tolerance),
        baselines=baselines(value, known, tolerance=tolerance),
        strata=strata(value, tolerance=tolerance, settings=settings),
        eras=eras(value, tolerance=tolerance, settings=settings),
        seeds=drawings(value, tolerance=tolerance, settings=settings),
        gradient=gradient(value),
        notable=notable_lift(value, tolerance=tolerance, settings=settings),
        recent=recent_contrast(value, tolerance=tolerance, settings=settings),
        ranks=ranks(asked.get("pair", []), value, known, settings=settings),
        forced_ranks=ranks(asked.get("forced_choice", []), value, known, settings=settings),
        blind=signature(probes.get("blind", []), tolerance=tolerance, settings=settings),
        fictitious=parse_rate(invented),
        fictitious_names={
            name or "unnamed": parse_rate(each)
            for name, each in grouped(invented, lambda point: point.name).items()
        },
        entropy=entropies(value, invented, settings),
        repeats=repeats(probes.get("repeated", []), tolerance=tolerance),
        exactness=exactness_of(value, known, definition.decimals),
        p_value=_largest(nulls.values()),
        p_adjusted=float("nan"),
        follows_p=_largest(nulls[name] for name in FOLLOWS if name in nulls),
        follows_p_adjusted=float("nan"),
        notes=(),
    )
    notes = (*notes_on(found, value, definition), *notes_on_entropies(found.entropy))
    return replace(found, notes=notes)


def adjusted_together(cells: Mapping[Cell, Measured]) -> dict[Cell, Measured]:
    """Adjust the p-values of all cells, models times series, for each other."""
    overall = adjust_benjamini_hochberg([each.p_value for each in cells.values()])
    follows = adjust_benjamini_hochberg([each.follows_p for each in cells.values()])
    exact = adjust_benjamini_hochberg([each.exactness.p_value for each in cells.values()])
    return {
        key: replace(
            each,
            p_adjusted=p,
            follows_p_adjusted=follows_p,
            exactness=each.exactness._replace(p_adjusted=exact_p),
        )
        for (key, each), p, follows_p, exact_p in zip(
            cells.items(), overall, follows, exact, strict=True
        )
    }


def _largest(nulls: Iterable[Null]) -> float:
    """Return the largest p-value of r over some nulls; nan if one is not defined."""
    found = [null.pearson_r.p_value for null in nulls]
    return float(np.max(found)) if found else float("nan")
