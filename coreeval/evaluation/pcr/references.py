"""References: the gap between two splits of models presumed clean, and the excess over it.

After ConStat (Dekoninck, Müller and Vechev 2024, NeurIPS; arXiv 2405.16281): difficulty explains
how much better the references do on one split than on the other, but not what a model does beyond
that. All models answered the same items, so items are drawn jointly, and effects of items that are
hard for all models cancel.

A gap in difficulty moves an able model by fewer points than a weak one, so each reference's change
is transferred to the tested model on the logit scale, around the middle of the tested model's two
scores. M is one number; C is composed of the share of right items, and the consistency of right and
of wrong ones, because it does not always rise with ability: a model that is always wrong may also
be consistent.

ConStat has about twenty references and bootstraps over them. A handful of references hardly shows
the scatter of models beyond the chance of items: it is integrated out, with a half-normal prior
(Röver et al. 2021, Research Synthesis Methods 12(4)), as in a random-effects meta-analysis whose
next study is predicted (Higgins, Thompson and Spiegelhalter 2009).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np

from coreeval.evaluation.excess import MIN_LINE, Excess, ReferenceLine
from coreeval.evaluation.pcr.pairs import PairScores
from coreeval.evaluation.pcr.ratio import Scale, performance_consistency_ratio
from coreeval.evaluation.pcr.replicates import FileReplicates, draw_jointly
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS
from coreeval.evaluation.statistics import Array

Method = Literal["mean_gap", "line"]

MIN_REFERENCES: Final = 2
"""The fewest references; a single one does not show how far models differ."""
SCATTER: Final = 0.2
"""The scale of the prior of the scatter of clean models' gaps beyond chance, in logits.

Our choice; at a score of 0.5 it is 5 points (docs/calibration.md).
"""
BEND: Final = 0.1
"""The prior standard deviation of the change in a gap per logit of ability, in logits.

Our choice. It shrinks the line's slope towards 0, and it widens the uncertainty outside the
references' range of abilities.
"""
MOST_GAP: Final = 1.2
"""The largest mean gap of the references that is transferred, in logits.

Our choice; 27 points around 0.5. Splits that differ more were often selected by models' answers,
including the references' answers, which then do not represent other models.
"""
DRAWS: Final = 2000
"""The largest number of joint draws; they only serve to compute standard errors."""
_STEP: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class ReferenceExcess:
    """A model's difference beyond that expected from references."""

    pcr: Excess
    points: Excess
    """The excess in performance, in points (hundredths)."""
    references: tuple[str, ...]
    shared: Mapping[str, int]
    """The number of items of each split that the target and all references answered."""
    method: Method


class NoReferences(NamedTuple):
    """The reason why the references are not used."""

    reason: str
    unlike: bool = False
    """Whether the references show that the splits are not random parts of one pool."""


class _Parts(NamedTuple):
    """Scores on the logit scale, each of shape (models, 1 + draws)."""

    performance: Array
    right: Array
    consistent_right: Array
    """C of the right items."""
    consistent_wrong: Array


def list_shared_items(
    target: FileReplicates, references: Mapping[str, FileReplicates], split: str
) -> tuple[str, ...]:
    """Return the ids of the items of a split that the target and all references answered."""
    others = [each.splits[split].items.places for each in references.values()
              if split in each.splits]  # fmt: skip
    if len(others) < len(references):
        return ()
    own = target.splits[split].items.places
    return tuple(each for each in own if all(each in other for other in others))


