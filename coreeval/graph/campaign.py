"""Campaigns: many questions to models, asked through the call store until told to stop.

`QuestionRunner` asks one model as many questions at a time as the config says. `CampaignSession`
is one command that asks and pays, under a lock: a stop or a kill costs only what is in flight.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from coreeval.errors import CoreEvalError, Interrupted, ModelCallError, NoValidAnswer, RunLocked
from coreeval.evaluation.targets import TargetConnection
from coreeval.graph.monitor import Progress, Watch
from coreeval.graph.pool import Stop, handle_signals, run_pool
from coreeval.models import ModelClient, PlainOutput, close_models
from coreeval.models.activity import ActiveCalls
from coreeval.models.client import Message
from coreeval.schema import AnswerKind
from coreeval.tools.files import hold_lock
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore, open_calls

Asked = TypeVar("Asked", bound=Hashable)
Said = TypeVar("Said")
PLAIN = PlainOutput()


class TextAnswer(NamedTuple):
    """What a model said in its own words."""

    kind: AnswerKind
    text: str = ""
    """Where it is no answer: the words of a refusal, the beginning of what was cut off."""
    logprobs: str = ""
    """The first tokens of an answer as its call has them; empty where none came."""


async def ask_text(
    client: ModelClient, messages: Sequence[Message], *, draw: int = 0
) -> TextAnswer:
    """Return the answer to a question from a model that uses its first answer.

    Args:
        client: Its chains have one draw, so that each answer is independent.
        messages: The question.
        draw: Number of a repeated answer, from 0.

    Raises:
        ModelCallError: the question failed.
        CoreEvalError: no more questions can be asked.
    """
    calls = list[CallRecord]()
    try:
        said = await client.ask(messages, PLAIN, chain=draw, on_answer=calls.append)
    except NoValidAnswer as error:
        return TextAnswer(error.kind, error.said)
    return TextAnswer("answered", said.text, calls[0].logprobs)


class CampaignStopped(asyncio.CancelledError):
    """Asking was told to stop, and what was in flight has come in."""


@dataclass(frozen=True, kw_only=True)
class QuestionRunner:
    """What asking shares, whoever is asked."""

    concurrency: int
    watch: Watch
    stop: Stop = field(default_factory=Stop)
    active_calls: ActiveCalls = field(default_factory=ActiveCalls)
    """Where each call stands."""

    async def gather(
        self,
        model: str,
        stage: str,
        questions: Sequence[Asked],
        ask: Callable[[Asked], Awaitable[Said]],
        kind: Callable[[Said], str],
    ) -> dict[Asked, Said]:
        """Return the answer to each question.

        Args:
            model: The model's display name.
            stage: The stage shown as progress.
            questions: Distinct ones.
            ask: Asks one question.
            kind: What an answer is counted as in the progress.

        Raises:
            Stopped: a signal stopped the run.
            RunError: some questions failed.
            CoreEvalError: no more questions can be asked: no budget, no key, no such model.
        """
        line, counts = TargetConnection(lambda: self.stop.asked), Counter[str]()
        found: dict[Asked, Said] = {}

        async def put(question: Asked) -> None:
            if not line.is_open:
                return
            try:
                found[question] = await ask(question)
            except ModelCallError as error:
                line.note_failure(str(error))
                return
            line.note_answer()
            counts[kind(found[question])] += 1
            done, total = len(found), len(questions)
            self.watch(Progress(stage=stage, done=done, total=total, counts=dict(counts)))

        self.watch(Progress(stage=stage, note=model))
        await run_pool(questions, put, concurrency=self.concurrency, stop=self.stop)
        if self.stop.asked:
            raise CampaignStopped
        if line.troubles:
            left, total = len(questions) - len(found), len(questions)
            raise line.error_for_unanswered(model, left, total, where="models")
        return found


Found = TypeVar("Found")
_RESUME_HINT = "then the same command goes on"


@dataclass(frozen=True, kw_only=True)
class CampaignSession:
    """Who asks, who pays, and where it is kept; a stop or a kill costs what is in flight."""

    source: Path
    """The config's file."""
    lock: Path
    """Held meanwhile; in the folder of what was asked."""
    calls: Path
    """The call store."""
    payer: str
    concurrency: int
    watch: Watch

    def run(self, ask: Callable[[QuestionRunner, CallStore], Awaitable[Found]]) -> Found:
        """Run the campaign and return its result.

        Raises:
            BudgetSpent: another call may cost more than the budget has left.
            Interrupted: a signal stopped it. In both cases the same call continues from there.
            RunLocked: another process is running this config.
            RunError: questions got no answer, or a model cannot be used; answers are kept.
        """
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        where = str(self.lock.parent)
        taken = RunLocked("another process asks for this config", where=where, hint="wait for it")
        with hold_lock(self.lock, taken):
            try:
                return asyncio.run(self._ask(ask))
            except (KeyboardInterrupt, asyncio.CancelledError):
                raise Interrupted(
                    "stopped: what was answered is kept and not asked again",
                    where=str(self.source),
                    hint=_RESUME_HINT,
                ) from None
            except CoreEvalError as error:
                error.hint = f"{error.hint}; {_RESUME_HINT}" if error.hint else _RESUME_HINT
                raise

    async def _ask(self, ask: Callable[[QuestionRunner, CallStore], Awaitable[Found]]) -> Found:
        runner = QuestionRunner(concurrency=self.concurrency, watch=self.watch)
        calls = await asyncio.to_thread(open_calls, self.calls, self.payer)
        try:
            with handle_signals(runner.stop, lambda: self.watch(_STOP_PROGRESS)):
                return await ask(runner, calls)
        finally:
            await close_models()
            await asyncio.to_thread(calls.close)
            for note in runner.active_calls.count_notes():
                self.watch(Progress(stage="asked", note=note))


_STOP_PROGRESS = Progress(
    stage="stopping", note="waiting for the answers in flight; once more stops at once"
)
