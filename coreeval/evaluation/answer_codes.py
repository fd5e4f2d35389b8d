"""A target's answers as codes of two bytes: a row for each sample, a column for each way of asking.

A graded answer has the code of its sample's label if it is right, and a code of no label if it is
wrong; its score is in a table of the same shape.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coreeval.errors import RunCorrupt
from coreeval.evaluation.label_scores import (
    FAULTS,
    MISSING,
    AnswerTable,
    AnswerView,
    Floats,
    Mask,
    Numbers,
)
from coreeval.evaluation.scores import ARMS
from coreeval.schema import Arm
from coreeval.tools.stores.heartbeat import REPAIR
from coreeval.tools.stores.run_tables import TargetAnswer

Way = tuple[Arm, int]
"""An arm, and the number of the template that was used."""


@dataclass(frozen=True, eq=False)
class AnswerCodes:
    """All answers of one target on the samples of a benchmark."""

    target: str
    keys: tuple[str, ...]
    """Sample ids, in the order of the table's rows."""
    labels: tuple[str, ...]
    """Label names, in the order of their codes."""
    ways: tuple[Way, ...]
    """The arm and template of each column of the table."""
    table: AnswerTable

    @cached_property
    def columns(self) -> dict[Arm, dict[int, int]]:
        """Return the column of each template, for each arm that was asked."""
        found: dict[Arm, dict[int, int]] = {}
        for column, (arm, template) in enumerate(self.ways):
            found.setdefault(arm, {})[template] = column
        return found

    def views(self, arms: Sequence[Arm]) -> tuple[AnswerView, ...] | None:
        """Return each arm restricted to the shared templates and to samples without a refusal.

        Return None if an arm was not asked or the arms have no template in common.
        """
        if not all(arm in self.columns for arm in arms):
            return None
        own = [self.columns[arm] for arm in arms]
        templates = tuple(each for each in own[0] if all(each in other for other in own))
        ways = [tuple(columns[each] for each in templates) for columns in own]
        counted: Mask = np.all([self.table.is_counted[:, list(way)] for way in ways], axis=0)
        return tuple(AnswerView(templates, way, counted) for way in ways) if templates else None


def code_answers(
    answers: Iterable[tuple[str, Iterable[TargetAnswer]]],
    *,
    gold: Mapping[str, str],
    labels: Sequence[str],
    clusters: Mapping[str, str] | None = None,
    graded: bool = False,
) -> Iterator[AnswerCodes]:
    """Yield each target's answers as codes in the same rows, skipping targets without answers.

    Args:
        answers: Each target with one answer for each arm, template and sample.
        gold: The label names of the whole benchmark by sample id.
        labels: The label names of the task.
        clusters: The cluster of each sample by id; None if each sample is its own cluster.
        graded: Whether the answers of the task are graded instead of labels.
    """
    places = {key: place for place, key in enumerate(gold)}
    known = (*labels, _WRONG) if graded else tuple(labels)
    codes = _codes_of(known)
    units = _units(gold, clusters)
    for key, label in gold.items():
        if ("answered", label) not in codes:
            raise RunCorrupt(
                f"run.db contains a label that is not in the task: {label!r} of {key!r}",
                hint=REPAIR,
            )
    due = np.fromiter((codes["answered", label] for label in gold.values()), np.int16, len(gold))
    for target, said in answers:
        scores = _Scores(gold) if graded else None
        if columns := _columns(target, said, places, codes, scores):
            every = np.column_stack([np.frombuffer(each, np.int16) for each in columns.values()])
            grades = scores.table(columns) if scores else None
            table = AnswerTable(due, every, len(known), units, grades)
            yield AnswerCodes(target, tuple(gold), tuple(labels), tuple(columns), table)


_WRONG = ""
"""The label that a wrong graded answer counts as; no sample has it."""


class _Scores:
    """The scores of a target's graded answers, by way and sample."""

    def __init__(self, gold: Mapping[str, str]) -> None:
        self._gold = list(gold.values())
        self._columns: dict[tuple[str, int], array[float]] = {}

    def add(self, way: tuple[str, int], place: int, *, right: bool, score: float) -> str:
        """Store the score of an answer, and return the label that it counts as."""
        column = self._columns.get(way)
        if column is None:
            column = self._columns[way] = array("f", [0.0]) * len(self._gold)
        column[place] = score
        return self._gold[place] if right else _WRONG

    def table(self, ways: Iterable[Way]) -> Floats:
        """Return the scores, of shape (samples, ways); 0 if there is no answer."""
        none = array("f", [0.0]) * len(self._gold)
        found = [np.frombuffer(self._columns.get(way, none), np.float32) for way in ways]
        return np.column_stack(found).astype(np.float64)


def _units(gold: Mapping[str, str], clusters: Mapping[str, str] | None) -> Numbers | None:
    """Return the number of each sample's cluster, or None if each sample is its own."""
    if clusters is None:
        return None
    places = dict[str, int]()
    found = [places.setdefault(clusters[key], len(places)) for key in gold]
    return np.array(found, np.int64) if len(places) < len(found) else None


def _codes_of(labels: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return the code of each pair of answer kind and label."""
    known = [("answered", label) for label in labels]
    return {said: code for code, said in enumerate([*known, *((fault, "") for fault in FAULTS)])}


def _columns(
    target: str,
    said: Iterable[TargetAnswer],
    places: Mapping[str, int],
    codes: Mapping[tuple[str, str], int],
    scores: _Scores | None,
) -> dict[Way, "array[int]"]:
    """Return a target's answers as coded columns by sample, with the ways in order.

    The scores of graded answers are stored in `scores`.
    """
    found: dict[tuple[str, int], array[int]] = {}
    for source, template, key, answer, kind, right, score in said:
        column = found.get((source, template))
        if column is None:
            column = found[source, template] = array("h", [MISSING]) * len(places)
        place, label = places.get(key), answer
        if scores and kind == "answered" and place is not None:
            if right is None or score is None:
                raise RunCorrupt(f"an answer of {target!r} to {key!r} has no grade", hint=REPAIR)
            label = scores.add((source, template), place, right=right, score=score)
        code = codes.get((kind, label))
        if place is None or code is None or column[place] != MISSING:
            raise RunCorrupt(
                "run.db contains a duplicate prediction, or one for an unknown sample or label: "
                f"{target!r} answered {answer!r} for {key!r} in the arm {source}",
                hint=REPAIR,
            )
        column[place] = code
    ways = [(arm, number) for arm in ARMS for number in sorted({each for _, each in found})]
    return {way: found[way] for way in ways if way in found}