def compare_with_references(
    target: FileReplicates,
    references: Mapping[str, FileReplicates],
    compared: tuple[str, str],
    *,
    alpha: float,
    scale: Scale,
) -> ReferenceExcess | NoReferences:
    """Return the target's differences beyond the references, or the reason why there are none."""
    if len(references) < MIN_REFERENCES:
        return NoReferences(
            f"{len(references)} reference is too few to estimate how much clean models differ: at "
            f"least {MIN_REFERENCES} are needed, preferably {MIN_LINE}"
        )
    ids = {split: list_shared_items(target, references, split) for split in compared}
    if few := [f"{len(own)} of {split}" for split, own in ids.items() if len(own) < MIN_ITEMS]:
        return NoReferences(
            "the references have too few items in common with the target "
            f"({' and '.join(few)}): a comparison needs at least {MIN_ITEMS}"
        )
    models = [target, *references.values()]
    draws = min(DRAWS, target.draws)
    first, second = (
        _parts(_draw_models(models, split, own, draws, target.seed), len(own))
        for split, own in ids.items()
    )
    gap = float(np.mean((first.performance - second.performance)[1:, 0]))
    if abs(gap) > MOST_GAP:
        points = float(np.mean((_points(first) - _points(second))[1:, 0]))
        return NoReferences(
            f"from {compared[1]} to {compared[0]}, the performance of the references changes by "
            f"{points:+.0f} points on average, which is too much to predict another model's "
            "change",
            unlike=True,
        )
    pcr = partial(_pcr, alpha=alpha, scale=scale)
    return ReferenceExcess(
        pcr=_excess(first, second, pcr),
        points=_excess(first, second, _points),
        references=tuple(references),
        shared={split: len(own) for split, own in ids.items()},
        method="line" if len(references) >= MIN_LINE else "mean_gap",
    )


def _draw_models(
    models: Sequence[FileReplicates], split: str, ids: Sequence[str], draws: int, seed: int
) -> Sequence[PairScores]:
    items = [each.splits[split].items for each in models]
    return draw_jointly(items, ids, split, draws=draws, seed=seed)


def _parts(found: Sequence[PairScores], n: int) -> _Parts:
    """Return the logits of the parts of a split's scores, at least half an item from 0 and 1."""
    tiny, end = np.finfo(float).tiny, 0.5 / n
    m, c, right, both = (
        np.stack([getattr(each, name) for each in found])
        for name in ("performance", "consistency", "right", "right_consistent")
    )
    parts = (m, right, both / np.maximum(right, tiny), (c - both) / np.maximum(1 - right, tiny))
    return _Parts(*(_logit(np.clip(part, end, 1 - end)) for part in parts))


def _logit(share: Array) -> Array:
    return np.asarray(np.log(share / (1 - share)))


def _expit(logit: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-logit)))


def _points(parts: _Parts) -> Array:
    return 100 * _expit(parts.performance)


def _pcr(parts: _Parts, *, alpha: float, scale: Scale) -> Array:
    performance, right, steady, other = (_expit(part) for part in parts)
    consistency = right * steady + (1 - right) * other
    return performance_consistency_ratio(performance, consistency, alpha=alpha, scale=scale)


# -- the excess over the references ---------------------------------------------------------------


def _excess(first: _Parts, second: _Parts, score: Callable[[_Parts], Array]) -> Excess:
    """Return the excess of the target's difference in a score over that of the references.

    The target is in the first row of the parts.
    """
    change = [one - other for one, other in zip(first, second, strict=True)]
    middle = [(one + other) / 2 for one, other in zip(first, second, strict=True)]
    own = [each[:1] for each in middle]
    gaps = _carry_change(own, change, score)
    unit = _unit(own, score)
    ability = middle[0][:, 0]
    bend = BEND * unit
    return ReferenceLine.of(gaps, ability, bend=bend, scatter=bend).excess(SCATTER * unit)


def _carry_change(
    middle: Sequence[Array], change: Sequence[Array], score: Callable[[_Parts], Array]
) -> Array:
    """Return the change in a score around a midpoint, given each model's change in the parts."""
    ends = (
        score(_Parts(*(at + way * by / 2 for at, by in zip(middle, change, strict=True))))
        for way in (1, -1)
    )
    high, low = ends
    return np.asarray(high - low)


def _unit(middle: Sequence[Array], score: Callable[[_Parts], Array]) -> float:
    """Return the change in a score when each part changes by one logit, independently."""
    at = [each[:, :1] for each in middle]
    changes = np.eye(len(at)) * _STEP
    steps = [
        _carry_change(at, [np.full((1, 1), by) for by in row], score).item() for row in changes
    ]
    return float(np.sqrt(np.sum(np.square(steps)))) / _STEP
