"""Guesses the kind of task of a table, and the contents of its columns, for a first config."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from coreeval.config import DatasetConfig
from coreeval.config.user_files import suggest_file
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.choice_guess import (
    CHOICE_TASK,
    QUESTION_NAMES,
    find_choice_columns,
)
from coreeval.evaluation.benchmarks.files import BadRecord
from coreeval.evaluation.benchmarks.rows import MOST_LISTED, find_columns
from coreeval.evaluation.benchmarks.tables import (
    PEEKED,
    Reader,
    read_body,
    read_csv_records,
    read_header,
    read_json_rows,
    read_tsv_records,
)
from coreeval.tasks import load_task
from coreeval.tasks.kinds import kind_of
from coreeval.tasks.kinds.answer import ANSWERS
from coreeval.tasks.kinds.base import QUESTION, match_names
from coreeval.tasks.label_finder import fold_name, parse_label_number
from coreeval.tools.formatting import format_quantity, list_first

MOST_ROWS = 20_000
"""The most rows to examine."""
_FEWEST_LABELS = 2
MOST_LABELS = 50
"""The most values of a column that count as labels (own choice)."""
TEXT_NAMES = ("text", "tweet", "sentence", "headline", "title", "content", "message", "review")
LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "emotion", "gold", "target")
"""Usual names of columns, most usual first; other columns are recognised by their values."""
TWEET_SHARE = 0.1
"""The share of texts with a hashtag or a mention from which they count as tweets (own choice)."""
_DELIMITED: Mapping[str, Reader] = {".csv": read_csv_records, ".tsv": read_tsv_records}


@dataclass(frozen=True, kw_only=True)
class TableGuess:
    """The probable contents of a table's columns."""

    format: str
    """The `dataset.format` that reads the file."""
    rows: int
    """The number of examined rows, without those that cannot be read."""
    unreadable: str
    """The number of rows that cannot be read, with the line and reason of the first; "" if there
    are none."""
    texts: tuple[str, ...]
    """The columns with the texts, at least one."""
    label: str
    """The column with the label."""
    unused: tuple[str, ...]
    """The columns that are not read."""
    labels: Mapping[str, int]
    """The number of occurrences of each label, in alphabetical order, as spelled by
    `simplify_label`."""
    spellings: Mapping[str, str]
    """The first spelling and line of each label."""
    unlabelled: str
    """The number of rows whose label is only a dash, as SNLI writes it; "" if there are none."""
    splits: str
    """The column with the split of each row, and its values; "" if there is none."""
    tweets: bool
    """Whether the texts look like tweets."""


ITEM_TASKS = ("multiple_choice", "reading_comprehension", "question_answering", "summarization")
"""The built-in tasks that a table's columns may fit, the most specific first."""
_USUAL = {
    QUESTION: QUESTION_NAMES,
    ANSWERS: ("answers", "answer", "correctanswer", "goldanswer", "referenceanswer"),
}
"""Usual names of columns by ours, folded."""


@dataclass(frozen=True, kw_only=True)
class ItemGuess:
    """A built-in task that a table's columns fit."""

    task: str
    format: str
    """The `dataset.format` that reads the file."""
    rows: int
    """The number of examined rows."""
    columns: Mapping[str, str]
    """The table's columns by our names, if they differ."""
    read: tuple[str, ...]
    """The columns to read."""
    unused: tuple[str, ...]
    """The columns that are not read."""
    splits: str
    """The column with the split of each row, and its values; "" if there is none."""


