"""Comparisons of the arms: each target's scores, differences on shared samples, and rank orders.

A target's answers are read once, as a stream, into two bytes per answer; every number is computed
from these, and only one target is in memory at a time. Rank correlations of the scores show whether
targets have the same order on two arms.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from coreeval.evaluation.answer_codes import AnswerCodes, code_answers
from coreeval.evaluation.grading import SCORING, define_scores
from coreeval.evaluation.label_scores import (
    AnswerView,
    Floats,
    Mask,
    ViewScores,
    average_templates,
    mean_of_templates,
    resample,
    score_difference,
    score_draws,
    score_share_draws,
)
from coreeval.evaluation.scores import (
    ARM_COMPARISONS,
    DRAWS,
    RANKED_ARMS,
    ArmComparison,
    ArmScore,
    ArmScores,
    ArmTable,
    LabelCoverage,
    Score,
    TargetRanking,
    TargetScores,
    TemplateScore,
    score_proportion,
)
from coreeval.schema import Arm, TaskKind
from coreeval.tools.stores.run_tables import TargetAnswer

FEWEST: Final = 3
"""The fewest targets for a ranking: two targets only have the same order or not."""


@dataclass(frozen=True, eq=False)
class TwoArmScores:
    """The scores of a target on two arms, on the samples that both have."""

    target: str
    first: Floats
    """The score, then that of each draw, of shape (1 + draws,); the draws of all targets contain
    the same samples."""
    second: Floats


def rank_targets(standings: Sequence[TwoArmScores]) -> TargetRanking | None:
    """Compare how two arms rank the targets, or return None with fewer than `FEWEST` targets."""
    if len(standings) < FEWEST:
        return None
    first = np.stack([each.first for each in standings], axis=1)
    second = np.stack([each.second for each in standings], axis=1)
    n = len(standings)
    return TargetRanking(
        targets=tuple(each.target for each in standings),
        kendall=_score_correlation(kendall_tau_b(first, second), n),
        spearman=_score_correlation(spearman_rho(first, second), n),
    )


def _score_correlation(found: Floats, n: int) -> Score:
    """Return a correlation with its percentile interval, ignoring draws in which all values tie."""
    if not np.isfinite(found[0]):
        return Score(estimate=None, ci_low=None, ci_high=None, n=n)
    return score_draws(found[np.isfinite(found)], n)


def kendall_tau_b(first: Floats, second: Floats) -> Floats:
    """Return Kendall's tau-b of each row, from shape (rows, targets) to (rows,); nan if all tie.

    Kendall (1945), "The treatment of ties in ranking problems".
    """
    one, other = np.triu_indices(first.shape[1], k=1)
    x, y = (np.sign(each[:, one] - each[:, other]) for each in (first, second))
    return _over(np.sum(x * y, axis=1), np.sum(x * x, axis=1) * np.sum(y * y, axis=1))


def spearman_rho(first: Floats, second: Floats) -> Floats:
    """Return Spearman's rho of each row: Pearson's r of the ranks; ties get their mean rank."""
    from scipy.stats import rankdata  # type: ignore[import-untyped]  # slow to import

    x, y = (rankdata(each, axis=1) - (first.shape[1] + 1) / 2 for each in (first, second))
    return _over(np.sum(x * y, axis=1), np.sum(x * x, axis=1) * np.sum(y * y, axis=1))


def _over(products: Floats, squares: Floats) -> Floats:
    known = squares > 0
    return np.where(known, products / np.sqrt(np.where(known, squares, 1.0)), np.nan)


_Part = tuple[bool, Arm, Arm | None]
"""Whether only recoverable samples count; an arm; the arm whose samples it must share, or None."""


def compare_arms(
    answers: Iterable[tuple[str, Iterable[TargetAnswer]]],
    *,
    gold: Mapping[str, str],
    labels: Sequence[str],
    unrecoverable: Collection[str] = frozenset(),
    clusters: Mapping[str, str] | None = None,
    kind: TaskKind = "labels",
    seed: int = 7,
    draws: int = DRAWS,
) -> ArmTable:
    """Score every target on every arm, and compare arms on their shared samples.

    `answers` gives each target with one answer for each arm, template and sample, without the rows
    filled by `on_reject`; a target without any answer is left out. `gold` has the label names of
    the whole benchmark by sample id. `unrecoverable` has the ids that ended as label_unrecoverable.
    `clusters` has the cluster of each sample by id; None if each sample is its own cluster. `kind`
    is the kind of the task: if its answers are graded, their mean score replaces the macro-F1.
    Every bootstrap starts from `seed`, so none depends on another.
    """
    known = np.fromiter((key not in unrecoverable for key in gold), np.bool_, len(gold))
    targets, standings = list[TargetScores](), list[TwoArmScores]()
    graded = SCORING[kind].grade is not None
    coded_answers = code_answers(
        answers, gold=gold, labels=labels, clusters=clusters, graded=graded
    )
    for coded in coded_answers:
        scorer = _Scorer(coded, known, seed, draws)
        targets.append(scorer.scores())
        standings += scorer.standings()
    return ArmTable(
        targets=tuple(targets),
        ranking=rank_targets(standings),
        unrecoverable=int((~known).sum()),
        draws=draws,
        seed=seed,
        kind=kind,
        definitions=define_scores(kind),
    )


class _Scorer:
    """Scores the answers of one target: all parts use the same table and the same draws."""

    def __init__(self, coded: AnswerCodes, known: Mask, seed: int, draws: int) -> None:
        self._target, self._labels, self._known = coded.target, coded.labels, known
        self._table, self._ways = (table := coded.table), coded.columns
        self._asked, self._counted = table.is_asked, table.is_counted
        self._views = {part: self._view(part) for part in self._parts()}
        found = resample(table, list(self._views.values()), seed=seed, draws=draws)
        self._found = dict(zip(self._views, found, strict=True))

    def scores(self) -> TargetScores:
        """Return all scores of the target."""
        every = self._arm_scores(False)
        same = bool(self._known.all())
        return TargetScores(
            target=self._target,
            all_samples=every,
            recoverable=every if same else self._arm_scores(True),
        )

    def standings(self) -> Iterator[TwoArmScores]:
        """Yield the target's scores on the original and the updated arm, if it answered both."""
        if RANKED_ARMS not in self._pairs():
            return
        parts: tuple[_Part, _Part] = (False, *RANKED_ARMS), (False, *RANKED_ARMS[::-1])
        first, second = (self._found[part] for part in parts)
        if first.n and second.n:
            means = (mean_of_templates(each.macro_f1, each) for each in (first, second))
            yield TwoArmScores(self._target, *means)

    def _parts(self) -> Iterator[_Part]:
        for known in (False,) if self._known.all() else (False, True):
            for arm in self._ways:
                yield known, arm, None
            for first, second in self._pairs():
                yield known, first, second
                yield known, second, first

    def _pairs(self) -> list[tuple[Arm, Arm]]:
        """Return the comparisons of arms that share a template."""
        ways = self._ways
        return [
            (first, second)
            for first, second in ARM_COMPARISONS
            if ways.get(first, {}).keys() & ways.get(second, {}).keys()
        ]

    def _has(self, part: _Part) -> Mask:
        """Return a mask of the samples in a part."""
        known, arm, beside = part
        found = self._is_asked(arm) & self._is_asked(beside or arm)
        return found & self._known if known else found

    def _is_asked(self, arm: Arm) -> Mask:
        columns = list(self._ways[arm].values())
        return np.asarray(self._asked[:, columns].any(axis=1))

    def _view(self, part: _Part) -> AnswerView:
        _, arm, beside = part
        own, other = self._ways[arm], self._ways[beside or arm]
        templates = [template for template in own if template in other]
        columns = [own[template] for template in templates]
        both = self._counted[:, columns] & self._counted[:, [other[each] for each in templates]]
        return AnswerView(tuple(templates), tuple(columns), both & self._has(part)[:, None])

    def _arm_scores(self, known: bool) -> ArmScores:
        return ArmScores(
            arms=tuple(self._arm((known, arm, None)) for arm in self._ways),
            comparisons=tuple(self._pair(known, *pair) for pair in self._pairs()),
        )

    def _arm(self, part: _Part) -> ArmScore:
        view, found, some = self._views[part], self._found[part], self._has(part)
        return ArmScore(
            arm=part[1],
            macro_f1=average_templates(found.macro_f1, found),
            accuracy=average_templates(found.accuracy, found),
            answers=self._table.kinds(view.ways, some),
            templates=tuple(
                self._template(number, way, place, found, some)
                for place, (number, way) in enumerate(zip(view.templates, view.ways, strict=True))
            ),
        )

    def _template(
        self, number: int, way: int, place: int, found: ViewScores, some: Mask
    ) -> TemplateScore:
        n, units = int(found.each[place]), int(found.each_units[place])
        if units < n:
            accuracy = score_share_draws(found.accuracy[:, place], n, units=units)
        else:
            accuracy = score_proportion(round(found.accuracy[0, place] * n) if n else 0, n)
        return TemplateScore(
            template=number,
            macro_f1=score_share_draws(found.macro_f1[:, place], n, units=units),
            accuracy=accuracy,
            answers=self._table.kinds((way,), some),
        )

    def _pair(self, known: bool, first: Arm, second: Arm) -> ArmComparison:
        one, two = (known, first, second), (known, second, first)
        before, after = self._found[one], self._found[two]
        return ArmComparison(
            first=self._arm(one),
            second=self._arm(two),
            macro_f1_difference=score_difference(before.macro_f1, after.macro_f1, before),
            accuracy_difference=score_difference(before.accuracy, after.accuracy, before),
            coverage=tuple(self._coverage(known, self._has(one))),
        )

    def _coverage(self, known: bool, shared: Mask) -> Iterator[LabelCoverage]:
        for code, label in enumerate(self._labels):
            due = self._table.due == code
            total = due & self._known if known else due
            yield LabelCoverage(
                label=label, shared=int((due & shared).sum()), total=int(total.sum())
            )
