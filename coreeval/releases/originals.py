"""original/: the benchmark's own texts where they may be passed on, else what identifies them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from coreeval.config import load_config
from coreeval.errors import ReleaseError
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.releases.arms import arm_columns, arm_row, class_label, original_fields
from coreeval.releases.release import Release, read_release, texts_sha256
from coreeval.schema import Sample, Task
from coreeval.tools.files import ParquetColumns, ParquetRow, read_parquet, write_parquet
from coreeval.tools.stores.run_store import RunStore

IDS: ParquetColumns = {"id": "string", "label": "int64", "label_text": "string", "sha256": "string"}


def write_originals(store: RunStore, task: Task, path: Path, *, redistribute: bool) -> int:
    """Write the original arm, or its ids with the digests of their texts; return the rows."""
    if not redistribute:
        return write_parquet(path, IDS, _ids(store))
    columns = arm_columns(task)
    return write_parquet(path, columns, _texts(store, task), metadata=class_label(task, columns))


def _texts(store: RunStore, task: Task) -> Iterator[ParquetRow]:
    for ended in store.sample_results():
        if fields := original_fields(ended):
            yield arm_row(task, ended, fields)


def _ids(store: RunStore) -> Iterator[ParquetRow]:
    for ended in store.sample_results():
        if fields := original_fields(ended):
            sample = ended.sample
            yield {
                "id": sample.id,
                "label": sample.label,
                "label_text": sample.label_text,
                "sha256": texts_sha256(fields),
            }


def load_originals(release: Path | str, benchmark: Path | str | None = None) -> list[Sample]:
    """Return the samples that a release was made from, each checked against its digest.

    Args:
        release: The release's directory.
        benchmark: Folder or file with the benchmark, which a release does not hold that may not
            pass its texts on; by default where the release's config says, as seen from here.

    Raises:
        DatasetError: the benchmark is not there.
        ReleaseError: it is another one than the release was made from.
    """
    made = read_release(Path(release))
    if made.manifest.licence.redistribute:
        return _stored(made)
    where = str(benchmark) if benchmark else load_config(made.path / "config.yaml").dataset.path
    found = {sample.id: sample for sample in _fetched(made, benchmark)}
    wanted = {row["id"]: row["sha256"] for row in read_parquet(made.file("original"))}
    _refuse_others(found, wanted, where)
    return [found[each] for each in wanted]


def _stored(made: Release) -> list[Sample]:
    return [
        Sample(
            id=row.id,
            split=made.manifest.split,
            fields=row.fields,
            label=row.label,
            label_text=row.label_text,
        )
        for row in made.arm("original")
    ]


def _fetched(made: Release, benchmark: Path | str | None) -> tuple[Sample, ...]:
    dataset = load_config(made.path / "config.yaml").dataset
    if benchmark:
        where = str(benchmark) if dataset.format == "hf" else str(Path(benchmark).resolve())
        dataset = dataset.model_copy(update={"path": where})
    return load_benchmark(dataset, made.task).samples


def _refuse_others(found: Mapping[str, Sample], wanted: Mapping[str, str], where: str) -> None:
    for each, digest in wanted.items():
        if each not in found or texts_sha256(found[each].fields) != digest:
            what = "is another text" if each in found else "is not there"
            raise ReleaseError(
                f"this is not the benchmark that the release was made from: {each} {what}",
                where=where,
                hint="fetch it from where the release's README.md says, unchanged",
            )