def guess_items(path: Path, *, answer: str | None = None) -> ItemGuess | None:
    """Return the built-in task of choices, answers or summaries that a table's columns fit.

    Choices are recognised by columns such as `opt_a`, `opt_b` and by a column whose values name one
    of them; the other tasks by the names of their columns. Return None if the table fits none, or
    has a column with the name of a label.

    Args:
        path: The file.
        answer: The column with the right option. If it is given, only choices are recognised.

    Raises:
        DatasetError: the file cannot be read, or it is unclear which option is right.
    """
    rows = [each.values for each in islice(_read_rows(path), MOST_ROWS) if each.values]
    present = list(dict.fromkeys(name for row in rows[:PEEKED] for name in row))
    if choice := find_choice_columns(rows, present, where=str(path), answer=answer):
        return _fit_task(path, CHOICE_TASK, choice.by_our_names(), present, rows)
    if answer or match_names(present, {name: (name,) for name in LABEL_NAMES}):
        return None
    for name in ITEM_TASKS:
        task, kind = load_task(name), kind_of(load_task(name))
        ours = (*kind.required(task), *kind.optional)
        usual = {each: (each.casefold().replace("_", ""),) for each in ours}
        own = match_names(present, usual | {each: _USUAL[each] for each in ours if each in _USUAL})
        if fitting := _fit_task(path, name, own, present, rows):
            return fitting
    return None


def _fit_task(
    path: Path,
    name: str,
    ours: Mapping[str, str],
    present: Sequence[str],
    rows: Sequence[Mapping[str, str]],
) -> ItemGuess | None:
    """Return the guess of a task with these columns by our names; None if some are missing."""
    columns = {each: column for each, column in ours.items() if each != column}
    data = DatasetConfig(format=path.suffix.lower()[1:], path=str(path), columns=columns)
    try:
        found = find_columns(data, load_task(name), present, where=str(path))
    except DatasetError:
        return None
    unused = tuple(column for column in present if column not in found.names)
    return ItemGuess(
        task=name,
        format=data.format,
        rows=len(rows),
        columns=columns,
        read=tuple(column for column in found.values.values() if column in present),
        unused=unused,
        splits=_describe_splits(rows, unused),
    )


def guess_table(path: Path, *, texts: Sequence[str] = (), label: str | None = None) -> TableGuess:
    """Return the probable contents of the columns of a CSV, TSV or JSON Lines file.

    Args:
        path: The file.
        texts: The columns with the texts; guessed if there are none.
        label: The column with the label; guessed if None.

    Raises:
        DatasetError: the file cannot be read, a column does not exist, or no column can be the
            label or the text.
    """
    records = list(islice(_read_rows(path), MOST_ROWS))
    unreadable = _describe_unreadable(records)
    lines, rows = (
        [each.line for each in records if each.values],
        [each.values for each in records if each.values],
    )
    if not rows:
        told = f": {unreadable}" if unreadable else ""
        hint = _ENCODING_HINT if unreadable else "use a file with a header and a row for each text"
        raise DatasetError(f"the file has no rows{told}", where=str(path), hint=hint)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for name in (*texts, *([label] if label else [])):
        if name not in columns:
            raise DatasetError(
                f"there is no column {name!r}", where=str(path), hint=_list_columns(columns)
            )
    try:
        gold = label or _guess_label(path, columns, rows, texts)
        labels = _count_labels(path, rows, gold)
    except DatasetError as error:
        if not unreadable:
            raise
        told, hint = f"{error.message}; {unreadable}", f"{_ENCODING_HINT}; {error.hint}"
        raise DatasetError(told, where=error.where, hint=hint) from None
    if not (texts or label) and path.suffix.lower() != ".jsonl":
        _refuse_missing_header(path, gold, labels)
    dashes, labels = _split_off_dashes(labels)
    chosen = tuple(texts) or (_guess_text(path, columns, rows, gold),)
    unused = tuple(name for name in columns if name not in {*chosen, gold, "id", "cluster"})
    marked = sum(any(sign in row.get(chosen[0], "") for sign in "#@") for row in rows)
    return TableGuess(
        format=path.suffix.lower()[1:],
        rows=len(rows),
        unreadable=unreadable,
        texts=chosen,
        label=gold,
        unused=unused,
        labels=labels,
        spellings=_find_spellings(rows, lines, gold),
        unlabelled=_describe_unlabelled(dashes),
        splits=_describe_splits(rows, unused),
        tweets=marked >= TWEET_SHARE * len(rows),
    )


