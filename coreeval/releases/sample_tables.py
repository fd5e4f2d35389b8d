"""The tables of all samples of a release: `samples/`, and `original/` for the benchmark's texts.

`samples/` has a row for every sample, whatever became of it. `original/` has the texts if they
may be passed on, else what identifies them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from coreeval.config import load_config
from coreeval.errors import ReleaseError
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.releases.arms import (
    OnReject,
    arm_columns,
    arm_row,
    class_label_metadata,
    iter_used_evidence,
    original_fields,
    semantic_fields,
    updated_fields,
)
from coreeval.releases.release import Release, hash_texts, read_release
from coreeval.releases.release_manifest import SampleRow, Withheld
from coreeval.schema import Sample, Task
from coreeval.tools.files import ParquetColumns, ParquetRow, read_parquet, write_parquet
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import RunStore

ID_COLUMNS: ParquetColumns = {
    "id": "string",
    "label": "int64",
    "label_text": "string",
    "sha256": "string",
}


def write_originals(store: RunStore, task: Task, path: Path, *, redistribute: bool) -> int:
    """Write the original arm, or its ids with the digests of their texts; return the rows."""
    if not redistribute:
        return write_parquet(path, ID_COLUMNS, _id_rows(store))
    columns = arm_columns(task)
    return write_parquet(
        path, columns, _text_rows(store, task), metadata=class_label_metadata(task, columns)
    )


def _text_rows(store: RunStore, task: Task) -> Iterator[ParquetRow]:
    for ended in store.sample_results():
        if fields := original_fields(ended):
            yield arm_row(task, ended, fields)


def _id_rows(store: RunStore) -> Iterator[ParquetRow]:
    for ended in store.sample_results():
        if fields := original_fields(ended):
            sample = ended.sample
            yield {
                "id": sample.id,
                "label": sample.label,
                "label_text": sample.label_text,
                "sha256": hash_texts(fields),
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
        return _read_stored(made)
    where = str(benchmark) if benchmark else load_config(made.path / "config.yaml").dataset.path
    found = {sample.id: sample for sample in _read_benchmark(made, benchmark)}
    wanted = {row["id"]: row["sha256"] for row in read_parquet(made.file("original"))}
    _refuse_other_texts(found, wanted, where)
    return [found[each] for each in wanted]


def _read_stored(made: Release) -> list[Sample]:
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


def _read_benchmark(made: Release, benchmark: Path | str | None) -> tuple[Sample, ...]:
    dataset = load_config(made.path / "config.yaml").dataset
    if benchmark:
        where = str(benchmark) if dataset.format == "hf" else str(Path(benchmark).resolve())
        dataset = dataset.model_copy(update={"path": where})
    return load_benchmark(dataset, made.task).samples


def _refuse_other_texts(found: Mapping[str, Sample], wanted: Mapping[str, str], where: str) -> None:
    for each, digest in wanted.items():
        if each not in found or hash_texts(found[each].fields) != digest:
            what = "is another text" if each in found else "is not there"
            raise ReleaseError(
                f"this is not the benchmark that the release was made from: {each} {what}",
                where=where,
                hint="fetch it from where the release's README.md says, unchanged",
            )


_QUOTES = frozenset("'\"")
_NUMBERS = frozenset({"attempts", "label"})
Dates = Mapping[str, tuple[datetime, datetime]]
"""When the oldest and the newest evidence of a sample were published, by its id."""


def write_samples(path: Path, rows: Iterator[SampleRow]) -> int:
    """Write the table of samples; return the number of rows."""
    columns: ParquetColumns = {
        name: "int64" if name in _NUMBERS else "string" for name in SampleRow.model_fields
    }
    return write_parquet(path, columns, (row.model_dump() for row in rows))


def iter_sample_rows(
    store: RunStore, *, on_reject: OnReject, withheld: Mapping[str, Withheld]
) -> Iterator[SampleRow]:
    """Yield how each sample stands in a release."""
    dates = read_evidence_dates(store)
    for ended in store.sample_results():
        why: Withheld = withheld.get(ended.sample.id, "")
        yield _sample_row(ended, dates, on_reject, why)


def _sample_row(
    ended: SampleResult, dates: Dates, on_reject: OnReject, withheld: Withheld
) -> SampleRow:
    sample, result = ended.sample, ended.result
    updated = None if withheld else updated_fields(ended, on_reject)
    semantic = None if withheld == "review" else semantic_fields(ended)
    oldest, newest = dates.get(sample.id, (None, None)) if updated else (None, None)
    return SampleRow(
        id=sample.id,
        split=sample.split,
        outcome=result.outcome,
        attempts=result.attempts,
        semantic_status=result.semantic_status,
        label=sample.label,
        label_text=sample.label_text,
        rung=result.rung,
        original_label=result.original_label,
        original_sha256=hash_texts(sample.fields),
        updated_sha256=hash_texts(updated) if updated else None,
        semantic_sha256=hash_texts(semantic) if semantic else None,
        newest_evidence=newest and newest.isoformat(),
        oldest_evidence=oldest and oldest.isoformat(),
        kept_from=result.kept_from,
        withheld=withheld,
        reason="" if withheld else _publishable_reason(result.reason),
    )


def _publishable_reason(reason: str) -> str:
    """Return a reason that quotes nothing, else nothing.

    What reasons quote is the original, the news, or a text about real people that was rejected.
    """
    return "" if _QUOTES & set(reason) else reason


def read_evidence_dates(store: RunStore) -> dict[str, tuple[datetime, datetime]]:
    """Return when the oldest and the newest evidence of each sample's facts were published."""
    found = dict[str, tuple[datetime, datetime]]()
    for sample_id, item in iter_used_evidence(store):
        at = item.published_at
        oldest, newest = found.get(sample_id, (at, at))
        found[sample_id] = min(oldest, at), max(newest, at)
    return found
