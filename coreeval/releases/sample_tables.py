"""The tables of all samples of a release, and their `dataset_info` for hubs.

`samples/` has a row for every sample, with any outcome. `original/` has the texts if they may be
redistributed, otherwise their ids and digests.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from coreeval.config import load_config
from coreeval.config.user_files import parse_yaml
from coreeval.errors import ReleaseError
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.meanings import describe_cause
from coreeval.releases.release import Release, hash_texts, read_release
from coreeval.releases.release_manifest import SampleRow, Withheld
from coreeval.runs.arms import (
    OnReject,
    arm_columns,
    arm_row,
    class_label_metadata,
    iter_used_evidence,
    original_fields,
    passed_on_results,
    semantic_fields,
    shard_name,
    updated_fields,
)
from coreeval.schema import Result, Sample, Task
from coreeval.tasks.kinds import find_kind
from coreeval.tools.files import (
    ParquetColumns,
    ParquetRow,
    measure_parquet,
    parse_json,
    write_parquet,
)
from coreeval.tools.markdown import dump_front_matter
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult
from coreeval.tools.stores.run_triggers import cause_of, is_composed_cause

ID_COLUMNS: ParquetColumns = {
    "id": "string",
    "label": "int64",
    "label_text": "string",
    "sha256": "string",
}


def write_originals(store: RunStore, task: Task, path: Path, *, redistribute: bool) -> int:
    """Write the original arm, or only its ids and text digests; return the number of rows."""
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
        benchmark: Folder or file with the benchmark, for a release that may not redistribute its
            texts; by default the path in the release's config, resolved from here.

    Raises:
        DatasetError: the benchmark is missing.
        ReleaseError: the release was made from another benchmark.
    """
    made = read_release(Path(release))
    if made.manifest.licence.redistribute:
        return _read_stored(made)
    where = str(benchmark) if benchmark else load_config(made.path / "config.yaml").dataset.path
    found = {sample.id: sample for sample in _read_benchmark(made, benchmark)}
    wanted = {row.id: row.sha256 for row in made.identifiers()}
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
        given = dataset.model_copy(update={"path": str(benchmark)})
        dataset = given.resolve(lambda path: str(Path(path).resolve()))
    return load_benchmark(dataset, made.task).samples


def _refuse_other_texts(found: Mapping[str, Sample], wanted: Mapping[str, str], where: str) -> None:
    for each, digest in wanted.items():
        if each not in found or hash_texts(found[each].fields) != digest:
            what = "has changed" if each in found else "is missing"
            raise ReleaseError(
                f"this is not the benchmark that the release was made from: {each} {what}",
                where=where,
                hint="download the unchanged original from the place given in the release's "
                "README.md",
            )


_NUMBERS = frozenset({"attempts", "label"})
Dates = Mapping[str, tuple[datetime, datetime]]
"""The publication times of a sample's oldest and newest evidence, by sample id."""


def write_samples(path: Path, rows: Iterator[SampleRow]) -> int:
    """Write the table of samples and return the number of rows."""
    columns: ParquetColumns = {
        name: "int64" if name in _NUMBERS else "string" for name in SampleRow.model_fields
    }
    return write_parquet(path, columns, (row.model_dump() for row in rows))


def iter_sample_rows(
    store: RunStore,
    *,
    on_reject: OnReject,
    withheld: Mapping[str, Withheld],
    redistribute: bool = True,
) -> Iterator[SampleRow]:
    """Yield the row of each sample in a release's table of samples."""
    dates = read_evidence_dates(store)
    for ended in passed_on_results(store, redistribute=redistribute):
        why: Withheld = withheld.get(ended.sample.id, "")
        yield _sample_row(ended, dates, on_reject, why)


def _sample_row(
    ended: SampleResult, dates: Dates, on_reject: OnReject, withheld: Withheld
) -> SampleRow:
    sample, result = ended.sample, ended.result
    updated = None if withheld else updated_fields(ended, on_reject)
    semantic = None if withheld else semantic_fields(ended)
    oldest, newest = dates.get(sample.id, (None, None)) if updated else (None, None)
    kind = find_kind(sample.fields, sample.label_text)
    return SampleRow(
        id=sample.id,
        split=sample.split,
        outcome=result.outcome,
        attempts=result.attempts,
        semantic_status=result.semantic_status,
        label=sample.label,
        label_text=sample.label_text,
        rung=result.rung,
        original_label="" if kind.is_read_as_text else result.original_label,
        original_sha256=hash_texts(sample.fields),
        updated_sha256=hash_texts(updated) if updated else None,
        semantic_sha256=hash_texts(semantic) if semantic else None,
        newest_evidence=newest and newest.isoformat(),
        oldest_evidence=oldest and oldest.isoformat(),
        kept_from=result.kept_from,
        withheld=withheld,
        reason="" if withheld else _publishable_reason(result),
    )


