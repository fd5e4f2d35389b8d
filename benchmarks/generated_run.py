"""A run of any size without asking anybody: what the pages and `coreeval status` are timed on."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from coreeval.cli import main as coreeval
from coreeval.graph.state import REWORDING_NODES
from coreeval.runs.manifest import full_counts, read_manifest, write_manifest
from coreeval.schema import (
    Entity,
    Evidence,
    Extraction,
    Plan,
    Prediction,
    ReplacedFact,
    Result,
    Sample,
    Statement,
    Triple,
    Verdict,
)
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord
from coreeval.tools.workspace import RunFiles

DEMO = Path(__file__).parents[1] / "examples" / "demo"
START = datetime(2026, 11, 1, tzinfo=UTC)
FIRST = ("extract", "judge_original", "reword", "judge_semantic")
ATTEMPT = ("compose", "check", "reflect")
ASKED = {
    "extract": ("extractor",),
    "judge_original": ("label_judge",),
    "reword": ("rewriter",),
    "judge_semantic": ("label_judge",),
    "replace": ("replacer",),
    "compose": ("composer",),
    "reflect": ("fact_judge", "label_judge"),
}
JUDGED = {"replace": "plan", "check": "checks", "reflect": "facts_supported"}
TARGETS = ("openai:large", "openai:middle", "openai:small")
LABELS = ("anger", "joy", "optimism", "sadness")
TALK = (
    "the of to and a in council opens new line spring year river station workers strike ends after "
    "talks price rises bank bridge museum festival record snow team wins final city plans budget"
)
WORDS = TALK.split()
ENDS = (
    ("accepted", ""),
    ("accepted", ""),
    ("no_knowledge", "no_news for 'council', 'river'"),
    ("rejected_facts", "facts_unsupported: text says 'final', which no evidence carries"),
    ("rejected_form", "headline_run: text repeats a headline: 'council opens'; say it otherwise"),
    ("failed", "openai:stub at http://127.0.0.1: HTTP 500: try again (request 8f31)"),
)
CHUNK = 500
WITH_TEXTS = 200
"""Samples whose calls are in the call store too, so that their pages have prompts and answers."""


def generate(folder: Path, samples: int) -> Path:
    """Write a finished run of so many samples, ten steps each on average; return its directory."""
    run = _small_run(folder)
    files = RunFiles(run)
    files.store.unlink()
    chance = random.Random(7)
    with closing(RunStore.open(files.store, now=lambda: START)) as store:
        store.add_samples(_sample(number, chance) for number in range(1, samples + 1))
        asyncio.run(_work_through(store, samples, chance))
        store.add_predictions(_answers(samples, random.Random(11)))
        counts = full_counts(store.total(), store.counts())
    asyncio.run(_fill_calls(folder / ".coreeval" / "calls.db"))
    manifest = read_manifest(files.manifest).model_copy(update={"counts": counts})
    write_manifest(files.manifest, manifest)
    return run


def _small_run(folder: Path) -> Path:
    """Run the offline team on three samples, for a config and a manifest that are real."""
    config = {
        "name": "generated",
        "task": "emotion",
        "dataset": {"format": "tweeteval", "path": str(DEMO / "emotion")},
        "knowledge": {
            "path": str(DEMO / "news"),
            "window": {"start": "2025-08-01", "end": "2026-10-01"},
            "min_precision": "crawl",
        },
        "models": {"default": "offline"},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "generated.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    run = folder / "run"
    coreeval(["refresh", str(folder / "generated.yaml"), "--limit", "3", "--run-dir", str(run)])
    return run


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def _sample(number: int, chance: random.Random) -> Sample:
    label = number % len(LABELS)
    fields = {"text": _text(chance, 20)}
    return Sample(
        id=f"emotion/test/{number}",
        split="test",
        fields=fields,
        label=label,
        label_text=LABELS[label],
    )


# -- what happened to each ------------------------------------------------------------------------


async def _work_through(store: RunStore, samples: int, chance: random.Random) -> None:
    await store.history.add_evidence(_evidence(number, chance) for number in range(2000))
    for first in range(1, samples + 1, CHUNK):
        numbers = range(first, min(first + CHUNK, samples + 1))
        for number in numbers:
            for step in _steps(number, chance):
                store.history.record(step)
        await asyncio.gather(*(store.commit(_result(number, chance)) for number in numbers))
        store.beat({})


def _answers(samples: int, chance: random.Random) -> Iterator[Prediction]:
    """Yield the answers of three targets, two templates each, to all arms of each sample."""
    for target in TARGETS:
        for number in range(1, samples + 1):
            accepted = ENDS[number % len(ENDS)][0] == "accepted"
            for arm in ("original", "semantic", *(("updated",) if accepted else ())):
                for template in (1, 2):
                    yield Prediction(
                        target=target,
                        source=arm,
                        sample_id=f"emotion/test/{number}",
                        template=template,
                        answer=LABELS[number % 4 if chance.random() < 0.8 else 0],
                    )


def _steps(number: int, chance: random.Random) -> Iterator[StepRecord]:
    """Yield nine steps, and three more for each third sample: a second attempt."""
    attempts = 2 if number % 3 == 0 else 1
    nodes = [(0, node) for node in FIRST] + [(1, "retrieve"), (1, "replace")]
    nodes += [(attempt, node) for attempt in range(1, attempts + 1) for node in ATTEMPT]
    began = START + timedelta(seconds=number)
    for place, (attempt, node) in enumerate(nodes):
        yield StepRecord(
            sample_id=f"emotion/test/{number}",
            attempt=0 if node in REWORDING_NODES else attempt,
            node=node,
            started_at=(began + timedelta(seconds=place)).isoformat(timespec="microseconds"),
            seconds=round(chance.random(), 6),
            detail=_detail(node, chance),
            calls=tuple(_call(number, attempt, node, role) for role in ASKED.get(node, ())),
            verdicts=tuple(_verdicts(node, attempt, attempts)),
        )


def _verdicts(node: str, attempt: int, attempts: int) -> Iterator[Verdict]:
    if node in JUDGED:
        passed = node != "reflect" or attempt == attempts
        yield Verdict(name=JUDGED[node], attempt=attempt, passed=passed, reason="")


def _detail(node: str, chance: random.Random) -> dict[str, Any]:
    """Return about as much as a real step leaves: three kilobytes for a sample."""
    if node == "extract":
        found = Extraction(entities=tuple(map(_entity, WORDS[:8])), queries=tuple(WORDS[:4]))
        return {"extraction": found.model_dump(mode="json"), "policy": "allow"}
    if node == "retrieve":
        offered = chance.sample(range(2000), 20)
        return {"evidence": {f"{item:016x}": "named" for item in offered}, "rung": "named"}
    if node == "replace":
        plan = Plan(decision="use", statements=tuple(_statement(chance) for _ in range(3)))
        return {"plan": plan.model_dump(mode="json"), "rung": "named"}
    if node in ("reword", "compose"):
        name = "semantic" if node == "reword" else "composed"
        return {name: {"text": _text(chance, 22)}}
    return {}


def _entity(word: str) -> Entity:
    return Entity(span=word, field="text", kind="named", type="other", query_name=word)


def _statement(chance: random.Random) -> Statement:
    key = f"{chance.randrange(2000):016x}"
    text, quote = _text(chance, 15), _text(chance, 12)
    return Statement(text=text, evidence_ids=(key,), quote=quote, modality="asserted")


def _result(number: int, chance: random.Random) -> Result:
    outcome, reason = ENDS[number % len(ENDS)]
    fact = ReplacedFact(
        sample_id=f"emotion/test/{number}",
        field="text",
        before=Triple(head="council", relation="opens", tail="bridge"),
        after=Triple(head="city", relation="plans", tail="museum"),
        evidence_id=f"{number % 2000:016x}",
        quote="city plans museum",
    )
    accepted = outcome == "accepted"
    return Result.model_validate(
        {
            "sample_id": f"emotion/test/{number}",
            "outcome": outcome,
            "reason": reason,
            "attempts": 2 if number % 3 == 0 else 1,
            "rung": "named",
            "semantic_status": "reworded",
            "semantic": {"text": _text(chance, 22)},
            "updated": {"text": _text(chance, 22)} if accepted else None,
            "original_label": LABELS[number % len(LABELS)],
            "facts": (fact,) if accepted else (),
        }
    )


def _evidence(number: int, chance: random.Random) -> Evidence:
    return Evidence(
        id=f"{number:016x}",
        url=f"https://news.example.org/2026/10/{number}",
        domain="news.example.org",
        title=_text(chance, 10),
        snippet=_text(chance, 25),
        published_at=START - timedelta(hours=number),
        published_precision="exact",
        origin=f"generated:{number}",
    )


# -- calls ----------------------------------------------------------------------------------------


def _request(number: int, attempt: int, node: str, role: str) -> str:
    return call_request(
        provider="openai",
        endpoint="http://127.0.0.1/v1",
        model="stub",
        parameters={"temperature": 0.0},
        schema={"name": role, "schema": {}},
        messages=[
            {"role": "system", "content": f"You play the {role}. " * 80},
            {"role": "user", "content": f"{number} {attempt} {node} {role}: {' '.join(WORDS * 4)}"},
        ],
        draw=0,
    )


def _call(number: int, attempt: int, node: str, role: str) -> CallRow:
    return CallRow(
        key=call_key(_request(number, attempt, node, role)),
        role=role,
        model="openai:stub",
        draw=0,
        cached=number % 10 == 0,
        prompt_tokens=800,
        completion_tokens=100,
        seconds=0.5,
        method="json_schema",
        usd=0.000244140625,
    )


async def _fill_calls(path: Path) -> None:
    chance = random.Random(7)
    with closing(open_calls(path, "generated")) as store:
        for number in range(1, WITH_TEXTS + 1):
            made = [_record(step, call) for step in _steps(number, chance) for call in step.calls]
            await asyncio.gather(*map(store.put, made))


def _record(step: StepRecord, call: CallRow) -> CallRecord:
    number = int(step.sample_id.rpartition("/")[2])
    return CallRecord(
        key=call.key,
        draw=0,
        role=call.role,
        request=_request(number, step.attempt, step.node, call.role),
        response='{"text": "the city plans a museum", "reason": "generated"}',
        valid=True,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        model_returned="stub-1",
        finish_reason="stop",
        started_at=step.started_at,
        seconds=call.seconds,
        method=call.method,
        usd=call.usd,
    )
