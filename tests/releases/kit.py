"""A small finished run made by hand, to be released: what it holds is known to the letter."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from coreeval.config import load_config
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.releases.create import make_release
from coreeval.releases.release import Release
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import (
    Fingerprints,
    KnowledgeUsed,
    Manifest,
    Status,
    full_counts,
    write_manifest,
)
from coreeval.schema import (
    Coverage,
    Evidence,
    NamedEntity,
    Outcome,
    ReplacedFact,
    Result,
    Rung,
    Sample,
    Triple,
    Verdict,
    Window,
)
from coreeval.tasks import hash_task, load_task
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.workspace import RunFiles

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
LABELS = (0, 1, 1, 2, 3, 1)
"""Of the six samples: anger, joy, joy, optimism, sadness, joy."""
ENDS: tuple[tuple[Outcome, str], ...] = (
    ("accepted", ""),
    ("accepted", ""),
    ("accepted", ""),
    ("rejected_facts", "the text says 'Ada Roe was arrested', which no news does"),
    ("no_knowledge", "no_news for all queries"),
    ("unsafe", ""),
)
SNIPPET = "Ada Roe opened the bridge on Monday."
ADA = (NamedEntity(name="Ada Roe", type="person"),)


@dataclass(frozen=True)
class Made:
    """The run, and the folder that it stands in."""

    folder: Path

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.folder / "run")

    @property
    def benchmark(self) -> Path:
        return self.folder / "bench"

    @property
    def shelf(self) -> Path:
        return self.folder / ".coreeval" / "releases" / "weekly"

    def release(self, version: str = "2026.47", *, at: datetime = NOW, **how: object) -> Release:
        """Release the run."""
        return make_release(self.files.root, version=version, now=lambda: at, **how)  # type: ignore[arg-type]


def make_run(
    folder: Path,
    *,
    dataset: Mapping[str, object] | None = None,
    status: Status = "complete",
    labels: Sequence[int] = LABELS,
    evidence: Callable[[int], Evidence] | None = None,
    **config: object,
) -> Made:
    """Write a benchmark of six tweets, a config and the run on them."""
    made = Made(folder)
    _write_benchmark(made.benchmark, labels)
    settings = {
        "name": "weekly",
        "task": "emotion",
        "dataset": {"format": "tweeteval", "path": "bench", **(dataset or {})},
        "knowledge": {"window": {"start": "2026-11-01"}},
        "models": {"default": "offline"},
        **config,
    }
    source = folder / "weekly.yaml"
    source.write_text(yaml.safe_dump(settings))
    chosen = load_config(source)
    made.files.root.mkdir()
    (folder / ".coreeval").mkdir(exist_ok=True)
    made.files.config.write_text(yaml.safe_dump(chosen.model_dump(mode="json"), sort_keys=False))
    samples = load_benchmark(chosen.dataset, load_task("emotion")).samples
    asyncio.run(_fill(made.files.store, samples, evidence or news))
    write_manifest(made.files.manifest, build_manifest(made, source, status))
    return made


def _write_benchmark(folder: Path, labels: Sequence[int]) -> None:
    folder.mkdir()
    texts = (f"old tweet number {n}" for n in range(len(labels)))
    (folder / "test_text.txt").write_text("".join(f"{text}\n" for text in texts))
    (folder / "test_labels.txt").write_text("".join(f"{label}\n" for label in labels))
    names = ("anger", "joy", "optimism", "sadness")
    (folder / "mapping.txt").write_text("\n".join(f"{n}\t{name}" for n, name in enumerate(names)))


async def _fill(path: Path, samples: Sequence[Sample], evidence: Callable[[int], Evidence]) -> None:
    store = RunStore.open(path, now=lambda: NOW)
    store.add_samples(samples)
    await store.history.add_evidence(map(evidence, range(2)))
    for number, (sample, (outcome, reason)) in enumerate(zip(samples, ENDS, strict=True)):
        store.history.record(
            _judged(sample, "judge_original", "original_label", passed=number != 4)
        )
        if number < 4:
            store.history.record(_judged(sample, "reflect", "label_preserved", passed=number != 2))
        await store.commit(_result(number, sample, outcome, reason))
    store.close()


def _judged(sample: Sample, node: str, name: str, *, passed: bool) -> StepRecord:
    said = Verdict(name=name, attempt=1, passed=passed)
    return StepRecord(
        sample_id=sample.id,
        attempt=1,
        node=node,
        started_at=NOW.isoformat(),
        seconds=0.1,
        verdicts=(said,),
    )


def _result(number: int, sample: Sample, outcome: Outcome, reason: str) -> Result:
    accepted = outcome == "accepted"
    rung: Rung = "named" if number < 3 else "concept" if number == 3 else "none"
    return Result(
        sample_id=sample.id,
        outcome=outcome,
        reason=reason,
        attempts=1,
        rung=rung,
        semantic_status="reworded" if number % 2 == 0 else "unchanged",
        semantic={"text": f"reworded {number}"} if number % 2 == 0 else None,
        updated={"text": _updated(number)} if accepted else None,
        original_label=sample.label_text,
        facts=tuple(_facts(sample.id, number)) if accepted else (),
    )


def _updated(number: int) -> str:
    return "Ada Roe opened it" if number == 0 else f"new tweet number {number}"


def _facts(sample_id: str, number: int) -> Iterator[ReplacedFact]:
    """Yield a fact, and for the second sample one more that rests on older news."""
    for evidence in (1, 0) if number == 1 else (1 if number else 0,):
        yield ReplacedFact(
            sample_id=sample_id,
            field="text",
            before=Triple(head="old", relation="was", tail="there"),
            after=Triple(head=f"new {number}", relation="is", tail="here"),
            evidence_id=news(evidence).id,
            quote="Monday",
        )


def news(number: int) -> Evidence:
    """Return a piece of evidence."""
    return Evidence(
        id=f"{number:016x}",
        url=f"https://example.org/{number}",
        domain="example.org",
        title="A title",
        snippet=SNIPPET if number == 0 else "The river rose again.",
        published_at=datetime(2026, 11, 2 + number, tzinfo=UTC),
        published_precision="exact",
        entities=ADA if number == 0 else (),
        origin=f"f:{number}",
    )


def build_manifest(
    made: Made,
    source: Path,
    status: Status = "complete",
    *,
    counts: Mapping[str, int] | None = None,
    task: str = "emotion",
    digest: str = "",
) -> Manifest:
    """Return the manifest of a run with these counts of outcomes."""
    counted = dict[str, int](counts or Counter(end for end, _ in ENDS))
    others = dict.fromkeys(("config", "prompts", "data", "knowledge", "code", "graph"), "f00d")
    return Manifest(
        run="weekly/20261120T030000Z",
        name="weekly",
        task=task,
        status=status,
        created_at=NOW.isoformat(),
        now=NOW.isoformat(),
        window=Window(start=datetime(2026, 11, 1, tzinfo=UTC), end=NOW),
        counts=full_counts(sum(counted.values()), counted),
        models={"default": {"model": "offline"}},
        prompts={"composer": "0123456789ab"},
        knowledge=KnowledgeUsed(
            backend="local",
            path=str(made.folder / "news"),
            min_precision="cluster",
            coverage=Coverage(articles=2, days=2),
        ),
        fingerprints=Fingerprints(task=digest or hash_task(load_task(task)), **others),
        source=ConfigSource(path=str(source), sha256="f00d"),
        workspace=str(made.folder / ".coreeval"),
    )
