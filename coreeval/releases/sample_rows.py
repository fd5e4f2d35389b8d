"""samples/: one row for every sample of the benchmark, whatever became of it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from coreeval.releases.arms import OnReject, evidence_used, semantic_fields, updated_fields
from coreeval.releases.release import texts_sha256
from coreeval.releases.release_manifest import SampleRow, Withheld
from coreeval.tools.files import ParquetColumns, write_parquet
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import RunStore

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


def sample_rows(
    store: RunStore, *, on_reject: OnReject, withheld: Mapping[str, Withheld]
) -> Iterator[SampleRow]:
    """Yield how each sample stands in a release."""
    dates = evidence_dates(store)
    for ended in store.sample_results():
        why: Withheld = withheld.get(ended.sample.id, "")
        yield _row(ended, dates, on_reject, why)


def _row(ended: SampleResult, dates: Dates, on_reject: OnReject, withheld: Withheld) -> SampleRow:
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
        original_sha256=texts_sha256(sample.fields),
        updated_sha256=texts_sha256(updated) if updated else None,
        semantic_sha256=texts_sha256(semantic) if semantic else None,
        newest_evidence=newest and newest.isoformat(),
        oldest_evidence=oldest and oldest.isoformat(),
        kept_from=result.kept_from,
        withheld=withheld,
        reason="" if withheld else _passed_on(result.reason),
    )


def _passed_on(reason: str) -> str:
    """Return a reason that quotes nothing, else nothing.

    What reasons quote is the original, the news, or a text about real people that was rejected.
    """
    return "" if _QUOTES & set(reason) else reason


def evidence_dates(store: RunStore) -> dict[str, tuple[datetime, datetime]]:
    """Return when the oldest and the newest evidence of each sample's facts were published."""
    found = dict[str, tuple[datetime, datetime]]()
    for sample_id, item in evidence_used(store):
        at = item.published_at
        oldest, newest = found.get(sample_id, (at, at))
        found[sample_id] = min(oldest, at), max(newest, at)
    return found
