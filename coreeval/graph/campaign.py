"""Campaigns: sets of questions to models, asked through the call store.

A `Campaign` has as many questions in flight as its config allows. The arms, PCR, NumLeak and all
other detectors use it. `run_campaign` runs one as a command: it holds a lock, and a stop or a kill
loses only the questions in flight.
"""

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from coreeval.config import AnyConfig, TargetConfig
from coreeval.errors import (
    CoreEvalError,
    Interrupted,
    ModelCallError,
    NoValidAnswer,
    RunError,
    RunLocked,
)
from coreeval.evaluation.detectors.base import TextAnswer
from coreeval.graph.monitor import Progress, Watch
from coreeval.graph.pool import Stop, handle_signals, run_pool
from coreeval.models import ModelClient, ModelPool, PlainOutput, close_models, open_model_pool
from coreeval.models.activity import ActiveCalls
from coreeval.models.batch_dispatch import Batching, CallQueued
from coreeval.models.client import Message
from coreeval.tools.catalogs import Prices
from coreeval.tools.files import hold_lock
from coreeval.tools.loops import run_coroutine
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.trust import load_trusted_endpoints
from coreeval.tools.workspace import Workspace, name_target_file

Question = TypeVar("Question")
Distinct = TypeVar("Distinct", bound=Hashable)
Answer = TypeVar("Answer")
Found = TypeVar("Found")
PLAIN: Final = PlainOutput()
GIVE_UP_AFTER: Final = 5
"""The number of consecutive failures after which a model counts as down. A text that the endpoint
cannot process fails alone, but each question to an endpoint that is down takes minutes."""


async def ask_text(
    client: ModelClient, messages: Sequence[Message], *, draw: int = 0
) -> TextAnswer:
    """Return the answer to a question from a model that uses its first answer.

    Args:
        client: Its chains have one draw, so that each answer is independent.
        messages: The question.
        draw: The number of a repeated answer, from 0.

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


async def score_text(client: ModelClient, messages: Sequence[Message]) -> TextAnswer:
    """Return the scores of a text, as JSON, from a client that scores texts.

    Raises:
        ModelCallError: the text could not be scored.
        CoreEvalError: no more texts can be scored.
    """
    from coreeval.models.completions import TextScoresOutput  # the SDK takes 0.7 s to import

    try:
        scores = await client.ask(messages, TextScoresOutput())
    except NoValidAnswer as error:
        return TextAnswer(error.kind, error.said)
    return TextAnswer("answered", scores.model_dump_json())


class CampaignStopped(asyncio.CancelledError):
    """The campaign was stopped; the questions in flight have been answered."""


class CampaignQueued(Exception):
    """Questions wait for a batch; all others have been asked."""


@dataclass
class ModelConnection:
    """The state of a model in a campaign: whether to continue, and which questions failed."""

    model: str
    """Its display name."""
    failures: list[str] = field(default_factory=list)
    """The reasons of failed questions, in order."""
    failures_in_a_row: int = 0
    queued: int = 0
    """The number of questions that wait for a batch."""

    @property
    def is_open(self) -> bool:
        """Whether another question may be sent."""
        return self.failures_in_a_row < GIVE_UP_AFTER

    def note_answer(self) -> None:
        """Record that the model answered."""
        self.failures_in_a_row = 0

    def note_failure(self, reason: str) -> None:
        """Record a failed question."""
        self.failures.append(reason)
        self.failures_in_a_row += 1

    def error_for_unanswered(self, left: int, total: int, *, where: str) -> RunError:
        """Return the error for a model that left questions without an answer."""
        return RunError(
            f"{self.model} left {left} of {total} questions unanswered; the first: "
            f"{self.failures[0]}",
            where=where,
            hint="check its endpoint; answers are kept",
        )


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Questions to models that share a call store, a budget, a limit and a stop."""

    models: ModelPool
    concurrency: int
    watch: Watch
    stop: Stop = field(default_factory=Stop)

    async def ask_all(
        self,
        connection: ModelConnection,
        questions: Sequence[Question],
        ask: Callable[[Question], Awaitable[Answer]],
        on_answer: Callable[[Question, Answer], None],
    ) -> None:
        """Ask the questions until they are answered, the model is down, or the stop is set.

        A question that fails is recorded with the connection.

        Args:
            connection: The model, in the state that earlier questions left it in.
            questions: The questions.
            ask: Asks one question.
            on_answer: Receives each question with its answer, in the order of the answers.

        Raises:
            CoreEvalError: no more questions can be asked: no budget, no key, no such model.
        """

        async def put(question: Question) -> None:
            if not connection.is_open:
                return
            try:
                answer = await ask(question)
            except ModelCallError as error:
                connection.note_failure(str(error))
                return
            except CallQueued:
                connection.queued += 1
                return
            connection.note_answer()
            on_answer(question, answer)

        await run_pool(questions, put, concurrency=self.concurrency, stop=self.stop)

    async def gather(
        self,
        model: str,
        stage: str,
        questions: Sequence[Distinct],
        ask: Callable[[Distinct], Awaitable[Answer]],
        kind: Callable[[Answer], str],
    ) -> dict[Distinct, Answer]:
        """Return the answer to each question.

        Args:
            model: The model's display name.
            stage: The stage shown as progress.
            questions: The questions, all distinct.
            ask: Asks one question.
            kind: The unit of answers in the progress.

        Raises:
            CampaignStopped: a signal stopped the campaign.
            CampaignQueued: questions wait for a batch.
            RunError: some questions failed.
            CoreEvalError: no more questions can be asked: no budget, no key, no such model.
        """
        connection, counts = ModelConnection(model), Counter[str]()
        found, total = dict[Distinct, Answer](), len(questions)

        def note(question: Distinct, answer: Answer) -> None:
            found[question] = answer
            counts[kind(answer)] += 1
            self.watch(Progress(stage=stage, done=len(found), total=total, counts=dict(counts)))

        self.watch(Progress(stage=stage, note=model))
        await self.ask_all(connection, questions, ask, note)
        if self.stop.asked:
            raise CampaignStopped
        if connection.queued:
            raise CampaignQueued
        if connection.failures:
            raise connection.error_for_unanswered(total - len(found), total, where="models")
        return found


