"""From a record of a file to an item: the checks that all benchmarks share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from coreeval.evaluation.benchmarks.item_files import Record
from coreeval.evaluation.benchmarks.options import lettered, option_spans
from coreeval.evaluation.benchmarks.rows import bad_row, encodable
from coreeval.schema import BadRow, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What an item is made of, not yet checked."""

    input: object
    output: object
    id: object = None
    options: Mapping[str, str] | None = None
    cluster: object = None
    """The document that the item is about."""

    @classmethod
    def of(cls, values: Mapping[str, object], *, id_key: str = "id") -> Self:
        """Take the keys input and output, and the id under a key of its own."""
        return cls(input=values.get("input"), output=values.get("output"), id=values.get(id_key))

    def with_options(self, options: Mapping[str, str]) -> Self:
        """Return the entry with the text of each option letter."""
        return replace(self, options=options)


def own_item(record: Record) -> Entry | str:
    """Return the entry of a user's own line: input, output, and what it has of the other keys.

    Options are a list of texts, lettered from A on, or an object from letter to text. Where the
    input does not show them, they are put below it, a line each.
    """
    entry, given = Entry.of(record.values), record.values.get("options")
    entry = replace(entry, cluster=record.values.get("cluster"))
    if not given:
        return entry
    options = _options(given)
    if isinstance(options, str) or not isinstance(entry.input, str):
        return options if isinstance(options, str) else entry
    if option_spans(entry.input, options):
        return entry.with_options(options)
    below = "\n".join(f"{letter}. {text}" for letter, text in options.items())
    return replace(entry, input=f"{entry.input.rstrip()}\n{below}", options=options)


def _options(given: object) -> dict[str, str] | str:
    """Return options by letter, or what is wrong with them."""
    found = lettered(given) if isinstance(given, list) else given
    if not isinstance(found, dict) or len(found) != len(
        given if isinstance(given, list) else found
    ):
        return "options is no list of at most 26 texts and no object from letter to text"
    if len(found) < 2 or not all(isinstance(text, str) and text.strip() for text in found.values()):
        return "options needs two texts or more, and none may be blank"
    if not all(len(letter) == 1 and letter.isupper() for letter in found):
        return "options are named by single capital letters"
    return {letter: text.strip() for letter, text in found.items()}


def checked_items(
    records: Iterator[Record],
    make: Callable[[Record], Entry | str],
    *,
    benchmark: str,
    split: str,
    file: str,
) -> Iterator[Item | BadRow]:
    """Yield each record as an item, or as what is wrong with it; ids are there once."""
    seen: set[str] = set()
    for record in records:
        entry = record.defect or make(record)
        reason = entry if isinstance(entry, str) else _defect(entry, seen)
        if isinstance(entry, str) or reason:
            yield bad_row(file, record.line, str(reason), str(record.values or ""))
            continue
        own = f"{benchmark}/{split}/{record.line}" if entry.id is None else str(entry.id)
        seen.add(own)
        yield Item(
            id=own,
            split=split,
            input=str(entry.input),
            output=str(entry.output),
            options=dict(entry.options or {}),
            cluster=str(entry.cluster or ""),
        )


def _defect(entry: Entry, seen: set[str]) -> str | None:
    for name, value in (("input", entry.input), ("output", entry.output)):
        if not isinstance(value, str):
            kind = "missing" if value is None else f"no text but {type(value).__name__}"
            return f"{name} is {kind}"
        if not encodable(value):
            return f"{name} holds half a character (a lone surrogate)"
    if not str(entry.input).strip():
        return "input is empty"
    if reason := _name_defect(entry, seen):
        return reason
    answer = str(entry.output).strip()
    if entry.options and answer and answer not in entry.options:
        return f"the output {answer!r} is none of the options {', '.join(entry.options)}"
    return None


def _name_defect(entry: Entry, seen: set[str]) -> str | None:
    if not encodable(str(entry.cluster or "")):
        return "cluster holds half a character (a lone surrogate)"
    if entry.id is not None and not str(entry.id).strip():
        return "the id is empty"
    if entry.id is not None and str(entry.id) in seen:
        return f"the id {str(entry.id)!r} is there twice"
    return None
