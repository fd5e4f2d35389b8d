"""The losses of a target from arm to arm, as terms that are differences of arms.

All arms share the draws, so differences stay paired. This module bounds the cost of wrong labels in
macro-F1; in accuracy, they cost at most their share.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.answer_codes import AnswerCodes
from coreeval.evaluation.covariates import CovariateDifference, compare_values
from coreeval.evaluation.excess import TargetStanding
from coreeval.evaluation.label_scores import (
    FAULTS,
    AnswerTable,
    AnswerView,
    Floats,
    Mask,
    ViewScores,
    expand_interval,
    mean_of_templates,
    resample,
    two_sided_p,
)
from coreeval.evaluation.scores import DRAWS, LEVEL, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, detectable_difference
from coreeval.schema import Arm, Value

TermName = Literal[
    "surface", "knowledge", "rewriting", "surface_unexplained", "unexplained"
]  # fmt: skip
CONTRASTS: Final[Mapping[TermName, Mapping[Arm, int]]] = {
    "surface": {"original": 1, "semantic": -1},
    "knowledge": {"semantic": 1, "updated": -1},
    "rewriting": {"semantic": 1, "control": -1},
    "surface_unexplained": {"original": 1, "semantic": -2, "control": 1},
    "unexplained": {"original": 0, "semantic": 0, "control": 1, "updated": -1},
}
"""The weight of each arm's score. A term uses the samples that all its arms share, so
`unexplained`, in which the reworded arm cancels out, still uses the samples of all four."""
PATH: Final[tuple[Arm, ...]] = ("original", "semantic", "control", "updated")
"""The order of the losses: words, then known facts, then new facts."""
TERM_DEFINITIONS: Final[Mapping[TermName, str]] = {
    "surface": "original - semantic: loss from rewording the same facts",
    "knowledge": "semantic - updated: loss from new facts",
    "rewriting": "semantic - control: loss due to rewriting alone, because the facts of the "
    "control texts are from news published before the target's cutoff",
    "surface_unexplained": "surface - rewriting: loss from rewording beyond the cost of rewriting",
    "unexplained": "knowledge - rewriting: loss from new facts beyond the cost of rewriting",
}
MIN_SAMPLES: Final = 20
"""The fewest samples (own choice, as for PCR): with fewer, a bootstrap does not show how they
vary."""

Verdict = Literal["remembered", "not_shown", "arms_differ", "no_control", "too_few"]
"""In this order: a loss that neither rewriting nor label noise nor a harder arm explains; no such
loss; a loss that a harder arm may also explain; a loss that rewriting may explain, for lack of a
control arm; too few samples."""
MemoryKind = Literal["wording", "facts"]
"""The kinds of memory: of the words of the original, or of the facts of its time."""
FRONT: Final[Mapping[MemoryKind, tuple[Arm, ...]]] = {
    "wording": ("original",),
    "facts": ("semantic", "control"),
}
"""The arms on which memory would help a target."""
BACK: Final[Mapping[MemoryKind, Arm]] = {"wording": "semantic", "facts": "updated"}
"""The arm on which such memory does not help."""
CLAIMS: Final[Mapping[MemoryKind, tuple[TermName, TermName]]] = {
    "wording": ("surface", "surface_unexplained"),
    "facts": ("knowledge", "unexplained"),
}
"""The loss that may be memory, and its remainder after the control arm."""


class Term(Value):
    """One part of a drop; positive if the score falls."""

    lost: Score
    beyond_noise: Score | None
    """The remainder if wrong labels cost as much as they can (twice that if an arm counts twice);
    None if this has no bound, and for `rewriting`. The upper end is that of `lost`, because wrong
    labels may cost nothing."""
    p_value: float | None
    """The two-sided p-value for the hypothesis of no loss."""
    detectable: float | None
    """The smallest true loss that four of five studies with this number of samples detect."""


class ArmStep(Value):
    """The score of an arm on the samples of all arms, and the loss since the previous arm."""

    arm: Arm
    score: Score
    lost: Score | None
    """The loss; None for the first arm."""


class DropParts(Value):
    """The parts of the drop in one score."""

    terms: dict[TermName, Term]
    """The terms, without those whose arms were not asked."""
    steps: tuple[ArmStep, ...]
    """The steps from original to updated, in the order of the losses: surface, rewriting,
    unexplained. Their losses add up to the drop."""
    noise_cost: float | None
    """The most that wrong labels can cost the score of the updated arm; None if it is unknown."""


class LossCheck(Value):
    """Explanations other than memory for a loss of one target, and whether they apply."""

    no_label: CovariateDifference | None
    """The answers without a label on the arms in front and on the arm behind, in % of the answers;
    None if an arm was not asked."""
    others: tuple[str, ...]
    """The targets compared with the tested one: references if there are enough, or all others."""
    excess: Score
    """The score on the arms in front minus the score that the others' line predicts from the arm
    behind; a share. Its values are None with too few others."""
    p_value: float | None
    """The one-sided p-value for the hypothesis of no excess; None with too few others."""
    p_adjusted: float | None
    """The p-value adjusted over all targets together (Holm 1979)."""
    exceeds: bool
    """Whether p_adjusted is at most 0.05: the target loses more than the others."""
    unlike: tuple[str, ...]
    """The reasons why a harder arm cannot be ruled out, one sentence each; empty if the others rule
    it out or explain the loss."""


class Decomposition(Value):
    """The losses of one target from the original to the updated arm, and their causes."""

    target: str
    accuracy: DropParts
    macro_f1: DropParts
    noise: float | None
    """The largest share of new texts whose label may be wrong; None if no labels were judged."""
    verdict: Verdict
    """The verdict by accuracy, whose noise bound is exact."""
    reasons: tuple[str, ...]
    """The reasons for the verdict, as sentences with the numbers."""
    checks: dict[MemoryKind, LossCheck]
    level: float = LEVEL
    draws: int
    seed: int


def macro_f1_cost(table: AnswerTable, view: AnswerView, share: float) -> float:
    """Return an upper bound on the cost of wrong labels in macro-F1, averaged over templates.

    A wrong label costs the gain from correcting it: an answer counted as wrong becomes a hit of the
    given label, and is no longer due for another. Hits go to the labels that gain most, which is
    exact because the gains decrease. Every label loses as many due answers as it can, which is more
    than all labels can lose together.
    """
    costs = [
        _correct_way(table, way, view.counted[:, place], share)
        for place, way in enumerate(view.ways)
        if view.counted[:, place].any()
    ]
    return float(np.mean(costs)) if costs else 0.0


def _correct_way(table: AnswerTable, way: int, counted: Mask, share: float) -> float:
    if table.grades is not None:
        return _correct_grades(table.grades[counted, way], share)
    due, said = table.due[counted], table.said[counted, way]
    hits, dues, given = (
        np.bincount(each[each < table.labels], minlength=table.labels).astype(np.float64)
        for each in (due[due == said], due, said)
    )
    wrong = int(np.ceil(share * len(due)))
    size = dues + given
    fewer = size - np.minimum(wrong, dues - hits)
    best = _fill_hits(hits, fewer, given - hits, wrong)
    return float(np.mean(best - 2 * hits / np.maximum(size, 1)))


def _correct_grades(scores: Floats, share: float) -> float:
    """Return the gain of the mean score if the worst answers of a share have the score 1."""
    wrong = int(np.ceil(share * len(scores)))
    return float((1 - np.sort(scores)[:wrong]).sum() / len(scores))


def _fill_hits(hits: Floats, size: Floats, room: Floats, wrong: int) -> Floats:
    """Return the F1 of each label after adding hits greedily where each gains most."""
    hits, size, room = hits.copy(), size.copy(), room.copy()
    for _ in range(min(wrong, int(room.sum()))):
        gain = 2 * (hits + 1) / (size + 1) - 2 * hits / np.maximum(size, 1)
        best = int(np.argmax(np.where(room > 0, gain, -1.0)))
        hits[best], size[best], room[best] = hits[best] + 1, size[best] + 1, room[best] - 1
    return 2 * hits / np.maximum(size, 1)


REWRITTEN: Final[tuple[Arm, ...]] = ("semantic", "updated")
"""The arms in which wrong labels look like memory; the same bound is assumed for both."""

Arms = tuple[Arm, ...]
Replicates = Mapping[Arms, Mapping[Arm, ViewScores]]
"""The scores of each arm on the samples that it shares with some other arms."""
Metric = Callable[[ViewScores], Floats]
Costs = Mapping[Arm, float]
"""The most that wrong labels cost the score of each arm; empty if no labels were judged."""


def replicate(coded: AnswerCodes, *, seed: int, draws: int) -> Replicates:
    """Score the arms of every term and of the path on the same draws of samples."""
    views = {arms: each for arms in _groups(coded) if (each := coded.views(arms))}
    flat = [view for each in views.values() for view in each]
    found = iter(resample(coded.table, flat, seed=seed, draws=draws))
    return {arms: {arm: next(found) for arm in arms} for arms in views}


def _groups(coded: AnswerCodes) -> Iterable[Arms]:
    yield from dict.fromkeys([*(tuple(each) for each in CONTRASTS.values()), list_path(coded)])


def list_path(coded: AnswerCodes) -> Arms:
    """Return the arms that were asked, starting with the original."""
    return tuple(arm for arm in PATH if arm in coded.columns)


def measure_accuracy_parts(coded: AnswerCodes, found: Replicates, share: float | None) -> DropParts:
    """Return the parts of the loss in accuracy."""
    costs = dict[Arm, float]() if share is None else dict.fromkeys(REWRITTEN, share)
    return _make_parts(coded, found, lambda each: each.accuracy, costs)


def measure_macro_f1_parts(coded: AnswerCodes, found: Replicates, share: float | None) -> DropParts:
    """Return the parts of the loss in macro-F1."""
    costs = {
        arm: macro_f1_cost(coded.table, view, share)
        for arm in REWRITTEN
        for view in coded.views((arm,)) or ()
        if share is not None
    }
    return _make_parts(coded, found, lambda each: each.macro_f1, costs)


def _make_parts(coded: AnswerCodes, found: Replicates, metric: Metric, costs: Costs) -> DropParts:
    terms = {
        name: _term(name, found[tuple(contrast)], metric, costs)
        for name, contrast in CONTRASTS.items()
        if tuple(contrast) in found
    }
    path = list_path(coded)
    return DropParts(
        terms=terms,
        steps=_steps(path, found[path], metric) if path in found else (),
        noise_cost=costs.get("updated"),
    )


def _term(name: TermName, found: Mapping[Arm, ViewScores], metric: Metric, costs: Costs) -> Term:
    weighted = [
        weight * mean_of_templates(metric(found[arm]), found[arm])
        for arm, weight in CONTRASTS[name].items()
    ]
    values, shared = np.sum(weighted, axis=0), next(iter(found.values()))
    answers = max(abs(weight) for weight in CONTRASTS[name].values())
    lost = expand_interval(values, shared.n, units=shared.units, answers=answers)
    return Term(
        lost=lost,
        beyond_noise=_beyond(lost, name, costs),
        p_value=two_sided_p(values, shared.n, units=shared.units, answers=answers),
        detectable=detectable_difference(float(np.nanstd(values[1:], ddof=1)))
        if shared.units > 1
        else None,
    )


def _beyond(lost: Score, name: TermName, costs: Costs) -> Score | None:
    """Return the loss that remains if wrong labels cost each subtracted arm as much as they can.

    Wrong labels of the control arm cost nothing here: they would reduce what the arm leaves.
    """
    against = {arm: -weight for arm, weight in CONTRASTS[name].items() if weight < 0}
    if name == "rewriting" or not against.keys() <= costs.keys():
        return None
    if lost.estimate is None or lost.ci_low is None:
        return lost
    cost = sum(weight * costs[arm] for arm, weight in against.items())
    return lost.model_copy(update={"estimate": lost.estimate - cost, "ci_low": lost.ci_low - cost})


def _steps(
    path: Sequence[Arm], found: Mapping[Arm, ViewScores], metric: Metric
) -> tuple[ArmStep, ...]:
    n, units = found[path[0]].n, found[path[0]].units
    values = [mean_of_templates(metric(found[arm]), found[arm]) for arm in path]
    lost = [expand_interval(one - two, n, units=units, answers=1) for one, two in pairwise(values)]
    return tuple(
        ArmStep(arm=arm, score=expand_interval(value, n, units=units), lost=each)
        for arm, value, each in zip(path, values, [None, *lost], strict=True)
    )


@dataclass(frozen=True, eq=False)
class Claim:
    """A loss that may be memory of one kind.

    If answers lack a label more often on the arm behind, they count as right there, in `parts` and
    in `standing`: a loss found then does not depend on the meaning of such answers.
    """

    parts: DropParts
    """The parts of the loss in accuracy."""
    standing: TargetStanding | None
    """The standing among targets; None if one of the four arms was not asked."""
    no_label: CovariateDifference | None
    """The answers without a label; None in the same case. `differs` if the arm behind has more of
    them at p <= 0.05, however few."""

    @property
    def lenient(self) -> bool:
        """Return whether answers without a label count as right on the arm behind."""
        return self.no_label is not None and self.no_label.differs


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of one target."""

    target: str
    accuracy: DropParts
    macro_f1: DropParts
    noise: float | None
    claims: Mapping[MemoryKind, Claim]
    draws: int
    seed: int


