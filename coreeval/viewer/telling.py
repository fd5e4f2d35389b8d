"""What the page of a sample says beyond its story: when, on which news, and why not taken."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coreeval.models.answer_text import is_too_deep
from coreeval.schema import Evidence, Precision, ReplacedFact, Verdict
from coreeval.viewer.story_values import ArmDiff, AttemptStory, SampleStory, StepStory

DATED: dict[Precision, str] = {
    "exact": "as the article states",
    "url": "read off its address",
    "cluster": "that of a twin",
    "crawl": "when it was first seen",
}
"""How the publication time of a piece of news is known."""
LEAST_WIDTH = 0.6
"""Percent of the timeline that the shortest step takes, so that it can be seen."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A step's place in the time that its sample took."""

    step: StepStory
    after_s: float
    """Seconds from the first step to this one."""
    left: float
    """Where its bar begins, in percent."""
    width: float


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """The steps that belong together: what came before the first attempt, or one attempt."""

    number: int
    """0 for what came before."""
    attempt: AttemptStory | None
    moments: tuple[Moment, ...]


@dataclass(frozen=True, kw_only=True)
class News:
    """A piece of evidence by its number on the page."""

    number: int
    item: Evidence
    stands: Literal["used", "chosen", ""]
    """Whether a replaced fact rests on it, or only a plan that came to nothing."""


def moments(story: SampleStory) -> tuple[Moment, ...]:
    """Return the steps with their places on one scale of time."""
    if not story.steps:
        return ()
    first = min(step.started_at for step in story.steps)
    whole = max((max(s.ended_at for s in story.steps) - first).total_seconds(), 1e-6)
    return tuple(_moment(step, (step.started_at - first).total_seconds(), whole)
                 for step in story.steps)  # fmt: skip


def _moment(step: StepStory, after: float, whole: float) -> Moment:
    width = max(100 * step.seconds / whole, LEAST_WIDTH)
    left = min(100 * after / whole, 100 - LEAST_WIDTH)
    width = min(width, 100 - left)
    return Moment(step=step, after_s=after, left=round(left, 2), width=round(width, 2))


def chapters(story: SampleStory) -> Iterator[Chapter]:
    """Yield what came before the first attempt, then the attempts."""
    told = moments(story)
    attempts = {attempt.number: attempt for attempt in story.attempts}
    for number in sorted({moment.step.attempt for moment in told}):
        own = tuple(moment for moment in told if moment.step.attempt == number)
        yield Chapter(number=number, attempt=attempts.get(number), moments=own)


def news(story: SampleStory) -> dict[str, News]:
    """Number the evidence by its id, what the facts rest on first, then what plans chose."""
    used = [fact.evidence_id for fact in facts(story)]
    chosen = [key for step in story.steps for key in _chosen(step.did)]
    order = dict.fromkeys(key for key in (*used, *chosen, *story.evidence) if key in story.evidence)
    return {
        key: News(number=number, item=story.evidence[key], stands=_stands(key, used, chosen))
        for number, key in enumerate(order, start=1)
    }


def _chosen(did: Mapping[str, Any]) -> Iterator[str]:
    """Yield the evidence that the statements of a step's plan rest on."""
    for statement in (did.get("plan") or {}).get("statements", ()):
        yield from statement["evidence_ids"]


def _stands(key: str, used: Sequence[str], chosen: Sequence[str]) -> Literal["used", "chosen", ""]:
    if key in used:
        return "used"
    return "chosen" if key in chosen else ""


def facts(story: SampleStory) -> Sequence[ReplacedFact]:
    """Return the replaced facts; none while the sample has not ended."""
    return story.result.facts if story.result else ()


def last_text(story: SampleStory) -> AttemptStory | None:
    """Return the last attempt that wrote a text; None where none did."""
    return next((each for each in reversed(story.attempts) if each.text), None)


def objections(story: SampleStory) -> tuple[Verdict, ...]:
    """Return the verdicts against the last attempt: why a sample was not accepted."""
    if not story.attempts:
        return ()
    return tuple(verdict for verdict in story.attempts[-1].verdicts if not verdict.passed)


def diffs_between(story: SampleStory, before: str, after: str) -> dict[str, ArmDiff]:
    """Return by field what differs between two arms; empty where the sample lacks one."""
    return {one.field: one for one in story.diffs if (one.before, one.after) == (before, after)}


def pretty(text: str) -> str:
    """Return a model's words with its JSON indented; as they are where they are none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if is_too_deep(value) else json.dumps(value, ensure_ascii=False, indent=2)


def as_json(value: Mapping[str, object]) -> str:
    """Return what a step noted, to be read."""
    return json.dumps(value, ensure_ascii=False, indent=2)
