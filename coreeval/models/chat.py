"""The chat model that the dispatcher calls: one request, one answer, no retries.

Token counts reported by an endpoint are checked where they are read. A model that does not support
schemas gets the schema as text.
"""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ensure_config
from pydantic import Field, SecretStr

from coreeval.config import ModelConfig
from coreeval.models.failures import CallFailure
from coreeval.models.model import (
    IMPOSSIBLE_COUNT,
    FinishReason,
    ImpossibleCount,
    RequestOptions,
    is_count,
    mask_key,
    request_parameters,
)

if TYPE_CHECKING:
    from coreeval.models.batches import BatchEndpoint

_ROLES = {"human": "user", "ai": "assistant", "system": "system"}
_LIMIT_HEADERS = (b"x-ratelimit-", b"anthropic-ratelimit-")


class ChatModel(BaseChatModel):
    """A chat model that answers one request at a time; asynchronous only.

    It raises `CallFailure` if a request fails and never retries: the dispatcher does. To
    LangChain's callbacks, LangSmith and Studio it is an ordinary chat model. The key is masked in
    answers, even if the server repeats it.
    """

    has_batches: ClassVar[bool] = False
    """Whether its protocol has batches; the endpoint may still not support them."""
    settings: ModelConfig = Field(repr=False)
    """Not part of the representation, which tracers send: base_url and extra may be private."""
    key: SecretStr

    def ask(
        self, messages: list[dict[str, str]], options: RequestOptions
    ) -> Coroutine[Any, Any, AIMessage]:
        """Return an awaitable of the answer: `ainvoke` if a callback handler is active.

        LangChain's callback code takes as long as sending the request, even without handlers.

        Raises:
            CallFailure: the request failed.
        """
        if self._has_handlers():
            return self.ainvoke(messages, {"run_name": options.name}, form=options)
        return self.answer(messages, options)

    def _has_handlers(self) -> bool:
        """Return whether a tracer or another callback handler is active here."""
        around = ensure_config().get("callbacks")
        if isinstance(around, BaseCallbackManager) and not (self.callbacks or self.verbose):
            return bool(around.handlers)  # configured where the graph was called, tracers included
        return bool(AsyncCallbackManager.configure(around, self.callbacks, self.verbose).handlers)

    @abstractmethod
    async def answer(self, messages: list[dict[str, str]], options: RequestOptions) -> AIMessage:
        """Return the answer to messages with `role` and `content`; see `make_ai_message`.

        If a server returned it, it comes from `answer_or_raise`, with the key masked.

        Raises:
            CallFailure: the request failed.
        """

    def encode_request(self, messages: list[dict[str, str]], options: RequestOptions) -> bytes:
        """Return the body of a request as `answer` sends it.

        Raises:
            NotImplementedError: the model sends no requests.
            UnicodeError: a text cannot be sent.
        """
        raise NotImplementedError(f"{self.settings.model} sends no requests")

    def open_batches(self) -> "BatchEndpoint | None":
        """Return the endpoint's batches, to be used in the running loop; None if it has none."""
        return None

    @property
    def _llm_type(self) -> str:
        return f"coreeval-{self.settings.provider}"

    @property
    def _identifying_params(self) -> dict[str, object]:
        sent = request_parameters(self.settings)
        sent.pop("extra", None)
        return {"model": self.settings.name, **sent}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: object) -> LangSmithParams:
        """Return the parameters that LangSmith needs, such as the model to price."""
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
        options = kwargs.get("form")  # tracers show the name
        if not isinstance(options, RequestOptions):
            raise TypeError("ainvoke needs form=RequestOptions(...)")
        message = await self.answer(to_message_dicts(messages), options)
        return ChatResult(generations=[ChatGeneration(message=message)])


class SdkChatModel(ChatModel):
    """A chat model behind an SDK, with a timeout; its failures contain no objects of the SDK."""

    @abstractmethod
    async def _send(
        self, messages: list[dict[str, str]], options: RequestOptions
    ) -> AIMessage | CallFailure:
        """Send one request; return its answer, or the failure."""

    async def answer(self, messages: list[dict[str, str]], options: RequestOptions) -> AIMessage:
        """Return the answer of one request."""
        seconds = self.settings.timeout_s
        outcome: AIMessage | CallFailure | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                outcome = await self._send(messages, options)
        if outcome is None:
            outcome = CallFailure("transient", f"no answer within {seconds:g} s", billed=True)
        return answer_or_raise(outcome, self.key)