def _refuse_missing_header(path: Path, gold: str, labels: Mapping[str, int]) -> None:
    """Raise an error if the name of the label column is one of its values."""
    if simplify_label(gold.strip()) in labels:
        raise DatasetError(
            f"the file seems to have no header: {gold!r} in its first line is also a label",
            where=str(path),
            hint="add a first line that names the columns, such as text and label; if the first "
            f"line is the header, use --label {shlex.quote(gold)}",
        )


def _split_off_dashes(labels: Mapping[str, int]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the labels that are only dashes, which mean none, and all others.

    Beside another sign, such as `+`, a dash is a label.
    """
    dashes = {value: count for value, count in labels.items() if not fold_name(value)}
    others = {value: count for value, count in labels.items() if value not in dashes}
    has_signs = any(not any(map(str.isalnum, value)) for value in others)
    return ({}, labels) if has_signs or len(others) < _FEWEST_LABELS else (dashes, others)


def _describe_unlabelled(dashes: Mapping[str, int]) -> str:
    values = " or ".join(map(repr, dashes))
    return f"{format_quantity(sum(dashes.values()), 'row')} with {values}" if dashes else ""


def _describe_splits(rows: Sequence[Mapping[str, str]], unused: Sequence[str]) -> str:
    """Return the unused column with the split of each row, and its values; "" without several."""
    column = next((name for name in unused if fold_name(name) == "split"), "")
    found = Counter(value for row in rows if column and (value := row.get(column, "").strip()))
    if not 1 < len(found) <= len(_SPLITS) or not _SPLITS.issuperset(map(str.casefold, found)):
        return ""
    counts = ", ".join(f"{value} ({count:,})" for value, count in found.items())
    return f"the column {column!r} has {counts}"


_SPLITS = frozenset(("train", "training", "test", "testing", "dev", "val", "valid", "validation"))


class _Row(NamedTuple):
    line: int
    values: dict[str, str]
    """The values; empty if the row cannot be read."""
    defect: str = ""


def _read_rows(path: Path) -> Iterator[_Row]:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DatasetError("there is no such file", where=str(path), hint=_suggest_file(path))
    if suffix == ".jsonl":
        yield from _read_objects(path)
        return
    if suffix not in _DELIMITED:
        raise DatasetError(
            f"coreeval init does not read {suffix or 'files without an ending'}",
            where=str(path),
            hint="use a .csv, .tsv or .jsonl file; for another format, write the config by "
            "hand (coreeval docs datasets)",
        )
    names = _read_names(path, suffix)
    for record in read_body(path, _DELIMITED[suffix], len(names)):
        values = {} if record.defect else dict(zip(names, record.cells, strict=True))
        yield _Row(record.line, values, record.defect)


def _read_names(path: Path, suffix: str) -> list[str]:
    """Return the names of the columns; raise an error if another character separates the cells."""
    try:
        names = read_header(path, _DELIMITED[suffix])
    except DatasetError as error:
        hint = error.hint or "use a file with a header and a row for each text"
        raise DatasetError(error.message, where=error.where, hint=hint) from None
    own = _DELIMITERS[suffix]
    found = next((one for one in (";", "\t", ",", "|") if one != own and one in names[0]), None)
    if len(names) == 1 and found:
        raise DatasetError(
            f"the columns of this file are separated by {_NAMES.get(found, found)!s}, but "
            f"{suffix} needs {_NAMES.get(own, own)!s}",
            where=str(path),
            hint="save it as CSV with commas, or as TSV with tabs and the ending .tsv",
        )
    return names


_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_NAMES = {";": "semicolons (;)", "\t": "tabs", ",": "commas (,)", "|": "bars (|)"}
_ENCODING_HINT = "correct these lines; if a line is not UTF-8, save the file as UTF-8"


def _suggest_file(path: Path) -> str:
    """Return a file with a name similar to the missing one's, or a hint on what to check."""
    if not path.parent.is_dir():
        return f"check the path: there is no folder {str(path.parent)!r}"
    return suggest_file(path) or "check the path"


def _read_objects(path: Path) -> Iterator[_Row]:
    for row in read_json_rows(path):
        if isinstance(row.values, BadRecord):
            yield _Row(row.line, {}, row.values.reason)
        elif row.values is not None:
            known = {key: str(value) for key, value in row.values.items() if value is not None}
            yield _Row(row.line, known)


def _describe_unreadable(records: Sequence[_Row]) -> str:
    bad = [each for each in records if each.defect]
    if not bad:
        return ""
    what = f"{format_quantity(len(bad), 'row')} cannot be read"
    first = "" if len(bad) == 1 else "the first: "
    return f"{what}: {first}line {bad[0].line}: {bad[0].defect}"


def _find_spellings(
    rows: Sequence[Mapping[str, str]], lines: Sequence[int], label: str
) -> dict[str, str]:
    found = dict[str, str]()
    for row, line in zip(rows, lines, strict=True):
        value = row.get(label, "")
        found.setdefault(simplify_label(value.strip()), f"{value!r} (line {line})")
    return found


def _guess_label(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]], texts: Sequence[str]
) -> str:
    """Return the column with a usual name, or the only one with few, repeated values."""
    if named := _find_named(LABEL_NAMES, [name for name in columns if name not in texts]):
        return named
    few = [name for name in _find_few_valued(rows) if name not in texts]
    if len(few) == 1:
        return few[0]
    raise DatasetError(
        "the label column is unclear",
        where=str(path),
        hint=f"name it with --label COLUMN; {_list_columns(columns)}. For questions with options "
        "or answers see: coreeval docs datasets",
    )


