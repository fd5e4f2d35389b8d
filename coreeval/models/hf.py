"""Weights on this machine as a chat model: `hf:PATH` works like any provider, without a network.

Weights are loaded once per process, at the first request. Requests that wait at the same time are
answered in one batch. For a question with a fixed set of answers, such as a label, the answer is
the most probable one (with `structured: text` the model writes it).
"""

import asyncio
import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import AIMessage
from pydantic import SecretStr

from coreeval.config import ModelConfig
from coreeval.config.base import Count, Section
from coreeval.config.load import check_values
from coreeval.config.models import hide_folder
from coreeval.errors import ConfigError, CoreEvalError, UsageError
from coreeval.models.chat import ChatModel, append_schema, check_usage, make_ai_message
from coreeval.models.failures import CallFailure
from coreeval.models.generation import (
    GenerationStopped,
    LocalAnswer,
    Sampling,
    choose,
    generate,
)
from coreeval.models.loaded_network import (
    choose_device,
    describe,
    free_device_memory,
    is_out_of_memory,
)
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.model import (
    Identity,
    Model,
    RequestOptions,
    request_parameters,
    share_client,
)
from coreeval.models.weights import EXTRA, Weights, find_weights, require_memory
from coreeval.tools.extras import check_extra

_WINDOW: Final = 1 << 20
"""The context length, in tokens, of a model whose config has none."""


class LocalOptions(Section):
    """The settings in `extra` of a local model."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""
    hub: bool = False
    """Whether the weights may be downloaded from Hugging Face."""
    batch: Count = 8
    """The most questions in one batch."""


@dataclass(frozen=True)
class _Place:
    """Weights, and the device that they are or will be on."""

    weights: Weights
    device: str

    @property
    def needed(self) -> int:
        """The bytes of the weights on the device, excluding activations."""
        return self.weights.parameters * (4 if self.device == "cpu" else 2)

    @property
    def key(self) -> tuple[str, str]:
        return self.weights.revision, self.device


_LOADED: dict[tuple[str, str], LocalModel] = {}
"""The loaded models of this process."""
_TURNS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Only one model at a time runs on a device."""


def open_hf(config: ModelConfig, _env: Mapping[str, str]) -> Model:
    """Open weights on this machine: read their files without loading them.

    Raises:
        UsageError: there are no weights, they are not whole, or torch is not installed.
        ConfigError: an option is not one of a local model.
    """
    options, place = _read_options(config), _find_place(config)
    sent = {name: value for name, value in request_parameters(config).items() if name != "extra"}
    precision = "float32" if place.device == "cpu" else "bfloat16"
    identity = Identity(
        provider="hf",
        endpoint=place.weights.revision,
        model=hide_folder(config.model).partition(":")[2],
        parameters={**sent, "precision": precision},
    )
    chat = LocalChat(
        settings=config, key=SecretStr(""), place=place, at_a_time=options.batch, cache=False
    )
    return Model(chat=chat, identity=identity, config=config, has_logprobs=True)


def check_memory(config: ModelConfig) -> None:
    """Check that a local model fits into memory, unless it is loaded.

    Raises:
        UsageError: it does not fit; the message has the needed and the free bytes.
    """
    place = _find_place(config)
    if place.key not in _LOADED:
        free = free_device_memory(place.device)
        require_memory(place.weights, place.needed, free, place.device)


def hash_weights(config: ModelConfig) -> str:
    """Return the digest of a local model's weights; empty for a model of a provider.

    Raises:
        UsageError: there are no weights, or they are not whole.
    """
    return _find_place(config).weights.revision if config.provider == "hf" else ""


def _read_options(config: ModelConfig) -> LocalOptions:
    for name in ("base_url", "reasoning_effort", "ca_file"):
        if getattr(config, name) is not None:
            raise ConfigError(
                f"a local model does not support {name}",
                where=config.model,
                hint=f"remove {name}; coreeval docs models lists the supported settings",
            )
    return check_values(LocalOptions, config.extra, where=f"extra of {config.model}")