def answer_or_raise(outcome: AIMessage | CallFailure, key: SecretStr) -> AIMessage:
    """Return an answer that is safe to store, trace and show, with the key masked.

    A failure is raised here, outside the `except` blocks: inside one, it would chain the SDK's
    error, which contains the request and its key.
    """
    if isinstance(outcome, CallFailure):
        raise outcome
    return mask_answer(outcome, key.get_secret_value())


def mask_answer(answer: AIMessage, secret: str) -> AIMessage:
    """Return an answer without the key, if the server repeated it."""
    said = {"content": answer.content, "response_metadata": answer.response_metadata}
    safe = {name: mask_key(part, secret) for name, part in said.items()}
    return answer if safe == said else answer.model_copy(update=safe)


def to_message_dicts(messages: list[BaseMessage]) -> list[dict[str, str]]:
    """Return LangChain's messages as `role` and `content`, the form used in requests."""
    return [{"role": _ROLES[message.type], "content": str(message.text)} for message in messages]


def make_ai_message(
    text: str,
    *,
    finish: FinishReason,
    model: str,
    usage: UsageMetadata | ImpossibleCount | None,
    headers: Iterable[tuple[bytes, bytes]] = (),
    logprobs: object = None,
) -> AIMessage:
    """Return an answer as a LangChain message.

    Args:
        text: The text of the answer or of the refusal.
        finish: Why it ended.
        model: The name that the endpoint reports for the model.
        usage: Tokens; None if the endpoint does not count them. An impossible count is not used and
            is stored in the metadata as `impossible_count`.
        headers: The response's headers as received; those about rate limits are kept.
        logprobs: Log-probabilities of the answer's tokens, if they were requested and returned.
    """
    limits = {
        name.lower().decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name.lower().startswith(_LIMIT_HEADERS)
    }
    metadata: dict[str, object] = {"finish_reason": finish, "model_name": model, "limits": limits}
    if logprobs is not None:
        metadata["logprobs"] = logprobs
    if isinstance(usage, ImpossibleCount):
        metadata[IMPOSSIBLE_COUNT] = str(usage)
        usage = None
    return AIMessage(content=text, response_metadata=metadata, usage_metadata=usage)


def check_usage(
    *, prompt: object, completion: object, cached: object = 0, written: object = 0
) -> UsageMetadata | ImpossibleCount:
    """Return the counted tokens, or why the counts are impossible.

    Args:
        prompt: All tokens of the prompt, including the cached and written ones.
        completion: All tokens of the answer, including hidden reasoning.
        cached: Tokens of the prompt that came from the provider's cache; None counts as 0.
        written: Tokens of the prompt charged for writing to that cache; None counts as 0.
    """
    said = {"prompt": prompt, "completion": completion, "cached": cached, "written": written}
    said |= {name: 0 for name in ("cached", "written") if said[name] is None}
    for name, value in said.items():
        if not is_count(value):
            return ImpossibleCount(f"{name} tokens: {str(value)[:40]!r}")
    total, answer, read, wrote = (int(value) for value in said.values())  # type: ignore[call-overload]
    if read + wrote > total:
        return ImpossibleCount(f"{read + wrote} of {total} prompt tokens cached or written")
    return UsageMetadata(
        input_tokens=total,
        output_tokens=answer,
        total_tokens=total + answer,
        input_token_details=InputTokenDetails(cache_read=read, cache_creation=wrote),
    )


def add_counts(*parts: object) -> object:
    """Return the sum of counts, with None as 0, or the first value that is not a count."""
    counted = [0 if part is None else part for part in parts]
    odd = next((part for part in counted if not is_count(part)), None)
    return sum(int(part) for part in counted) if odd is None else odd  # type: ignore[call-overload]


def append_schema(
    messages: list[dict[str, str]], schema: Mapping[str, object]
) -> list[dict[str, str]]:
    """Return the messages with the schema appended to the first one, the instructions.

    There it stays the same from call to call, so that a provider's prompt cache can hold it.
    Without a schema, the messages are returned unchanged.
    """
    if not schema:
        return messages
    wanted = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    told = f"{messages[0]['content']}\n\nAnswer with one JSON object that follows this JSON schema:"
    return [{**messages[0], "content": f"{told}\n{wanted}"}, *messages[1:]]
