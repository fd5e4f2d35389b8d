"""Another order of the labels that a classification prompt offers."""

import re
from collections.abc import Sequence
from itertools import pairwise

from coreeval.evaluation.modifications.order import derangement
from coreeval.evaluation.modifications.outcome import Modified, Unmodified
from coreeval.schema import Item

_BETWEEN = re.compile(r"[\W\d_]*(?:(?:or|and|either|或|和|或者)[\W\d_]*)?", re.IGNORECASE)
MOST_BETWEEN = 12
"""Characters between two labels of one list: `", "`, `" or "`, a line with a bullet."""


def shuffle_label_order(item: Item, labels: Sequence[str], *, seed: int) -> Modified | Unmodified:
    """Let every label of the list in the input stand where another one stood; the answer stays.

    The list is the last place where all labels follow each other with nothing but marks, numbers,
    `or` and `and` between them.
    """
    found = _label_list(item.input, labels)
    if not found:
        return Unmodified(id=item.id, reason=f"the input does not list {', '.join(labels)}")
    names = [match.group() for match in found]
    order = derangement([name.casefold() for name in names], seed=seed, key=item.id)
    if order is None:
        return Unmodified(id=item.id, reason="there is only one label")
    text = item.input
    for match, came in reversed([*zip(found, order, strict=True)]):
        text = text[: match.start()] + names[came] + text[match.end() :]
    changes = {names[place]: names[came] for place, came in enumerate(order)}
    return Modified(item=item.model_copy(update={"input": text}), changes=changes)


def _label_list(text: str, labels: Sequence[str]) -> list[re.Match[str]]:
    longest_first = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    found = [*re.finditer(rf"(?<!\w)(?:{longest_first})(?!\w)", text, flags=re.IGNORECASE)]
    for start in range(len(found) - len(labels), -1, -1):
        run = found[start : start + len(labels)]
        if len({match.group().casefold() for match in run}) == len(labels) and _joined(text, run):
            return run
    return []


def _joined(text: str, run: list[re.Match[str]]) -> bool:
    gaps = [text[one.end() : two.start()] for one, two in pairwise(run)]
    return all(len(gap) <= MOST_BETWEEN and _BETWEEN.fullmatch(gap) for gap in gaps)
