"""Finds out with a few small requests what each configured model supports.

The requests bypass the call store, because a stored answer says nothing about the endpoint's
current state.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from coreeval.config import (
    METHODS,
    ROLES,
    Method,
    ModelConfig,
    ModelsConfig,
    PriceConfig,
    TargetConfig,
)
from coreeval.errors import CoreEvalError, ModelCallError, ModelUnusable
from coreeval.models.answer_text import strip_thoughts
from coreeval.models.answers import InvalidAnswer, OutputSchema
from coreeval.models.budget import answer_cost
from coreeval.models.capabilities import Capabilities
from coreeval.models.failures import CallFailure, clean_message, to_final_error
from coreeval.models.model import Model, RequestOptions
from coreeval.models.providers import open_model, preflight
from coreeval.models.retry import Retry
from coreeval.schema import Value
from coreeval.tools.catalogs import Prices
from coreeval.tools.cutoffs import Cutoffs, TargetDates, find_target_dates
from coreeval.tools.endpoints import Pairs

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from coreeval.models.chat import ChatModel


Outcome = Literal["works", "refused", "ignored", "truncated", "refusal", "empty"]
"""The result of a request by a method; `ignored`: it was accepted, but the answer has another
form."""
Verdict = Literal["yes", "no", "ignored", "unknown"]
SHORT = 64
"""The token limit of the first answer."""
ROOM = 1024
"""The token limit of an answer of a model that thinks first."""
ABOUT_THE_FORM = ("unsupported", "rejected", "declined")
"""Kinds of failures after which the same request may be accepted in another form."""


class Capital(Value):
    """The answer to the question."""

    city: str


SCHEMA = OutputSchema(Capital, name="capital")
# JSON is not mentioned: a model that answers with it was made to by the method.
QUESTION = (
    {"role": "system", "content": "You answer questions briefly."},
    {"role": "user", "content": "Which city is the capital of France? Say no more than its name."},
)


@dataclass(frozen=True, kw_only=True)
class MethodTrial:
    """One method of structured output and its result."""

    method: Method
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class FeatureSupport:
    """Whether an endpoint accepts a parameter."""

    verdict: Verdict
    why: str = ""


class ModelProbe:
    """The checks of one model; findings stay here even if the checks end early.

    Args:
        model: The model.
        retry: How often a failed request is sent again.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self, model: Model, *, retry: Retry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.model = model
        self.answers: list[AIMessage] = []
        """All answers, to compute their cost."""
        self.tried: list[MethodTrial] = []
        self.plain_limit = model.plain_limit
        self.room = min(SHORT, model.config.max_tokens)
        """Tokens that an answer may have."""
        self.seconds: float | None = None
        """The seconds that the last answer took; the first one includes connecting."""
        self.logprobs: FeatureSupport | None = None
        self.seed: FeatureSupport | None = None
        self._retry = retry
        self._clock = clock

    @property
    def method(self) -> Method | None:
        """The strictest method that returned an answer."""
        return next((one.method for one in self.tried if one.outcome == "works"), None)

    @property
    def thinks(self) -> bool:
        """Whether an answer began with thoughts."""
        texts = [str(answer.text) for answer in self.answers]
        return any(strip_thoughts(text) != text for text in texts)

    @property
    def counts_tokens(self) -> bool:
        """Whether every answer reported its token counts."""
        counts = [answer.usage_metadata for answer in self.answers]
        return all(count is not None and count["total_tokens"] for count in counts)

    async def find_method(self) -> None:
        """Try the methods, the strictest first, until one returns an answer.

        Raises:
            CallFailure: no method works for the model.
        """
        chosen = self.model.config.structured
        for method in METHODS if chosen == "auto" else (chosen,):
            self.tried.append(await self._try(method))
            if self.method:
                return

    async def find_features(self, method: Method) -> None:
        """Find out whether the endpoint returns log-probabilities and accepts a seed."""
        told = await self._try_feature("text", {"logprobs": True, "top_logprobs": 5})
        if told.verdict == "yes" and not _has_logprobs(self.answers[-1]):
            told = FeatureSupport(verdict="ignored", why="accepted, but missing in the answer")
        self.logprobs = told
        configured = self.model.config.seed is not None
        self.seed = (
            FeatureSupport(verdict="yes", why="as configured")
            if configured
            else await self._try_feature(method, {"seed": 7})
        )

    async def _try(self, method: Method) -> MethodTrial:
        try:
            answer = await self._answer(method)
        except CallFailure as failure:
            if failure.kind not in ABOUT_THE_FORM:
                raise
            return MethodTrial(method=method, outcome="refused", why=failure.message)
        outcome, why = _judge_answer(answer, method)
        return MethodTrial(method=method, outcome=outcome, why=why)

    async def _answer(self, method: Method) -> "AIMessage":
        """Ask; if the answer was cut off, ask again with room for thoughts."""
        answer = await self._send(self.model.chat, method)
        most = min(ROOM, self.model.config.max_tokens)
        if answer.response_metadata["finish_reason"] == "length" and self.room < most:
            self.room = most
            answer = await self._send(self.model.chat, method)
        return answer

    async def _try_feature(self, method: Method, extra: dict[str, object]) -> FeatureSupport:
        config = self.model.config
        settings = config.model_copy(update={"extra": {**config.extra, **extra}})
        chat = self.model.chat.model_copy(update={"settings": settings})
        try:
            await self._send(chat, method)
        except CallFailure as failure:
            verdict: Verdict = "no" if failure.kind in ABOUT_THE_FORM else "unknown"
            return FeatureSupport(verdict=verdict, why=failure.message)
        return FeatureSupport(verdict="yes")

    async def _send(self, chat: "ChatModel", method: Method) -> "AIMessage":
        """Send one request; use the other name of the limit if the first is rejected."""
        try:
            return await self._send_once(chat, method)
        except CallFailure as failure:
            if failure.refused != "limit" or self.plain_limit != self.model.plain_limit:
                raise
        self.plain_limit = not self.plain_limit
        return await self._send_once(chat, method)

    async def _send_once(self, chat: "ChatModel", method: Method) -> "AIMessage":
        options = RequestOptions(
            schema=SCHEMA.schema,
            name=SCHEMA.name,
            method=method,
            max_tokens=self.room,
            plain_limit=self.plain_limit,
        )

        async def send() -> "AIMessage":
            began = self._clock()
            answer = await chat.ask([dict(one) for one in QUESTION], options)
            self.seconds = self._clock() - began
            return answer

        answer = await self._retry.run(send)
        self.answers.append(answer)
        return answer