def _publishable_reason(result: Result) -> str:
    """Return why a sample was not accepted, in words of this code; empty if there are none.

    The reason in the run may be a model's own sentence or an endpoint's message. It retells the
    original, the news, or a rejected text about real people.
    """
    cause = cause_of(result.outcome, result.reason)
    return describe_cause(cause) if is_composed_cause(result.outcome, cause) else ""


def read_evidence_dates(store: RunStore) -> dict[str, tuple[datetime, datetime]]:
    """Return when the oldest and newest evidence of each sample's facts was published."""
    found = dict[str, tuple[datetime, datetime]]()
    for sample_id, item in iter_used_evidence(store):
        at = item.published_at
        oldest, newest = found.get(sample_id, (at, at))
        found[sample_id] = min(oldest, at), max(newest, at)
    return found


_FENCE = "---\n"
_FENCES = re.compile(f"^{_FENCE}", re.MULTILINE)
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
"""Size categories of dataset cards, each with its exclusive upper bound in rows."""
Info = dict[str, Any]


def add_dataset_info(card: str, folder: Path, split: str) -> str:
    """Return a card with front matter that describes the files of a folder.

    Args:
        card: Text that begins with YAML between two lines of dashes.
        folder: Holds one folder per config, each with one Parquet file for the split.
        split: The split that the files hold.
    """
    _, head, body = _FENCES.split(card, 2)
    front: Info = parse_yaml(head)
    info = list(iter_dataset_info(folder, split))
    rows = max((one["splits"][0]["num_examples"] for one in info), default=0)
    front |= {
        "size_categories": [size_category(rows)],
        "configs": [one for one in front["configs"] if one["config_name"] in _names(info)],
        "dataset_info": info,
    }
    head = dump_front_matter(front)
    return f"{_FENCE}{head}{_FENCE}{body}"


def _names(info: list[Info]) -> set[str]:
    return {one["config_name"] for one in info}


def iter_dataset_info(folder: Path, split: str) -> Iterator[Info]:
    """Yield the card's entry for each config, sorted by name; configs without rows are skipped."""
    for file in sorted(folder.glob(f"*/{shard_name(split)}")):
        info = _info(file, split)
        if info["splits"][0]["num_examples"]:
            yield info


def size_category(rows: int) -> str:
    """Return a card's size category for a number of rows."""
    return next((name for end, name in _SIZES if rows < end), "n>10M")


def _info(file: Path, split: str) -> Info:
    try:
        schema, rows, size = measure_parquet(file)
    except (OSError, ValueError) as error:
        raise ReleaseError(
            f"cannot read a table of the dataset: {error}",
            where=str(file),
            hint="export the run or the release from an undamaged copy",
        ) from None
    kinds = {field.name: str(field.type) for field in schema}
    return {
        "config_name": file.parent.name,
        "features": list(_features(kinds, schema.metadata or {})),
        "splits": [{"name": split, "num_bytes": size, "num_examples": rows}],
        "download_size": file.stat().st_size,
        "dataset_size": size,
    }


def _features(kinds: Mapping[str, str], metadata: Mapping[bytes, bytes]) -> Iterator[Info]:
    """Yield the columns in the notation of `datasets`: names for ClassLabels, dtype for lists."""
    declared = _declared_features(metadata)
    for name, kind in kinds.items():
        said = declared.get(name)
        labels = said.get("names") if isinstance(said, dict) else None
        if labels and isinstance(labels, list):
            names = {str(number): label for number, label in enumerate(labels)}
            yield {"name": name, "dtype": {"class_label": {"names": names}}}
        elif kind.startswith("list"):
            yield {"name": name, "list": kind.rpartition(" ")[2].rstrip(">")}
        else:
            yield {"name": name, "dtype": kind}


def _declared_features(metadata: Mapping[bytes, bytes]) -> Info:
    """Return what a file that somebody else may have written says about its columns."""
    try:
        told: Any = parse_json(metadata.get(b"huggingface", b"{}"))
        declared = told["info"]["features"]
    except (ValueError, LookupError, TypeError):
        return {}
    return declared if isinstance(declared, dict) else {}
