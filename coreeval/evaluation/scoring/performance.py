"""How well answers do against their references: one function a metric, from texts to `PerItem`.

Items with an empty reference are not counted: nothing can be right about them.
"""

from collections.abc import Callable, Sequence

import numpy as np

from coreeval.errors import UsageError
from coreeval.evaluation.scoring.bleu import bleu
from coreeval.evaluation.scoring.items import Floats, PerItem, mean
from coreeval.evaluation.scoring.rouge import rouge_l, rouge_n
from coreeval.evaluation.scoring.text import foreign, squad_normalised

Performance = Callable[[Sequence[str], Sequence[str]], PerItem]
"""(references, outputs), item by item."""
MOST_CLASSES = 200
"""More distinct references than this are no classes but texts (large intent sets have 150)."""


def _averaged(each: Callable[[str, str], float]) -> Performance:
    """Return the mean over items of a value of (reference, output)."""

    def score(references: Sequence[str], outputs: Sequence[str]) -> PerItem:
        values = [each(*pair) for pair in zip(references, outputs, strict=True)]
        counted = [bool(reference.strip()) for reference in references]
        return mean(values, counted, foreign(references, outputs))

    return score


def macro_f1(references: Sequence[str], outputs: Sequence[str]) -> PerItem:
    """Return the mean F1 of the classes that occur as references, case and outer blanks apart.

    An answer that is none of them is wrong and no class of its own. A class that a resample has not
    is 0 there (scikit-learn's `zero_division=0`).

    Raises:
        UsageError: the references are no classes.
    """
    due, said = [*map(_label, references)], [*map(_label, outputs)]
    classes = sorted(set(due) - {""})
    if len(classes) > MOST_CLASSES:
        raise UsageError(
            f"macro_f1 compares classes, and there are {len(classes)} different references",
            hint="for free text take rouge_1, rouge_2, rouge_l, bleu or exact_match",
        )
    gold, answer = _one_hot(due, classes), _one_hot(said, classes)
    answer *= np.array([[bool(label)] for label in due]).reshape(-1, 1)
    notes = foreign(references, outputs)
    return PerItem(np.hstack([gold * answer, gold + answer]), _mean_f1, notes)


def _one_hot(labels: Sequence[str], classes: Sequence[str]) -> Floats:
    found = [[label == name for name in classes] for label in labels]
    return np.array(found, dtype=np.float64).reshape(len(labels), len(classes))


def _mean_f1(sums: Floats) -> Floats:
    hits, size = np.split(sums, 2, axis=-1)
    if not hits.shape[-1]:
        return np.full(hits.shape[:-1], np.nan)
    return np.asarray(np.mean(2 * hits / np.maximum(size, 1), axis=-1))


def _label(text: str) -> str:
    return text.strip().casefold()


PERFORMANCE: dict[str, Performance] = {
    "exact_match": _averaged(lambda due, said: due.strip() == said.strip()),
    "exact_match_squad": _averaged(
        lambda due, said: squad_normalised(due) == squad_normalised(said)
    ),
    "accuracy": _averaged(lambda due, said: _label(due) == _label(said)),
    "rouge_1": _averaged(lambda due, said: rouge_n(due, said, 1)),
    "rouge_2": _averaged(lambda due, said: rouge_n(due, said, 2)),
    "rouge_l": _averaged(rouge_l),
    "bleu": bleu,
    "macro_f1": macro_f1,
}
"""By name. exact_match differs from accuracy in that case counts; exact_match_squad is the CAP
paper's, see docs/scoring.md for what it does to the answer A."""
