"""The history of one sample in a run, read from the run store and the call store.

`trace` and the page of a sample show the same history. A call has its messages and its answer as
long as the call store has them. A redacted history has only the fields listed here, so new fields
are hidden until they are listed.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from coreeval.runs.target_answers import TargetAnswer, judge_answers
from coreeval.schema import Arm, Evidence, ReplacedFact, Result, Sample, TrainEnd, Value, Verdict
from coreeval.tasks.kinds import find_kind
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.stores.run_overview import CauseSum
from coreeval.tools.stores.run_queries import ListRow
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord
from coreeval.tools.stores.run_triggers import is_composed_cause
from coreeval.tools.text import DiffPiece, word_diff

StepInputSource = Literal[
    "original", "extraction", "semantic", "evidence", "plan", "composed", "feedback"
]  # fmt: skip
"""The inputs of a step; all except the original come from an earlier step."""


class PromptMessage(Value):
    """One message of a request."""

    role: str
    content: str


class CallHistory(Value):
    """One model call: the request, the answer, and the cost."""

    key: str
    """Key of the call in the call store."""
    role: str
    model: str
    prompt: str
    """Name of the prompt; empty if the run has none for the role."""
    prompt_version: str
    """Hash of the prompt."""
    draw: int
    """0 for the original question; higher numbers repeat it or show a bad answer."""
    cached: bool
    """Whether the call was answered from the call store, paid for by another run; otherwise
    billed."""
    gone: bool
    """Whether the call is gone from the call store; then there are no messages and no answer."""
    parameters: dict[str, Any]
    """The parameters of the call, such as the temperature; empty if the call is gone."""
    messages: tuple[PromptMessage, ...]
    answer: str
    """The model's words, unchanged."""
    error: str
    """The reason that there is no valid answer; empty if there is one."""
    tries: tuple[str, ...]
    """The reasons that earlier requests for the answer failed, in order."""
    method: str
    """The method that made the model follow the schema."""
    model_returned: str
    """The name of the answering model, according to the endpoint."""
    finish_reason: str
    started_at: str
    """Start time of the call; empty if the call is gone."""
    seconds: float
    prompt_tokens: int
    cached_tokens: int
    """Prompt tokens from the provider's own cache."""
    completion_tokens: int
    usd: float | None
    """The cost of the call to its payer, in US dollars; None if the price is not known."""
    samples: int = 1
    """The number of samples of the run that used the call; one call may label ten originals."""


class StepInput(Value):
    """An input of a step, identified by its place in the history."""

    source: StepInputSource
    step: int | None
    """Number of the step that made it; None for the original."""
    evidence: tuple[str, ...] = ()
    """Ids of the evidence, if the input is news."""


class StepHistory(Value):
    """One execution of a node in one attempt."""

    number: int
    """Its place in the history, from 0; steps are in the order of their start."""
    node: str
    attempt: int
    """0 for steps before the first attempt."""
    started_at: datetime
    ended_at: datetime
    seconds: float
    error: str
    """The reason that it did not finish; empty if it did."""
    given: tuple[StepInput, ...]
    did: dict[str, Any]
    """Its results, by key of the graph's state."""
    verdicts: tuple[Verdict, ...]
    calls: tuple[CallHistory, ...]


class ArmDiff(Value):
    """Word-by-word differences in a text field between two arms."""

    before: Arm
    after: Arm
    field: str
    pieces: tuple[DiffPiece, ...]


class AttemptHistory(Value):
    """One attempt at the updated text."""

    number: int
    """Number of the attempt, from 1."""
    steps: tuple[int, ...]
    """Numbers of its steps."""
    text: dict[str, str] | None
    """The composed text; None if there is none."""
    diff: tuple[ArmDiff, ...]
    """Differences between the original and the composed text."""
    verdicts: tuple[Verdict, ...]
    seconds: float