def _find_place(config: ModelConfig) -> _Place:
    options = _read_options(config)
    for package in ("torch", "transformers"):
        check_extra(EXTRA, package, "a local model", where=config.model)
    weights = find_weights(f"{config.provider}:{config.place}", hub=options.hub)
    return _Place(weights, choose_device(options.device, where=f"extra.device of {config.model}"))


# -- a question -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Asked:
    messages: Sequence[Mapping[str, str]]
    choices: tuple[str, ...]
    """The fixed set of answers; empty if the model writes its answer."""
    way: Sampling


class LocalChat(ChatModel):
    """The chat model of weights on this machine."""

    place: _Place
    at_a_time: int

    async def answer(self, messages: list[dict[str, str]], options: RequestOptions) -> AIMessage:
        """Return the answer to one request, which may wait long for its turn.

        Raises:
            CallFailure: the question is too long for the model, or the model cannot be used.
        """
        choices = () if self.settings.structured == "text" else _list_choices(options.schema)
        told = messages if choices else append_schema(messages, options.schema)
        asked = _Asked(messages=told, choices=choices, way=self._sampling(told, options))
        key = (LocalQueue, *self.place.key, self.at_a_time)
        queue = share_client(key, lambda: LocalQueue(self.place, self.at_a_time))
        said = await queue.ask(asked)
        usage = check_usage(prompt=said.prompt_tokens, completion=said.tokens)
        answer = make_ai_message(
            said.text,
            finish=said.finish,
            model=hide_folder(self.settings.model),
            usage=usage,
            logprobs={"content": said.places} if said.places else None,
        )
        if options.schema and not choices:
            answer.response_metadata["method"] = "text"
        return answer

    def _sampling(self, messages: list[dict[str, str]], options: RequestOptions) -> Sampling:
        """Return the sampling options: draws of a question differ, and each is reproducible."""
        said = json.dumps([self.settings.seed or 0, options.draw, messages]).encode()
        return Sampling(
            temperature=self.settings.temperature or 0.0,
            seed=int.from_bytes(hashlib.sha256(said).digest()[:7]),
            max_tokens=options.max_tokens,
            logprobs=options.logprobs,
        )


