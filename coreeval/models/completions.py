"""Scoring a given text by an endpoint: the log-probabilities of the tokens of a prompt.

Chat completions have none. OpenAI's older completions return them with `echo` and `logprobs`, as
llama-cpp-python does, and vLLM also as `prompt_logprobs`. llama.cpp's own server takes `echo` and
returns those of the generated token alone (its issue 27174): an answer counts only if it has all
tokens of the prompt.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import httpx2
import openai
from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from coreeval.errors import ConfigError
from coreeval.models.answers import InvalidAnswer, OutputSchema
from coreeval.models.chat import make_ai_message
from coreeval.models.failures import CallFailure, clean_message
from coreeval.models.http import MOST_LISTED, encode_body
from coreeval.models.model import Model, RequestOptions
from coreeval.models.openai import (
    REQUEST_ERRORS,
    Body,
    OpenAIChat,
    parse_completion_usage,
    to_failure,
)
from coreeval.tools.text_scores import TextScores


class _Way(NamedTuple):
    """One way to ask for the scores of a prompt."""

    options: Body
    generated: int
    """The tokens that are generated after the prompt."""


WAYS: Final = (
    _Way({"echo": True, "logprobs": 1, "max_tokens": 0}, 0),
    _Way({"echo": True, "logprobs": 1, "max_tokens": 1}, 1),
    _Way({"prompt_logprobs": 0, "max_tokens": 1}, 0),
)
"""Tried in this order until one works: the second for servers that generate a token at least."""
_REFUSING: Final = ("rejected", "unsupported", "unknown")
_NOT_IMPLEMENTED: Final = 501
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_BYTES = re.compile(r"bytes:(?:\\x[0-9a-f]{2})+|<0x[0-9A-Fa-f]{2}>")
"""How a token that is half a character is written."""


class TextScoresOutput(OutputSchema[TextScores]):
    """The scores of a text, as `CompletionsScorer` writes them into its answer."""

    def __init__(self) -> None:
        super().__init__(TextScores, name="text_scores")
        self.schema = {}

    def parse(self, text: str, *, mend: bool = False) -> TextScores:
        """Return the scores.

        Raises:
            InvalidAnswer: these are no scores.
        """
        try:
            return TextScores.model_validate_json(text)
        except ValidationError as error:
            raise InvalidAnswer(f"these are no scores: {error.errors()[0]['msg']}") from None


def open_text_scorer(model: Model) -> Model:
    """Return a model whose answer to a text is its scores, as JSON.

    Raises:
        ConfigError: the model's provider has no protocol for that.
    """
    if not isinstance(model.chat, OpenAIChat):
        raise ConfigError(
            f"{model.name} cannot score a given text",
            where="--model",
            hint="log-probabilities of texts come from openai: models with a base_url that speaks "
            "completions with echo and logprobs, such as vLLM's, or from weights: hf:FOLDER",
        )
    config = model.config.model_copy(update={"max_tokens": 1})
    chat = CompletionsScorer(settings=config, key=model.chat.key, cache=False)
    identity = replace(
        model.identity, parameters={**model.identity.parameters, "max_tokens": 1, "scores": "text"}
    )
    return replace(model, chat=chat, config=config, identity=identity)


class CompletionsScorer(OpenAIChat):
    """Has an endpoint score a text: the first message's content."""

    _way: _Way | None = PrivateAttr(default=None)
    """The way that has worked."""

    async def _send(
        self, messages: list[dict[str, str]], options: RequestOptions
    ) -> AIMessage | CallFailure:
        text, reasons = messages[0]["content"], list[str]()
        for way in [self._way] if self._way else WAYS:
            found = await self._try(way, text)
            if isinstance(found, AIMessage):
                self._way = way
                return found
            if self._way or found.kind not in _REFUSING:
                return found
            reasons.append(found.message)
        told = "; ".join(dict.fromkeys(reasons))
        return CallFailure("no_scores", clean_message(told, self.key.get_secret_value()))

    async def _try(self, way: _Way, text: str) -> AIMessage | CallFailure:
        secret, seconds = self.key.get_secret_value(), self.settings.timeout_s
        body = {"model": self.settings.name, "prompt": text, **way.options, **self.settings.extra}
        try:
            response = await self._share_client(secret).post(
                f"{self._url.rstrip('/')}/completions",
                cast_to=httpx2.Response,
                content=encode_body(body),
                options={"timeout": openai.Timeout(seconds, connect=min(10.0, seconds))},
            )
        except REQUEST_ERRORS as error:
            failure = to_failure(error, secret)
            if getattr(error, "status_code", 0) == _NOT_IMPLEMENTED:
                return CallFailure("rejected", failure.message)
            return failure
        return read_scores(response.content, response.headers.raw, secret, text=text, way=way)


