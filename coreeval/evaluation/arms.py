"""Comparing the arms: what each target scores on them, and on the samples that two share.

A target's answers are read once, as a stream, into two bytes an answer; every number is made from
these, and only one target is in memory at a time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from coreeval.evaluation.arm_scores import (
    COMPARISONS,
    RANKED,
    ArmScore,
    ArmScores,
    ArmTable,
    Comparison,
    LabelCoverage,
    TargetScores,
    TemplateScore,
)
from coreeval.evaluation.coded import Coded, code_answers
from coreeval.evaluation.decomposition.intervals import difference
from coreeval.evaluation.ranking import Standing, ranking
from coreeval.evaluation.scoring.answers import (
    Mask,
    Resampled,
    View,
    averaged,
    mean_of_templates,
    resample,
    share_of,
)
from coreeval.evaluation.scoring.classification import DRAWS, proportion
from coreeval.schema import Arm
from coreeval.tools.stores.run_records import TargetAnswer

_Part = tuple[bool, Arm, Arm | None]
"""Whether it has recoverable samples only; an arm; the arm that it must share its samples with."""


def compare_arms(
    answers: Iterable[tuple[str, Iterable[TargetAnswer]]],
    *,
    gold: Mapping[str, str],
    labels: Sequence[str],
    unrecoverable: Collection[str] = frozenset(),
    clusters: Mapping[str, str] | None = None,
    seed: int = 7,
    draws: int = DRAWS,
) -> ArmTable:
    """Score every target on every arm, and compare arms on the samples that both have.

    `answers` gives each target with one answer for each arm, template and sample, without the rows
    filled by `on_reject`; a target without any answer is left out. `gold` has the label names of
    the whole benchmark by sample id. `unrecoverable` are the ids that ended as label_unrecoverable.
    `clusters` has the cluster of each sample by id; None if each is its own.
    Every bootstrap starts from `seed`: none depends on another.
    """
    known = np.fromiter((key not in unrecoverable for key in gold), np.bool_, len(gold))
    targets, standings = list[TargetScores](), list[Standing]()
    for coded in code_answers(answers, gold=gold, labels=labels, clusters=clusters):
        scorer = _Scorer(coded, known, seed, draws)
        targets.append(scorer.scores())
        standings += scorer.standings()
    return ArmTable(
        targets=tuple(targets),
        ranking=ranking(standings),
        unrecoverable=int((~known).sum()),
        draws=draws,
        seed=seed,
    )


class _Scorer:
    """Scores what one target said: every part is a view on the same table and the same draws."""

    def __init__(self, coded: Coded, known: Mask, seed: int, draws: int) -> None:
        self._target, self._labels, self._known = coded.target, coded.labels, known
        self._table, self._ways = (table := coded.table), coded.columns
        self._asked, self._counted = table.asked, table.counted
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

    def standings(self) -> Iterator[Standing]:
        """Yield how it did on the original and the updated arm, if it answered both."""
        if RANKED not in self._pairs():
            return
        parts: tuple[_Part, _Part] = (False, *RANKED), (False, *RANKED[::-1])
        first, second = (self._found[part] for part in parts)
        if first.n and second.n:
            means = (mean_of_templates(each.macro_f1, each) for each in (first, second))
            yield Standing(self._target, *means)

    def _parts(self) -> Iterator[_Part]:
        for known in (False,) if self._known.all() else (False, True):
            for arm in self._ways:
                yield known, arm, None
            for first, second in self._pairs():
                yield known, first, second
                yield known, second, first

    def _pairs(self) -> list[tuple[Arm, Arm]]:
        """Return the comparisons of arms that were asked with a template in common."""
        ways = self._ways
        return [
            (first, second)
            for first, second in COMPARISONS
            if ways.get(first, {}).keys() & ways.get(second, {}).keys()
        ]

    def _has(self, part: _Part) -> Mask:
        """Return which samples a part has."""
        known, arm, beside = part
        found = self._asked_in(arm) & self._asked_in(beside or arm)
        return found & self._known if known else found

    def _asked_in(self, arm: Arm) -> Mask:
        columns = list(self._ways[arm].values())
        return np.asarray(self._asked[:, columns].any(axis=1))

    def _view(self, part: _Part) -> View:
        _, arm, beside = part
        own, other = self._ways[arm], self._ways[beside or arm]
        templates = [template for template in own if template in other]
        columns = [own[template] for template in templates]
        both = self._counted[:, columns] & self._counted[:, [other[each] for each in templates]]
        return View(tuple(templates), tuple(columns), both & self._has(part)[:, None])

    def _arm_scores(self, known: bool) -> ArmScores:
        return ArmScores(
            arms=tuple(self._arm((known, arm, None)) for arm in self._ways),
            comparisons=tuple(self._pair(known, *pair) for pair in self._pairs()),
        )

    def _arm(self, part: _Part) -> ArmScore:
        view, found, some = self._views[part], self._found[part], self._has(part)
        return ArmScore(
            arm=part[1],
            macro_f1=averaged(found.macro_f1, found),
            accuracy=averaged(found.accuracy, found),
            answers=self._table.kinds(view.ways, some),
            templates=tuple(
                self._template(number, way, place, found, some)
                for place, (number, way) in enumerate(zip(view.templates, view.ways, strict=True))
            ),
        )

    def _template(
        self, number: int, way: int, place: int, found: Resampled, some: Mask
    ) -> TemplateScore:
        n = int(found.each[place])
        hits = round(found.accuracy[0, place] * n) if n else 0
        return TemplateScore(
            template=number,
            macro_f1=share_of(found.macro_f1[:, place], n),
            accuracy=proportion(hits, n),
            answers=self._table.kinds((way,), some),
        )

    def _pair(self, known: bool, first: Arm, second: Arm) -> Comparison:
        one, two = (known, first, second), (known, second, first)
        before, after = self._found[one], self._found[two]
        return Comparison(
            first=self._arm(one),
            second=self._arm(two),
            macro_f1_difference=difference(before.macro_f1, after.macro_f1, before),
            accuracy_difference=difference(before.accuracy, after.accuracy, before),
            coverage=tuple(self._coverage(known, self._has(one))),
        )

    def _coverage(self, known: bool, shared: Mask) -> Iterator[LabelCoverage]:
        for code, label in enumerate(self._labels):
            due = self._table.due == code
            total = due & self._known if known else due
            yield LabelCoverage(
                label=label, shared=int((due & shared).sum()), total=int(total.sum())
            )
