"""`coreeval trace`: what happened to each sample, step by step."""

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, show, utc_now
from coreeval.cli.refresh import RunArgument
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.tools.stores.run_rows import Step
    from coreeval.tools.stores.runs import RunStore

WIDTH = 100


def trace(
    run: RunArgument,
    sample: Annotated[str | None, typer.Argument(help="Sample id; all, if absent.")] = None,
    outcome: Annotated[str | None, typer.Option(help="List only this outcome.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what the agents did with one sample, or list how all of them ended."""
    from coreeval.releases.manifest import read_manifest
    from coreeval.tools.stores.runs import RunStore
    from coreeval.tools.workspace import RunFiles

    files = RunFiles(run)
    read_manifest(files.manifest)
    store = RunStore.open(files.store, now=utc_now)
    try:
        if sample is None:
            listing = _listing(store, outcome)
            show(listing, as_json, lambda: _list_words(listing))
        else:
            story = _story(store, run, sample)
            show(story, as_json, lambda: "\n".join(_story_words(story)))
    finally:
        store.close()


def _listing(store: "RunStore", outcome: str | None) -> Document:
    rows = [
        {
            "sample": ended.sample.id,
            "outcome": ended.result.outcome,
            "attempts": ended.result.attempts,
            "reason": ended.result.reason,
        }
        for ended in store.ended([outcome] if outcome else [])
    ]
    return {"samples": rows}


def _list_words(listing: Document) -> str:
    lines = [
        f"{row['sample']:<28} {row['outcome']:<20} {row['attempts']} "
        f"{textwrap.shorten(row['reason'], 90, placeholder=' …')}".rstrip()
        for row in listing["samples"]
    ]
    return "\n".join(lines) or "no sample has ended yet"


def _story(store: "RunStore", run: Path, sample_id: str) -> Document:
    try:
        sample = store.sample(sample_id)
    except KeyError:
        raise UsageError(
            f"the run has no sample {sample_id!r}",
            where=str(run),
            hint=f"list them with: coreeval trace {run}",
        ) from None
    steps = [_step(step) for step in store.steps(sample_id)]
    result = store.result(sample_id)
    offered = [known for step in steps for known in step["did"].get("evidence", ())]
    evidence = store.evidence(list(dict.fromkeys(offered)))
    return {
        "sample": sample.model_dump(mode="json"),
        "result": result.model_dump(mode="json") if result else None,
        "steps": steps,
        "evidence": {key: item.model_dump(mode="json") for key, item in evidence.items()},
    }


def _step(step: "Step") -> Document:
    return {
        "attempt": step.attempt,
        "node": step.node,
        "started_at": step.started_at,
        "seconds": step.seconds,
        "error": step.error,
        "did": step.detail,
        "verdicts": [verdict.model_dump() for verdict in step.verdicts],
        "calls": [asdict(call) for call in step.calls],
    }


def _story_words(story: Document) -> Iterator[str]:
    sample, result = story["sample"], story["result"]
    yield f"{sample['id']}   gold label: {sample['label_text']}"
    yield from _texts("original", sample["fields"])
    attempt = 0
    for step in story["steps"]:
        if step["attempt"] > attempt:
            attempt = step["attempt"]
            yield f"-- attempt {attempt} " + "-" * 60
        yield from _step_words(step, story["evidence"])
    yield "-" * 73
    if result is None:
        yield "no outcome yet"
        return
    yield f"{result['outcome']} after {_attempts(result['attempts'])}  {result['reason']}".rstrip()
    yield from _texts("semantic", result["semantic"] or {})
    yield from _texts("updated", result["updated"] or {})
    yield from _sources(result["facts"], story["evidence"])


def _step_words(step: Document, evidence: Document) -> Iterator[str]:
    yield f"{step['node']:<16}{step['seconds'] * 1000:8.1f} ms{_calls(step['calls'])}"
    did = step["did"]
    teller = _TELLERS.get(step["node"])
    if teller:
        yield from teller(did, evidence)
    for verdict in step["verdicts"]:
        mark = "ok " if verdict["passed"] else "NOT"
        yield from _wrapped(f"{mark} {verdict['name']}: {verdict['reason']}".rstrip(": "))
    if step["error"]:
        yield from _wrapped(f"error: {step['error']}")


def _calls(calls: list[Document]) -> str:
    paid = sum(not call["cached"] for call in calls)
    return f"   {len(calls)} calls, {paid} of them asked now" if calls else ""


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _tell_extract(did: Document, _: Document) -> Iterator[str]:
    found = did.get("extraction", {})
    yield from _wrapped("entities: " + ", ".join(e["span"] for e in found.get("entities", ())))
    yield from _wrapped("locked:   " + ", ".join(o["span"] for o in found.get("locked", ())))
    yield from _wrapped("queries:  " + ", ".join(found.get("queries", ())))


def _tell_reword(did: Document, _: Document) -> Iterator[str]:
    yield from _texts("reworded", did.get("semantic") or {})


def _tell_retrieve(did: Document, evidence: Document) -> Iterator[str]:
    known = did.get("evidence", ())
    yield from _wrapped(f"{len(known)} items, rung {did.get('rung', 'none')}")
    for key in known[:3]:
        yield from _wrapped(_headline(evidence.get(key)))


def _tell_replace(did: Document, _: Document) -> Iterator[str]:
    plan = did.get("plan", {})
    yield from _wrapped(f"{plan.get('decision')}: {plan.get('reason', '')}".rstrip(": "))
    for statement in plan.get("statements", ()):
        yield from _wrapped(f"knowledge: {statement['text']}")
    for new in plan.get("replacements", ()):
        before = _triple(new["before"]) if new["before"] else "(inserted)"
        yield from _wrapped(f"{before}  ->  {_triple(new['after'])}")


def _tell_compose(did: Document, _: Document) -> Iterator[str]:
    yield from _texts("composed", did.get("composed") or {})


_TELLERS: dict[str, Callable[[Document, Document], Iterator[str]]] = {
    "extract": _tell_extract,
    "reword": _tell_reword,
    "retrieve": _tell_retrieve,
    "replace": _tell_replace,
    "compose": _tell_compose,
}


def _triple(triple: Document) -> str:
    return f"({triple['head']} | {triple['relation']} | {triple['tail']})"


def _headline(item: Document | None) -> str:
    if item is None:
        return "(evidence not stored)"
    return f"{item['published_at'][:10]} {item['domain']}: {item['title']}"


def _sources(facts: list[Document], evidence: Document) -> Iterator[str]:
    for key in dict.fromkeys(fact["evidence_id"] for fact in facts):
        yield from _wrapped(f"source: {_headline(evidence.get(key))}")
        yield from _wrapped(f"        {evidence.get(key, {}).get('url', '')}")


def _texts(title: str, fields: Mapping[str, str]) -> Iterator[str]:
    for name, text in fields.items():
        yield from _wrapped(f"{title} {name}: {text}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="      ")
