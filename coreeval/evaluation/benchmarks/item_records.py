"""The records of a file of items, and the checks that turn each into an item.

Files are JSON lists or JSON Lines, one for each split. The options of a multiple-choice question
are found in its text.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    check_object,
    find_repeated_key,
    parse_object,
    read_lines,
    refuse_special_files,
)
from coreeval.evaluation.benchmarks.json_elements import iter_json_elements
from coreeval.evaluation.benchmarks.rows import find_id_defect, make_bad_row, refuse_mostly_bad
from coreeval.schema import BadRow, Item
from coreeval.tasks.kinds import is_encodable

PLACE = "{split}"
"""The placeholder for the split in the name of a file."""
SUFFIXES = ("", ".gz")


class ItemRecord(NamedTuple):
    """An entry of a file: its values, or the reason why it has none."""

    line: int
    """The line in the file, or the position in its list, from 1."""
    values: dict[str, object]
    defect: str = ""


def find_file(path: Path, split: str, names: Sequence[str]) -> Path:
    """Return the file of a split: the path itself if it is a file, or the first existing name.

    Raises:
        DatasetError: there is no such file, or a link leaves the folder.
    """
    if path.is_file():
        return path
    wanted = [name.replace(PLACE, split) for name in names]
    for place in (path / f"{name}{suffix}" for name in wanted for suffix in SUFFIXES):
        if place.is_file():
            refuse_special_files(path, [place])
            return place
    raise DatasetError(
        f"there is no file for the split {split!r}",
        where=str(path),
        hint=f"looked for {', '.join(wanted)} (or the same with .gz); available splits: "
        f"{', '.join(list_splits_in(path, names)) or 'none'}",
    )


def list_splits_in(path: Path, names: Sequence[str]) -> list[str]:
    """Return the splits of a folder's files, using the first naming scheme that matches."""
    files = [file.name.removesuffix(".gz") for file in path.glob("*")]
    for before, after in (name.split(PLACE) for name in names):
        if found := {
            file.removeprefix(before).removesuffix(after)
            for file in files
            if file.startswith(before) and file.endswith(after)
        }:
            return sorted(found)
    return []


def read_json_list(path: Path) -> Iterator[ItemRecord]:
    """Yield the objects in a file that contains a single JSON list.

    Raises:
        DatasetError: the file cannot be read, or is not such a list.
    """
    for place, element in enumerate(iter_json_elements(path), start=1):
        yield _make_record(place, check_object(element.value))


def read_json_lines(path: Path) -> Iterator[ItemRecord]:
    """Yield the objects in a file with one per line, skipping blank lines.

    Raises:
        DatasetError: the file cannot be read.
    """
    for line in read_lines(path):
        if line.raw.strip():
            yield _make_record(line.number, parse_object(line))


def _make_record(line: int, found: dict[str, object] | BadRecord) -> ItemRecord:
    if isinstance(found, BadRecord):
        return ItemRecord(line, {}, found.reason)
    return ItemRecord(line, found, find_repeated_key(found.get("options"), found.get("qa")))


_BRACKET = re.compile(r"\['A'\s*:")
_MARKS = tuple(re.compile(rf",\s*'{letter}'\s*:") for letter in "BCD")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class OptionSpan(NamedTuple):
    """The position of a text inside another."""

    start: int
    end: int


def find_bracketed_options(text: str) -> dict[str, str]:
    """Return the options in FinEval's form `['A': one, 'B': two, …]`, or none without it."""
    marks = [_BRACKET.search(text)]
    for mark in _MARKS:  # one by one: a single pattern would try every combination
        marks.append(marks[-1] and mark.search(text, marks[-1].end()))
    found = [mark for mark in marks if mark]
    end = text.rfind("]", found[-1].end()) if found else -1
    if len(found) < len(marks) or end < 0:
        return {}
    ends = [*(mark.start() for mark in found[1:]), end]
    parts = (text[mark.end() : at].strip() for mark, at in zip(found, ends, strict=True))
    return dict(zip("ABCD", parts, strict=True))


def letter_options(texts: list[str]) -> dict[str, str]:
    """Assign letters from A on to the texts, at most 26."""
    return dict(zip(_LETTERS, texts, strict=False))


def find_option_spans(text: str, options: Mapping[str, str]) -> dict[str, OptionSpan] | None:
    """Return the span of each option's text; each must follow its letter, in order.

    Return None if the text has no such list. If there are several such lists, the last one counts.
    """
    patterns = [_option_pattern(letter, option) for letter, option in options.items()]

    def find_rest(first: re.Match[str]) -> list[OptionSpan]:
        """Return the spans of a list that starts here; none if an option is missing."""
        found, at = [OptionSpan(*first.span(1))], first.end()
        for pattern in patterns[1:]:
            if not (match := pattern.search(text, at)):
                return []
            found.append(OptionSpan(*match.span(1)))
            at = match.end()
        return found

    starts = [*patterns[0].finditer(text)]
    # if a list is not complete, no later one is
    lists = bisect_left(starts, True, key=lambda first: not find_rest(first))
    return dict(zip(options, find_rest(starts[lists - 1]), strict=True)) if lists else None


