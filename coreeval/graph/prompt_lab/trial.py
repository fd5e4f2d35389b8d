"""Asks models for one role's answers to given inputs, and compares models and prompts.

The variants are models and prompt folders from the command line.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

from pydantic import ValidationError

from coreeval.agents.kinds import WrittenItem, item_kind
from coreeval.agents.team import llm_roles
from coreeval.config import ModelConfig
from coreeval.config.credentials import hide_credentials, refuse_credentials
from coreeval.config.user_files import YamlError, parse_yaml
from coreeval.errors import BudgetSpent, CoreEvalError, ModelCallError, UsageError
from coreeval.graph.prompt_lab.assessment import (
    Assessment,
    assess_answer,
    assess_facts,
    assess_label,
    build_request,
    merge_composition,
)
from coreeval.graph.prompt_lab.lab import BUILT_IN, PromptLab, load_prompt_folder
from coreeval.graph.prompt_lab.role_inputs import RoleInput
from coreeval.graph.setup import check_reachable, refuse_changed_takedown
from coreeval.models import CallRef, ModelPool, close_models, open_model_pool, record_calls
from coreeval.models.running_steps import gather_both
from coreeval.prompts import PromptSet
from coreeval.schema import Composition, RoleName, Value
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.trust import load_trusted_endpoints

PAYER = "prompts try"
"""The payer under which the call store records the calls of a trial."""


@dataclass(frozen=True, kw_only=True)
class PromptVariant:
    """A model with a set of prompts."""

    name: str
    model: ModelConfig
    prompts: PromptSet


@dataclass(frozen=True, kw_only=True)
class PromptTrial:
    """The result of one variant on one input."""

    said: str
    """The model's last text, unchanged."""
    calls: tuple[CallRef, ...]
    answer: Value | None = None
    """The answer; None if there was no valid one."""
    error: str = ""
    """The reason that there is no valid answer or no verdict of the judges; empty otherwise."""
    looked: Assessment | None = None
    judged: Mapping[str, Assessment] = field(default_factory=dict)
    """The judges' assessments of a composed text, if they were asked."""


@dataclass(frozen=True, kw_only=True)
class TrialTotals:
    """The results of a variant on all samples."""

    samples: int
    valid: int
    clean: int
    """The number of valid answers without a defect found by code or a judge."""
    asked: int
    """The number of calls sent now; the others were answered from the call store."""
    known: int
    prompt_tokens: int
    completion_tokens: int
    """Tokens of all calls, stored ones included, so that prompts can be compared."""
    paid_tokens: int
    """Tokens of the calls that were sent now."""
    checks: dict[str, int]
    """The number of findings of each check."""


async def run_trials(
    lab: PromptLab,
    situations: Sequence[RoleInput],
    variants: Sequence[PromptVariant],
    *,
    judge: bool,
) -> list[list[PromptTrial]]:
    """Return for each variant a trial of each situation.

    Args:
        lab: The lab, which stores the answers and has the judges.
        situations: The role's inputs.
        variants: The models to ask, each with its prompts.
        judge: Whether the lab's own judges judge composed texts.

    Raises:
        RunStateError: the takedown list has changed since the lab was opened.
        BudgetSpent: another call may cost more than the config's budget has left, which all trials
            in a workspace share.
        CoreEvalError: a model cannot be used at all: no key, or no such endpoint.
    """
    store = open_calls(lab.workspace.calls, PAYER)
    room = asyncio.Semaphore(lab.setup.config.run.concurrency)
    trusted = load_trusted_endpoints(lab.workspace)
    exchange = open_model_pool(lab.setup.config, store, trusted=trusted)
    table = _TrialRunner(lab=lab, exchange=exchange, judge=judge)
    spent: BudgetSpent | None = None

    async def one(variant: PromptVariant, situation: RoleInput) -> PromptTrial:
        nonlocal spent
        async with room:
            try:
                if spent is None:
                    return await table.try_one(variant, situation)
            except BudgetSpent as error:  # requests in flight are paid for, so they may end
                spent = error
            return PromptTrial(said="", error=str(spent), calls=())

    try:
        # with the store open, no other takedown can end
        refuse_changed_takedown(lab.setup, lab.workspace, where=lab.workspace.root)
        async with asyncio.TaskGroup() as group:
            rows = [[group.create_task(one(c, s)) for s in situations] for c in variants]
    except BaseExceptionGroup as several:
        raise _first_error(several) from None
    finally:
        await close_models()
        store.close()
    if spent:
        raise spent
    return [[task.result() for task in row] for row in rows]


