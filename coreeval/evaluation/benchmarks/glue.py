"""The benchmarks of sentence pairs: MRPC and RTE, tab-separated and without quoting.

MRPC from the original files: `train` is all 4,076 pairs of `msr_paraphrase_train.txt`, `dev` the
408 of them that `dev_ids.tsv` lists (so `dev` is a part of `train`), `test` the 1,725 pairs of
`msr_paraphrase_test.txt`; Table 1 of the CoreEval paper has 1,587 and does not say which. If an
original file is missing, GLUE's file is read: `train.tsv` (3,668, without dev), `dev.tsv` or
`test.tsv`, the last only in a copy with labels.

Pairs that share a sentence, directly or through other pairs, are one cluster.

RTE: `train` is `train.tsv` (2,490). `dev` and `test` both are the 277 rows of `dev.tsv`: GLUE's own
`test.tsv` has no labels, and the test set of the CoreEval paper has 277 rows. Hypotheses about one
premise are one cluster.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import (
    display_path,
    make_digest,
    read_lines,
    refuse_special_files,
)
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    Rows,
    TableColumns,
    make_bad_row,
    text_fields,
)
from coreeval.evaluation.benchmarks.tables import read_body, read_header, read_tab_records
from coreeval.schema import Task

ORIGINAL_TRAIN, ORIGINAL_TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
DEV_IDS = "dev_ids.tsv"
_FIRST_ID, _SECOND_ID = "#1 ID", "#2 ID"
_PAIR_ID = "pair"
"""The key of the joined id of an MRPC pair, which is added to its columns."""
_CLUSTER = "cluster"
"""The key of the cluster, which is also added."""
_DIGITS = 16
"""The number of digits of a premise's digest: two premises collide in 1 of 10^13 cases."""


class _SplitFile(NamedTuple):
    """The file of a split, and its pairs that count (None: all)."""

    path: Path
    only: Path | None = None


def _mrpc_places(config: DatasetConfig) -> dict[str, _SplitFile]:
    root = Path(config.path)
    train, ids = root / ORIGINAL_TRAIN, root / DEV_IDS
    original_dev = train.is_file() and ids.is_file()
    return {
        "train": _SplitFile(_first(train, root / "train.tsv")),
        "dev": _SplitFile(train, ids) if original_dev else _SplitFile(root / "dev.tsv"),
        "test": _SplitFile(_first(root / ORIGINAL_TEST, root / "test.tsv")),
    }


def _first(preferred: Path, other: Path) -> Path:
    return preferred if preferred.is_file() else other


def _rte_places(config: DatasetConfig) -> dict[str, _SplitFile]:
    root = Path(config.path)
    dev = _SplitFile(root / "dev.tsv")
    return {"train": _SplitFile(root / "train.tsv"), "dev": dev, "test": dev}


def _places(
    config: DatasetConfig, inside: Callable[[DatasetConfig], dict[str, _SplitFile]]
) -> dict[str, _SplitFile]:
    """Return the existing splits; a path to one file is the split named in the config."""
    root = Path(config.path)
    if root.is_file():
        return {config.split: _SplitFile(root)}
    places = inside(config)
    there = {split: place for split, place in places.items() if place.path.is_file()}
    if there:
        refuse_special_files(root, (path for place in there.values() for path in place if path))
        return there
    names = ", ".join(dict.fromkeys(place.path.name for place in places.values()))
    wrong = (
        "the folder has none of the expected files"
        if root.is_dir()
        else "there is no such file or folder"
    )
    hint = f"looked for {ORIGINAL_TRAIN}, {ORIGINAL_TEST}, {names}"
    hint = hint if inside is _mrpc_places else f"looked for {names}"
    raise DatasetError(f"{config.format}: {wrong}", where=str(root), hint=hint)


