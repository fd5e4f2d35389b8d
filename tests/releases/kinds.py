"""Small finished runs of every other kind of task, made by hand: what they hold is known."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from coreeval.config import load_config
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.runs.arms import write_arms
from coreeval.runs.card import write_card
from coreeval.runs.manifest import read_manifest, write_manifest
from coreeval.schema import ReplacedFact, Result, Sample, Task, TaskKind, Triple
from coreeval.tasks import hash_task, load_task
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kit import NOW, Made, build_manifest, news

Row = dict[str, Any]
FIELDS: Mapping[TaskKind, list[str]] = {
    "choice": ["question"],
    "answer": ["context", "question"],
    "summary": ["document"],
}
ROWS: Mapping[TaskKind, list[Row]] = {
    "choice": [
        {"question": "Who opened the bridge?", "choices": ["Bo Li", "Cy Poe"], "answer": 1},
        {"question": "Which river rose?", "choices": ["Oder", "Elbe", "Main"], "answer": "B"},
        {"question": "Is $5 less than 5%?", "choices": ["yes", "no", "both", "none"], "answer": 0},
    ],
    "answer": [
        {"context": "Two nations met.", "question": "How many met?", "answers": ["2", "two"],
         "unit": "nations", "tolerance": "0"},
        {"context": "Cy Poe opened the bridge.", "question": "Who opened it?",
         "answers": ["Cy Poe", "Poe"]},
        {"context": "Sales rose by 4.5% to $3.8 million.", "question": "By how much?",
         "answers": ["4.5%"], "unit": "%", "tolerance": "1%", "program": "divide(45, 1000)"},
    ],
    "summary": [
        {"document": "The river rose all day. Nobody was hurt.", "summary": "The river rose."},
        {"document": "Cy Poe opened the bridge. It rained.", "summary": "A bridge was opened."},
        {"document": "Sales fell by 4%. Costs rose.", "summary": "Sales fell."},
    ],
}  # fmt: skip
UPDATED: Mapping[TaskKind, dict[str, str]] = {
    "choice": {"question": "Who opened the dam?", "A": "Di Ray", "B": "Ada Roe"},
    "answer": {
        "context": "Three nations met.", "question": "How many met?",
        "answers": "3\nthree", "unit": "nations", "tolerance": "0",
    },
    "summary": {"document": "Ada Roe opened the dam. It snowed.", "summary": "A dam was opened."},
}  # fmt: skip
"""The new fields of the first sample."""
SEMANTIC: Mapping[TaskKind, dict[str, str]] = {
    "choice": {"question": "By whom was the bridge opened?", "A": "Bo Li", "B": "Cy Poe"},
    "answer": {
        "context": "A pair of nations met.", "question": "How many met?",
        "answers": "2\ntwo", "unit": "nations", "tolerance": "0",
    },
    "summary": {"document": "All day the river rose. None was hurt.", "summary": "A river rose."},
}  # fmt: skip
OPEN = {"name": "CC0 1.0", "url": "https://example.org/cc0", "redistribute": True}


def make_kind_run(folder: Path, kind: TaskKind, **dataset: object) -> Made:
    """Write a benchmark of three rows, its task, a config and a run; the first row has new texts.

    The dataset may be given settings, such as a licence.
    """
    made = Made(folder)
    made.benchmark.mkdir()
    rows = [{"id": f"q{place}", **row} for place, row in enumerate(ROWS[kind], start=1)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (made.benchmark / "test.jsonl").write_text(lines)
    task = {"name": "own", "kind": kind, "description": "Try it.", "fields": FIELDS[kind]}
    (folder / "task.yaml").write_text(yaml.safe_dump(task))
    source = folder / "weekly.yaml"
    settings = {
        "name": "weekly",
        "task": str(folder / "task.yaml"),
        "dataset": {"format": "jsonl", "path": str(made.benchmark / "test.jsonl"), **dataset},
        "knowledge": {"window": {"start": "2026-11-01"}},
        "models": {"default": "offline"},
    }
    source.write_text(yaml.safe_dump(settings))
    config = load_config(source)
    made.files.root.mkdir()
    made.files.config.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    loaded = load_task(config.task)
    samples = load_benchmark(config.dataset, loaded).samples
    asyncio.run(_fill(made, samples, kind))
    counts = {"accepted": 1, "no_knowledge": 2}
    manifest = build_manifest(made, source, counts=counts, task="own", digest=hash_task(loaded))
    write_manifest(made.files.manifest, manifest)
    assemble(made, loaded)
    return made


async def _fill(made: Made, samples: tuple[Sample, ...], kind: TaskKind) -> None:
    store = RunStore.open(made.files.store, now=lambda: NOW)
    store.add_samples(samples)
    await store.history.add_evidence(map(news, range(2)))
    for place, sample in enumerate(samples):
        await store.commit(_renewed(sample, kind) if place == 0 else _kept(sample))
    store.close()


def _renewed(sample: Sample, kind: TaskKind) -> Result:
    fact = ReplacedFact(
        sample_id=sample.id,
        field=FIELDS[kind][0],
        before=Triple(head="old", relation="was", tail="there"),
        after=Triple(head="new", relation="is", tail="here"),
        evidence_id=news(1).id,
        quote="Monday",
    )
    return Result(
        sample_id=sample.id,
        outcome="accepted",
        attempts=1,
        rung="named",
        semantic_status="reworded",
        semantic=SEMANTIC[kind],
        updated=UPDATED[kind],
        original_label=sample.label_text,
        facts=(fact,),
    )


def _kept(sample: Sample) -> Result:
    return Result(sample_id=sample.id, outcome="no_knowledge", reason="no_news", attempts=1)


def assemble(made: Made, task: Task) -> None:
    """Write the dataset of a run that was made by hand."""
    config, manifest = load_config(made.files.config), read_manifest(made.files.manifest)
    store = RunStore.open(made.files.store, now=lambda: NOW)
    rows = write_arms(store, task, made.files.dataset, split="test", on_reject="drop")
    store.close()
    write_card(made.files.dataset, task, config, manifest, rows)
