"""A target's answers as codes: two bytes an answer, a line a sample, a column a way of asking."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coreeval.errors import RunCorrupt
from coreeval.evaluation.label_scores import FAULTS, MISSING, AnswerTable, AnswerView, Mask, Numbers
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
) -> Iterator[AnswerCodes]:
    """Yield each target's answers as codes on the same lines, skipping targets without answers.

    Args:
        answers: Each target with one answer for each arm, template and sample.
        gold: The label names of the whole benchmark by sample id.
        labels: The label names of the task.
        clusters: The cluster of each sample by id; None if each is its own.
    """
    places = {key: place for place, key in enumerate(gold)}
    codes = _codes_of(labels)
    units = _units(gold, clusters)
    for key, label in gold.items():
        if ("answered", label) not in codes:
            raise RunCorrupt(
                f"run.db holds a label that is none of the task: {label!r} of {key!r}", hint=REPAIR
            )
    due = np.fromiter((codes["answered", label] for label in gold.values()), np.int16, len(gold))
    for target, said in answers:
        if columns := _columns(target, said, places, codes):
            every = np.column_stack([np.frombuffer(each, np.int16) for each in columns.values()])
            table = AnswerTable(due, every, len(labels), units)
            yield AnswerCodes(target, tuple(gold), tuple(labels), tuple(columns), table)


def find_clusters(samples: Iterable[tuple[str, str, Mapping[str, str]]]) -> dict[str, str]:
    """Return the cluster of each sample, from its id, the benchmark's own cluster and its texts.

    Samples without a cluster of their own form one if their texts are equal, because their answers
    are equal too.
    """
    return {key: cluster or "\x1f".join(texts.values()) for key, cluster, texts in samples}


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
) -> dict[Way, "array[int]"]:
    """Return a target's answers as coded columns by sample, with the ways in their order."""
    found: dict[tuple[str, int], array[int]] = {}
    for source, template, key, answer, kind in said:
        column = found.get((source, template))
        if column is None:
            column = found[source, template] = array("h", [MISSING]) * len(places)
        place, code = places.get(key), codes.get((kind, answer))
        if place is None or code is None or column[place] != MISSING:
            raise RunCorrupt(
                "run.db holds a second prediction, or one of no known sample or label: "
                f"{target!r} said {answer!r} of {key!r} in the arm {source}",
                hint=REPAIR,
            )
        column[place] = code
    ways = [(arm, number) for arm in ARMS for number in sorted({each for _, each in found})]
    return {way: found[way] for way in ways if way in found}
