"""Writes the arms and their provenance as Parquet, for `datasets` and other readers."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from coreeval.agents.document_terms import SNIPPET_CHARS
from coreeval.config.base import is_split_name
from coreeval.errors import ConfigError
from coreeval.schema import Evidence, Freshness, Label, ReplacedFact, Task, Triple
from coreeval.tasks import kind_of
from coreeval.tasks.kinds.base import count_units
from coreeval.tasks.kinds.summary import SUMMARY
from coreeval.tools.chunks import chunks
from coreeval.tools.files import ParquetColumns, ParquetRow, write_parquet
from coreeval.tools.local_paths import strip_paths
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import EvidenceExcerpt, SampleResult

FACTS_AT_A_TIME = 500
OnReject = Literal["drop", "semantic", "original"]
LONG_WORDS = 8
"""The fewest words, or letters in a script without spaces, of a text that is long enough to be
protected (own choice): a sentence, in contrast to a name or a number."""
TRIPLE_COLUMNS = (
    "before_head", "before_relation", "before_tail", "after_head", "after_relation", "after_tail",
)  # fmt: skip
"""The columns of provenance with the old and the new triple."""
_TARGETS = "after_cutoff"
"""The column of provenance with names of targets."""
PROVENANCE = (
    "id", "field", *TRIPLE_COLUMNS, "evidence_id", "url", "domain", "published_at",
    "published_precision", "snippet", "snippet_sha256", _TARGETS, "text_sha256",
    "evidence_depth", "source", "licence",
)  # fmt: skip


def write_arms(
    store: RunStore,
    task: Task,
    folder: Path,
    *,
    split: str,
    on_reject: OnReject,
    without: Collection[str] = (),
    redistribute: bool = True,
    snippets: bool = True,
    bases: Collection[Path] = (),
) -> dict[str, int]:
    """Write updated, semantic and provenance, and return the number of rows of each.

    Args:
        store: The run's store.
        task: Names the text fields and the labels.
        folder: The folder for the arms' folders.
        split: The prefix of the file names.
        on_reject: The substitute for a rejected sample in the updated arm.
        without: The samples to leave out.
        redistribute: Whether texts of the benchmark may be passed on; otherwise reworded samples
            that contain whole ones are left out.
        snippets: Whether provenance quotes the news; it always has their hashes.
        bases: The folders to which a release's names of targets that are local files are relative.
    """
    shard = shard_name(split)
    columns = arm_columns(task)
    label = class_label_metadata(task, columns)
    updated, semantic = (
        _but(rows(passed_on_results(store, redistribute=redistribute)), without)
        for rows in (partial(_updated, task, on_reject), partial(_semantic, task))
    )
    facts = _but(fact_rows(store), without)
    if bases:  # runs of earlier versions have absolute paths
        facts = (row | strip_paths({_TARGETS: row[_TARGETS]}, *bases) for row in facts)
    return {
        "updated": write_parquet(folder / "updated" / shard, columns, updated, metadata=label),
        "semantic": write_parquet(folder / "semantic" / shard, columns, semantic, metadata=label),
        "provenance": write_parquet(
            folder / "provenance" / shard,
            _provenance_columns(),
            facts if snippets else (row | {"snippet": ""} for row in facts),
        ),
    }


def write_control(store: RunStore, task: Task, folder: Path, *, split: str) -> int:
    """Write the control arm from the second pass's store, and return its number of rows.

    It has the rows of an updated arm, but without substitutes for rejected samples.
    """
    columns = arm_columns(task)
    rows = _updated(task, "drop", store.sample_results())
    path = folder / "control" / shard_name(split)
    return write_parquet(path, columns, rows, metadata=class_label_metadata(task, columns))


def _but(rows: Iterable[ParquetRow], left_out: Collection[str]) -> Iterator[ParquetRow]:
    return (row for row in rows if row["id"] not in left_out)


_WHOLE = "-00000-of-00001.parquet"
ANY_SHARD = f"*{_WHOLE}"
"""The pattern of the files that hold a whole split."""


def shard_name(split: str) -> str:
    """Return the name of the file that holds a whole split.

    Raises:
        ConfigError: the split has an invalid name, such as a path.
    """
    if not is_split_name(split):
        raise ConfigError(
            f"{split[:80]!r} is not a valid split name",
            where="dataset.split",
            hint="use letters, digits and underscores; if you did not choose the name, it is from "
            "a run or release made by someone else",
        )
    return f"{split}{_WHOLE}"


def original_fields(ended: SampleResult) -> Mapping[str, str] | None:
    """Return a sample's texts in the original arm; None if the owner's policy leaves it out."""
    return None if ended.result.semantic_status == "policy" else ended.sample.fields


def accepted_fields(ended: SampleResult) -> Mapping[str, str] | None:
    """Return a sample's text with new facts; None if none was accepted."""
    return ended.result.updated if ended.result.outcome == "accepted" else None


