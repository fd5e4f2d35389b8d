"""Scores of single samples, and scores of the same shape that memory has no part in.

A sample's score is the mean share of templates that a target is right with on texts that would be
remembered, less that on texts that would not, shrunk by how little its templates say: with a
Beta-binomial prior of rates the posterior mean of that difference is m / (m + s) of it, for m
templates and a prior as strong as s of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.values import MIN_SAMPLES, PATH, Kind
from coreeval.evaluation.scoring.answers import Floats, Numbers
from coreeval.schema import Arm


class Contrast(NamedTuple):
    """Arms that would be remembered, and arms that would not."""

    front: tuple[Arm, ...]
    back: tuple[Arm, ...]


class Bout(NamedTuple):
    """A contrast, and one in which an arm that is not remembered stands in its front."""

    seen: Contrast
    unseen: Contrast


BOUTS: Final[Mapping[Kind, Bout]] = {
    "wording": Bout(
        Contrast(("original",), ("semantic", "updated")),
        Contrast(("semantic",), ("control", "updated")),
    ),
    "facts": Bout(
        Contrast(("original", "semantic", "control"), ("updated",)),
        Contrast(("original", "semantic", "updated"), ("control",)),
    ),
}
"""A text's first rewriting is held against the second, as in `surface_unexplained`, and the updated
arm changes places with the control arm, which was rewritten just so: without a control arm nothing
says how many samples chance singles out."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One kind of score, of the samples at `Scored.places`."""

    seen: Floats
    unseen: Floats
    top: float
    """The highest that a score can be."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of all samples that every needed arm has."""

    places: Numbers
    """Lines of the table."""
    kinds: Mapping[Kind, Scores]


def score_items(coded: Coded) -> Scored | None:
    """Score every sample; None if fewer than 20 have an answer in all four arms."""
    views = coded.views(PATH)
    if views is None:
        return None
    counted, due = views[0].counted, coded.table.due[:, None]
    places = np.flatnonzero(counted.any(axis=1))
    if len(places) < MIN_SAMPLES:
        return None
    hits = {
        arm: (counted & (coded.table.said[:, list(view.ways)] == due)).sum(axis=1)[places]
        for arm, view in zip(PATH, views, strict=True)
    }
    asked = counted.sum(axis=1)[places]
    weight = shrinkage(np.stack(list(hits.values())), asked)
    share = {arm: each / asked for arm, each in hits.items()}
    return Scored(places, {kind: _scores(bout, share, weight) for kind, bout in BOUTS.items()})


def _scores(bout: Bout, share: Mapping[Arm, Floats], weight: Floats) -> Scores:
    seen, unseen = (
        weight
        * (
            np.mean([share[arm] for arm in contrast.front], axis=0)
            - np.mean([share[arm] for arm in contrast.back], axis=0)
        )
        for contrast in bout
    )
    return Scores(_even(seen), _even(unseen), float(_even(weight).max()))


def shrinkage(hits: Numbers, asked: Numbers) -> Floats:
    """Return m / (m + s) for each sample, from hits of shape (arms, samples) out of those asked.

    1 / (1 + s) is how far two templates of a text agree beyond chance: the pairwise estimator of
    Ridout, Demétrio and Firth (1999), Biometrics 55, 137-148, over all texts. With a single
    template, which tells nothing of it, 1.
    """
    pairs = float((asked * (asked - 1)).sum()) * len(hits)
    if not pairs:
        return np.ones(len(asked))
    mean = hits.sum() / (asked.sum() * len(hits))
    both = (hits * (hits - 1)).sum() / pairs
    spread = mean * (1 - mean)
    alike = float(np.clip((both - mean * mean) / spread, 0, 1)) if spread else 0.0
    return np.asarray(asked * alike / (asked * alike + 1 - alike))


def _even(values: Floats) -> Floats:
    """Return values of which those that differ in their last bits only are equal."""
    return np.round(values, 9)
