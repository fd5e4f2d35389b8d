"""original/: the benchmark's own texts where they may be passed on, else what identifies them."""

from collections.abc import Iterator
from pathlib import Path

from coreeval.releases.arms import arm_columns, arm_row, class_label, original_fields
from coreeval.releases.release import texts_sha256
from coreeval.schema import Task
from coreeval.tools.parquet import Columns, Row, write_parquet
from coreeval.tools.stores.runs import RunStore

IDS: Columns = {"id": "string", "label": "int64", "label_text": "string", "sha256": "string"}


def write_originals(store: RunStore, task: Task, path: Path, *, redistribute: bool) -> int:
    """Write the original arm, or its ids with the digests of their texts; return the rows."""
    if not redistribute:
        return write_parquet(path, IDS, _ids(store))
    columns = arm_columns(task)
    return write_parquet(path, columns, _texts(store, task), metadata=class_label(task, columns))


def _texts(store: RunStore, task: Task) -> Iterator[Row]:
    for ended in store.ended():
        if fields := original_fields(ended):
            yield arm_row(task, ended, fields)


def _ids(store: RunStore) -> Iterator[Row]:
    for ended in store.ended():
        if fields := original_fields(ended):
            sample = ended.sample
            yield {
                "id": sample.id,
                "label": sample.label,
                "label_text": sample.label_text,
                "sha256": texts_sha256(fields),
            }
