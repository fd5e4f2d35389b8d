"""Guesses which columns of a labelled table are its texts and its labels, for a first config."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.tables import (
    Reader,
    read_body,
    read_csv_records,
    read_header,
    read_objects,
    read_tab_records,
)

MOST_ROWS = 20_000
"""Most rows that are looked at."""
MOST_LABELS = 50
"""Most values of a column that count as labels (own choice)."""
TEXT_NAMES = ("text", "tweet", "sentence", "headline", "title", "content", "message", "review")
LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "emotion", "gold", "target")
"""Usual names of columns, most usual first; others are told by what is in them."""
TWEET_SHARE = 0.1
"""Share of the texts with a hashtag or a mention from which they count as tweets (own choice)."""
_DELIMITED: Mapping[str, Reader] = {".csv": read_csv_records, ".tsv": read_tab_records}


@dataclass(frozen=True, kw_only=True)
class TableGuess:
    """What a table's columns seem to be."""

    format: str
    """The `dataset.format` that reads the file."""
    rows: int
    """The number of rows that were looked at."""
    texts: tuple[str, ...]
    """The columns with the texts, at least one."""
    label: str
    """The column with the label."""
    labels: Mapping[str, int]
    """How often each label occurs, in alphabetical order."""
    tweets: bool
    """Whether the texts are written like tweets."""


def guess_table(path: Path, *, texts: Sequence[str] = (), label: str | None = None) -> TableGuess:
    """Return what the columns of a CSV, TSV or JSON Lines file seem to be.

    Args:
        path: The file.
        texts: The columns with the texts; guessed if there are none.
        label: The column with the label; guessed if None.

    Raises:
        DatasetError: the file cannot be read, a column does not exist, or no column can be the
            label or the text.
    """
    rows = list(islice(_read_rows(path), MOST_ROWS))
    if not rows:
        raise DatasetError("the file has no rows", where=str(path))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for name in (*texts, *([label] if label else [])):
        if name not in columns:
            raise DatasetError(
                f"there is no column {name!r}", where=str(path), hint=_list_columns(columns)
            )
    gold = label or _guess_label(path, columns, rows, texts)
    chosen = tuple(texts) or (_guess_text(path, columns, rows, gold),)
    marked = sum(any(sign in row.get(chosen[0], "") for sign in "#@") for row in rows)
    return TableGuess(
        format=path.suffix.lower()[1:],
        rows=len(rows),
        texts=chosen,
        label=gold,
        labels=_count_labels(path, rows, gold),
        tweets=marked >= TWEET_SHARE * len(rows),
    )


def _read_rows(path: Path) -> Iterator[dict[str, str]]:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DatasetError("there is no such file", where=str(path))
    if suffix == ".jsonl":
        for row in read_objects(path):
            yield {key: str(value) for key, value in row.items() if value is not None}
        return
    if suffix not in _DELIMITED:
        raise DatasetError(
            f"files ending in {suffix!r} are not supported",
            where=str(path),
            hint="give a .csv, .tsv or .jsonl file; write the config of another format by hand "
            "(docs/datasets.md)",
        )
    names = read_header(path, _DELIMITED[suffix])
    for record in read_body(path, _DELIMITED[suffix], len(names)):
        if not record.defect:
            yield dict(zip(names, record.cells, strict=True))


def _guess_label(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]], texts: Sequence[str]
) -> str:
    """Return the column with a usual name, else the only one with few values that recur."""
    if named := _find_named(LABEL_NAMES, [name for name in columns if name not in texts]):
        return named
    few = [name for name in columns if name not in texts and _has_few_values(rows, name)]
    if len(few) == 1:
        return few[0]
    raise DatasetError(
        "the label column is unclear",
        where=str(path),
        hint=f"name it with --label COLUMN; {_list_columns(columns)}. For questions with options "
        "or answers see docs/datasets.md",
    )


def _has_few_values(rows: Sequence[Mapping[str, str]], name: str) -> bool:
    values = {row.get(name, "") for row in rows}
    return 2 <= len(values) <= MOST_LABELS and len(rows) >= 3 * len(values)


def _guess_text(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]], label: str
) -> str:
    """Return the column with a usual name, else the one with the longest values."""
    others = [name for name in columns if name != label]
    if not others:
        raise DatasetError("the label is the only column", where=str(path))
    return _find_named(TEXT_NAMES, others) or max(
        others, key=lambda name: sum(len(row.get(name, "")) for row in rows)
    )


def _find_named(usual: Sequence[str], columns: Sequence[str]) -> str | None:
    by_name = {name.casefold(): name for name in reversed(columns)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _count_labels(path: Path, rows: Sequence[Mapping[str, str]], label: str) -> Mapping[str, int]:
    found = Counter(value for row in rows if (value := row.get(label, "").strip()))
    if not 2 <= len(found) <= MOST_LABELS:
        raise DatasetError(
            f"the column {label!r} has {len(found):,} values; labels are 2 to {MOST_LABELS}",
            where=str(path),
            hint="name the column with --label COLUMN",
        )
    return dict(sorted(found.items()))


def _list_columns(columns: Sequence[str]) -> str:
    return f"there are {', '.join(columns)}"
