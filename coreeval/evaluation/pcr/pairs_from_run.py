"""Pairs from a run: each item with a target's answers to every template."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.metrics import CONSISTENCY, PERFORMANCE, PerItem
from coreeval.evaluation.pcr.pairs import (
    Pair,
    PairMeasures,
    assume_outcomes,
    average_measures,
    mark_unanswered,
    measure_pairs,
)
from coreeval.evaluation.pcr.replicates import (
    FileReplicates,
    add_extremes,
    list_extremes,
    resample_measures,
)
from coreeval.evaluation.pcr.study import PcrSettings
from coreeval.tools.stores.run_tables import TargetAnswer

Labels = Mapping[str, Mapping[str, str]]
"""The items to compare in each split: the names of their labels by item id."""
SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "train": ("train", "train_semantic"),
    "test": ("original", "semantic"),
}
"""The sources of each split's items: the original and the reworded text."""


@dataclass(frozen=True, kw_only=True)
class RunPairs:
    """The items of both splits that a target answered completely."""

    by_template: Mapping[int, Sequence[Pair]]
    """Pairs by template, with the same items in the same order."""
    notes: tuple[str, ...]
    """Notes on the items that are left out."""


def collect_pairs(
    answers: Iterable[TargetAnswer],
    labels: Labels,
    templates: Sequence[int],
    clusters: Mapping[str, str] | None = None,
    *,
    grade: Literal["right", "score"] | None = None,
) -> RunPairs:
    """Collect a target's answers as pairs, leaving out items without an answer to each text.

    A refusal or an answer without a label is an empty output: it is wrong, and two of them are
    consistent.

    Args:
        answers: All answers of the target on the items.
        labels: The items to compare.
        templates: The numbers of the templates that the target was asked with.
        clusters: The document that each item is about, by id; None if each item is its own cluster.
        grade: The grade of an answer that is its performance; None if the answer is compared with
            the label.
    """
    known = {item for items in labels.values() for item in items}
    said = {
        (source, template, item): (answer, kind, right if grade == "right" else score)
        for source, template, item, answer, kind, right, score in answers
        if item in known
    }
    whole = {
        split: [
            item
            for item in items
            if all((source, n, item) in said for source in SOURCES[split] for n in templates)
        ]
        for split, items in labels.items()
    }

    def pair(split: str, item: str, template: int) -> Pair:
        original, modified = (said[source, template, item] for source in SOURCES[split])
        return Pair(
            split=split,
            id=item,
            reference=labels[split][item],
            original_output=original[0],
            modified_output=modified[0],
            original_status=original[1],
            modified_status=modified[1],
            cluster=(clusters or {}).get(item),
            grades=(float(original[2] or 0), float(modified[2] or 0)) if grade else None,
        )

    return RunPairs(
        by_template={
            n: [pair(split, item, n) for split, items in whole.items() for item in items]
            for n in templates
        },
        notes=tuple(
            f"{len(items) - len(whole[split])} of {len(items)} reworded {split} items are excluded "
            "because they lack complete answers"
            for split, items in labels.items()
            if len(whole[split]) < len(items)
        ),
    )


def resample_run_pairs(asked: RunPairs, settings: PcrSettings) -> FileReplicates:
    """Score a target's answers to every template and resample whole items."""
    several = len(asked.by_template) > 1
    each = [
        _measure_template(pairs, settings, f"template {number}: " if several else "")
        for number, pairs in asked.by_template.items()
    ]
    pairs = next(iter(asked.by_template.values()))
    found = resample_measures(
        average_measures(each),
        pairs,
        compared=settings.split_pair,
        draws=settings.draws,
        seed=settings.seed,
    )
    silent = np.logical_or.reduce([mark_unanswered(own) for own in asked.by_template.values()])
    assumed = [
        average_measures(
            [
                assume_outcomes(one, own, PERFORMANCE[settings.metric], *flags)
                for one, own in zip(each, asked.by_template.values(), strict=True)
            ]
        )
        for flags in list_extremes(pairs, silent, settings.split_pair)
    ]
    found = add_extremes(found, assumed, pairs, settings.split_pair)
    return replace(found, notes=(*asked.notes, *found.notes))


def _measure_template(pairs: Sequence[Pair], settings: PcrSettings, whose: str) -> PairMeasures:
    found = measure_pairs(pairs, PERFORMANCE[settings.metric], CONSISTENCY[settings.consistency])
    return replace(found, parts=tuple(_name_notes(part, whose) for part in found.parts))


def _name_notes(part: PerItem, whose: str) -> PerItem:
    return replace(part, notes=tuple(f"{whose}{note}" for note in part.notes))
