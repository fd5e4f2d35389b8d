"""Recorded pairs of answers for PCR, and their sufficient statistics.

Sums of the items' statistics give the scores of any set of items.

This module also finds the unanswered items, and the scores if they had all been right or wrong.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    Object,
    ObjectRow,
    Records,
    collect_records,
    read_records,
)
from coreeval.evaluation.metrics import Consistency, Performance, PerItem
from coreeval.evaluation.metrics.performance import average_scores, mean_score
from coreeval.evaluation.refusals import declines
from coreeval.evaluation.statistics import SIGNIFICANCE, Array

Options = Mapping[str, str]
"""The text of each multiple-choice option by its letter."""
Status = Literal["answered", "refused", "empty", "truncated", "unparsed"]
"""The outcome of a question."""
STATUSES: tuple[Status, ...] = get_args(Status)
_TEXTS = ("split", "id", "reference", "original_output", "modified_output")
_CHOICES = ("original_choice", "modified_choice")
_OPTIONS = ("original_options", "modified_options")
_STATUSES = ("original_status", "modified_status")
_NAMES = ("cluster", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One item of a split, answered in its original and its modified form."""

    split: str
    id: str
    reference: str
    """The right answer to the original; if empty, the item counts for consistency only."""
    original_output: str
    modified_output: str
    original_choice: str | None = None
    """The letter read from the answer; empty or several letters mean that it is unclear."""
    modified_choice: str | None = None
    original_options: Options | None = None
    modified_options: Options | None = None
    original_status: Status | None = None
    """Status of the original question; None to read it from the answer (see `read_statuses`)."""
    modified_status: Status | None = None
    cluster: str | None = None
    """The document that the item is about, or a text shared by several items.

    None if the item is a cluster of its own.
    """
    model: str | None = None
    """The model that answered, if a file has several."""
    grades: tuple[float, float] | None = None
    """The grades of the two answers, from 0 to 1; None if they are compared with the reference."""

    @property
    def modified_reference(self) -> str:
        """The right answer to the modified item: after a shuffle, the letter of the same text.

        Empty if none of the shuffled options has that text, so that such items can be counted.
        """
        if not self.original_options or not self.modified_options:
            return self.reference
        told = self.reference.strip()
        options = {letter.casefold(): text for letter, text in self.original_options.items()}
        right = self.original_options.get(told, options.get(told.casefold()))
        if right is None:
            return self.reference
        letters = [letter for letter, text in self.modified_options.items() if text == right]
        return letters[0] if letters else ""


Pairs = Records[Pair]
"""The valid lines of a file in order, and the invalid ones."""


def read_pairs(path: Path) -> Pairs:
    """Read pairs from a JSON Lines file; invalid lines are kept with their number and the reason.

    Blank lines and keys other than those of `Pair` are ignored, and an id may be a whole number.
    If a model has several lines with the same id in a split, the first counts.

    Raises:
        DatasetError: the file cannot be read.
    """
    return read_records(path, _parse_pair, key=_pair_key, twice=_describe_repeat)


def collect_pairs(name: str, rows: Iterable[ObjectRow]) -> Pairs:
    """Return the pairs in rows that are in memory; see `read_pairs`.

    Args:
        name: The name of the rows in reports of invalid ones.
        rows: The rows.
    """
    return collect_records(name, rows, _parse_pair, key=_pair_key, twice=_describe_repeat)


def _pair_key(pair: Pair) -> Hashable:
    return (pair.model, pair.split, pair.id)


def pairs_by_model(pairs: Pairs, name: str) -> dict[str, Pairs]:
    """Return the pairs of each model in a file; a single model gets the name of the file."""
    models = list(dict.fromkeys(pair.model or name for pair in pairs.good))
    if len(models) < 2:
        return {name: pairs}
    return {
        model: replace(pairs, good=tuple(p for p in pairs.good if (p.model or name) == model))
        for model in models
    }


def _describe_repeat(pair: Pair, first: int) -> str:
    return f"the id {pair.id!r} occurs twice in {pair.split!r}, first in line {first}"


def _parse_pair(values: Object) -> Pair | BadRecord:
    """Return the pair in a line, or the reason that it is invalid."""
    defect = next(_defects(values), None)
    return BadRecord(defect) if defect else _build_pair(values)


def _build_pair(values: Object) -> Pair:
    split, own, reference, original, modified = (str(values[name]) for name in _TEXTS)
    return Pair(
        split=split,
        id=own,
        reference=reference,
        original_output=original,
        modified_output=modified,
        original_choice=_as_text(values.get("original_choice")),
        modified_choice=_as_text(values.get("modified_choice")),
        original_options=_letter_options(values.get("original_options")),
        modified_options=_letter_options(values.get("modified_options")),
        original_status=values.get("original_status"),
        modified_status=values.get("modified_status"),
        cluster=_as_text(values.get("cluster")),
        model=_as_text(values.get("model")),
    )


