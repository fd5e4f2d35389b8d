"""Which samples a target seems to remember: right on the original, wrong on what was made of it.

A sample's score is the share of templates that it is right with on the original, less the mean
share on the texts made of it, shrunk by how little its templates say: with a Beta-binomial prior of
rates the posterior mean of that difference is m / (m + s) of it (m templates; s, the prior's
strength, by moments over all texts: Kleinman 1973, JASA 68, 46-54).

How large scores are where nothing is remembered is read off scores of the same shape, in which a
text that cannot be remembered word for word stands for the original. A sample's p-value is its rank
among them (conformal p-values, which Benjamini and Hochberg's procedure takes: Bates, Candès, Lei,
Romano and Sesia 2023, Annals of Statistics 51, 149-178).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.values import MIN_SAMPLES
from coreeval.evaluation.scoring.answers import Floats, Mask, Numbers
from coreeval.evaluation.statistics import adjusted
from coreeval.schema import Arm, Value

FALSE_SHARE: Final = 0.1
"""Share of falsely flagged samples that is accepted: a list to look at, not a conviction (the
project's choice; Efron 2010, Large-Scale Inference, section 4.2, calls 0.1 the popular one)."""

Base = Literal["control", "exchanged"]
"""Where the base rate is from: the step from the reworded to the control arm, or the step from
another arm to the original, which takes it that rewriting makes no sample harder."""


class ItemEvidence(Value):
    """What is said of single samples of one target."""

    target: str
    n: int
    """Samples with an answer that counts in every arm that is needed."""
    templates: int
    base: Base | None
    """None where nothing can be told."""
    false_share: float
    flagged: tuple[str, ...]
    """Ids of the samples that seem remembered, the surest first."""
    expected_false: float
    """How many of them are not, at most, on average."""
    least: int | None
    """How many samples must have the highest score before any can be flagged."""
    note: str
    """How far this reaches, for a reader."""


@dataclass(frozen=True, eq=False)
class Items:
    """The evidence, and the table that it rests on."""

    found: ItemEvidence
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, str | int | float | None]]
    """A line a sample with an answer: id, label; for each arm and template 1 (right), 0 (wrong) or
    None (not asked, or refused); score, p_value, q_value (None without evidence), flagged."""


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of samples, and those that stand for samples that are not remembered."""

    base: Base
    places: Numbers
    """Lines of the table."""
    seen: Floats
    unseen: Floats
    top: float
    """The highest that a score can be."""


def find_items(coded: Coded, *, false_share: float = FALSE_SHARE) -> Items:
    """Score every sample and flag those that seem remembered, `false_share` of them falsely."""
    scores = _scores(coded)
    score, p_value, q_value = np.full((3, len(coded.keys)), np.nan)
    if scores is not None:
        ranks = _at_least(scores.unseen, scores.seen)
        score[scores.places] = scores.seen
        p_value[scores.places] = (1 + ranks) / (1 + len(scores.unseen))
        q_value[scores.places] = adjusted(p_value[scores.places].tolist())
    flagged = (q_value <= false_share) & (score > 0)
    found = _evidence(coded, scores, flagged, score, q_value, false_share)
    levels = {"score": score, "p_value": p_value, "q_value": q_value}
    names = [f"{arm}_{template}" for arm, template in coded.ways]
    return Items(
        found=found,
        columns=("id", "label", *names, *levels, "flagged"),
        rows=tuple(_rows(coded, names, levels, flagged)),
    )


def _scores(coded: Coded) -> _Scores | None:
    """Return the scores of samples that all needed arms have; None where they are too few."""
    made: tuple[Arm, ...] = tuple(arm for arm in ("semantic", "updated") if arm in coded.columns)
    base: Base = "control" if {"control", "semantic"} <= coded.columns.keys() else "exchanged"
    arms: tuple[Arm, ...] = ("original", *made, *(("control",) if base == "control" else ()))
    views = coded.views(arms) if made else None
    if views is None:
        return None
    counted, due = views[0].counted, coded.table.due[:, None]
    places = np.flatnonzero(counted.any(axis=1))
    if len(places) < MIN_SAMPLES:
        return None
    hits = {
        arm: (counted & (coded.table.said[:, list(view.ways)] == due)).sum(axis=1)[places]
        for arm, view in zip(arms, views, strict=True)
    }
    asked = counted.sum(axis=1)[places]
    weight = _shrinkage(np.stack(list(hits.values())), asked)
    share = {arm: each / asked for arm, each in hits.items()}
    own, others = _decoy(base, made)
    seen = weight * (share["original"] - np.mean([share[arm] for arm in made], axis=0))
    unseen = weight * (share[own] - np.mean([share[arm] for arm in others], axis=0))
    return _Scores(base, places, _even(seen), _even(unseen), float(_even(weight).max()))


def _decoy(base: Base, made: Sequence[Arm]) -> tuple[Arm, list[Arm]]:
    """Return what stands for the original, and for the texts made of it."""
    first, *rest = made
    return first, [("control" if base == "control" else "original"), *rest]


def _shrinkage(hits: Numbers, asked: Numbers) -> Floats:
    """Return m / (m + s) for each sample; 1 with a single template, which tells nothing of s.

    1 / (1 + s) is how far two templates of a text agree beyond chance, from all pairs of them.
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