def measure_losses(
    coded: AnswerCodes, *, noise: float | None = None, seed: int = 7, draws: int = DRAWS
) -> Losses:
    """Decompose a target's drop from the original to the updated arm.

    `noise` is an upper bound on the share of new texts with a wrong label: the one-sided bound of
    `coreeval.runs.quality.estimate_noise_bound`. Terms whose arms were not asked are left out.
    """
    found = replicate(coded, seed=seed, draws=draws)
    accuracy = measure_accuracy_parts(coded, found, noise)
    path = found.get(PATH, {})

    def claim(kind: MemoryKind) -> Claim:
        no_label = _no_label(coded, kind)
        if no_label is None or not no_label.differs:
            return Claim(accuracy, _standing(coded, path, kind), no_label)
        lenient = _lenient(coded, BACK[kind])
        again = replicate(lenient, seed=seed, draws=draws)
        parts = measure_accuracy_parts(lenient, again, noise)
        return Claim(parts, _standing(lenient, again[PATH], kind), no_label)

    return Losses(
        target=coded.target,
        accuracy=accuracy,
        macro_f1=measure_macro_f1_parts(coded, found, noise),
        noise=noise,
        claims={kind: claim(kind) for kind in BACK},
        draws=draws,
        seed=seed,
    )


def _standing(
    coded: AnswerCodes, path: Mapping[Arm, ViewScores], kind: MemoryKind
) -> TargetStanding | None:
    """Return a target's scores on the arms where memory helps, and on the arm where it does not."""
    if not path or not next(iter(path.values())).n:
        return None
    scores = {arm: mean_of_templates(found.accuracy, found) for arm, found in path.items()}
    front = np.mean([scores[arm] for arm in FRONT[kind]], axis=0)
    return TargetStanding(coded.target, path[BACK[kind]].n, front, scores[BACK[kind]])