def _as_text(value: object) -> str | None:
    return None if value is None else str(value)


def _letter_options(value: object) -> Options | None:
    """Return options by letter; the options of a list get A, B and so on."""
    if isinstance(value, Mapping):
        return dict(value)
    return dict(zip(ascii_uppercase, value, strict=False)) if isinstance(value, list) else None


# -- what can be wrong ----------------------------------------------------------------------------


def _defects(values: Mapping[str, object]) -> Iterator[str]:
    """Yield the defects of an object that is not a pair, starting with a missing side."""
    sides = [values.get(name) is None for name in ("original_output", "modified_output")]
    if any(sides) and not all(sides):
        yield f"the pair is incomplete: {'original' if sides[0] else 'modified'}_output is missing"
    for name in _TEXTS:
        yield from _text_defects(name, values.get(name))
    for name in (*_CHOICES, *_NAMES):
        if values.get(name) is not None:
            yield from _text_defects(name, values[name])
    for name in _STATUSES:
        if values.get(name) not in (None, *STATUSES):
            yield f"{name} is not one of {', '.join(STATUSES)}"
    for name in _OPTIONS:
        yield from _option_defects(name, values.get(name))


def _text_defects(name: str, value: object) -> Iterator[str]:
    whole = name == "id" and isinstance(value, int) and not isinstance(value, bool)
    if value is None:
        yield f"{name} is missing"
    elif not isinstance(value, str) and not whole:
        yield f"{name} must be a text, not {type(value).__name__}"
    elif name in ("id", "split") and not str(value).strip():
        yield f"{name} is empty"
    elif not _is_encodable(str(value)):
        yield f"{name} contains an incomplete character (a lone surrogate)"


def _option_defects(name: str, value: object) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, dict | list):
        yield f"{name} is neither an object that maps letters to texts nor a list of texts"
        return
    texts = value.values() if isinstance(value, dict) else value
    if len(texts) > len(ascii_uppercase):
        yield f"{name} has more options than letters"
    for text in texts:
        yield from _text_defects(f"an option of {name}", text)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_WHOSE = ("performance on the originals", "performance on the modified items", "consistency")


class PairScores(NamedTuple):
    """The three scores of a set of items, or of many sets as arrays of one shape."""

    performance: Array
    """M: the score of the original answers."""
    modified: Array
    """M of the modified answers."""
    consistency: Array
    """C: the consistency of the two answers."""
    right: Array
    """Mean of the items' own performance, from 0 to 1; M itself if the metric is such a mean."""
    right_consistent: Array
    """Mean of performance times consistency: the part of C from right items."""


@dataclass(frozen=True, kw_only=True)
class PairMeasures:
    """The contribution of each pair to the scores."""

    rows: Array
    """Array of shape (pairs, statistics)."""
    parts: tuple[PerItem, ...]
    """The parts for performance, modified performance and consistency."""

    def scores(self, sums: Array) -> PairScores:
        """Return the scores for sums over rows, of shape (..., statistics)."""
        ends = np.cumsum([part.sums.shape[-1] for part in self.parts])
        cut = np.split(sums, ends[:-1], axis=-1)
        return PairScores(*(part.value(own) for part, own in zip(self.parts, cut, strict=True)))


def measure_pairs(
    pairs: Sequence[Pair], performance: Performance, consistency: Consistency
) -> PairMeasures:
    """Score all pairs at once, so that a score over classes has the same classes in every split.

    If pairs are graded (all or none are), their grades are used as performance.
    """
    graded = [pair.grades for pair in pairs if pair.grades]
    if graded:
        first, second = (mean_score(side) for side in zip(*graded, strict=True))
        return combine_parts(first, second, consistency(pairs))
    due, again = [pair.reference for pair in pairs], [pair.modified_reference for pair in pairs]
    return combine_parts(
        performance(due, [pair.original_output for pair in pairs]),
        performance(again, [pair.modified_output for pair in pairs]),
        consistency(pairs),
    )


def combine_parts(performance: PerItem, modified: PerItem, consistency: PerItem) -> PairMeasures:
    """Combine scores of the same pairs with their joint measures, item by item."""
    right, same = _own_share(performance), _own_share(consistency)
    parts = (performance, modified, consistency, mean_score(right), mean_score(right * same))
    return PairMeasures(rows=np.hstack([part.sums for part in parts]), parts=parts)


def average_measures(each: Sequence[PairMeasures]) -> PairMeasures:
    """Average the scores of the same pairs asked in several ways, using all answers to each."""
    parts = tuple(average_scores(parts) for parts in zip(*(one.parts for one in each), strict=True))
    return PairMeasures(rows=np.hstack([part.sums for part in parts]), parts=parts)