@asynccontextmanager
async def open_campaign(
    config: AnyConfig,
    workspace: Workspace,
    payer: str,
    *,
    watch: Watch,
    stop: Stop,
    active_calls: ActiveCalls,
    batching: Batching | None = None,
    prices: Prices | None = None,
) -> AsyncIterator[Campaign]:
    """Yield a campaign, and close its models and its call store afterwards.

    Args:
        config: Has the number of questions in flight and the budget.
        workspace: Has the call store and the trusted endpoints.
        payer: The name under which the call store counts the cost.
        watch: Receives progress.
        stop: Ends the campaign when set.
        active_calls: Receives the stage of each call.
        batching: The batch settings and state of the process; None for no batches.
        prices: Prices of models; None to read the config's price file.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the call store is damaged.
    """
    calls = await asyncio.to_thread(open_calls, workspace.calls, payer)
    try:
        trusted = load_trusted_endpoints(workspace)
        models = open_model_pool(
            config,
            calls,
            prices=prices,
            trusted=trusted,
            active_calls=active_calls,
            batching=batching,
        )
        concurrency = config.run.concurrency
        yield Campaign(models=models, concurrency=concurrency, watch=watch, stop=stop)
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)


@dataclass(frozen=True, kw_only=True)
class CampaignPlan:
    """The plan of a command that only asks questions, and its payer."""

    source: Path
    """The config's file."""
    config: AnyConfig
    workspace: Workspace
    payer: str
    lock: Path
    """The lock held during the campaign, in the folder of the answers."""


_RESUME_HINT = "run the same command to continue"
_STOP_PROGRESS = Progress(
    stage="stopping",
    note="waiting for the answers in flight; press Ctrl-C again to stop immediately",
)


def run_campaign(
    plan: CampaignPlan, ask: Callable[[Campaign], Awaitable[Found]], *, watch: Watch
) -> Found:
    """Run a campaign under its lock and return what `ask` returns.

    Raises:
        BudgetSpent: another call may cost more than the budget has left.
        Interrupted: a signal stopped it. In both cases the same call continues from there.
        RunLocked: another process is running this config.
        RunError: questions got no answer, or a model cannot be used; answers are kept.
    """
    plan.lock.parent.mkdir(parents=True, exist_ok=True)
    where = str(plan.lock.parent)
    taken = RunLocked(
        "another process is sending questions for this config",
        where=where,
        hint="wait until it ends",
    )
    with hold_lock(plan.lock, taken), explain_stop(plan.source):
        return run_coroutine(_run_with_signals(plan, ask, watch))


@contextmanager
def explain_stop(where: Path) -> Iterator[None]:
    """After a signal or an error, tell the user that the same command continues.

    Args:
        where: The config or run that was being asked about.

    Raises:
        Interrupted: a signal stopped the block.
    """
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise Interrupted(
            "stopped: what is finished is kept and will not be repeated",
            where=str(where),
            hint=_RESUME_HINT,
        ) from None
    except CoreEvalError as error:
        error.hint = f"{error.hint}; then {_RESUME_HINT}" if error.hint else _RESUME_HINT
        raise


async def _run_with_signals(
    plan: CampaignPlan, ask: Callable[[Campaign], Awaitable[Found]], watch: Watch
) -> Found:
    stop, active_calls = Stop(), ActiveCalls()
    campaign = open_campaign(
        plan.config, plan.workspace, plan.payer, watch=watch, stop=stop, active_calls=active_calls
    )
    try:
        async with campaign as opened:
            with handle_signals(stop, lambda: watch(_STOP_PROGRESS)):
                return await ask(opened)
    finally:
        for note in active_calls.count_notes():
            watch(Progress(stage="asked", note=note))


def file_names(targets: Sequence[TargetConfig]) -> dict[str, str]:
    """Return each target's file name, without characters that file systems do not allow."""
    names = dict[str, str]()
    for target in targets:
        plain = name_target_file(target.model)
        taken = sum(name.casefold() == plain.casefold() for name in names.values())
        names[target.model] = f"{plain}-{len(names) + 1}" if taken else plain
    return {target: f"{name}.jsonl" for target, name in names.items()}
