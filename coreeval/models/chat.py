"""A chat model as the sender asks it: one request, one answer, no retries of its own."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ensure_config
from pydantic import Field, SecretStr

from coreeval.config import ModelConfig
from coreeval.models.counts import IMPOSSIBLE_COUNT, ImpossibleCount
from coreeval.models.failures import CallFailure
from coreeval.models.forms import Finish, Form
from coreeval.models.keys import hidden
from coreeval.models.model import parameters_of

_ROLES = {"human": "user", "ai": "assistant", "system": "system"}
_LIMITS = (b"x-ratelimit-", b"anthropic-ratelimit-")


class AskedChat(BaseChatModel):
    """A chat model that answers one form at a time; asynchronous only.

    It raises `CallFailure` for all that goes wrong on the wire and never tries again: the sender
    does. LangChain's callbacks, LangSmith and Studio see it as any other chat model. What it is
    asked comes back without the key, also where the server repeats it.
    """

    settings: ModelConfig = Field(repr=False)
    """Not part of the representation, which tracers send: base_url and extra may be private."""
    key: SecretStr

    async def ask(self, messages: list[dict[str, str]], form: Form) -> AIMessage:
        """Return the answer as `ainvoke` does, and through it wherever anybody listens to calls.

        What LangChain does for listeners takes as long as sending the request, also without any.

        Raises:
            CallFailure: there is none.
        """
        if self._is_listened_to():
            return await self.ainvoke(messages, {"run_name": form.name}, form=form)
        return _without_key(await self.answer(messages, form), self.key)

    def _is_listened_to(self) -> bool:
        """Tell whether a tracer or another handler of callbacks would hear of a call made here."""
        around = ensure_config().get("callbacks")
        if isinstance(around, BaseCallbackManager) and not (self.callbacks or self.verbose):
            return bool(around.handlers)  # configured where the graph was called, tracers included
        return bool(AsyncCallbackManager.configure(around, self.callbacks, self.verbose).handlers)

    @abstractmethod
    async def answer(self, messages: list[dict[str, str]], form: Form) -> AIMessage:
        """Return the answer to messages with `role` and `content`; see `ai_message`.

        Raises:
            CallFailure: there is none.
        """

    @property
    def _llm_type(self) -> str:
        return f"coreeval-{self.settings.provider}"

    @property
    def _identifying_params(self) -> dict[str, object]:
        sent = parameters_of(self.settings)
        sent.pop("extra", None)
        return {"model": self.settings.name, **sent}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: object) -> LangSmithParams:
        """Return what LangSmith knows a call by, such as the model that it prices."""
        said = LangSmithParams(ls_model_type="chat", ls_provider=self.settings.provider)
        said["ls_model_name"] = self.settings.name
        return said

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        raise NotImplementedError("this model is asynchronous: use ainvoke")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        form = kwargs.get("form")
        if not isinstance(form, Form):
            raise TypeError("ainvoke needs form=Form(...)")
        message = _without_key(await self.answer(as_dicts(messages), form), self.key)
        return ChatResult(generations=[ChatGeneration(message=message)])


class WireChat(AskedChat):
    """A chat model behind an SDK: bounded in time, and its failures carry nothing of the SDK's."""

    @abstractmethod
    async def _send(self, messages: list[dict[str, str]], form: Form) -> AIMessage | CallFailure:
        """Send one request; return its answer or why there is none."""

    async def answer(self, messages: list[dict[str, str]], form: Form) -> AIMessage:
        """Return the answer of one request.

        A failure is raised outside the handlers: raised inside, it would carry the SDK's error and,
        with it, the request and its key.
        """
        outcome = await self._in_time(messages, form)
        if isinstance(outcome, CallFailure):
            raise outcome
        return outcome

    async def _in_time(self, messages: list[dict[str, str]], form: Form) -> AIMessage | CallFailure:
        seconds = self.settings.timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await self._send(messages, form)
        except TimeoutError:
            return CallFailure("transient", f"no answer within {seconds:g} s", billed=True)


def _without_key(message: AIMessage, key: SecretStr) -> AIMessage:
    """Return an answer that may be stored, traced and shown."""
    said = {"content": message.content, "response_metadata": message.response_metadata}
    safe = {name: hidden(part, key.get_secret_value()) for name, part in said.items()}
    return message if safe == said else message.model_copy(update=safe)


def as_dicts(messages: list[BaseMessage]) -> list[dict[str, str]]:
    """Return LangChain's messages as the wire has them."""
    return [{"role": _ROLES[message.type], "content": str(message.text)} for message in messages]


def ai_message(
    text: str,
    *,
    finish: Finish,
    model: str,
    usage: UsageMetadata | ImpossibleCount | None,
    headers: Iterable[tuple[bytes, bytes]] = (),
    logprobs: object = None,
) -> AIMessage:
    """Return an answer as LangChain has it.

    Args:
        text: The answer, or the words of a refusal.
        finish: Why it ended.
        model: The model that answered, by its own account.
        usage: Tokens; None where the endpoint does not count. An impossible count is none, and is
            named in the metadata as `impossible_count`.
        headers: The response's headers as they came; those about rate limits are kept.
        logprobs: Log-probabilities of the answer's tokens, where they were asked for and came.
    """
    limits = {
        name.lower().decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name.lower().startswith(_LIMITS)
    }
    metadata: dict[str, object] = {"finish_reason": finish, "model_name": model, "limits": limits}
    if logprobs is not None:
        metadata["logprobs"] = logprobs
    if isinstance(usage, ImpossibleCount):
        metadata[IMPOSSIBLE_COUNT] = str(usage)
        usage = None
    return AIMessage(content=text, response_metadata=metadata, usage_metadata=usage)
