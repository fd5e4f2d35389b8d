"""ECTSum as its authors publish it: transcripts of earnings calls, each with a file of bullets.

A split is a folder with `ects/NAME.txt` and `gt_summaries/NAME.txt`; names are such as
`ABM_q1_2021`, the ticker of the company and the quarter. Calls of one company are one cluster.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from coreeval.config import DatasetConfig
from coreeval.config.user_files import read_text
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import make_digest, refuse_special_files
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    Rows,
    SourceRow,
    make_bad_row,
)
from coreeval.schema import Task

CALLS, SUMMARIES = "ects", "gt_summaries"
_QUARTER: Final = "_q"
"""The separator between the company and the quarter in a name."""


class EarningsCall(NamedTuple):
    """A transcript and its summary, or the reason why one of them cannot be read."""

    name: str
    document: str
    summary: str
    defect: str = ""


def has_ectsum_texts(path: Path, split: str) -> bool:
    """Return whether a folder has the transcripts of a split."""
    return (path / split / CALLS).is_dir()


def iter_calls(path: Path, split: str) -> Iterator[EarningsCall]:
    """Yield the transcripts of a split with their summaries, sorted by name.

    Raises:
        DatasetError: a link leads out of the folder.
    """
    for call in sorted((path / split / CALLS).glob("*.txt")):
        both = (call, path / split / SUMMARIES / call.name)
        refuse_special_files(path, both)
        try:
            document, summary = map(read_text, both)
        except (OSError, UnicodeDecodeError) as error:
            yield EarningsCall(call.stem, "", "", f"{call.name} cannot be read: {error}")
            continue
        defect = "" if document.strip() else f"{call.name} is empty"
        yield EarningsCall(call.stem, document, summary, defect)


def _splits(config: DatasetConfig) -> list[str]:
    root = Path(config.path)
    found = sorted(each.name for each in root.glob("*/") if has_ectsum_texts(root, each.name))
    if not found:
        raise DatasetError(
            "the folder has no transcripts" if root.is_dir() else "there is no such folder",
            where=str(root),
            hint=f"looked for folders such as {config.split}/{CALLS} and {config.split}/{SUMMARIES}"
            ", with a file NAME.txt for each call; unpack archives first",
        )
    return found


def _files(config: DatasetConfig, split: str) -> list[Path]:
    root = Path(config.path) / split
    return [path for part in (CALLS, SUMMARIES) for path in sorted((root / part).glob("*.txt"))]


def _rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    return _iter_rows(Path(config.path), split)


def _iter_rows(root: Path, split: str) -> Rows:
    for number, call in enumerate(iter_calls(root, split), start=1):
        file = f"{split}/{CALLS}/{call.name}.txt"
        if call.defect:
            yield make_bad_row(file, 1, call.defect, call.name)
            continue
        yield SourceRow(
            file=file,
            line=1,
            number=number,
            values={"document": call.document, "summary": call.summary},
            id=call.name,
            cluster=call.name.partition(_QUARTER)[0],
            raw=call.document,
        )


ECTSUM = BenchmarkFormat(
    splits=_splits,
    rows=_rows,
    digest=make_digest(_files),
    spellings={"validation": "val", "dev": "val"},
    kind="summary",
    fields=("document",),
)
