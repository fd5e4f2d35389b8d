"""Recorded answers for PCR: what a model said to an item and to its modified version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, get_args

from coreeval.evaluation.benchmarks.files import BadRecord, Object, Records, read_records

Options = Mapping[str, str]
"""Text of a multiple-choice option by its letter."""
Status = Literal["answered", "refused", "empty", "truncated", "unparsed"]
"""What became of a question."""
STATUSES: tuple[Status, ...] = get_args(Status)
_TEXTS = ("split", "id", "reference", "original_output", "modified_output")
_CHOICES = ("original_choice", "modified_choice")
_OPTIONS = ("original_options", "modified_options")
_STATUSES = ("original_status", "modified_status")
_NAMES = ("cluster", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One item of a split, answered twice."""

    split: str
    id: str
    reference: str
    """The right answer to the original; without one the item counts for consistency only."""
    original_output: str
    modified_output: str
    original_choice: str | None = None
    """The letter that was read off the answer; none or several mean that it is unclear."""
    modified_choice: str | None = None
    original_options: Options | None = None
    modified_options: Options | None = None
    original_status: Status | None = None
    """None: told from the answer, see `statuses_of`."""
    modified_status: Status | None = None
    cluster: str | None = None
    """The document that the item is about, or a text that several items share; None: its own."""
    model: str | None = None
    """Who answered, where a file has several."""

    @property
    def modified_reference(self) -> str:
        """The right answer to the modified item: after a shuffle, the letter of the same text.

        Empty where the shuffled options have no such text, so that it can be counted.
        """
        if not self.original_options or not self.modified_options:
            return self.reference
        if self.reference not in self.original_options:
            return self.reference
        right = self.original_options[self.reference]
        letters = [letter for letter, text in self.modified_options.items() if text == right]
        return letters[0] if letters else ""


Pairs = Records[Pair]
"""The good lines of a file in its order, and the others."""


def read_pairs(path: Path) -> Pairs:
    """Read a file of JSON lines; a line that is no pair is kept with its number and the reason.

    Blank lines are none, keys besides those of `Pair` are passed over, and an id may be a whole
    number. Of lines with the same id in a split the first counts, for each model.

    Raises:
        DatasetError: the file cannot be read.
    """
    return read_records(
        path,
        _parse_pair,
        key=lambda pair: (pair.model, pair.split, pair.id),
        twice=_describe_repeat,
    )


def pairs_by_model(pairs: Pairs, name: str) -> dict[str, Pairs]:
    """Return the pairs of each model of a file; where there is one, it has the file's name."""
    models = list(dict.fromkeys(pair.model or name for pair in pairs.good))
    if len(models) < 2:
        return {name: pairs}
    return {
        model: replace(pairs, good=tuple(p for p in pairs.good if (p.model or name) == model))
        for model in models
    }


def _describe_repeat(pair: Pair, first: int) -> str:
    return f"the id {pair.id!r} is there twice in {pair.split!r}, first in line {first}"


def _parse_pair(values: Object) -> Pair | BadRecord:
    """Return the pair in a line, or what is wrong with it."""
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
    """Return options by letter; those of a list are A, B and so on."""
    if isinstance(value, Mapping):
        return dict(value)
    return dict(zip(ascii_uppercase, value, strict=False)) if isinstance(value, list) else None


# -- what can be wrong ----------------------------------------------------------------------------


def _defects(values: Mapping[str, object]) -> Iterator[str]:
    """Yield what makes an object no pair, the one side that is missing before all else."""
    sides = [values.get(name) is None for name in ("original_output", "modified_output")]
    if any(sides) and not all(sides):
        yield f"a pair with one side: there is no {'original' if sides[0] else 'modified'}_output"
    for name in _TEXTS:
        yield from _text_defects(name, values.get(name))
    for name in (*_CHOICES, *_NAMES):
        if values.get(name) is not None:
            yield from _text_defects(name, values[name])
    for name in _STATUSES:
        if values.get(name) not in (None, *STATUSES):
            yield f"{name} is none of {', '.join(STATUSES)}"
    for name in _OPTIONS:
        yield from _option_defects(name, values.get(name))


def _text_defects(name: str, value: object) -> Iterator[str]:
    whole = name == "id" and isinstance(value, int) and not isinstance(value, bool)
    if value is None:
        yield f"{name} is missing"
    elif not isinstance(value, str) and not whole:
        yield f"{name} is no text but {type(value).__name__}"
    elif name in ("id", "split") and not str(value).strip():
        yield f"{name} is empty"
    elif not _is_encodable(str(value)):
        yield f"{name} holds half a character (a lone surrogate)"


def _option_defects(name: str, value: object) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, dict | list):
        yield f"{name} is neither an object of texts by letter nor a list of texts"
        return
    texts = value.values() if isinstance(value, dict) else value
    if len(texts) > len(ascii_uppercase):
        yield f"{name} has more options than there are letters"
    for text in texts:
        yield from _text_defects(f"an option of {name}", text)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