_Entry = tuple[str, float | None]
"""A token and its log-probability, which the first one may lack."""


class _Logprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    text_offset: list[int] | None = None


class _Token(BaseModel):
    logprob: float
    decoded_token: str | None = None


class _Choice(BaseModel):
    logprobs: Any = None
    """Read apart: servers without scores of the prompt have another shape."""
    prompt_logprobs: list[dict[str, _Token] | None] | None = None


class _Completion(BaseModel):
    model: str | None = None
    choices: list[_Choice] = Field(min_length=1, max_length=MOST_LISTED)
    prompt_logprobs: list[dict[str, _Token] | None] | None = None
    usage: Any = None


Entry = tuple[str, float | None]


def read_scores(
    body: bytes,
    headers: Sequence[tuple[bytes, bytes]],
    secret: str,
    *,
    text: str,
    way: _Way = WAYS[0],
) -> AIMessage | CallFailure:
    """Read the body of a response with status 200.

    Returns:
        A message whose content is `TextScores` as JSON; a failure `rejected` if the response has
        no scores of the whole text.
    """
    try:
        done = _Completion.model_validate_json(body)
        entries = _list_entries(done, way, text)
        if not entries or not _covers(entries, text):
            told = f"it scored {len(entries)} tokens, which are not the whole text"
            return CallFailure("rejected", told, billed=True)
        scores = _make_scores(entries)
    except ValidationError as error:
        told = f"it gave no scores of a text: {error.errors()[0]['msg']}"
        return CallFailure("rejected", clean_message(told, secret), billed=True)
    return make_ai_message(
        scores.model_dump_json(exclude_defaults=True),
        finish="stop",
        model=done.model or "",
        usage=parse_completion_usage(done.usage),
        headers=headers,
    )


def _list_entries(done: _Completion, way: _Way, text: str) -> list[_Entry]:
    """Return the tokens of the prompt, each with its log-probability.

    Raises:
        ValidationError: the response has another shape.
    """
    choice = done.choices[0]
    if "prompt_logprobs" in way.options:
        places = choice.prompt_logprobs or done.prompt_logprobs or []
        return [_first_token(each) for each in places]
    found = _Logprobs.model_validate(choice.logprobs)
    entries = list(zip(found.tokens, found.token_logprobs, strict=False))
    if found.text_offset and len(found.text_offset) == len(entries):
        within = (at < len(text) for at in found.text_offset)
        return [each for each, inside in zip(entries, within, strict=True) if inside]
    return entries[: len(entries) - way.generated]


def _first_token(place: Mapping[str, _Token] | None) -> _Entry:
    """Return the prompt's own token at a place: vLLM writes it before more probable ones."""
    if not place:
        return "", None
    number, token = next(iter(place.items()))
    said = token.decoded_token
    return number if said is None else said, token.logprob


def _covers(entries: Sequence[_Entry], text: str) -> bool:
    """Return whether the tokens have all letters and digits of a text, in their order.

    Other signs may be cut into bytes, and the first token may have neither a name nor a score.
    """
    said = _keep_plain("".join(_BYTES.sub("", token) for token, _ in entries))
    due = _keep_plain(text)
    if not entries[0][0]:
        return due.endswith(said) and 2 * len(said) >= len(due)
    return due in said


def _keep_plain(text: str) -> str:
    return "".join(_PLAIN.findall(text))


def _make_scores(entries: Sequence[_Entry]) -> TextScores:
    """Return the scores; a first token without one is left out.

    Raises:
        ValidationError: a score is missing, or none.
    """
    some = entries[1:] if entries[0][1] is None else entries
    return TextScores.model_validate(
        {
            "logprobs": tuple(score for _, score in some),
            "tokens": tuple(token for token, _ in some),
        }
    )