def _open_split(place: _SplitFile, config: DatasetConfig, columns: TableColumns) -> Rows:
    names = read_header(place.path, read_tab_records)
    for column in (*columns.values.values(), *_id_columns(columns)):
        if column not in names:
            unlabelled = ": its rows have no labels" if column == columns.values["label"] else ""
            raise DatasetError(
                f"{place.path.name} has no column {column!r}{unlabelled}",
                where=str(place.path),
                hint=f"{config.format} needs this column (GLUE's own test.tsv has no labels); "
                f"available columns: {', '.join(names)}",
            )
    if columns.id != _PAIR_ID and columns.id not in names:
        columns = replace(columns, id=None)
    wanted = _id_pairs(place.only) if place.only else None
    return _rows(place.path, config, columns, names, wanted)


def _id_columns(columns: TableColumns) -> tuple[str, ...]:
    return (_FIRST_ID, _SECOND_ID) if columns.id == _PAIR_ID else ()


def _id_pairs(path: Path) -> set[str]:
    return {"-".join(line.raw.split()) for line in read_lines(path) if line.raw.strip()}


def _rows(
    path: Path,
    config: DatasetConfig,
    columns: TableColumns,
    names: list[str],
    wanted: set[str] | None,
) -> Rows:
    file = display_path(path, config)
    cluster_of = _cluster_by_sentence(path, names) if columns.id == _PAIR_ID else _premise
    for number, record in enumerate(read_body(path, read_tab_records, len(names)), start=1):
        values = dict(zip(names, record.cells, strict=False))
        ids = [values.get(column, "").strip() for column in (_FIRST_ID, _SECOND_ID)]
        pair = "-".join(ids) if all(ids) else ""
        if wanted is not None and pair not in wanted:
            continue
        if record.defect:
            yield make_bad_row(file, record.line, record.defect, record.raw)
            continue
        values |= {_PAIR_ID: pair, _CLUSTER: cluster_of(values)}
        yield columns.row(values, file=file, line=record.line, number=number, raw=record.raw)


def _premise(values: Mapping[str, str]) -> str:
    return hashlib.sha256(values["sentence1"].encode()).hexdigest()[:_DIGITS]


def _cluster_by_sentence(path: Path, names: list[str]) -> Callable[[Mapping[str, str]], str]:
    """Return a function that gives a pair's cluster: the first sentence linked to it by pairs."""
    tied: dict[str, str] = {}

    def first(sentence: str) -> str:
        while (other := tied.get(sentence, sentence)) != sentence:
            tied[sentence] = tied.get(other, other)  # shortens the path for the next search
            sentence = other
        return sentence

    for record in read_body(path, read_tab_records, len(names)):
        values = dict(zip(names, record.cells, strict=False))
        one, two = (first(values.get(column, "")) for column in (_FIRST_ID, _SECOND_ID))
        if one and two and one != two:
            tied[two] = one
    return lambda values: first(values.get(_FIRST_ID, ""))


def _mrpc_files(config: DatasetConfig, split: str) -> list[Path]:
    place = _places(config, _mrpc_places)[split]
    return [place.path, *([place.only] if place.only else [])]


def _mrpc_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    first, second = text_fields(config, task, 2)
    values = {"label": "Quality", first: "#1 String", second: "#2 String"}
    columns = TableColumns(values=values, id=_PAIR_ID, cluster=_CLUSTER)
    place = _places(config, _mrpc_places)[split]
    return _open_split(place, config, columns)


def _rte_files(config: DatasetConfig, split: str) -> list[Path]:
    return [_places(config, _rte_places)[split].path]


def _rte_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    first, second = text_fields(config, task, 2)
    values = {"label": "label", first: "sentence1", second: "sentence2"}
    columns = TableColumns(values=values, id="index", cluster=_CLUSTER)
    return _open_split(_places(config, _rte_places)[split], config, columns)


_DEV = {"validation": "dev", "val": "dev"}
MRPC = BenchmarkFormat(
    splits=lambda config: sorted(_places(config, _mrpc_places)),
    rows=_mrpc_rows,
    digest=make_digest(_mrpc_files),
    spellings=_DEV,
)
RTE = BenchmarkFormat(
    splits=lambda config: sorted(_places(config, _rte_places)),
    rows=_rte_rows,
    digest=make_digest(_rte_files),
    spellings=_DEV,
)