def updated_fields(ended: SampleResult, on_reject: OnReject) -> Mapping[str, str] | None:
    """Return a sample's texts in the updated arm; None if it has none."""
    result = ended.result
    if result.outcome == "accepted":
        return result.updated
    if not result.outcome.startswith("rejected") or on_reject == "drop":
        return None
    return ended.sample.fields if on_reject == "original" else semantic_fields(ended)


def semantic_fields(ended: SampleResult) -> Mapping[str, str] | None:
    """Return a sample's texts in the semantic arm; None if it has none."""
    return ended.result.semantic if ended.result.semantic_status == "reworded" else None


def passed_on_results(store: RunStore, *, redistribute: bool) -> Iterator[SampleResult]:
    """Yield the result of each sample with only those reworded texts that may be passed on.

    Args:
        store: The run's store.
        redistribute: Whether texts of the benchmark may be passed on.
    """
    for ended in store.sample_results():
        if redistribute or not _contains_original_text(ended):
            yield ended
        else:
            left_out = {"semantic_status": "licence", "semantic": None}
            yield replace(ended, result=ended.result.model_copy(update=left_out))


def _contains_original_text(ended: SampleResult) -> bool:
    """Return whether a reworded sample still has a whole, long text of its original.

    Accepted answers share a field, with one answer in each line.
    """
    fields, original = semantic_fields(ended) or {}, ended.sample.fields
    return any(
        text == original.get(name)
        and (name == SUMMARY or max(map(count_units, text.splitlines()), default=0) >= LONG_WORDS)
        for name, text in fields.items()
    )


def _updated(
    task: Task, on_reject: OnReject, results: Iterable[SampleResult]
) -> Iterator[ParquetRow]:
    for ended in results:
        fields = updated_fields(ended, on_reject)
        if fields:
            yield arm_row(task, ended, fields)


def _semantic(task: Task, results: Iterable[SampleResult]) -> Iterator[ParquetRow]:
    for ended in results:
        fields = semantic_fields(ended)
        if fields:
            yield arm_row(task, ended, fields)


def arm_row(task: Task, ended: SampleResult, fields: Mapping[str, str]) -> ParquetRow:
    """Return a row of an arm."""
    sample, result = ended.sample, ended.result
    label = Label(id=sample.label, name=sample.label_text, meaning="")
    return {
        "id": sample.id,
        **kind_of(task).write(task, fields, label),
        "outcome": result.outcome,
        "attempts": result.attempts,
        "semantic_status": result.semantic_status,
    }


def fact_rows(store: RunStore, sample_id: str | None = None) -> Iterator[ParquetRow]:
    """Yield the rows of provenance of one sample or of all, in the benchmark's order."""
    for chunk in chunks(store.facts(sample_id), FACTS_AT_A_TIME):
        known = dict(store.freshness([fact.sample_id for fact in chunk]))
        evidence = store.history.evidence([fact.evidence_id for fact in chunk])
        kept = store.carry_over.ids_from_release(fact.sample_id for fact in chunk)
        told = store.carry_over.excerpts(
            fact.evidence_id for fact in chunk if fact.sample_id in kept
        )
        for fact in chunk:
            if fact.sample_id in kept:
                row = _kept_row(fact, told[fact.evidence_id])
            else:
                row = _fact_row(fact, _quote_article(store, fact, evidence[fact.evidence_id]))
            yield row | {_TARGETS: _after_cutoff(known.get(fact.sample_id))}


