"""MMLU and benchmarks in its form: CSV files of questions with two to 26 options.

The original files have no header, but the question, the options, and the letter of the right
option; there is a folder for each split with a file for each subject (`test/anatomy_test.csv`). A
file whose first line names a column `question` is read by its header, and Parquet files in the form
of the hub (`question, choices, answer`), like any other table of the kind choice.
"""

from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import arrow, tables
from coreeval.evaluation.benchmarks.files import display_path, make_digest, refuse_special_files
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    RowOrBad,
    Rows,
    SourceRow,
    make_bad_row,
)
from coreeval.evaluation.benchmarks.tables import TableRecord, read_csv_records
from coreeval.schema import MOST_OPTIONS, Task
from coreeval.tasks.kinds.choice import LETTERS

_ENDING: Final = ".csv"
_SPLITS: Final = ("auxiliary_train", "train", "validation", "val", "dev", "test")
_QUESTION: Final = "question"
_FEWEST_CELLS: Final = 4
"""The fewest cells of a row: the question, two options and the letter."""


def _locate(config: DatasetConfig) -> dict[str, list[Path]]:
    """Return the CSV files by split; none if there are only other files."""
    root = Path(config.path)
    if root.is_file():
        return {config.split: [root]} if root.suffix == _ENDING else {}
    found = dict[str, list[Path]]()
    for path in sorted([*root.glob(f"*{_ENDING}"), *root.glob(f"*/*{_ENDING}")]):
        refuse_special_files(root, [path])
        split = path.parent.name if path.parent != root else _split_in_name(path.stem)
        found.setdefault(split, []).append(path)
    return found


def _split_in_name(stem: str) -> str:
    """Return the split at the end of `anatomy_test`, or the whole name."""
    return next((split for split in _SPLITS if stem.endswith(f"_{split}")), stem)


def _splits(config: DatasetConfig) -> list[str]:
    return sorted(_locate(config)) or _splits_of_parquet(config)


def _splits_of_parquet(config: DatasetConfig) -> list[str]:
    try:
        return arrow.PARQUET.splits(config)
    except DatasetError as error:
        split = config.split
        hint = f"looked for {split}.csv, {split}/SUBJECT_{split}.csv and Parquet files"
        raise DatasetError(str(error.message), where=config.path, hint=hint) from None


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return _locate(config).get(split) or tables.locate_files(config, arrow.SUFFIX)[split]


def _rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    files = _locate(config).get(split)
    if files is None:
        return arrow.PARQUET.rows(config, task, split)
    if config.columns or _has_header(files[0]):
        return tables.open_delimited(read_csv_records)(config, task, files)
    return chain.from_iterable(_iter_rows(path, config, split) for path in files)


def _has_header(path: Path) -> bool:
    first = next(read_csv_records(path), None)
    return first is not None and _QUESTION in (cell.strip().casefold() for cell in first.cells)


def _iter_rows(path: Path, config: DatasetConfig, split: str) -> Rows:
    subject = path.stem.removesuffix(f"_{split}")
    place = _Place(display_path(path, config), f"{subject}/{split}" if subject != split else "")
    return (_make_row(record, place) for record in read_csv_records(path))


class _Place(NamedTuple):
    """The file of a subject's questions."""

    file: str
    prefix: str
    """The prefix of the ids of its questions."""


def _make_row(record: TableRecord, place: _Place) -> RowOrBad:
    cells = record.cells
    while len(cells) > _FEWEST_CELLS and not cells[-2].strip():  # a question with fewer options
        del cells[-2]
    defect = record.defect or _find_defect(cells)
    if defect:
        return make_bad_row(place.file, record.line, defect, record.raw)
    question, *options, letter = cells
    return SourceRow(
        file=place.file,
        line=record.line,
        number=record.line,
        values={"question": question, "choices": options, "answer": LETTERS.index(letter.strip())},
        id=f"{place.prefix}/{record.line}" if place.prefix else None,
        raw=record.raw,
    )


def _find_defect(cells: list[str]) -> str:
    if not _FEWEST_CELLS <= len(cells) <= MOST_OPTIONS + 2:
        return (
            f"the line has {len(cells)} cells, but it must have a question, 2 to {MOST_OPTIONS} "
            "options and the letter of the right one"
        )
    letters = LETTERS[: len(cells) - 2]
    if cells[-1].strip() not in tuple(letters):
        return (
            f"the last cell, {cells[-1][:100]!r}, is not an option letter (A to {letters[-1]}); if "
            f"the file has a header, one of its columns must be named {_QUESTION!r}"
        )
    return ""


MMLU = BenchmarkFormat(
    splits=_splits,
    rows=_rows,
    digest=make_digest(_files),
    spellings={"validation": "val"},
    kind="choice",
    fields=("question",),
)