def _list_choices(schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the allowed words of a schema whose only property is one of them."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) != 1:
        return ()
    ((name, told),) = properties.items()
    words = told.get("enum") if isinstance(told, Mapping) else None
    if not isinstance(words, list):
        return ()
    return tuple(json.dumps({name: word}, ensure_ascii=False) for word in words)


# -- those that wait together ---------------------------------------------------------------------

_Waiting = tuple[_Asked, "asyncio.Future[LocalAnswer]"]


@dataclass
class LocalQueue:
    """The requests to one model: those that wait at the same time form a batch."""

    place: _Place
    batch: int
    """The most questions in a batch; halved if memory runs out."""
    _waiting: list[_Waiting] = field(default_factory=list)
    _work: "asyncio.Task[None] | None" = None
    _stopped: threading.Event = field(default_factory=threading.Event)

    async def ask(self, asked: _Asked) -> LocalAnswer:
        """Return the answer to a question.

        Raises:
            CallFailure: it is too long, or the model cannot be used.
        """
        future: asyncio.Future[LocalAnswer] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, future))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_waiting())
        return await future

    async def close(self) -> None:
        """Stop before the next token; waiting callers get an error."""
        self._stopped.set()
        if self._work is not None:
            await asyncio.gather(self._work, return_exceptions=True)

    async def _answer_waiting(self) -> None:
        await asyncio.sleep(0)  # requests of the same loop iteration form one batch
        while self._waiting:
            some = self._take()
            asked = [one for one, _ in some]
            try:
                found = await asyncio.to_thread(self._answer_some, asked)
            except BaseException as error:  # noqa: BLE001 - it belongs to those who wait
                found = [error] * len(some)
            for (_, future), said in zip(some, found, strict=True):
                _settle(future, said)

    def _take(self) -> list[_Waiting]:
        """Take the question that has waited longest, and others of its kind."""
        choices = self._waiting[0][0].choices
        alike = [one for one in self._waiting if one[0].choices == choices][: self.batch]
        self._waiting = [one for one in self._waiting if one not in alike]
        return alike

    # -- in a thread --

    def _answer_some(self, asked: Sequence[_Asked]) -> list[LocalAnswer | BaseException]:
        with _TURNS[self.place.device]:
            try:
                model = self._load()
            except UsageError as error:
                raise CallFailure("unusable", error.message) from None
            found: list[LocalAnswer | BaseException | list[int]] = [
                _encode(model, one) for one in asked
            ]
            ready = [at for at, one in enumerate(found) if isinstance(one, list)]
            tokens = [one for one in found if isinstance(one, list)]
            for at, said in zip(
                ready, self._ask(model, tokens, [asked[at] for at in ready]), strict=True
            ):
                found[at] = said
        return [one for one in found if not isinstance(one, list)]

    def _load(self) -> LocalModel:
        if self.place.key not in _LOADED:
            weights, device = self.place.weights, self.place.device
            _LOADED[self.place.key] = load_model(
                weights, device, needed=self.place.needed, most_tokens=_WINDOW
            )
        return _LOADED[self.place.key]

    def _ask(
        self, model: LocalModel, tokens: Sequence[Sequence[int]], asked: Sequence[_Asked]
    ) -> list[LocalAnswer]:
        """Answer questions of one kind; if memory runs out, in batches half as large."""
        if not asked:
            return []
        try:
            return self._ask_at_once(model, tokens, asked)
        except CallFailure:
            raise
        except CoreEvalError as error:
            raise CallFailure("unusable", error.message) from None
        except Exception as error:
            if not is_out_of_memory(error):
                said = f"{type(error).__name__}: {describe(error)}"
                raise CallFailure("unusable", f"the model cannot be used: {said}") from error
        model.free_cache()
        if len(asked) == 1:
            raise CallFailure(
                "unusable",
                f"{self.place.device} ran out of memory on one question of {len(tokens[0])} tokens",
            )
        half = self.batch = len(asked) // 2
        return [
            *self._ask(model, tokens[:half], asked[:half]),
            *self._ask(model, tokens[half:], asked[half:]),
        ]

    def _ask_at_once(
        self, model: LocalModel, tokens: Sequence[Sequence[int]], asked: Sequence[_Asked]
    ) -> list[LocalAnswer]:
        ways, choices = [one.way for one in asked], asked[0].choices
        if choices:
            return choose(model, tokens, choices, ways)
        try:
            return generate(model, tokens, ways, is_stopped=self._stopped.is_set)
        except GenerationStopped:
            raise CallFailure("transient", "the process is being stopped") from None


def _settle(future: "asyncio.Future[LocalAnswer]", said: LocalAnswer | BaseException) -> None:
    if future.done():  # the caller was cancelled
        return
    if isinstance(said, LocalAnswer):
        future.set_result(said)
    else:
        future.set_exception(said)


def _encode(model: LocalModel, asked: _Asked) -> list[int] | CallFailure:
    """Return the tokens of a question, or why it cannot be asked."""
    try:
        tokens = model.encode_messages(asked.messages)
    except UsageError as error:
        return CallFailure("rejected", error.message)
    if not tokens:
        return CallFailure("rejected", "the question is empty")
    room = max((len(model.encode_label(one)) for one in asked.choices), default=1)
    if model.window is not None and len(tokens) + room > model.window:
        return CallFailure(
            "rejected",
            f"the question has {len(tokens)} tokens, but the question and its answer must fit the "
            f"model's context of {model.window} tokens",
        )
    return tokens
