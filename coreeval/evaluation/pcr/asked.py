"""What the targets of a run answered, as pairs: each item with its answers to every template."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from coreeval.evaluation.pcr.measured import Measured, measured, measured_together
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.replicates import (
    Resampled,
    extremes_of,
    resample_measured,
    with_extremes,
)
from coreeval.evaluation.pcr.statuses import assume, unanswered
from coreeval.evaluation.pcr.study import Settings
from coreeval.evaluation.scoring import CONSISTENCY, PERFORMANCE, PerItem
from coreeval.tools.stores.run_records import TargetAnswer

Labels = Mapping[str, Mapping[str, str]]
"""For each split the items to compare, by id with the name of their label."""
SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "train": ("train", "train_semantic"),
    "test": ("original", "semantic"),
}
"""For each split what the items are asked as, and reworded."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The items of both splits that a target has answered in full."""

    by_template: Mapping[int, Sequence[Pair]]
    """The same items in the same order for each template."""
    notes: tuple[str, ...]
    """On those that are left out."""


def pairs_of(
    answers: Iterable[TargetAnswer],
    labels: Labels,
    templates: Sequence[int],
    clusters: Mapping[str, str] | None = None,
) -> Asked:
    """Put a target's answers together; items without an answer to each text are left out.

    A refusal or an answer without a label is an empty output: wrong, and two are consistent.

    Args:
        answers: All that the target said of the items.
        labels: The items to compare.
        templates: The numbers of the templates that it was asked with.
        clusters: The document that each item is about, by id; None if each is its own.
    """
    known = {item for items in labels.values() for item in items}
    said = {
        (source, template, item): (answer, kind)
        for source, template, item, answer, kind in answers
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
        )

    return Asked(
        by_template={
            n: [pair(split, item, n) for split, items in whole.items() for item in items]
            for n in templates
        },
        notes=tuple(
            f"{len(items) - len(whole[split])} of {len(items)} reworded {split} items are left "
            "out: they are not answered in full"
            for split, items in labels.items()
            if len(whole[split]) < len(items)
        ),
    )


def resample_asked(asked: Asked, settings: Settings) -> Resampled:
    """Score a target's answers to every template, and resample whole items."""
    several = len(asked.by_template) > 1
    each = [
        _measured(pairs, settings, f"template {number}: " if several else "")
        for number, pairs in asked.by_template.items()
    ]
    pairs = next(iter(asked.by_template.values()))
    found = resample_measured(
        measured_together(each),
        pairs,
        compared=settings.compared,
        draws=settings.draws,
        seed=settings.seed,
    )
    silent = np.logical_or.reduce([unanswered(own) for own in asked.by_template.values()])
    assumed = [
        measured_together(
            [
                assume(one, own, PERFORMANCE[settings.metric], *flags)
                for one, own in zip(each, asked.by_template.values(), strict=True)
            ]
        )
        for flags in extremes_of(pairs, silent, settings.compared)
    ]
    found = with_extremes(found, assumed, pairs, settings.compared)
    return replace(found, notes=(*asked.notes, *found.notes))


def _measured(pairs: Sequence[Pair], settings: Settings, whose: str) -> Measured:
    found = measured(pairs, PERFORMANCE[settings.metric], CONSISTENCY[settings.consistency])
    return replace(found, parts=tuple(_named(part, whose) for part in found.parts))


def _named(part: PerItem, whose: str) -> PerItem:
    return replace(part, notes=tuple(f"{whose}{note}" for note in part.notes))
