"""TweetEval's folders: `<split>_text.txt` and `<split>_labels.txt`, one tweet per line.

Stance has a folder for each target. `dataset.target` names one, or `all` of them; either way an id
is `stance/<target>/<split>/<line>`, so a sample has the same id and target in both cases
(`target_of`).
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from coreeval.config import DatasetConfig
from coreeval.config.user_files import iter_raw_lines, open_file
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import (
    TextLine,
    display_path,
    make_digest,
    read_lines,
    refuse_special_files,
)
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    RowOrBad,
    Rows,
    SourceRow,
    make_bad_row,
    text_fields,
)
from coreeval.schema import Task
from coreeval.tasks import ALL_TARGETS, find_label

TEXT, LABELS = "_text.txt", "_labels.txt"
_SPELLINGS = {"feminist": "feminism", "hilary": "hillary"}
"""Folder names that differ between copies of TweetEval, mapped to our names."""
_ID = re.compile(r"[^/]+/([^/]+)/[^/]+/[0-9]+")


def find_target(sample_id: str) -> str | None:
    """Return the stance target in an id created by this module, or None if it has none."""
    match = _ID.fullmatch(sample_id)
    return match and match[1]


def list_targets(config: DatasetConfig) -> list[str]:
    """Return the stance targets in a folder, in the order that `all` reads them."""
    return sorted(_spell_target(folder.name) for folder in _subfolders(Path(config.path)))


def _spell_target(target: str) -> str:
    return _SPELLINGS.get(target, target)


def _subfolders(root: Path) -> list[Path]:
    inside = (folder for folder in root.iterdir() if folder.is_dir())
    return sorted((f for f in inside if _has_texts(f)), key=lambda f: _spell_target(f.name))


def _has_texts(folder: Path) -> bool:
    return any(folder.glob(f"*{TEXT}"))


def folders(config: DatasetConfig) -> dict[str, Path]:
    """Return the folders to read by target; the target is empty for a task without targets."""
    root = Path(config.path)
    if not root.is_dir():
        raise DatasetError(
            "there is no such folder",
            where=str(root),
            hint=f"dataset.path must be a folder with {config.split}{TEXT} and "
            f"{config.split}{LABELS}",
        )
    if _has_texts(root) and config.target == ALL_TARGETS:
        hint = f"use its parent folder, or set dataset.target: {_spell_target(root.name)}"
        raise DatasetError(
            "this folder contains only one target, not all", where=str(root), hint=hint
        )
    own = {_spell_target(config.target or ""): root}
    found = own if _has_texts(root) else _by_target(root, config)
    read = {root, *found.values()}
    refuse_special_files(root, (path for folder in read for path in folder.glob("*.txt")))
    return found


def _by_target(root: Path, config: DatasetConfig) -> dict[str, Path]:
    found = dict[str, Path]()
    for folder in _subfolders(root):
        target = _spell_target(folder.name)
        if target in found:
            raise DatasetError(
                f"two folders have the target {target!r}: {found[target].name} and {folder.name}",
                where=str(root),
                hint="keep one of them, or set dataset.path to that folder",
            )
        found[target] = folder
    if not found:
        raise DatasetError(
            f"this is not a TweetEval folder: it has no *{TEXT} file",
            where=str(root),
            hint=f"looked for {config.split}{TEXT} in this folder and in its subfolders",
        )
    if config.target == ALL_TARGETS:
        return found
    target = _spell_target(config.target or "")
    if target not in found:
        wrong = f"there is no target {config.target!r}" if target else "dataset.target is not set"
        hint = f"set dataset.target to one of {', '.join(found)}, or all"
        raise DatasetError(wrong, where=str(root), hint=hint)
    return {target: found[target]}


def _splits(config: DatasetConfig) -> list[str]:
    names = [
        {path.name.removesuffix(TEXT) for path in folder.glob(f"*{TEXT}")}
        for folder in folders(config).values()
    ]
    return sorted(set.intersection(*names))


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return [
        folder / f"{split}{kind}" for folder in folders(config).values() for kind in (TEXT, LABELS)
    ]


def _rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    text_fields(config, task, 1)
    parts = [_part(target, folder, split, task) for target, folder in folders(config).items()]
    return (row for part in parts for row in _pair_lines(part, config, task))


class _Part(NamedTuple):
    """The two files of one target (or of the whole task), and the number of their samples."""

    target: str
    text: Path
    labels: Path
    samples: int


def _part(target: str, folder: Path, split: str, task: Task) -> _Part:
    _check_mapping(folder.parent if target else folder, task)
    text, labels = folder / f"{split}{TEXT}", folder / f"{split}{LABELS}"
    return _Part(target, text, labels, _length(text, labels))


def _pair_lines(part: _Part, config: DatasetConfig, task: Task) -> Rows:
    files = display_path(part.text, config), display_path(part.labels, config)
    pairs = zip(read_lines(part.text), read_lines(part.labels), strict=False)  # see _length
    for tweet, label in islice(pairs, part.samples):
        yield _row(tweet, label, part.target, files, task)


def _row(
    tweet: TextLine, label: TextLine, target: str, files: tuple[str, str], task: Task
) -> RowOrBad:
    for line, file in zip((tweet, label), files, strict=True):
        if not line.valid:
            return make_bad_row(file, line.number, "the line is not UTF-8", line.raw)
    return SourceRow(
        file=files[0],
        line=tweet.number,
        number=tweet.number,
        values={task.fields[0]: tweet.raw, "label": label.raw.strip()},
        part=target,
        raw=tweet.raw,
    )


def _length(text: Path, labels: Path) -> int:
    """Return the number of samples, ignoring trailing blank lines."""
    if not labels.is_file():
        hint = f"the file must contain the labels of the texts in {text.name}"
        raise DatasetError("the labels are missing", where=str(labels), hint=hint)
    texts, last_text = _extent(text)
    ids, last_id = _extent(labels)
    if last_text > ids or last_id > texts:
        raise DatasetError(
            f"{text.name} has {last_text} lines and {labels.name} has {last_id}",
            where=str(text.parent),
            hint="each text needs one label on the same line; one of the files may be truncated",
        )
    return max(last_text, last_id)


def _extent(path: Path) -> tuple[int, int]:
    """Return the number of lines and the number of the last line that is not blank."""
    total = last = 0
    with open_file(path) as file:
        for total, line in enumerate(iter_raw_lines(file), start=1):
            last = total if line.strip() else last
    return total, last


def _check_mapping(folder: Path, task: Task) -> None:
    path = folder / "mapping.txt"
    for number, name in _mapping(path) if path.is_file() else ():
        known = find_label(task, name)
        if known is None or str(known.id) != number:
            ours = ", ".join(f"{label.id} {label.name}" for label in task.labels)
            raise DatasetError(
                f"label {number} is {name!r} in this file, but the task {task.name} has {ours}",
                where=str(path),
                hint="check the task; add other spellings of a label to its aliases",
            )


def _mapping(path: Path) -> Iterator[tuple[str, str]]:
    for line in read_lines(path):
        number, tab, rest = line.raw.strip().partition("\t")
        if tab:
            yield number, rest.split("\t")[0]


SOURCE = BenchmarkFormat(
    splits=_splits,
    rows=_rows,
    digest=make_digest(_files),
    spellings={"validation": "val", "dev": "val"},
)
