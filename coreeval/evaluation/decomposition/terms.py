"""Terms from replicates: every arm shares the draws, so that differences stay paired."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.intervals import expanded, two_sided
from coreeval.evaluation.decomposition.noise import macro_f1_cost
from coreeval.evaluation.decomposition.values import CONTRASTS, PATH, Parts, Step, Term, TermName
from coreeval.evaluation.scoring.answers import (
    Floats,
    Resampled,
    mean_of_templates,
    resample,
)
from coreeval.evaluation.scoring.classification import Score
from coreeval.evaluation.statistics import detectable
from coreeval.schema import Arm

REWRITTEN: Final[tuple[Arm, ...]] = ("semantic", "updated")
"""The arms whose wrong labels look like memory; one bound is taken to hold for both."""

Arms = tuple[Arm, ...]
Replicates = Mapping[Arms, Mapping[Arm, Resampled]]
"""The scores of each arm on the samples that it shares with some others."""
Metric = Callable[[Resampled], Floats]
Costs = Mapping[Arm, float]
"""Most that wrong labels cost the score of an arm; empty where nobody judged them."""


def replicate(coded: Coded, *, seed: int, draws: int) -> Replicates:
    """Score the arms of every term, and those of the path, on the same draws of samples."""
    views = {arms: each for arms in _groups(coded) if (each := coded.views(arms))}
    flat = [view for each in views.values() for view in each]
    found = iter(resample(coded.table, flat, seed=seed, draws=draws))
    return {arms: {arm: next(found) for arm in arms} for arms in views}


def _groups(coded: Coded) -> Iterable[Arms]:
    yield from dict.fromkeys([*(tuple(each) for each in CONTRASTS.values()), path_of(coded)])


def path_of(coded: Coded) -> Arms:
    """Return the arms that were asked, from the original on."""
    return tuple(arm for arm in PATH if arm in coded.columns)


def accuracy_parts(coded: Coded, found: Replicates, share: float | None) -> Parts:
    """Return the parts of what accuracy loses."""
    costs = dict[Arm, float]() if share is None else dict.fromkeys(REWRITTEN, share)
    return _parts(coded, found, lambda each: each.accuracy, costs)


def macro_f1_parts(coded: Coded, found: Replicates, share: float | None) -> Parts:
    """Return the parts of what macro-F1 loses."""
    costs = {
        arm: macro_f1_cost(coded.table, view, share)
        for arm in REWRITTEN
        for view in coded.views((arm,)) or ()
        if share is not None
    }
    return _parts(coded, found, lambda each: each.macro_f1, costs)


def _parts(coded: Coded, found: Replicates, metric: Metric, costs: Costs) -> Parts:
    terms = {
        name: _term(name, found[tuple(contrast)], metric, costs)
        for name, contrast in CONTRASTS.items()
        if tuple(contrast) in found
    }
    path = path_of(coded)
    return Parts(
        terms=terms,
        steps=_steps(path, found[path], metric) if path in found else (),
        noise_cost=costs.get("updated"),
    )


def _term(name: TermName, found: Mapping[Arm, Resampled], metric: Metric, costs: Costs) -> Term:
    weighted = [
        weight * mean_of_templates(metric(found[arm]), found[arm])
        for arm, weight in CONTRASTS[name].items()
    ]
    values, shared = np.sum(weighted, axis=0), next(iter(found.values()))
    answers = max(abs(weight) for weight in CONTRASTS[name].values())
    lost = expanded(values, shared.n, units=shared.units, answers=answers)
    return Term(
        lost=lost,
        beyond_noise=_beyond(lost, name, costs),
        p_value=two_sided(values, shared.n, units=shared.units, answers=answers),
        detectable=detectable(float(np.nanstd(values[1:], ddof=1))) if shared.units > 1 else None,
    )


def _beyond(lost: Score, name: TermName, costs: Costs) -> Score | None:
    """Return what is lost where wrong labels cost each arm that is taken off as much as they can.

    Those of the control arm count as none: they would make what it leaves smaller.
    """
    against = {arm: -weight for arm, weight in CONTRASTS[name].items() if weight < 0}
    if name == "rewriting" or not against.keys() <= costs.keys():
        return None
    if lost.estimate is None or lost.ci_low is None:
        return lost
    cost = sum(weight * costs[arm] for arm, weight in against.items())
    return lost.model_copy(update={"estimate": lost.estimate - cost, "ci_low": lost.ci_low - cost})


def _steps(path: Sequence[Arm], found: Mapping[Arm, Resampled], metric: Metric) -> tuple[Step, ...]:
    n, units = found[path[0]].n, found[path[0]].units
    values = [mean_of_templates(metric(found[arm]), found[arm]) for arm in path]
    lost = [expanded(one - two, n, units=units, answers=1) for one, two in pairwise(values)]
    return tuple(
        Step(arm=arm, score=expanded(value, n, units=units), lost=each)
        for arm, value, each in zip(path, values, [None, *lost], strict=True)
    )
