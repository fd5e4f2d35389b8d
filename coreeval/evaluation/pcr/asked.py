"""What the targets of a run answered, as pairs: each item with its answers to every template."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from coreeval.evaluation.pcr.comparison import Comparison, compare
from coreeval.evaluation.pcr.measured import Measured, measured, measured_together
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.replicates import Resampled, resample_measured
from coreeval.evaluation.pcr.study import Settings
from coreeval.evaluation.scoring import CONSISTENCY, PERFORMANCE, PerItem
from coreeval.tools.stores.run_rows import Answer

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


def pairs_of(answers: Iterable[Answer], labels: Labels, templates: Sequence[int]) -> Asked:
    """Put a target's answers together; items without an answer to each text are left out.

    A refusal or an answer without a label is an empty output: wrong, and two are consistent.
    """
    known = {item for items in labels.values() for item in items}
    said = {
        (source, template, item): answer
        for source, template, item, answer, _ in answers
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
            original_output=original,
            modified_output=modified,
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


def compare_asked(targets: Mapping[str, Asked], settings: Settings) -> dict[str, Comparison]:
    """Compare the splits for each target; p-values are adjusted over all of them.

    Scores are means over templates, whose answers stay together when items are resampled.
    """
    found = {name: _resampled(asked, settings) for name, asked in targets.items()}
    return compare(found, (settings.train, settings.test), settings.form)


def _resampled(asked: Asked, settings: Settings) -> Resampled:
    several = len(asked.by_template) > 1
    each = [
        _measured(pairs, settings, f"template {number}: " if several else "")
        for number, pairs in asked.by_template.items()
    ]
    found = resample_measured(
        measured_together(each),
        next(iter(asked.by_template.values())),
        compared=(settings.train, settings.test),
        draws=settings.draws,
        seed=settings.seed,
    )
    return replace(found, notes=(*asked.notes, *found.notes))


def _measured(pairs: Sequence[Pair], settings: Settings, whose: str) -> Measured:
    found = measured(pairs, PERFORMANCE[settings.metric], CONSISTENCY[settings.consistency])
    performance, modified, consistency = (_named(part, whose) for part in found.parts)
    return replace(found, parts=(performance, modified, consistency))


def _named(part: PerItem, whose: str) -> PerItem:
    return replace(part, notes=tuple(f"{whose}{note}" for note in part.notes))
