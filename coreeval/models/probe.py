"""Asking one model a tiny question in each way that a run may ask it, until one of them works."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from coreeval.config import METHODS, Method
from coreeval.models.answer_text import strip_thoughts
from coreeval.models.answers import InvalidAnswer, OutputSchema
from coreeval.models.failures import CallFailure, clean_message
from coreeval.models.model import Model, RequestOptions
from coreeval.models.retry import Retry
from coreeval.schema import Value

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from coreeval.models.chat import ChatModel


Outcome = Literal["works", "refused", "ignored", "truncated", "refusal", "empty"]
"""What came of asking by a method; `ignored`: it was taken, and the answer has another shape."""
Verdict = Literal["yes", "no", "ignored", "unknown"]
SHORT = 64
"""Tokens that the first answer may have."""
ROOM = 1024
"""Tokens that an answer may have whose model thinks before it speaks."""
ABOUT_THE_FORM = ("unsupported", "rejected", "declined")
"""Kinds of failures after which the same question may be taken in another form."""


class Capital(Value):
    """The answer to the question."""

    city: str


SHAPE = OutputSchema(Capital, name="capital")
# JSON is not mentioned: who answers with it all the same was made to by the method.
QUESTION = (
    {"role": "system", "content": "You answer questions briefly."},
    {"role": "user", "content": "Which city is the capital of France? Say no more than its name."},
)


@dataclass(frozen=True, kw_only=True)
class MethodTrial:
    """One way to ask for structure, and what came of it."""

    method: Method
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class FeatureSupport:
    """Whether an endpoint takes a parameter."""

    verdict: Verdict
    why: str = ""


class ModelProbe:
    """One model under examination; what is found stays here, also where it ends early.

    Args:
        model: The model.
        retry: How often a request that fails on the wire is sent again.
        clock: Seconds, never going back.
    """

    def __init__(
        self, model: Model, *, retry: Retry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.model = model
        self.answers: list[AIMessage] = []
        """All that came back, for their price."""
        self.tried: list[MethodTrial] = []
        self.plain_limit = model.plain_limit
        self.room = min(SHORT, model.config.max_tokens)
        """Tokens that an answer may have."""
        self.seconds: float | None = None
        """How long the last answer took; the first one also has to connect."""
        self.logprobs: FeatureSupport | None = None
        self.seed: FeatureSupport | None = None
        self._retry = retry
        self._clock = clock

    @property
    def method(self) -> Method | None:
        """The strictest way that brought an answer."""
        return next((one.method for one in self.tried if one.outcome == "works"), None)

    @property
    def thinks(self) -> bool:
        """Whether an answer began with thoughts."""
        texts = [str(answer.text) for answer in self.answers]
        return any(strip_thoughts(text) != text for text in texts)

    @property
    def counts_tokens(self) -> bool:
        """Whether every answer said how many tokens it took."""
        counts = [answer.usage_metadata for answer in self.answers]
        return all(count is not None and count["total_tokens"] for count in counts)

    async def find_method(self) -> None:
        """Try the ways to ask for structure, the strictest first, until one brings an answer.

        Raises:
            CallFailure: the model cannot be asked in any way.
        """
        chosen = self.model.config.structured
        for method in METHODS if chosen == "auto" else (chosen,):
            self.tried.append(await self._try(method))
            if self.method:
                return

    async def find_features(self, method: Method) -> None:
        """Find out whether the endpoint tells log-probabilities and takes a seed."""
        told = await self._try_feature("text", {"logprobs": True, "top_logprobs": 5})
        if told.verdict == "yes" and not _has_logprobs(self.answers[-1]):
            told = FeatureSupport(verdict="ignored", why="taken, and none came")
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
        """Ask, and once more with room for thoughts where the answer was cut off."""
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
        """Send one request, under the other name of the limit where the first is not taken."""
        try:
            return await self._send_once(chat, method)
        except CallFailure as failure:
            if failure.refused != "limit" or self.plain_limit != self.model.plain_limit:
                raise
        self.plain_limit = not self.plain_limit
        return await self._send_once(chat, method)

    async def _send_once(self, chat: "ChatModel", method: Method) -> "AIMessage":
        form = RequestOptions(
            schema=SHAPE.schema,
            name=SHAPE.name,
            method=method,
            max_tokens=self.room,
            plain_limit=self.plain_limit,
        )

        async def send() -> "AIMessage":
            began = self._clock()
            answer = await chat.ask([dict(one) for one in QUESTION], form)
            self.seconds = self._clock() - began
            return answer

        answer = await self._retry.run(send)
        self.answers.append(answer)
        return answer


def _judge_answer(answer: "AIMessage", method: Method) -> tuple[Outcome, str]:
    """Return what an answer is worth, read as a run would read it."""
    finish = answer.response_metadata["finish_reason"]
    if finish in ("refusal", "content_filter"):
        return "refusal", clean_message(str(answer.text), "")
    if finish == "length":
        return "truncated", "cut off at the length limit"
    try:
        SHAPE.parse(str(answer.text), mend=method == "text")
    except InvalidAnswer as error:
        reason = str(error)
        return ("empty", "") if reason == "empty" else ("ignored", clean_message(reason, ""))
    return "works", ""


def _has_logprobs(answer: "AIMessage") -> bool:
    told = answer.response_metadata.get("logprobs")
    return isinstance(told, dict) and bool(told.get("content"))


def count_tokens(answers: Sequence["AIMessage"]) -> tuple[int, int]:
    """Return the tokens of prompts and of answers, as far as they were counted."""
    counted = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    return sum(c["input_tokens"] for c in counted), sum(c["output_tokens"] for c in counted)
