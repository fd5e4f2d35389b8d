"""Scores of a given text from an endpoint: the log-probabilities of a prompt's tokens.

Chat completions do not return them. OpenAI's older completions endpoint and llama-cpp-python return
them with `echo` and `logprobs`; vLLM also returns them as `prompt_logprobs`. llama.cpp's own server
accepts `echo` but returns only those of the generated token (its issue 27174), so a response is
used only if its tokens make up the prompt.
"""

import codecs
import re
import unicodedata
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

WAYS: Final[Sequence[Body]] = (
    {"echo": True, "logprobs": 1, "max_tokens": 0},
    {"echo": True, "logprobs": 1, "max_tokens": 1},
    {"prompt_logprobs": 0, "max_tokens": 1},
)
"""Request parameters for the scores of a prompt, tried in this order until one works; the second is
for servers that generate at least one token."""
_REFUSING: Final = ("rejected", "unsupported", "unknown")
_NOT_IMPLEMENTED: Final = 501
_MOST_SPECIAL: Final = 2
"""The most special tokens before a text."""
_LONGEST_TOKEN: Final = 20
"""The most letters of a first token without text."""
_MOST_HIDDEN: Final = 4
"""The most letters of a token that a server could not decode."""
_HEX = re.compile(r"(?<=x)[0-9A-Fa-f]{2}")
_BYTES = re.compile(r"bytes:(?:\\x[0-9a-f]{2})+|<0x[0-9A-Fa-f]{2}>")
"""How servers write a token that is part of a character."""


class TextScoresOutput(OutputSchema[TextScores]):
    """The scores of a text, as `CompletionsScorer` writes them into its answer."""

    def __init__(self) -> None:
        super().__init__(TextScores, name="text_scores")
        self.schema = {}

    def parse(self, text: str, *, mend: bool = False) -> TextScores:
        """Return the scores.

        Raises:
            InvalidAnswer: the text does not contain scores.
        """
        try:
            return TextScores.model_validate_json(text)
        except ValidationError as error:
            raise InvalidAnswer(f"these are not scores: {error.errors()[0]['msg']}") from None


def open_text_scorer(model: Model) -> Model:
    """Return a model whose answer to a text is its scores, as JSON.

    Raises:
        ConfigError: the provider has no protocol for scores.
    """
    if not isinstance(model.chat, OpenAIChat):
        raise ConfigError(
            f"{model.name} cannot score a text sent to it",
            where="--model",
            hint="use an openai: model with a base_url that supports completions with echo and "
            "logprobs, such as vLLM's, or use local weights: hf:FOLDER",
        )
    config = model.config.model_copy(update={"max_tokens": 1})
    chat = CompletionsScorer(settings=config, key=model.chat.key, cache=False)
    identity = replace(
        model.identity, parameters={**model.identity.parameters, "max_tokens": 1, "scores": "text"}
    )
    return replace(model, chat=chat, config=config, identity=identity)


class CompletionsScorer(OpenAIChat):
    """Asks an endpoint for the scores of a text: the first message's content."""

    _way: Body | None = PrivateAttr(default=None)
    """The parameters that worked."""

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

    async def _try(self, way: Body, text: str) -> AIMessage | CallFailure:
        secret, seconds = self.key.get_secret_value(), self.settings.timeout_s
        body = {"model": self.settings.name, "prompt": text, **way, **self.settings.extra}
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
"""A token and its log-probability, which may be missing for the first token."""


class _Logprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]


class _Token(BaseModel):
    logprob: float
    decoded_token: str | None = None


class _Choice(BaseModel):
    logprobs: Any = None
    """Parsed separately: servers without prompt scores use another form."""
    prompt_logprobs: list[dict[str, _Token] | None] | None = None


class _Completion(BaseModel):
    model: str | None = None
    choices: list[_Choice] = Field(min_length=1, max_length=MOST_LISTED)
    prompt_logprobs: list[dict[str, _Token] | None] | None = None
    usage: Any = None


def read_scores(
    body: bytes,
    headers: Sequence[tuple[bytes, bytes]],
    secret: str,
    *,
    text: str,
    way: Body = WAYS[0],
) -> AIMessage | CallFailure:
    """Read the body of a response with status 200.

    Returns:
        A message whose content is `TextScores` as JSON; a failure `rejected` if the response has
        no scores of the whole text.
    """
    try:
        done = _Completion.model_validate_json(body)
        listed = _list_entries(done, way)
        entries = find_text(listed, text)
        if not entries:
            told = f"it scored {len(listed)} tokens, which do not match the text"
            return CallFailure("rejected", told, billed=True)
        scores = _make_scores(entries)
    except ValidationError as error:
        told = f"it returned no scores for a text: {error.errors()[0]['msg']}"
        return CallFailure("rejected", clean_message(told, secret), billed=True)
    return make_ai_message(
        scores.model_dump_json(exclude_defaults=True),
        finish="stop",
        model=done.model or "",
        usage=parse_completion_usage(done.usage),
        headers=headers,
    )


