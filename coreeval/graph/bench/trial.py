"""Asking models for one role's answer in given situations, contender against contender."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from coreeval.agents.team import LLM_ROLES
from coreeval.config import ModelConfig
from coreeval.errors import CoreEvalError, ModelCallError
from coreeval.graph.bench.findings import (
    Looked,
    brief_of,
    composed_fields,
    facts_looked_at,
    label_looked_at,
    look_at,
)
from coreeval.graph.bench.opening import Bench
from coreeval.graph.bench.situations import Situation
from coreeval.models import CallRef, ModelPool, close_models, open_model_pool, record_calls
from coreeval.prompts import PromptSet
from coreeval.schema import Composition, RoleName, Value
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.trust import load_trusted_endpoints

PAYER = "prompts try"
"""The name under which the call store keeps what a trial paid for."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A model with a wording."""

    name: str
    model: ModelConfig
    prompts: PromptSet


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one contender made of one situation."""

    said: str
    """The model's last words, as they came."""
    calls: tuple[CallRef, ...]
    answer: Value | None = None
    """None where there was no valid answer."""
    error: str = ""
    """Why there was none, or no verdict of the judges."""
    looked: Looked | None = None
    judged: Mapping[str, Looked] = field(default_factory=dict)
    """What the judges said of a composed text, where they were asked."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What a contender did on all samples."""

    samples: int
    valid: int
    clean: int
    """Valid answers in which neither code nor a judge found anything."""
    asked: int
    """Calls that were sent now; the others were known."""
    known: int
    prompt_tokens: int
    completion_tokens: int
    """Tokens of all calls, known ones included, so that wordings can be compared."""
    paid_tokens: int
    """Tokens of the calls that were sent now."""
    checks: dict[str, int]
    """How often each check found something."""


async def try_out(
    bench: Bench, situations: Sequence[Situation], contenders: Sequence[Contender], *, judge: bool
) -> list[list[Trial]]:
    """Return for each contender a trial of each situation.

    Args:
        bench: Where answers are kept, and who the judges are.
        situations: What the role is given.
        contenders: Who is asked, with which wording.
        judge: Whether composed texts are judged by the bench's own judges.

    Raises:
        CoreEvalError: a model that cannot be used at all: no key, no such endpoint.
    """
    store = open_calls(bench.workspace.calls, PAYER)
    room = asyncio.Semaphore(bench.setup.config.run.concurrency)
    exchange = open_model_pool(
        bench.setup.config, store, trusted=load_trusted_endpoints(bench.workspace), limited=False
    )
    table = _Table(bench=bench, exchange=exchange, judge=judge)

    async def one(contender: Contender, situation: Situation) -> Trial:
        async with room:
            return await table.try_one(contender, situation)

    try:
        async with asyncio.TaskGroup() as group:
            rows = [[group.create_task(one(c, s)) for s in situations] for c in contenders]
    except BaseExceptionGroup as several:
        raise _first(several) from None
    finally:
        await close_models()
        store.close()
    return [[task.result() for task in row] for row in rows]


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one to tell of: what the user can mend, else whatever it was."""
    meant = (each for each in several.exceptions if isinstance(each, CoreEvalError))
    return next(meant, several.exceptions[0])


@dataclass(frozen=True, kw_only=True)
class _Table:
    bench: Bench
    exchange: ModelPool
    judge: bool

    async def try_one(self, contender: Contender, situation: Situation) -> Trial:
        role, model, prompts = situation.role, contender.model, contender.prompts
        with record_calls() as calls:
            try:
                answer = await self._player(role, model, prompts, situation)(**situation.given)
            except ModelCallError as error:
                return Trial(said=self._said(calls), error=str(error), calls=tuple(calls))
            said = self._said(calls)
            looked = look_at(situation, answer, said, self.bench.setup)
            judged, error_of_judge = await self._judged(situation, answer)
        return Trial(
            answer=answer,
            said=said,
            error=error_of_judge,
            looked=looked,
            judged=judged,
            calls=tuple(calls),
        )

    def _said(self, calls: Sequence[CallRef]) -> str:
        record = self.exchange.calls.get(calls[-1].key) if calls else None
        return record.response if record else ""

    def _player(
        self, role: RoleName, model: ModelConfig, prompts: PromptSet, situation: Situation
    ) -> Any:  # noqa: ANN401 - each role has another type
        asker = self.exchange.open_client(model, role)
        return LLM_ROLES[role](situation.task, asker, prompts)

    async def _judged(
        self, situation: Situation, written: Composition
    ) -> tuple[dict[str, Looked], str]:
        """Put a composed text to both judges, or say why one of them gave no verdict."""
        if not self.judge:
            return {}, ""
        try:
            return await self._verdicts(situation, written), ""
        except ModelCallError as error:
            return {}, str(error)

    async def _verdicts(self, situation: Situation, written: Composition) -> dict[str, Looked]:
        task, evidence = situation.task, brief_of(situation).evidence
        fields = composed_fields(task, written)
        factual = {name: fields[name] for name in task.factual_fields or task.fields}
        fact_judge = self._own_player("fact_judge", situation)
        label_judge = self._own_player("label_judge", situation)
        facts, label = await asyncio.gather(fact_judge(factual, evidence), label_judge(fields))
        return {
            "facts_supported": facts_looked_at(task, factual, facts, evidence),
            "label_preserved": label_looked_at(situation, label),
        }

    def _own_player(self, role: RoleName, situation: Situation) -> Any:  # noqa: ANN401 - as above
        """Return a judge with the bench's own model and wording, the same for all contenders."""
        setup = self.bench.setup
        return self._player(role, setup.config.models.for_role(role), setup.prompts, situation)


def totals(trials: Sequence[Trial]) -> Totals:
    """Add up the trials of one contender; a call that two samples share counts once."""
    fired = [list(_fired(trial)) for trial in trials if trial.looked]
    calls = [call for trial in trials for call in trial.calls]
    sent = [call for call in calls if not call.cached]
    return Totals(
        samples=len(trials),
        valid=sum(trial.answer is not None for trial in trials),
        clean=sum(not names for names in fired),
        asked=len(sent),
        known=len(calls) - len(sent),
        prompt_tokens=sum(call.prompt_tokens for call in calls),
        completion_tokens=sum(call.completion_tokens for call in calls),
        paid_tokens=sum(call.prompt_tokens + call.completion_tokens for call in sent),
        checks=dict(sorted(Counter(chain(*fired)).items())),
    )


def _fired(trial: Trial) -> Iterator[str]:
    """Yield the name of the check of each finding, then the judges who said no."""
    yield from (finding.check for finding in (trial.looked.findings if trial.looked else ()))
    yield from (name for name, one in trial.judged.items() if one.findings)
