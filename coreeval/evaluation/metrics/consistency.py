"""The similarity of a model's answers to an item and to its modified twin, from 0 to 1.

Every item is in the denominator, with or without a reference. Two empty answers are equal, as in
CAP's published numbers; a note gives their number.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from coreeval.errors import UsageError
from coreeval.evaluation.metrics.performance import Floats, PerItem, mean_score
from coreeval.evaluation.metrics.quantities import read_quantity
from coreeval.evaluation.metrics.short_answers import Accepted, grade_short_answer
from coreeval.evaluation.metrics.text import split_spaces
from coreeval.tools.embeddings import Embedder

THRESHOLD = 0.95
"""The least cosine similarity at which two answers have the same meaning (CAP paper, section
4.2)."""


class TwinAnswers(Protocol):
    """An item and its modified twin, with a model's answers to them."""

    @property
    def original_output(self) -> str:
        """Return the answer to the item."""
        ...

    @property
    def modified_output(self) -> str:
        """Return the answer to its modified twin."""
        ...

    @property
    def original_choice(self) -> str | None:
        """Return the option letter of the answer; empty or several letters if it is unclear."""
        ...

    @property
    def modified_choice(self) -> str | None:
        """Return the option letter of the answer to the twin."""
        ...

    @property
    def original_options(self) -> Mapping[str, str] | None:
        """Return the text of each option letter."""
        ...

    @property
    def modified_options(self) -> Mapping[str, str] | None:
        """Return the text of each option letter in the twin."""
        ...


Consistency = Callable[[Sequence[TwinAnswers]], PerItem]


def exact_consistency(items: Sequence[TwinAnswers]) -> PerItem:
    """Return the share of items with two equal answers, ignoring leading and trailing blanks."""
    same = [item.original_output.strip() == item.modified_output.strip() for item in items]
    return mean_score(same, notes=_silent(items))


def option_consistency(items: Sequence[TwinAnswers]) -> PerItem:
    """Return the share of items whose two choices refer to the same option text.

    A choice counts if it is one of the item's letters, in any case; all other pairs are
    inconsistent.

    Raises:
        UsageError: an item has no choices or no options.
    """
    for place, item in enumerate(items, start=1):
        if None in (_choice(item), item.original_options, item.modified_options):
            raise UsageError(
                f"item {place} has no choices or no options, which consistency `option` compares",
                hint="each pair needs original_choice, modified_choice, original_options and "
                "modified_options, or choose another consistency",
            )
    return mean_score([_same_option(item) for item in items])


def _choice(item: TwinAnswers) -> tuple[str, str] | None:
    first, second = item.original_choice, item.modified_choice
    return None if first is None or second is None else (first.strip(), second.strip())


def _same_option(item: TwinAnswers) -> bool:
    first, second = _choice(item) or ("", "")
    texts = _find(item.original_options, first), _find(item.modified_options, second)
    return None not in texts and len({" ".join(str(text).split()) for text in texts}) == 1


def _find(options: Mapping[str, str] | None, letter: str) -> str | None:
    """Return the option with a letter in any case; if two differ only in case, exactly this one."""
    known = options or {}
    if letter in known:
        return known[letter]
    return {each.strip().casefold(): text for each, text in known.items()}.get(letter.casefold())


def answer_consistency(items: Sequence[TwinAnswers]) -> PerItem:
    """Return the share of items with two equal short answers: as a number, or in SQuAD's form."""
    same = [_says_same(item.original_output, item.modified_output) for item in items]
    return mean_score(same, notes=_silent(items))


def _says_same(first: str, second: str) -> bool:
    number = read_quantity(first) is not None
    due = Accepted(answers=[first], type="number" if number else "text")
    return grade_short_answer(second, due).right


def jaccard_consistency(items: Sequence[TwinAnswers]) -> PerItem:
    """Return the mean Jaccard similarity of the two answers' sets of space-separated words."""
    values = []
    for item in items:
        first, second = (
            set(split_spaces(item.original_output)),
            set(split_spaces(item.modified_output)),
        )
        values.append(len(first & second) / len(first | second))
    return mean_score(values, notes=_silent(items))


def cosine(embeds: Embedder, *, threshold: float = THRESHOLD) -> Consistency:
    """Return a measure of the share of items whose answers' cosine similarity meets a threshold."""
    return lambda items: at_least(cosine_similarity(items, embeds), threshold, _silent(items))


def cosine_similarity(items: Sequence[TwinAnswers], embeds: Embedder) -> Floats:
    """Return the cosine similarity of each item's two answers, shape (n,); 1 for equal texts."""
    texts = [item.original_output for item in items], [item.modified_output for item in items]
    first, second = (np.asarray(embeds(each), dtype=np.float64) for each in texts)
    length = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    similarity = (first * second).sum(axis=-1) / np.maximum(length, np.finfo(float).tiny)
    return np.where([one == other for one, other in zip(*texts, strict=True)], 1.0, similarity)


def at_least(similarity: Floats, threshold: float, notes: tuple[str, ...] = ()) -> PerItem:
    """Return the share of similarities that reach a threshold."""
    return mean_score(similarity >= threshold, notes=notes)


def _silent(items: Sequence[TwinAnswers]) -> tuple[str, ...]:
    count = sum(not (item.original_output + item.modified_output).strip() for item in items)
    if not count:
        return ()
    return (f"{count} of {len(items)} pairs are two empty answers, counted as consistent",)


CONSISTENCY: dict[str, Consistency] = {
    "exact": exact_consistency,
    "option": option_consistency,
    "same_answer": answer_consistency,
    "jaccard": jaccard_consistency,
}
"""The measures that only use the answers, by name; `cosine` uses embeddings."""
