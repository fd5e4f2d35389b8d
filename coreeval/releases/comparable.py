"""The sides of a comparison: a release, or a run that has not been released."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from coreeval.config import load_config
from coreeval.errors import ReleaseError
from coreeval.releases.release import MANIFEST, Release, ReleasedArm, read_release
from coreeval.releases.release_manifest import ArmRow, FactRow, ReleaseManifest, SampleRow
from coreeval.releases.sample_tables import iter_sample_rows
from coreeval.runs.arms import OnReject, fact_rows, original_fields, semantic_fields, updated_fields
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.schema import Value
from coreeval.tools.clock import utc_now
from coreeval.tools.cutoffs import TargetDates
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult
from coreeval.tools.workspace import RunFiles

COMMON_SETTINGS = (
    "task", "split", "models", "prompts", "fingerprints", "counts", "bad_rows", "arms", "licence",
    "on_reject", "snippets", "takedown",
)  # fmt: skip
"""Manifest keys that are compared as a whole."""
RELEASE_SETTINGS = ("split", "arms", "licence", "on_reject", "snippets", "takedown")
"""The keys among these that a run's manifest does not have, or uses for other files."""
KNOWLEDGE_SETTINGS = ("backend", "min_precision", "takedown", "takedown_sha256")
ComparableSettings = Mapping[str, object]
T = TypeVar("T")


class ComparableTitle(Value):
    """The name and version of a release or run."""

    kind: Literal["release", "run"]
    name: str
    """Name of the benchmark."""
    version: str
    """Version of a release; name of a run."""
    path: str

    def __str__(self) -> str:
        return self.version if self.kind == "run" else f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True)
class Comparable:
    """One side of a comparison; its rows are read as needed."""

    title: ComparableTitle
    settings: ComparableSettings
    """Settings and results, by dotted key."""
    cutoffs: tuple[TargetDates, ...] | None
    samples: Callable[[], Iterator[SampleRow]]
    facts: Callable[[], Iterator[FactRow]]
    arm: Callable[[ReleasedArm], Iterator[ArmRow]]


def open_comparable(path: Path) -> Comparable:
    """Open the run or release in a directory for a comparison.

    Raises:
        ReleaseError: the directory is neither a release nor a run, or the release is damaged.
        RunStateError: the run is damaged.
    """
    if (path / MANIFEST).exists():
        return release_comparable(read_release(path))
    files = RunFiles(path.resolve())
    if not files.manifest.exists():
        raise ReleaseError(
            f"this is neither a release (no {MANIFEST}) nor a run (no manifest.json)",
            where=str(path),
            hint="use a directory printed by `coreeval release` or `coreeval refresh",
        )
    return _run_comparable(files)


def release_comparable(release: Release) -> Comparable:
    """Return a release as one side of a comparison."""
    manifest = release.manifest
    return Comparable(
        title=ComparableTitle(
            kind="release", name=manifest.name, version=manifest.version, path=str(release.path)
        ),
        settings=_settings(manifest),
        cutoffs=manifest.cutoffs,
        samples=release.samples,
        facts=release.facts,
        arm=release.arm,
    )


def _run_comparable(files: RunFiles) -> Comparable:
    """Return a run as one side of a comparison, with the samples that have ended."""
    manifest, reject = read_manifest(files.manifest), load_config(files.config).run.on_reject
    path = files.require_store()
    return Comparable(
        title=ComparableTitle(
            kind="run", name=manifest.name, version=manifest.run, path=str(files.root)
        ),
        settings=_settings(manifest),
        cutoffs=manifest.cutoffs,
        samples=lambda: _stored_texts(
            path, partial(iter_sample_rows, on_reject=reject, withheld={})
        ),
        facts=lambda: _stored_texts(
            path, lambda store: map(FactRow.model_validate, fact_rows(store))
        ),
        arm=lambda name: _stored_texts(path, partial(_arm_texts, name=name, reject=reject)),
    )


def _stored_texts(path: Path, read: Callable[[RunStore], Iterator[T]]) -> Iterator[T]:
    with RunStore.open(path, now=utc_now) as store:
        yield from read(store)


def _arm_texts(store: RunStore, name: ReleasedArm, reject: OnReject) -> Iterator[ArmRow]:
    texts: dict[ReleasedArm, Callable[[SampleResult], Mapping[str, str] | None]] = {
        "updated": partial(updated_fields, on_reject=reject),
        "semantic": semantic_fields,
        "original": original_fields,
    }
    for ended in store.sample_results():
        if fields := texts[name](ended):
            yield ArmRow(
                id=ended.sample.id,
                fields=dict(fields),
                label=ended.sample.label,
                label_text=ended.sample.label_text,
                outcome=ended.result.outcome,
                attempts=ended.result.attempts,
                semantic_status=ended.result.semantic_status,
            )


def _settings(manifest: ReleaseManifest | Manifest) -> ComparableSettings:
    said = manifest.model_dump(mode="json")
    knowledge = {key: said["knowledge"][key] for key in KNOWLEDGE_SETTINGS}
    window = {end: said["window"][end] for end in ("start", "end")}
    cutoffs = {each.target: _format_date(each) for each in manifest.cutoffs or ()}
    whole = {key: said[key] for key in COMMON_SETTINGS if key in said}
    return dict(
        flatten_values("", whole | {"window": window, "knowledge": knowledge, "cutoff": cutoffs})
    )


def _format_date(target: TargetDates) -> str | None:
    return target.latest.date if target.latest else None


def flatten_values(prefix: str, value: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield plain values by dotted key; a list counts as one value."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from flatten_values(f"{prefix}{key}.", inner)
        else:
            yield f"{prefix}{key}", inner