def _option_pattern(letter: str, option: str) -> re.Pattern[str]:
    after = r"(?![A-Za-z0-9])" if option[-1:].isascii() and option[-1:].isalnum() else ""
    return re.compile(rf"(?<![^\W_]){re.escape(letter)}[^\w\n]{{1,6}}({re.escape(option)}){after}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEntry:
    """The raw parts of an item, not yet checked."""

    input: object
    output: object
    id: object = None
    options: Mapping[str, str] | None = None
    cluster: object = None
    """The document that the item is about."""

    @classmethod
    def of(cls, values: Mapping[str, object], *, id_key: str = "id") -> Self:
        """Create an entry from the keys input and output, and from the id under `id_key`."""
        return cls(input=values.get("input"), output=values.get("output"), id=values.get(id_key))

    def with_options(self, options: Mapping[str, str]) -> Self:
        """Return the entry with the given options, which map letters to texts."""
        return replace(self, options=options)


def make_own_entry(record: ItemRecord) -> ItemEntry | str:
    """Return the entry of a line in a user's file: input, output and any of the other keys.

    Options are a list of texts, lettered from A on, or an object from letter to text. If the input
    does not show them, they are added below it, one per line.
    """
    entry, given = ItemEntry.of(record.values), record.values.get("options")
    entry = replace(entry, cluster=record.values.get("cluster"))
    if not given:
        return entry
    options = _read_options(given)
    if isinstance(options, str) or not isinstance(entry.input, str):
        return options if isinstance(options, str) else entry
    if find_option_spans(entry.input, options):
        return entry.with_options(options)
    below = "\n".join(f"{letter}. {text}" for letter, text in options.items())
    return replace(entry, input=f"{entry.input.rstrip()}\n{below}", options=options)


def _read_options(given: object) -> dict[str, str] | str:
    """Return options by letter, or the reason why they are invalid."""
    found = letter_options(given) if isinstance(given, list) else given
    if not isinstance(found, dict) or len(found) != len(
        given if isinstance(given, list) else found
    ):
        return (
            "options is neither a list of at most 26 texts nor an object that maps letters to texts"
        )
    if len(found) < 2 or not all(isinstance(text, str) and text.strip() for text in found.values()):
        return "options must contain at least two non-blank texts"
    if not all(len(letter) == 1 and letter.isupper() for letter in found):
        return "the keys of options must be single capital letters"
    return {letter: text.strip() for letter, text in found.items()}


def check_items(
    records: Iterator[ItemRecord],
    make: Callable[[ItemRecord], ItemEntry | str],
    *,
    benchmark: str,
    split: str,
    file: str,
) -> Iterator[Item | BadRow]:
    """Yield each record as an item, or as a bad row if it is invalid or repeats an id.

    Raises:
        DatasetError: most of very many records are invalid.
    """
    seen, good, bad, first = set[str](), 0, 0, None
    for record in records:
        entry = record.defect or make(record)
        reason = entry if isinstance(entry, str) else _entry_defect(entry, seen)
        if isinstance(entry, str) or reason:
            row = make_bad_row(file, record.line, str(reason), str(record.values or ""))
            bad, first = bad + 1, first or row
            refuse_mostly_bad(bad, good, first, where=file)
            yield row
            continue
        good += 1
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


def _entry_defect(entry: ItemEntry, seen: set[str]) -> str | None:
    for name, value in (("input", entry.input), ("output", entry.output)):
        if not isinstance(value, str):
            kind = "is missing" if value is None else f"must be a text, not {type(value).__name__}"
            return f"{name} {kind}"
        if not is_encodable(value):
            return f"{name} contains an incomplete character (a lone surrogate)"
    if not str(entry.input).strip():
        return "input is empty"
    if reason := _name_defect(entry, seen):
        return reason
    answer = str(entry.output).strip()
    if entry.options and answer and answer not in entry.options:
        return f"the output {answer!r} is not one of the options {', '.join(entry.options)}"
    return None


def _name_defect(entry: ItemEntry, seen: set[str]) -> str | None:
    if not is_encodable(str(entry.cluster or "")):
        return "cluster contains an incomplete character (a lone surrogate)"
    return None if entry.id is None else find_id_defect(str(entry.id), seen)