def _no_label(coded: AnswerCodes, kind: MemoryKind) -> CovariateDifference | None:
    """Compare the shares of answers without a label, on the samples that all four arms have."""
    views = coded.views(PATH) if list_path(coded) == PATH else None
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
    found = compare_values("no_label", values, {front: 1, back: -1}, units[some])
    more = found.means[back] > found.means[front]
    return found.model_copy(update={"differs": bool(more and found.p_value <= SIGNIFICANCE)})


def _no_label_share(coded: AnswerCodes, view: AnswerView, some: Mask) -> Floats:
    counted = view.counted[some]
    without = counted & _without(coded, view.ways)[some]
    return np.asarray(100 * without.sum(axis=1) / counted.sum(axis=1))


def _without(coded: AnswerCodes, ways: tuple[int, ...]) -> Mask:
    """Return a mask of the answers, other than refusals, that are not among the task's labels."""
    codes = [coded.table.labels + FAULTS.index(fault) for fault in ("unparsed", "truncated")]
    return np.isin(coded.table.said[:, list(ways)], codes)


def _lenient(coded: AnswerCodes, arm: Arm) -> AnswerCodes:
    """Return the answers with an arm's answers without a label counted as right."""
    ways, table = tuple(coded.columns[arm].values()), coded.table
    said = table.said.copy()
    said[:, list(ways)] = np.where(_without(coded, ways), table.due[:, None], said[:, list(ways)])
    return replace(coded, table=replace(table, said=said))