def _list_entries(done: _Completion, way: Body) -> list[_Entry]:
    """Return the tokens that were scored, each with its log-probability.

    Raises:
        ValidationError: the response has another shape.
    """
    choice = done.choices[0]
    if "prompt_logprobs" in way:
        places = choice.prompt_logprobs or done.prompt_logprobs or []
        return [_first_token(each) for each in places]
    found = _Logprobs.model_validate(choice.logprobs)
    return list(zip(found.tokens, found.token_logprobs, strict=False))


def _first_token(place: Mapping[str, _Token] | None) -> _Entry:
    """Return the prompt's own token at a position: vLLM lists it before more probable ones."""
    if not place:
        return "", None
    number, token = next(iter(place.items()))
    said = token.decoded_token
    return number if said is None else said, token.logprob


class _Piece(NamedTuple):
    """The parts of a token that are compared."""

    letters: str
    """Its letters and digits, in any script; a split character belongs to the token with its last
    byte."""
    is_cut: bool
    """Whether it has unknown letters, because the server returned only part of a character."""


def find_text(entries: Sequence[_Entry], text: str) -> Sequence[_Entry]:
    """Return the tokens that make up a text, without special ones before and others after it.

    Tokens are compared by their letters and digits: servers write other characters and spaces in
    several ways. The first token may have no text; it is then at most the first word. At least half
    of the letters must be known.

    Returns:
        The tokens; none if they are not the whole text, or it has neither letters nor digits.
    """
    pieces, due = _read_pieces([token for token, _ in entries]), _keep_letters(text)
    if not due:
        return ()
    if entries and not entries[0][0]:
        word = _keep_letters(text.split()[0])[:_LONGEST_TOKEN]
        starts = [(1, due[at:]) for at in range(len(word) + 1)]
    else:
        starts = [(at, due) for at in range(_MOST_SPECIAL + 1)]
    for first, letters in starts:
        if used := _count_matching(pieces[first:], letters):
            end = first + used
            tail = _count_tail(entries[end:], pieces[end:], text)
            return entries[(0 if not entries[0][0] else first) : end + tail]
    return ()


def _read_pieces(tokens: Sequence[str]) -> list[_Piece]:
    decoder, pieces = codecs.getincrementaldecoder("utf-8")(errors="ignore"), list[_Piece]()
    for token in tokens:
        if _BYTES.fullmatch(token):
            said = decoder.decode(bytes.fromhex("".join(_HEX.findall(token))))
        else:
            decoder.reset()
            said = token
        pieces.append(_Piece(_keep_letters(said), "\ufffd" in token))
    return pieces


def _count_matching(pieces: Sequence[_Piece], due: str) -> int:
    """Return the number of tokens that contain all letters of a text; 0 if the letters differ."""
    place = told = hidden = 0
    for used, piece in enumerate(pieces, 1):
        if piece.letters:
            at = due.find(piece.letters, place, place + hidden + len(piece.letters))
            if at < 0:
                return 0
            place, hidden = at + len(piece.letters), 0
            told += len(piece.letters)
        hidden += _MOST_HIDDEN * piece.is_cut
        if place == len(due):
            return used if 2 * told >= len(due) else 0
    return len(pieces) if len(due) - place <= hidden and 2 * told >= len(due) else 0


def _count_tail(entries: Sequence[_Entry], pieces: Sequence[_Piece], text: str) -> int:
    """Return how many tokens after the last letter belong to a text: its final punctuation."""
    tail = re.split(r"[^\W_]", text)[-1].strip()
    for number, ((token, _), piece) in enumerate(zip(entries, pieces, strict=True)):
        sign = token.strip()
        if not tail or piece.letters or (tail.isascii() and not (sign and tail.startswith(sign))):
            return number
        if tail.startswith(sign):
            tail = tail[len(sign) :].lstrip()
    return len(entries)


def _keep_letters(text: str) -> str:
    """Return the letters and digits of a text, normalised as tokenizers may do."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in plain if letter.isalnum())


def _make_scores(entries: Sequence[_Entry]) -> TextScores:
    """Return the scores; a first token without a score is omitted.

    Raises:
        ValidationError: a score is missing or invalid.
    """
    some = entries[1:] if entries[0][1] is None else entries
    return TextScores.model_validate(
        {
            "logprobs": tuple(score for _, score in some),
            "tokens": tuple(token for token, _ in some),
        }
    )