def _judge_answer(answer: "AIMessage", method: Method) -> tuple[Outcome, str]:
    """Return the outcome of an answer, read as a run would read it."""
    finish = answer.response_metadata["finish_reason"]
    if finish in ("refusal", "content_filter"):
        return "refusal", clean_message(str(answer.text), "")
    if finish == "length":
        return "truncated", "cut off at the length limit"
    try:
        SCHEMA.parse(str(answer.text), mend=method == "text")
    except InvalidAnswer as error:
        reason = str(error)
        return ("empty", "") if reason == "empty" else ("ignored", clean_message(reason, ""))
    return "works", ""


def _has_logprobs(answer: "AIMessage") -> bool:
    told = answer.response_metadata.get("logprobs")
    return isinstance(told, dict) and bool(told.get("content"))


def count_tokens(answers: Sequence["AIMessage"]) -> tuple[int, int]:
    """Return the counted tokens of prompts and of answers."""
    counted = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    return sum(c["input_tokens"] for c in counted), sum(c["output_tokens"] for c in counted)


CheckState = Literal["usable", "unusable", "rules", "plugin", "recorded", "local"]
"""`rules` and `recorded` answers come from this machine and a `plugin` is code: nothing is sent."""
BRIEF_RETRY = Retry(attempts=2, longest_s=5.0, retry_after_cap_s=10.0)
"""A short retry hides a chance failure, because the user is waiting."""