def _find_few_valued(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the columns with few values that recur, in order of first appearance.

    Each cell is looked at once, because every row of JSON lines may have its own columns.
    """
    values, filled = defaultdict[str, set[str]](set), Counter[str]()
    for row in rows:
        filled.update(row.keys())
        for name, value in row.items():
            values[name].add(value)
    for name, found in values.items():
        if filled[name] < len(rows):
            found.add("")
    few = range(2, min(MOST_LABELS, len(rows) // 3) + 1)
    return [name for name, found in values.items() if len(found) in few]


def _guess_text(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]], label: str
) -> str:
    """Return the column with a usual name, or the one with the longest values."""
    others = [name for name in columns if name != label]
    if not others:
        raise DatasetError("the label is the only column", where=str(path))
    if named := _find_named(TEXT_NAMES, others):
        return named
    sizes = Counter[str]()
    for row in rows:
        sizes.update({name: len(value) for name, value in row.items()})
    return max(others, key=sizes.__getitem__)


def _find_named(usual: Sequence[str], columns: Sequence[str]) -> str | None:
    by_name = {name.casefold(): name for name in reversed(columns)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _count_labels(path: Path, rows: Sequence[Mapping[str, str]], label: str) -> Mapping[str, int]:
    values = (value for row in rows if (value := row.get(label, "").strip()))
    found = Counter(map(simplify_label, values))
    if not _FEWEST_LABELS <= len(found) <= MOST_LABELS:
        raise DatasetError(
            f"the {label!r} column has {len(found):,} values; a label column must have 2 to "
            f"{MOST_LABELS}",
            where=str(path),
            hint="name the column with --label COLUMN",
        )
    return dict(sorted(found.items()))


def simplify_label(value: str) -> str:
    """Return one spelling of a label that is a whole number: `1` for `1.0`, `1000` for `1e3`."""
    number = parse_label_number(value)
    return value if number is None else str(number)


def _list_columns(columns: Sequence[str]) -> str:
    return f"available columns: {list_first(columns, MOST_LISTED)}"