def _at_least(values: Floats, ends: Floats) -> Numbers:
    """Return how many values are at least each end."""
    ordered = np.sort(values)
    return np.asarray(len(values) - np.searchsorted(ordered, ends, side="left"))


def _evidence(
    coded: Coded,
    scores: _Scores | None,
    flagged: Mask,
    score: Floats,
    q_value: Floats,
    false_share: float,
) -> ItemEvidence:
    order = np.flatnonzero(flagged)
    order = order[np.argsort(-score[order], kind="stable")]
    n = 0 if scores is None else len(scores.places)
    least, note = _power(coded, scores, false_share)
    return ItemEvidence(
        target=coded.target,
        n=n,
        templates=len({template for _, template in coded.ways}),
        base=scores.base if scores else None,
        false_share=false_share,
        flagged=tuple(coded.keys[place] for place in order),
        expected_false=float(q_value[order].max() * len(order)) if len(order) else 0.0,
        least=least,
        note=note,
    )


def _power(coded: Coded, scores: _Scores | None, false_share: float) -> tuple[int | None, str]:
    if scores is None:
        return None, (
            f"fewer than {MIN_SAMPLES} samples have an answer in the original and a rewritten arm: "
            "nothing is said of single samples"
        )
    n = len(scores.places)
    chance, top = int((scores.unseen >= scores.top).sum()), int((scores.seen >= scores.top).sum())
    least = int(np.ceil((1 + chance) / (1 + n) * n / false_share))
    said = (
        f"{top} of {n} samples have the highest score, {chance} would without being remembered; "
        f"{least} must before any can be flagged at {false_share:g}"
    )
    if len({template for _, template in coded.ways}) == 1:
        said += ": one template and one draw single out samples only where very many are remembered"
    return least, said


def _rows(
    coded: Coded, names: Sequence[str], levels: Mapping[str, Floats], flagged: Mask
) -> Iterator[dict[str, str | int | float | None]]:
    table = coded.table
    right, counted = table.said == table.due[:, None], table.counted
    for place in np.flatnonzero(table.asked.any(axis=1)):
        marks = {
            name: int(right[place, way]) if counted[place, way] else None
            for way, name in enumerate(names)
        }
        known = {
            name: None if np.isnan(values[place]) else float(values[place])
            for name, values in levels.items()
        }
        label = coded.labels[table.due[place]]
        yield {"id": coded.keys[place], "label": label, **marks, **known,
               "flagged": int(flagged[place])}  # fmt: skip