_LATER = "it is overloaded: try again later"
_FAILED = "the server was reached: read the server's log, or try again later"
_WHERE = "check the end of base_url, which is often /v1, then try again"


@dataclass(frozen=True, kw_only=True)
class ModelUse:
    """One model at one endpoint with one key, and everything it is configured for."""

    config: ModelConfig
    """The config of its first use."""
    used_by: tuple[str, ...]
    """Roles, or `target`."""
    price: PriceConfig | None
    dates: TargetDates | None
    """The training cutoff and release date of a model under test; None for others."""

    @property
    def is_target(self) -> bool:
        """Whether it is a model under test."""
        return "target" in self.used_by


@dataclass(frozen=True, kw_only=True)
class CheckCost:
    """Seconds that the requests took."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = 0.0
    """The cost in US dollars; None if a price or a token count is unknown."""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of checking one model."""

    configured: ModelUse
    state: CheckState
    endpoint: str = ""
    error: CoreEvalError | None = None
    """Why the model cannot be used."""
    probe: ModelProbe | None = None
    """The findings, if the model was asked."""
    spent: CheckCost = CheckCost()


def group_models(
    models: ModelsConfig, prices: Prices, cutoffs: Cutoffs, judges: Sequence[ModelConfig] = ()
) -> list[ModelUse]:
    """Return each model once per endpoint and key: roles first, judges of defences last."""
    groups: dict[tuple[str, str | None, str], list[tuple[str, ModelConfig]]] = {}
    players: list[tuple[str, ModelConfig]] = [(role, models.for_role(role)) for role in ROLES]
    players += [("target", target) for target in models.targets]
    for use, config in [*players, *(("judge", judge) for judge in judges)]:
        key = (config.model, config.base_url, config.key_variable)
        groups.setdefault(key, []).append((use, config))
    return [_to_model_use(group, prices, cutoffs) for group in groups.values()]


def _to_model_use(
    group: Sequence[tuple[str, ModelConfig]], prices: Prices, cutoffs: Cutoffs
) -> ModelUse:
    configs = [config for _, config in group]
    tested = (config for config in configs if isinstance(config, TargetConfig))
    own = next((config.price for config in configs if config.price), None)
    return ModelUse(
        config=configs[0],
        used_by=tuple(use for use, _ in group),
        price=own or prices.get(configs[0].model),
        dates=next((find_target_dates(target, cutoffs) for target in tested), None),
    )


async def check_models(
    models: ModelsConfig,
    prices: Prices,
    capabilities: Capabilities,
    *,
    cutoffs: Cutoffs,
    judges: Sequence[ModelConfig] = (),
    trusted: Pairs,
    env: Mapping[str, str] | None = None,
    retry: Retry = BRIEF_RETRY,
    clock: Callable[[], float] = time.monotonic,
) -> list[CheckResult]:
    """Query every configured model and store which method of asking each accepts.

    Args:
        models: The model of each role, and the models under test.
        prices: The prices of models.
        capabilities: Where the findings are stored.
        cutoffs: Training cutoffs and release dates of models.
        judges: The models that score the cost of defences.
        trusted: Variables and the origins that they may be sent to; see `open_model`.
        env: Where keys come from; by default, the environment.
        retry: How often a request that fails in transport is sent again.
        clock: Returns seconds and never goes back.
    """

    async def one(configured: ModelUse) -> CheckResult:
        if configured.config.is_rule_based:
            return CheckResult(configured=configured, state="rules")
        if configured.config.is_plugin:
            return CheckResult(configured=configured, state="plugin")
        try:
            await asyncio.to_thread(preflight, configured.config, env, trusted=trusted)
            model = open_model(configured.config, env, trusted=trusted)
        except CoreEvalError as error:
            return CheckResult(configured=configured, state="unusable", error=error)
        if configured.config.is_on_this_machine:
            recorded = configured.config.provider == "replay"
            return CheckResult(configured=configured, state="recorded" if recorded else "local")
        return await _check_model(
            configured, ModelProbe(model, retry=retry, clock=clock), capabilities
        )

    asked = group_models(models, prices, cutoffs, judges)
    return list(await asyncio.gather(*(one(each) for each in asked)))


