"""Selects the texts of a run to score for membership."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from random import Random
from typing import Final, NamedTuple, get_args

from coreeval.errors import DatasetError
from coreeval.schema import Arm, Value

MOST_SAMPLES: Final = 300
"""The most samples that are scored (own choice)."""
CONTEXT_TEXTS: Final = 3
"""The number of other texts before a text for CoDeC (own choice)."""
SEPARATOR: Final = "\n\n"


class MembershipSettings(Value):
    """What is scored."""

    samples: int = MOST_SAMPLES
    context: int = CONTEXT_TEXTS
    """The number of texts before each text for CoDeC; 0 for no CoDeC."""


@dataclass(frozen=True, kw_only=True)
class MembershipItem:
    """A sample with its texts by arm."""

    id: str
    texts: Mapping[Arm, str]
    context: Sequence[str] = ()
    """The ids of the samples whose texts precede it for CoDeC, none of its own cluster."""
    cluster: str = ""


class TextRequest(NamedTuple):
    """A text to score."""

    key: str
    text: str


def choose_items(
    samples: Iterable[tuple[str, str, Mapping[Arm, str]]],
    settings: MembershipSettings,
    *,
    seed: int,
) -> list[MembershipItem]:
    """Return the samples to score, drawn by seed and id, first those with all arms.

    Args:
        samples: The id, the cluster and the texts by arm of each sample.
        settings: How many are drawn, and how many texts precede each for CoDeC.
        seed: The seed of the draw.

    Raises:
        DatasetError: no sample has both an original and a reworded text.
    """
    every = [
        MembershipItem(id=name, texts=some, cluster=cluster)
        for name, cluster, texts in samples
        if {"original", "semantic"}
        <= (some := {arm: text for arm, text in texts.items() if text.strip()}).keys()
    ]
    if not every:
        raise DatasetError(
            "no sample has an original and a reworded text",
            where="the run's arms",
            hint="refresh samples with a rewriter; membership is measured as the difference "
            "between the two texts",
        )

    def place(item: MembershipItem) -> tuple[bool, int, str]:
        return (
            len(item.texts) < len(get_args(Arm)),
            zlib.crc32(f"{seed} {item.id}".encode()),
            item.id,
        )

    drawn = nsmallest(settings.samples, every, key=place)
    return [_add_context(item, drawn, settings.context, seed) for item in drawn]


def _add_context(
    item: MembershipItem, drawn: Sequence[MembershipItem], number: int, seed: int
) -> MembershipItem:
    others = [
        other.id
        for other in drawn
        if other.id != item.id
        and not (item.cluster and other.cluster == item.cluster)
        and item.texts.keys() <= other.texts.keys()
    ]
    some = Random(f"{seed} {item.id}").sample(others, min(number, len(others)))
    return MembershipItem(id=item.id, texts=item.texts, context=some, cluster=item.cluster)


def list_texts(items: Sequence[MembershipItem]) -> list[TextRequest]:
    """Return the texts to score: each by itself, and each after others of its arm for CoDeC."""
    texts = {item.id: item.texts for item in items}
    found = list[TextRequest]()
    for item in items:
        for arm, text in item.texts.items():
            found.append(TextRequest(f"alone:{arm}:{item.id}", text))
            if item.context:
                before = [texts[other][arm] for other in item.context]
                found.append(
                    TextRequest(f"context:{arm}:{item.id}", SEPARATOR.join([*before, text]))
                )
    return found