def _first_error(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error to report: one that the user can fix, or else the first."""
    meant = (each for each in several.exceptions if isinstance(each, CoreEvalError))
    return next(meant, several.exceptions[0])


@dataclass(frozen=True, kw_only=True)
class _TrialRunner:
    lab: PromptLab
    exchange: ModelPool
    judge: bool

    async def try_one(self, variant: PromptVariant, situation: RoleInput) -> PromptTrial:
        role, model, prompts = situation.role, variant.model, variant.prompts
        with record_calls() as calls:
            try:
                answer = await self._player(role, model, prompts, situation)(**situation.given)
            except ModelCallError as error:
                return PromptTrial(
                    said=self._read_last_reply(calls), error=str(error), calls=tuple(calls)
                )
            said = self._read_last_reply(calls)
            looked = assess_answer(situation, answer, said, self.lab.setup)
            judged, error_of_judge = await self._judge(situation, answer)
        return PromptTrial(
            answer=answer,
            said=said,
            error=error_of_judge,
            looked=looked,
            judged=judged,
            calls=tuple(calls),
        )

    def _read_last_reply(self, calls: Sequence[CallRef]) -> str:
        record = self.exchange.calls.get(calls[-1].key) if calls else None
        return record.response if record else ""

    def _player(
        self, role: RoleName, model: ModelConfig, prompts: PromptSet, situation: RoleInput
    ) -> Any:  # noqa: ANN401 - each role has another type
        client = self.exchange.open_client(model, role)
        players = llm_roles(self.lab.setup.config.run, situation.task)
        return players[role](situation.task, client, prompts)

    async def _judge(
        self, situation: RoleInput, written: Composition
    ) -> tuple[dict[str, Assessment], str]:
        """Have both judges assess a composed text; return the reason if one gave no verdict."""
        if not self.judge:
            return {}, ""
        try:
            return await self._verdicts(situation, written), ""
        except ModelCallError as error:
            return {}, str(error)

    async def _verdicts(self, situation: RoleInput, written: Composition) -> dict[str, Assessment]:
        task, evidence = situation.task, build_request(situation).evidence
        fields = merge_composition(task, written)
        item = WrittenItem(task=task, sample=situation.sample, fields=fields, evidence=evidence)
        kind = item_kind(task)
        asked, news = kind.ask_facts(item), evidence if kind.needs_news(task) else ()
        fact_judge = self._own_player("fact_judge", situation)
        label_judge = self._own_player("label_judge", situation)
        facts, label = await gather_both(
            fact_judge(asked.fields, asked.evidence), label_judge(fields, news)
        )
        return {
            "facts_supported": assess_facts(asked, facts),
            "label_preserved": assess_label(situation, fields, label),
        }

    def _own_player(self, role: RoleName, situation: RoleInput) -> Any:  # noqa: ANN401 - as above
        """Return a judge with the lab's own model and prompts, the same for all variants."""
        setup = self.lab.setup
        return self._player(role, setup.config.models.for_role(role), setup.prompts, situation)


def sum_trials(trials: Sequence[PromptTrial]) -> TrialTotals:
    """Return the totals of one variant's trials; a call shared by two samples counts once."""
    fired = [list(_iter_failed_checks(trial)) for trial in trials if trial.looked]
    calls = [call for trial in trials for call in trial.calls]
    sent = [call for call in calls if not call.cached]
    return TrialTotals(
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


def _iter_failed_checks(trial: PromptTrial) -> Iterator[str]:
    """Yield the check name of each finding, then the judges that rejected the text."""
    yield from (finding.check for finding in (trial.looked.findings if trial.looked else ()))
    yield from (name for name, one in trial.judged.items() if one.findings)


def list_variants(
    lab: PromptLab, role: RoleName, models: Sequence[str], folders: Sequence[str]
) -> list[PromptVariant]:
    """Return each model with each prompt folder; by default the config's.

    Raises:
        UsageError: a model is played by rules, or is not valid.
        PromptError: a folder of prompts cannot be used.
        CredentialError: a key is missing.
        ModelUnusable: an endpoint does not respond.
    """
    usual = lab.setup.config.models.for_role(role)
    asked = [parse_model(text, usual) for text in models] or [usual]
    for model in asked:
        _check_model(lab, model, role, how=", or with --model provider:name")
    own = lab.setup.config.prompts or BUILT_IN
    worded = [(folder, load_prompt_folder(folder)) for folder in folders] or [
        (own, lab.setup.prompts)
    ]
    return [
        PromptVariant(name=f"{model.model}, prompts {folder}", model=model, prompts=prompts)
        for model, (folder, prompts) in product(asked, worded)
    ]


def parse_model(text: str, usual: ModelConfig) -> ModelConfig:
    """Return a model from `provider:name` with default settings, or from a mapping.

    Raises:
        UsageError: it is neither, or contains something that looks like a credential.
    """
    try:
        raw = parse_yaml(text)
        if isinstance(raw, dict):
            refuse_credentials(raw, where="--model")
            return ModelConfig.model_validate(raw)
    except (YamlError, ValidationError) as error:
        raise UsageError(
            f"this is not a model: {hide_credentials(_shorten_error(error))}",
            where=f"--model {hide_credentials(text)}",
            hint='for example \'{model: "openai:qwen3", base_url: "http://127.0.0.1:8000/v1"}\'',
        ) from None
    price = usual.price if text == usual.model else None  # that of another model is not known here
    return usual.model_copy(update={"model": text, "price": price})


def check_judges(lab: PromptLab, role: RoleName) -> None:
    """Check that the config's judges can judge a composed text.

    Raises:
        UsageError: the role on trial is not the composer, or a judge is played by rules.
    """
    if role != "composer":
        raise UsageError(
            f"--judge applies only to the composer: the {role} writes nothing to judge"
        )
    for judge in ("fact_judge", "label_judge"):
        _check_model(lab, lab.setup.config.models.for_role(judge), judge)


def _check_model(lab: PromptLab, model: ModelConfig, role: RoleName, *, how: str = "") -> None:
    """Check that a model can be asked, as far as this is possible without cost."""
    if not model.is_asked:
        player = "a plugin" if model.is_plugin else "rules"
        have = "has" if model.is_plugin else "have"
        raise UsageError(
            f"the {role} is played by {player} here ({model.model}), which {have} no prompt",
            where=f"models.{role}",
            hint=f"set a model for it in the config{how}",
        )
    check_reachable(lab.setup.config, [model], lab.workspace)


def _shorten_error(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
    return " ".join(str(error).split())