async def _check_model(
    configured: ModelUse, probe: ModelProbe, capabilities: Capabilities
) -> CheckResult:
    error = await _find_error(probe)
    if error is None and probe.method:
        capabilities.set_known(probe.model, probe.method, plain_limit=probe.plain_limit)
    return CheckResult(
        configured=configured,
        state="unusable" if error else "usable",
        endpoint=probe.model.identity.endpoint,
        error=error,
        probe=probe,
        spent=_sum_probe_cost(probe, configured.price),
    )


async def _find_error(probe: ModelProbe) -> CoreEvalError | None:
    """Run all probes; return why the model cannot be used, or None if it can."""
    try:
        await probe.find_method()
    except CallFailure as failure:
        return _to_error(failure, probe.model)
    if probe.method is None:
        return _no_method_error(probe)
    if probe.model.config.provider == "openai":
        await probe.find_features(probe.method)
    return None


def _to_error(failure: CallFailure, model: Model) -> CoreEvalError:
    final = to_final_error(
        failure,
        model=model.name,
        endpoint=model.identity.endpoint,
        key_env=model.config.key_variable,
    )
    if isinstance(final, ModelCallError):
        told, hint = failure.message, _LATER if failure.kind == "throttled" else _WHERE
        if failure.kind == "transient" and failure.answered:
            said = told.removeprefix(f"Error code: {failure.answered} - ")
            told, hint = f"the server answered {failure.answered}: {said}", _FAILED
        return ModelUnusable(
            f"{model.name}: {told}",
            where=model.identity.endpoint,
            hint=hint,
        )
    return final


def _no_method_error(probe: ModelProbe) -> ModelUnusable:
    last, name = probe.tried[-1], probe.model.name
    why = f": {last.why}" if last.why else ""
    if probe.model.config.structured != "auto":
        said = f"`structured: {last.method}` returned no valid answer ({last.outcome}){why}"
        hint = "remove `structured` to let CoreEval find a method that works"
    elif {one.outcome for one in probe.tried} == {"refused"}:
        said, hint = (
            f"the endpoint accepts no request: {last.why}",
            ("remove the setting that the endpoint names from the config"),
        )
    else:
        said = f"no request method returned a valid answer; the last one, {last.method}, failed "
        said, hint = (
            f"{said}({last.outcome}){why}",
            "use another model, or see coreeval docs models",
        )
    return ModelUnusable(f"{name}: {said}", where=probe.model.identity.endpoint, hint=hint)


def _sum_probe_cost(probe: ModelProbe, price: PriceConfig | None) -> CheckCost:
    costs = [answer_cost(answer, price) for answer in probe.answers]
    known = [one for one in costs if one is not None]
    prompt, completion = count_tokens(probe.answers)
    return CheckCost(
        calls=len(probe.answers),
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=sum(known) if len(known) == len(costs) else None,
    )


def sum_costs(checked: Sequence[CheckResult]) -> CheckCost:
    """Return the total cost of a check."""
    parts = [one.spent for one in checked]
    known = [one.usd for one in parts if one.usd is not None]
    return CheckCost(
        calls=sum(one.calls for one in parts),
        prompt_tokens=sum(one.prompt_tokens for one in parts),
        completion_tokens=sum(one.completion_tokens for one in parts),
        usd=sum(known) if len(known) == len(parts) else None,
    )