class SampleHistory(Value):
    """Everything known about one sample in a run."""

    sample: Sample
    result: Result | None
    """None until the sample has ended."""
    train_item: TrainEnd | None
    """The end of an item of the train split; None for a sample of the benchmark."""
    steps: tuple[StepHistory, ...]
    attempts: tuple[AttemptHistory, ...]
    evidence: dict[str, Evidence]
    """The evidence offered to it, and the evidence of its facts, by id."""
    diffs: tuple[ArmDiff, ...]
    """Differences between the available arms: original to semantic, semantic to updated, original
    to updated."""
    answers: tuple[TargetAnswer, ...]
    """The targets' answers about its arms, by target, arm and template."""
    seconds: float
    """Total duration of all steps in seconds."""
    billed_usd: float | None
    """The cost of its calls in this run, in US dollars, including its part of shared calls; None if
    the price of a billed call is not known."""
    hidden: bool = False
    """Whether texts, prompts and answers are replaced by their lengths and hashes."""


STEP_INPUTS: Mapping[str, tuple[StepInputSource, ...]] = {
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
"""The inputs of each node of the sample graph."""
Texts = Mapping[str, str]


def read_sample_history(
    run: RunStore,
    calls: CallStore | None,
    sample_id: str,
    *,
    prompts: Mapping[str, str] | None = None,
) -> SampleHistory:
    """Return the history of a sample.

    Args:
        run: The run's store.
        calls: The store of its calls; None if there is none.
        sample_id: A sample of the benchmark, or an item of the train split.
        prompts: The hash of the prompt by role, as in the manifest.

    Raises:
        KeyError: the run does not have this sample.
    """
    sample, result = run.sample(sample_id), run.result(sample_id)
    reader = _CallReader(calls, prompts or {}, run.history.count_users(sample_id))
    steps = tuple(_read_steps(run.history.steps(sample_id), reader))
    evidence = run.history.evidence(_find_evidence_ids(steps, result))
    return SampleHistory(
        sample=sample,
        result=result,
        train_item=_find_train_end(run, sample_id),
        steps=steps,
        attempts=tuple(_group_attempts(sample, steps)),
        evidence=evidence,
        diffs=tuple(diff_arms(sample, result)),
        answers=tuple(judge_answers(run.target_answers.about(sample_id), sample.label_text)),
        seconds=round(sum(step.seconds for step in steps), 6),
        billed_usd=_sum_billed([call for step in steps for call in step.calls]),
    )


def _find_train_end(run: RunStore, item_id: str) -> TrainEnd | None:
    try:
        return run.train.item(item_id).end
    except KeyError:
        return None


def _sum_billed(calls: Sequence[CallHistory]) -> float | None:
    paid = [call for call in calls if not call.cached]
    if any(call.usd is None for call in paid):
        return None
    return sum((call.usd or 0.0) / call.samples for call in paid)


# -- steps ----------------------------------------------------------------------------------------


def _read_steps(steps: Sequence[StepRecord], reader: "_CallReader") -> Iterator[StepHistory]:
    made: dict[str, int] = {}
    offered: tuple[str, ...] = ()
    for number, step in enumerate(steps):
        started = datetime.fromisoformat(step.started_at)
        yield StepHistory(
            number=number,
            node=step.node,
            attempt=step.attempt,
            started_at=started,
            ended_at=started + timedelta(seconds=step.seconds),
            seconds=step.seconds,
            error=step.error,
            given=tuple(_find_inputs(step.node, made, offered)),
            did=step.detail,
            verdicts=step.verdicts,
            calls=tuple(map(reader.read, step.calls)),
        )
        made |= {name: number for name, value in step.detail.items() if value}
        offered = tuple(step.detail.get("evidence", offered))


def _find_inputs(node: str, made: Mapping[str, int], offered: Sequence[str]) -> Iterator[StepInput]:
    for source in STEP_INPUTS.get(node, ()):
        if source == "original":
            yield StepInput(source=source, step=None)
        elif source in made:
            ids = tuple(offered) if source == "evidence" else ()
            yield StepInput(source=source, step=made[source], evidence=ids)


def _find_evidence_ids(steps: Sequence[StepHistory], result: Result | None) -> list[str]:
    offered = [known for step in steps for known in step.did.get("evidence", ())]
    used = [fact.evidence_id for fact in result.facts] if result else []
    return list(dict.fromkeys([*offered, *used]))


def _group_attempts(sample: Sample, steps: Sequence[StepHistory]) -> Iterator[AttemptHistory]:
    for number in sorted({step.attempt for step in steps} - {0}):
        own = [step for step in steps if step.attempt == number]
        texts = [step.did["composed"] for step in own if step.did.get("composed")]
        yield AttemptHistory(
            number=number,
            steps=tuple(step.number for step in own),
            text=texts[-1] if texts else None,
            diff=tuple(_diff_fields("original", sample.fields, "updated", texts[-1]))
            if texts
            else (),
            verdicts=tuple(verdict for step in own for verdict in step.verdicts),
            seconds=round(sum(step.seconds for step in own), 6),
        )


# -- diffs ----------------------------------------------------------------------------------------


def diff_arms(sample: Sample, result: Result | None) -> Iterator[ArmDiff]:
    """Yield the differences between the arms that a sample has, for each field."""
    semantic, updated = (result.semantic, result.updated) if result else (None, None)
    if semantic:
        yield from _diff_fields("original", sample.fields, "semantic", semantic)
    if semantic and updated:
        yield from _diff_fields("semantic", semantic, "updated", updated)
    if updated:
        yield from _diff_fields("original", sample.fields, "updated", updated)


def _diff_fields(before: Arm, old: Texts, after: Arm, new: Texts) -> Iterator[ArmDiff]:
    for field in dict.fromkeys((*old, *new)):
        pieces = word_diff(old.get(field, ""), new.get(field, ""))
        yield ArmDiff(before=before, after=after, field=field, pieces=pieces)


# -- calls ----------------------------------------------------------------------------------------


class _CallReader:
    """Reader of a run's calls that adds data from the call store and the manifest."""

    def __init__(
        self, calls: CallStore | None, prompts: Mapping[str, str], users: Mapping[str, int]
    ) -> None:
        self._calls = calls
        self._prompts = prompts
        self._users = users

    def read(self, row: CallRow) -> CallHistory:
        """Return a call, with its messages and answer if they are still stored."""
        record = self._calls.get(row.key) if self._calls else None
        known = {name: value for name, value in vars(row).items() if name != "tries"}
        return CallHistory(
            **known,
            prompt=row.role if row.role in self._prompts else "",
            prompt_version=self._prompts.get(row.role, ""),
            tries=tuple(row.tries.splitlines()),
            samples=self._users[row.key],
            **_record_fields(record),
        )


def _record_fields(record: CallRecord | None) -> dict[str, Any]:
    asked = json.loads(record.request) if record else {"parameters": {}, "messages": ()}
    return {
        "gone": record is None,
        "parameters": asked["parameters"],
        "messages": tuple(PromptMessage.model_validate(message) for message in asked["messages"]),
        "answer": record.response if record else "",
        "model_returned": record.model_returned if record else "",
        "finish_reason": record.finish_reason if record else "",
        "started_at": record.started_at if record else "",
    }


KEPT_FIELDS: Mapping[type[Value], frozenset[str]] = {
    Sample: frozenset({"id", "split", "label_text"}),
    Result: frozenset(
        {"sample_id", "outcome", "rung", "semantic_status", "original_label", "kept_from"}
    ),
    TrainEnd: frozenset({"status"}),
    ReplacedFact: frozenset({"sample_id", "field", "evidence_id"}),
    Evidence: frozenset(
        {"id", "url", "domain", "published_precision", "language", "origin", "source", "licence",
         "depth", "text_sha256"}
    ),
    Verdict: frozenset({"name"}),
    StepHistory: frozenset({"node"}),
    StepInput: frozenset({"source", "evidence"}),
    CallHistory: frozenset(
        {"key", "role", "model", "prompt", "prompt_version", "parameters", "method",
         "model_returned", "finish_reason", "started_at"}
    ),
    PromptMessage: frozenset({"role"}),
    ArmDiff: frozenset({"before", "after", "field"}),
    DiffPiece: frozenset({"op"}),
    TargetAnswer: frozenset({"target", "arm", "kind"}),
    ListRow: frozenset(
        {"sample", "label", "outcome", "rung", "semantic_status", "kept_from", "ended_at"}
    ),
}  # fmt: skip
"""Fields that hold names, dates or addresses, by kind of value; all other fields are texts."""


KEPT_DETAILS = frozenset(
    {"decision", "mode", "modality", "policy", "route", "check", "kind", "rung", "type", "flag",
     "outcome", "field", "evidence", "evidence_id", "evidence_ids", "original_label",
     "semantic_status", "why_none", "supported", "defect"}
)  # fmt: skip
"""The same for the results of a step."""


V = TypeVar("V", bound=Value)


def redact_text(text: str) -> str:
    """Return a placeholder for a text: its length and the beginning of its hash."""
    return f"[{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}]"


def redact_history(history: SampleHistory) -> SampleHistory:
    """Return the history with every text, prompt, answer and reason replaced by a placeholder."""
    sample = history.sample
    if find_kind(sample.fields, sample.label_text).is_read_as_text:
        history = _redact_judge(history)
    return _redact_value(history).model_copy(update={"hidden": True})


def _redact_judge(history: SampleHistory) -> SampleHistory:
    """Return the history with placeholders for a blind judge's answers to the original."""
    result = history.result
    if result and result.original_label:
        update = {"original_label": redact_text(result.original_label)}
        result = result.model_copy(update=update)
    steps = [
        step.model_copy(update={"did": {**step.did, "original_label": redact_text(str(said))}})
        if (said := step.did.get("original_label"))
        else step
        for step in history.steps
    ]
    return history.model_copy(update={"result": result, "steps": tuple(steps)})


def build_history_document(history: SampleHistory) -> dict[str, Any]:
    """Return a history in machine-readable form; the attempts of a call are lines of one text."""
    document = history.model_dump(mode="json")
    for step in document["steps"]:
        for call in step["calls"]:
            call["tries"] = "\n".join(call["tries"])
    return document


def redact_row(row: ListRow) -> ListRow:
    """Return a list row with its excerpt and reason replaced by placeholders."""
    composed = {"cause": row.cause} if is_composed_cause(row.outcome, row.cause) else {}
    return _redact_value(row).model_copy(update=composed)


def leave_out_messages(causes: Iterable[CauseSum]) -> list[CauseSum]:
    """Return the causes with one for each outcome in place of those that may quote a text."""
    found = dict[tuple[str, str], CauseSum]()
    for each in causes:
        cause = each.cause if is_composed_cause(each.outcome, each.cause) else ""
        known = found.get((each.outcome, cause))
        samples = each.samples + (known.samples if known else 0)
        found[each.outcome, cause] = (known or each).model_copy(
            update={"cause": cause, "samples": samples}
        )
    return sorted(found.values(), key=lambda each: -each.samples)


def _redact_value(value: V) -> V:
    shown = KEPT_FIELDS.get(type(value), frozenset())
    changed = {
        name: _redact_any(getattr(value, name), KEPT_DETAILS if name == "did" else frozenset())
        for name in type(value).model_fields
        if name not in shown
    }
    return value.model_copy(update=changed)


def _redact_any(value: Any, codes: frozenset[str]) -> Any:  # noqa: ANN401 - any field of a value
    if isinstance(value, Value):
        return _redact_value(value)
    if isinstance(value, str):
        return redact_text(value) if value else ""
    if isinstance(value, Mapping):
        return {
            name: inner if name in codes else _redact_any(inner, codes)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_redact_any(inner, codes) for inner in value)
    return value
