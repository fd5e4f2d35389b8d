"""`coreeval trace`: what happened to each sample, step by step."""

import difflib
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.arguments import RunArgument
from coreeval.cli.meanings import offline_note, offline_roles
from coreeval.cli.opened import opened_run
from coreeval.cli.output import AsJson, Document, command, one_line, show
from coreeval.cli.story import story_lines
from coreeval.errors import UsageError
from coreeval.meanings import OUTCOMES

if TYPE_CHECKING:
    from coreeval.tools.stores.run_rows import Step
    from coreeval.tools.stores.runs import RunStore

WIDEST_ID = 40
REASON = 90
"""Characters of a reason that fit into the list."""


def trace(
    run: RunArgument,
    sample: Annotated[
        str | None, typer.Argument(metavar="SAMPLE", help="A sample's id; all, if absent.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(metavar="OUTCOME", help="List only those that ended so.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell the story of a sample, or how each one ended."""
    _check_outcome(sample, outcome)
    with opened_run(run) as (_, manifest, store):
        roles = offline_roles(manifest)
        if sample is None:
            listing = {"samples": _listing(store, outcome), "offline_roles": roles}
            show(listing, as_json, lambda: "\n".join(_list_lines(listing, run, outcome)))
        else:
            story = {**_story(store, run, sample), "offline_roles": roles}
            show(story, as_json, lambda: "\n".join(story_lines(story)))


def _check_outcome(sample: str | None, outcome: str | None) -> None:
    if outcome is None:
        return
    if sample is not None:
        raise UsageError("--outcome is for the list of samples", hint="leave out SAMPLE or it")
    known = [name for name in OUTCOMES if name != "pending"]
    if outcome not in known:
        near = difflib.get_close_matches(outcome, known, n=1)
        raise UsageError(
            f"there is no outcome {outcome!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}",
        )


def _listing(store: "RunStore", outcome: str | None) -> list[Document]:
    return [
        {
            "sample": ended.sample.id,
            "outcome": ended.result.outcome,
            "attempts": ended.result.attempts,
            "reason": ended.result.reason,
        }
        for ended in store.ended([outcome] if outcome else [])
    ]


def _list_lines(listing: Document, run: Path, outcome: str | None) -> Iterator[str]:
    rows = listing["samples"]
    if not rows:
        yield f"no sample has ended as {outcome}" if outcome else "no sample has ended yet"
        return
    ids = [one_line(row["sample"]) for row in rows]
    wide = min(WIDEST_ID, max(len("sample"), *map(len, ids)))
    yield f"{'sample':<{wide}}  {'outcome':<19}  attempts  reason"
    for sample, row in zip(ids, rows, strict=True):
        reason = textwrap.shorten(row["reason"], REASON, placeholder=" …")
        line = f"{sample:<{wide}}  {row['outcome']:<19}  {row['attempts']:>8}  {reason}"
        yield line.rstrip()
    yield f"one in detail: {command('trace', run, ids[0])}"
    yield from offline_note(listing["offline_roles"])


def _story(store: "RunStore", run: Path, sample_id: str) -> Document:
    try:
        sample = store.sample(sample_id)
    except KeyError:
        raise _unknown(store, run, sample_id) from None
    steps = [_step(step) for step in store.steps(sample_id)]
    result = store.result(sample_id)
    offered = [known for step in steps for known in step["did"].get("evidence", ())]
    used = [fact.evidence_id for fact in result.facts] if result else []
    evidence = store.evidence(list(dict.fromkeys([*offered, *used])))
    return {
        "sample": sample.model_dump(mode="json"),
        "result": result.model_dump(mode="json") if result else None,
        "train_item": _train_item(store, sample_id),
        "steps": steps,
        "evidence": {key: item.model_dump(mode="json") for key, item in evidence.items()},
    }


def _train_item(store: "RunStore", item_id: str) -> Document | None:
    """Return what became of an item of the train split; None for a sample of the benchmark."""
    try:
        return store.train_item(item_id).end.model_dump(mode="json")
    except KeyError:
        return None


def _unknown(store: "RunStore", run: Path, wanted: str) -> UsageError:
    """Return an error that names the samples whose ids end like the one that was asked for."""
    ids = (*(ended.sample.id for ended in store.ended()), *store.pending())
    last = wanted.rpartition("/")[2]
    near = [known for known in ids if last and known.rpartition("/")[2] == last][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else f"list them: {command('trace', run)}"
    return UsageError(f"the run has no sample {wanted!r}", where=str(run), hint=hint)


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