def iter_used_evidence(store: RunStore) -> Iterator[tuple[str, Evidence]]:
    """Yield the sample and evidence of each replaced fact, in the benchmark's order."""
    for chunk in chunks(store.facts(), FACTS_AT_A_TIME):
        evidence = store.history.evidence([fact.evidence_id for fact in chunk])
        yield from ((fact.sample_id, evidence[fact.evidence_id]) for fact in chunk)


def _after_cutoff(freshness: Freshness | None) -> list[str] | None:
    """Return the targets whose cutoff precedes all of a sample's evidence; None if unrecorded."""
    if freshness is None:
        return None
    return [target for target, after in freshness.after_cutoff.items() if after]


def _quote_article(store: RunStore, fact: ReplacedFact, evidence: Evidence) -> Evidence:
    """Return evidence whose snippet is the part of an article's passages that supports a fact."""
    if evidence.depth != "article":
        return evidence
    shown = store.events.passages(fact.sample_id).get(evidence.id, "")
    return evidence.model_copy(update={"snippet": cut_excerpt(shown, fact.quote)})


def cut_excerpt(text: str, quote: str) -> str:
    """Return at most `SNIPPET_CHARS` characters of a text, with the quote in the middle.

    If the text does not contain the quote, which may be from the headline, return its beginning.
    """
    at = max(0, text.find(quote))
    start = max(0, min(at - (SNIPPET_CHARS - len(quote)) // 2, len(text) - SNIPPET_CHARS))
    return text[start : start + SNIPPET_CHARS]


def _fact_row(fact: ReplacedFact, evidence: Evidence) -> ParquetRow:
    snippet = (evidence.snippet or evidence.title)[:SNIPPET_CHARS]
    return {
        "id": fact.sample_id,
        "field": fact.field,
        **_triple("before", fact.before),
        **_triple("after", fact.after),
        "evidence_id": evidence.id,
        "url": evidence.url,
        "domain": evidence.domain,
        "published_at": evidence.published_at.isoformat(),
        "published_precision": evidence.published_precision,
        "snippet": snippet,
        "snippet_sha256": hashlib.sha256(snippet.encode()).hexdigest(),
        "text_sha256": evidence.text_sha256,
        "evidence_depth": evidence.depth,
        "source": evidence.source,
        "licence": evidence.licence,
    }


def _kept_row(fact: ReplacedFact, excerpt: EvidenceExcerpt) -> ParquetRow:
    """Return the row of the release that the fact was taken from."""
    return _fact_row(fact, excerpt.evidence) | {"snippet_sha256": excerpt.snippet_sha256}


def _triple(side: str, triple: Triple | None) -> ParquetRow:
    """Return the columns of a triple; for an insertion, `before` is empty."""
    parts = (triple.head, triple.relation, triple.tail) if triple else ("", "", "")
    return dict(zip((f"{side}_head", f"{side}_relation", f"{side}_tail"), parts, strict=True))


def _provenance_columns() -> ParquetColumns:
    return {name: "strings" if name == _TARGETS else "string" for name in PROVENANCE}


def arm_columns(task: Task) -> ParquetColumns:
    """Return the columns of an arm."""
    return {
        "id": "string",
        **kind_of(task).columns(task),
        "outcome": "string",
        "attempts": "int64",
        "semantic_status": "string",
    }


def class_label_metadata(task: Task, columns: ParquetColumns) -> dict[str, str]:
    """Return the metadata that makes `datasets` read `label` as a ClassLabel.

    ClassLabel counts from 0 without gaps; other label spaces stay plain integers.
    """
    features: dict[str, object] = {
        name: [_value("string")] if kind == "strings" else _value(kind)
        for name, kind in columns.items()
    }
    labels = sorted(task.labels, key=lambda label: label.id)
    if "label" in columns and [label.id for label in labels] == list(range(len(labels))):
        features["label"] = {"names": [label.name for label in labels], "_type": "ClassLabel"}
    return {"huggingface": json.dumps({"info": {"features": features}})}


def _value(dtype: str) -> dict[str, str]:
    return {"dtype": dtype, "_type": "Value"}
