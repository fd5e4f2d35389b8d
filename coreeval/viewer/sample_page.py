"""The page of one sample: word diffs of its texts, replaced facts, steps and calls.

Steps are on a timeline, evidence is numbered, and the objections to a sample that was not accepted
are listed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval import meanings
from coreeval.models.answer_text import is_too_deep
from coreeval.releases.review.notes import read_notes
from coreeval.runs.history import (
    ArmDiff,
    AttemptHistory,
    SampleHistory,
    StepHistory,
    read_sample_history,
    redact_history,
)
from coreeval.runs.open import open_run_calls
from coreeval.schema import Evidence, Precision, ReplacedFact, Sample, Verdict
from coreeval.tasks.kinds import Display, find_display
from coreeval.tasks.kinds.answer import ANSWERS
from coreeval.tasks.kinds.choice import CHOICE, option_fields
from coreeval.tools.stores.run_queries import Neighbours
from coreeval.viewer.catalog import OpenRun, open_requested_run
from coreeval.viewer.rendering import build_run_url, read_sample_id, render_page
from coreeval.viewer.sample_list import PAGE_SIZE, ListView

DATE_SOURCES: dict[Precision, str] = {
    "exact": "as the article states",
    "url": "from its address",
    "cluster": "from another report of the same event",
    "crawl": "when it was first seen",
}
"""Descriptions of the precision of publication times."""
MIN_WIDTH = 0.6
"""The width of the shortest step on the timeline, in percent, so that it stays visible."""


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The position of a step on the sample's timeline."""

    step: StepHistory
    after_s: float
    """The seconds from the first step to this one."""
    left: float
    """The start of its bar, in percent."""
    width: float


@dataclass(frozen=True, kw_only=True)
class StepGroup:
    """A group of steps: those before the first attempt, or those of one attempt."""

    number: int
    """The number of the attempt; 0 for the steps before the first."""
    attempt: AttemptHistory | None
    moments: tuple[StepTime, ...]


@dataclass(frozen=True, kw_only=True)
class EvidenceEntry:
    """An item of evidence with its number on the page."""

    number: int
    item: Evidence
    stands: Literal["used", "chosen", ""]
    """`used` if it supports a replaced fact, `chosen` if only a failed plan used it; otherwise
    empty."""


def time_steps(history: SampleHistory) -> tuple[StepTime, ...]:
    """Return the steps with their positions on a common timeline."""
    if not history.steps:
        return ()
    first = min(step.started_at for step in history.steps)
    whole = max((max(s.ended_at for s in history.steps) - first).total_seconds(), 1e-6)
    return tuple(_time_step(step, (step.started_at - first).total_seconds(), whole)
                 for step in history.steps)  # fmt: skip


def _time_step(step: StepHistory, after: float, whole: float) -> StepTime:
    width = max(100 * step.seconds / whole, MIN_WIDTH)
    left = min(100 * after / whole, 100 - MIN_WIDTH)
    width = min(width, 100 - left)
    return StepTime(step=step, after_s=after, left=round(left, 2), width=round(width, 2))


def group_steps(history: SampleHistory) -> Iterator[StepGroup]:
    """Yield the steps before the first attempt, then those of each attempt."""
    timed = time_steps(history)
    attempts = {attempt.number: attempt for attempt in history.attempts}
    for number in sorted({moment.step.attempt for moment in timed}):
        own = tuple(moment for moment in timed if moment.step.attempt == number)
        yield StepGroup(number=number, attempt=attempts.get(number), moments=own)


def number_evidence(history: SampleHistory) -> dict[str, EvidenceEntry]:
    """Number the evidence by id: first the evidence of facts, then that chosen by plans."""
    used = [fact.evidence_id for fact in list_facts(history)]
    chosen = [key for step in history.steps for key in _list_chosen(step.did)]
    order = dict.fromkeys(
        key for key in (*used, *chosen, *history.evidence) if key in history.evidence
    )
    return {
        key: EvidenceEntry(
            number=number, item=history.evidence[key], stands=_find_use(key, used, chosen)
        )
        for number, key in enumerate(order, start=1)
    }


def _list_chosen(did: Mapping[str, Any]) -> Iterator[str]:
    """Yield the evidence for the statements of a step's plan."""
    for statement in (did.get("plan") or {}).get("statements", ()):
        yield from statement["evidence_ids"]


