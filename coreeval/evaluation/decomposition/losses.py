"""What one target loses from arm to arm, and what is needed to tell why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.covariates import CovariateDifference, contrast
from coreeval.evaluation.decomposition.terms import (
    accuracy_parts,
    macro_f1_parts,
    path_of,
    replicate,
)
from coreeval.evaluation.decomposition.values import BACK, FRONT, PATH, Kind, Parts
from coreeval.evaluation.excess import Standing
from coreeval.evaluation.scoring.answers import (
    FAULTS,
    Floats,
    Mask,
    Resampled,
    View,
    mean_of_templates,
)
from coreeval.evaluation.scoring.classification import DRAWS
from coreeval.evaluation.statistics import SIGNIFICANCE
from coreeval.schema import Arm


@dataclass(frozen=True, eq=False)
class Claim:
    """A loss that may be memory of one kind.

    If answers on the arm behind have no label more often, each of them counts as right there, in
    `parts` and in `standing`: what is lost then is lost whatever such answers meant.
    """

    parts: Parts
    """By accuracy."""
    standing: Standing | None
    """None if one of the four arms was not asked."""
    no_label: CovariateDifference | None
    """Likewise; it differs if the arm behind has more at p <= 0.05, however few they are."""

    @property
    def lenient(self) -> bool:
        """Whether answers without a label count as right on the arm behind."""
        return self.no_label is not None and self.no_label.differs


@dataclass(frozen=True, eq=False)
class Losses:
    """What one target loses."""

    target: str
    accuracy: Parts
    macro_f1: Parts
    noise: float | None
    claims: Mapping[Kind, Claim]
    draws: int
    seed: int


def measure_losses(
    coded: Coded, *, noise: float | None = None, seed: int = 7, draws: int = DRAWS
) -> Losses:
    """Take one target's drop from the original to the updated arm apart.

    `noise` is the share of new texts whose label may be wrong, at most: the one-sided bound of
    `coreeval.releases.quality.noise_bound`. Terms whose arms were not asked are left out.
    """
    found = replicate(coded, seed=seed, draws=draws)
    accuracy = accuracy_parts(coded, found, noise)
    path = found.get(PATH, {})

    def claim(kind: Kind) -> Claim:
        no_label = _no_label(coded, kind)
        if no_label is None or not no_label.differs:
            return Claim(accuracy, _standing(coded, path, kind), no_label)
        lenient = _lenient(coded, BACK[kind])
        again = replicate(lenient, seed=seed, draws=draws)
        parts = accuracy_parts(lenient, again, noise)
        return Claim(parts, _standing(lenient, again[PATH], kind), no_label)

    return Losses(
        target=coded.target,
        accuracy=accuracy,
        macro_f1=macro_f1_parts(coded, found, noise),
        noise=noise,
        claims={kind: claim(kind) for kind in BACK},
        draws=draws,
        seed=seed,
    )


def _standing(coded: Coded, path: Mapping[Arm, Resampled], kind: Kind) -> Standing | None:
    """Return what a target scores where memory helps, and where it does not."""
    if not path or not next(iter(path.values())).n:
        return None
    scores = {arm: mean_of_templates(found.accuracy, found) for arm, found in path.items()}
    front = np.mean([scores[arm] for arm in FRONT[kind]], axis=0)
    return Standing(coded.target, path[BACK[kind]].n, front, scores[BACK[kind]])


def _no_label(coded: Coded, kind: Kind) -> CovariateDifference | None:
    """Compare how many answers have no label, on the samples that all four arms have."""
    views = coded.views(PATH) if path_of(coded) == PATH else None
    if views is None:
        return None
    by_arm = dict(zip(PATH, views, strict=True))
    some: Mask = np.asarray(views[0].counted.any(axis=1))
    if some.sum() < 2:
        return None
    front, back = " and ".join(FRONT[kind]), BACK[kind]
    shares = {arm: _no_label_share(coded, by_arm[arm], some) for arm in (*FRONT[kind], back)}
    values = {front: np.mean([shares[arm] for arm in FRONT[kind]], axis=0), back: shares[back]}
    units = np.arange(len(some)) if coded.table.clusters is None else coded.table.clusters
    found = contrast("no_label", values, {front: 1, back: -1}, units[some])
    more = found.means[back] > found.means[front]
    return found.model_copy(update={"differs": bool(more and found.p_value <= SIGNIFICANCE)})


def _no_label_share(coded: Coded, view: View, some: Mask) -> Floats:
    counted = view.counted[some]
    without = counted & _without(coded, view.ways)[some]
    return np.asarray(100 * without.sum(axis=1) / counted.sum(axis=1))


def _without(coded: Coded, ways: tuple[int, ...]) -> Mask:
    """Return which answers are none of the task's labels, refusals apart."""
    codes = [coded.table.labels + FAULTS.index(fault) for fault in ("unparsed", "truncated")]
    return np.isin(coded.table.said[:, list(ways)], codes)


def _lenient(coded: Coded, arm: Arm) -> Coded:
    """Return the answers with those of an arm that have no label as right ones."""
    ways, table = tuple(coded.columns[arm].values()), coded.table
    said = table.said.copy()
    said[:, list(ways)] = np.where(_without(coded, ways), table.due[:, None], said[:, list(ways)])
    return replace(coded, table=replace(table, said=said))