def _own_share(part: PerItem) -> Array:
    """Return each item's own score as a share of the best possible one, or 0 if it has none."""
    found = np.nan_to_num(part.value(part.sums))
    return np.asarray(found / max(float(found.max(initial=0.0)), np.finfo(float).tiny))


def list_score_notes(pairs: Sequence[Pair], items: PairMeasures) -> tuple[str, ...]:
    """Return notes for readers of the scores, one sentence each."""
    empty = sum(not pair.reference.strip() for pair in pairs)
    lost = sum(bool(pair.reference and not pair.modified_reference) for pair in pairs)
    found = [
        f"{empty} of {len(pairs)} items have no reference and are used only for consistency"
        if empty
        else "",
        f"{lost} of {len(pairs)} items lack the right option's text among their modified options "
        "and are excluded from the decline"
        if lost
        else "",
        *(
            f"{whose}: {note}"
            for whose, part in zip(_WHOSE, items.parts, strict=False)
            for note in part.notes
        ),
    ]
    return tuple(dict.fromkeys(filter(None, found)))


Flags = NDArray[np.bool_]
Counts = Mapping[Status, int]

REFUSAL_LENGTH: Final = 300
"""The longest text that can count as a refusal, in characters.

Our choice: refusals are clear in a short text; a long text may quote one.
"""
_DECLINES_CHINESE: Final = ("无法回答", "不能回答", "无法提供", "抱歉", "对不起")
_NO_ANSWER: Final = "\N{SYMBOL FOR NULL}"
"""A text that is not a reference of any item."""


def read_statuses(pair: Pair) -> tuple[Status, Status]:
    """Return the status of an item's two questions, as recorded or as read from the answers."""
    return (
        pair.original_status or _status_of_output(pair.original_output, pair.reference),
        pair.modified_status or _status_of_output(pair.modified_output, pair.modified_reference),
    )


def _status_of_output(output: str, reference: str) -> Status:
    """Return `empty` for no text, `refused` for a short refusal in words, or `answered`."""
    said = output.strip()
    if not said:
        return "empty"
    if said == reference.strip() or len(said) > REFUSAL_LENGTH:
        return "answered"
    chinese = any(words in said for words in _DECLINES_CHINESE)
    return "refused" if chinese or (" " in said and declines(said)) else "answered"


def count_statuses(pairs: Sequence[Pair]) -> tuple[Counts, Counts]:
    """Count each status of the original and of the modified questions."""
    both = [read_statuses(pair) for pair in pairs]
    first, second = (Counter(each[side] for each in both) for side in (0, 1))
    return _order_counts(first), _order_counts(second)


def _order_counts(counts: Counter[Status]) -> Counts:
    return {status: counts[status] for status in STATUSES if counts[status]}


def mark_unanswered(pairs: Sequence[Pair]) -> Flags:
    """Mark the items with at least one unanswered question."""
    return np.array([read_statuses(pair) != ("answered", "answered") for pair in pairs], np.bool_)


def rates_differ(first: Flags, second: Flags) -> bool:
    """Return whether two splits differ in their rates of unanswered items.

    Fisher's exact test at 5 %, two-sided (Fisher 1922).
    """
    from scipy.stats import fisher_exact  # type: ignore[import-untyped]  # slow to import

    if not len(first) or not len(second):
        return False
    table = [[int(each.sum()), int((~each).sum())] for each in (first, second)]
    return bool(fisher_exact(table).pvalue <= SIGNIFICANCE)


def assume_outcomes(
    items: PairMeasures, pairs: Sequence[Pair], performance: Performance, right: Flags, wrong: Flags
) -> PairMeasures:
    """Score the same pairs as if some were right and consistent, and others were neither."""
    _, modified, consistency = items.parts[:3]
    sums = consistency.sums.copy()
    sums[right, 0], sums[wrong, 0] = sums[right, 1], 0.0
    steady: PerItem = replace(consistency, sums=sums)
    return combine_parts(_assume_scores(pairs, performance, right, wrong), modified, steady)


def _assume_scores(
    pairs: Sequence[Pair], performance: Performance, right: Flags, wrong: Flags
) -> PerItem:
    """Return the performance on the originals if some were right, and others wrong."""
    graded = [pair.grades[0] for pair in pairs if pair.grades]
    if graded:
        return mean_score(np.where(right, 1.0, np.where(wrong, 0.0, graded)))
    said = [
        pair.reference if good else _NO_ANSWER if bad else pair.original_output
        for pair, good, bad in zip(pairs, right, wrong, strict=True)
    ]
    return performance([pair.reference for pair in pairs], said)