def _find_use(
    key: str, used: Sequence[str], chosen: Sequence[str]
) -> Literal["used", "chosen", ""]:
    if key in used:
        return "used"
    return "chosen" if key in chosen else ""


def list_facts(history: SampleHistory) -> Sequence[ReplacedFact]:
    """Return the replaced facts; empty until the sample has ended."""
    return history.result.facts if history.result else ()


def find_last_text(history: SampleHistory) -> AttemptHistory | None:
    """Return the last attempt that wrote a text; None if none did."""
    return next((each for each in reversed(history.attempts) if each.text), None)


def list_objections(history: SampleHistory) -> tuple[Verdict, ...]:
    """Return the failed verdicts on the last attempt: why a sample was not accepted."""
    if not history.attempts:
        return ()
    return tuple(verdict for verdict in history.attempts[-1].verdicts if not verdict.passed)


def select_diffs(history: SampleHistory, before: str, after: str) -> dict[str, ArmDiff]:
    """Return the differences between two arms by field; empty if the sample lacks one of them."""
    return {one.field: one for one in history.diffs if (one.before, one.after) == (before, after)}


def show_kind(sample: Sample) -> Display:
    """Return how the sample is shown to people."""
    return find_display(sample.fields, sample.label_text)


def title_texts(sample: Sample) -> Mapping[str, str]:
    """Return the titles of the text fields, without options."""
    titles = show_kind(sample).titles(sample.fields, sample.label_text)
    options = list_options(sample)
    return {name: title for name, title in titles.items() if name not in options}


def list_options(sample: Sample) -> Sequence[str]:
    """Return the letters of a choice's options; empty for other kinds."""
    display = show_kind(sample)
    return option_fields(list(sample.fields)) if display is CHOICE.display else ()


def indent_json(text: str) -> str:
    """Return a model's answer with its JSON indented, or unchanged if it is not JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if is_too_deep(value) else json.dumps(value, ensure_ascii=False, indent=2)


def format_details(value: Mapping[str, object]) -> str:
    """Return a step's details in readable form."""
    return json.dumps(value, ensure_ascii=False, indent=2)


HELPERS: Mapping[str, object] = {
    "ANSWERS": ANSWERS,
    "DATED": DATE_SOURCES,
    "moments": time_steps,
    "chapters": group_steps,
    "news": number_evidence,
    "facts": list_facts,
    "last_text": find_last_text,
    "objections": list_objections,
    "diffs_between": select_diffs,
    "display": show_kind,
    "titles": title_texts,
    "options": list_options,
    "pretty": indent_json,
    "as_json": format_details,
}
"""Functions and values of the template, by name."""


def show_sample(request: Request) -> Response:
    """Show a sample, with links to its neighbours in the list that it was opened from."""
    hide = request.app.state.hide_texts
    view = ListView.from_query(request.query_params, hide_texts=hide)
    with open_requested_run(request) as run:
        history = read_history(request, run)
        notes = read_notes(run.manifest)
        near = run.store.listing.neighbours(
            history.sample.id, view.chosen, sort=view.sort, descending=view.descending
        )
    return render_page(
        request,
        "sample.html",
        run=run,
        history=history,
        near=near,
        remarks=notes.of(history.sample.id),
        notes_problem=notes.problem,
        view=view,
        up=_build_list_url(run.key, view, near),
        helpers=HELPERS,
        meanings=meanings,
    )


def _build_list_url(key: str, view: ListView, near: Neighbours) -> str:
    """Return the address of the list page that contains the sample."""
    query = view.at(ceil((near.position or 1) / PAGE_SIZE))
    return build_run_url(key, "samples") + (f"?{query}" if query else "")


def read_history(request: Request, run: OpenRun) -> SampleHistory:
    """Return what may be shown of a sample's history: the sample in the address, of an open run.

    Raises:
        HTTPException: 404, the run has no such sample.
    """
    history, bundle = _read_whole_history(run, read_sample_id(request)), request.app.state.bundle
    if bundle:
        history = bundle.restrict_history(history)
    return redact_history(history) if request.app.state.hide_texts else history


def _read_whole_history(run: OpenRun, sample_id: str) -> SampleHistory:
    with open_run_calls(run.manifest) as calls:
        try:
            return read_sample_history(run.store, calls, sample_id, prompts=run.manifest.prompts)
        except KeyError:
            raise HTTPException(404, f"The run has no sample {sample_id!r}.") from None
