"""The story of one sample, put together from the run store and the call store."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from coreeval.schema import Arm, Result, Sample, TrainEnd
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.stores.run_records import CallRow, StepRecord
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import word_diff
from coreeval.viewer.story_values import (
    ArmDiff,
    AttemptStory,
    CallStory,
    Given,
    Said,
    SampleStory,
    Source,
    StepStory,
)

GIVEN: Mapping[str, tuple[Source, ...]] = {
    "extract": ("original",),
    "judge_original": ("original",),
    "reword": ("original", "extraction"),
    "judge_semantic": ("semantic",),
    "retrieve": ("extraction",),
    "replace": ("original", "extraction", "evidence", "feedback"),
    "compose": ("original", "extraction", "plan", "evidence", "semantic", "feedback"),
    "check": ("original", "plan", "evidence", "composed"),
    "reflect": ("plan", "evidence", "composed"),
}
"""What the nodes of the sample graph look at."""
Texts = Mapping[str, str]


def sample_story(
    run: RunStore,
    calls: CallStore | None,
    sample_id: str,
    *,
    prompts: Mapping[str, str] | None = None,
) -> SampleStory:
    """Return what happened to a sample.

    Args:
        run: The run's store.
        calls: Where its calls are kept; None if that is not there.
        sample_id: A sample of the benchmark, or an item of the train split.
        prompts: Hash of the wording by role, as the manifest has it.

    Raises:
        KeyError: the run has no such sample.
    """
    sample, result = run.sample(sample_id), run.result(sample_id)
    told = _Told(calls, prompts or {})
    steps = tuple(_steps(run.steps(sample_id), told))
    evidence = run.evidence(_evidence_ids(steps, result))
    return SampleStory(
        sample=sample,
        result=result,
        train_item=_train_end(run, sample_id),
        steps=steps,
        attempts=tuple(_attempts(sample, steps)),
        evidence=evidence,
        diffs=tuple(_diffs(sample, result)),
        seconds=round(sum(step.seconds for step in steps), 6),
        billed_usd=_billed([call for step in steps for call in step.calls]),
    )


def _train_end(run: RunStore, item_id: str) -> TrainEnd | None:
    try:
        return run.train_item(item_id).end
    except KeyError:
        return None


def _billed(calls: Sequence[CallStory]) -> float | None:
    paid = [call.usd for call in calls if not call.cached]
    return None if None in paid else sum(usd or 0.0 for usd in paid)


# -- steps ----------------------------------------------------------------------------------------


def _steps(steps: Sequence[StepRecord], told: "_Told") -> Iterator[StepStory]:
    made: dict[str, int] = {}
    offered: tuple[str, ...] = ()
    for number, step in enumerate(steps):
        started = datetime.fromisoformat(step.started_at)
        yield StepStory(
            number=number,
            node=step.node,
            attempt=step.attempt,
            started_at=started,
            ended_at=started + timedelta(seconds=step.seconds),
            seconds=step.seconds,
            error=step.error,
            given=tuple(_given(step.node, made, offered)),
            did=step.detail,
            verdicts=step.verdicts,
            calls=tuple(map(told.call, step.calls)),
        )
        made |= {name: number for name, value in step.detail.items() if value}
        offered = tuple(step.detail.get("evidence", offered))


def _given(node: str, made: Mapping[str, int], offered: Sequence[str]) -> Iterator[Given]:
    for source in GIVEN.get(node, ()):
        if source == "original":
            yield Given(source=source, step=None)
        elif source in made:
            ids = tuple(offered) if source == "evidence" else ()
            yield Given(source=source, step=made[source], evidence=ids)


def _evidence_ids(steps: Sequence[StepStory], result: Result | None) -> list[str]:
    offered = [known for step in steps for known in step.did.get("evidence", ())]
    used = [fact.evidence_id for fact in result.facts] if result else []
    return list(dict.fromkeys([*offered, *used]))


def _attempts(sample: Sample, steps: Sequence[StepStory]) -> Iterator[AttemptStory]:
    for number in sorted({step.attempt for step in steps} - {0}):
        own = [step for step in steps if step.attempt == number]
        texts = [step.did["composed"] for step in own if step.did.get("composed")]
        yield AttemptStory(
            number=number,
            steps=tuple(step.number for step in own),
            text=texts[-1] if texts else None,
            diff=tuple(_diff("original", sample.fields, "updated", texts[-1])) if texts else (),
            verdicts=tuple(verdict for step in own for verdict in step.verdicts),
            seconds=round(sum(step.seconds for step in own), 6),
        )


# -- diffs ----------------------------------------------------------------------------------------


def _diffs(sample: Sample, result: Result | None) -> Iterator[ArmDiff]:
    semantic, updated = (result.semantic, result.updated) if result else (None, None)
    if semantic:
        yield from _diff("original", sample.fields, "semantic", semantic)
    if semantic and updated:
        yield from _diff("semantic", semantic, "updated", updated)
    if updated:
        yield from _diff("original", sample.fields, "updated", updated)


def _diff(before: Arm, old: Texts, after: Arm, new: Texts) -> Iterator[ArmDiff]:
    for field in dict.fromkeys((*old, *new)):
        pieces = word_diff(old.get(field, ""), new.get(field, ""))
        yield ArmDiff(before=before, after=after, field=field, pieces=pieces)


# -- calls ----------------------------------------------------------------------------------------


class _Told:
    """What the call store and the manifest add to the calls of a run."""

    def __init__(self, calls: CallStore | None, prompts: Mapping[str, str]) -> None:
        self._calls = calls
        self._prompts = prompts

    def call(self, row: CallRow) -> CallStory:
        """Return a call with its messages and its answer, where they are still there."""
        record = self._calls.get(row.key) if self._calls else None
        known = {name: value for name, value in vars(row).items() if name != "tries"}
        return CallStory(
            **known,
            prompt=row.role if row.role in self._prompts else "",
            prompt_version=self._prompts.get(row.role, ""),
            tries=tuple(row.tries.splitlines()),
            **_of_record(record),
        )


def _of_record(record: CallRecord | None) -> dict[str, Any]:
    asked = json.loads(record.request) if record else {"parameters": {}, "messages": ()}
    return {
        "gone": record is None,
        "parameters": asked["parameters"],
        "messages": tuple(Said.model_validate(message) for message in asked["messages"]),
        "answer": record.response if record else "",
        "model_returned": record.model_returned if record else "",
        "finish_reason": record.finish_reason if record else "",
        "started_at": record.started_at if record else "",
    }
