"""Recorded answers in a model's place: a run can be repeated without keys and without a network.

A line of the file is one answer: `{"messages", "schema", "draw", "content", "finish_reason"?,
"usage"?}`, where `schema` is the JSON schema that was asked for or just its name.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError, ModelCallError
from coreeval.models.model import Identity, Model, parameters_of
from coreeval.models.openai_wire import as_dicts
from coreeval.schema import Value
from coreeval.tools.stores.calls import CallRecord, canonical


class _Usage(Value):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Recorded(Value):
    """One recorded answer and the request that it answers."""

    messages: tuple[dict[str, str], ...]
    shape: dict[str, object] | str = Field(alias="schema")
    draw: int = 0
    content: str
    finish_reason: str = "stop"
    usage: _Usage = _Usage()


class _Shape(Value):
    name: str
    body: dict[str, object] = Field(alias="schema")


class _Asked(Value):
    """A request as the call store keeps it."""

    provider: str
    endpoint: str
    model: str
    parameters: dict[str, object]
    shape: _Shape = Field(alias="schema")
    messages: tuple[dict[str, str], ...]
    draw: int


def open_replay(config: ModelConfig) -> Model:
    """Open a file of recorded answers.

    Raises:
        ConfigError: there is no such file, or a line of it is no recorded answer.
    """
    path = Path(config.name)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the recorded answers cannot be read: {error.strerror}", where=str(path)
        ) from None
    # The content names the endpoint: answers of a changed file are not those in the call store.
    endpoint = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    identity = Identity(
        provider="replay", endpoint=endpoint, model=path.name, parameters=parameters_of(config)
    )
    chat = ReplayChat(answers=_index(raw.decode(errors="replace"), path), cache=False)
    return Model(chat=chat, identity=identity, key_env="")


def write_answers(records: Iterable[CallRecord], path: Path, *, model: str) -> int:
    """Write a model's calls of a call store as a file for `replay:`; return how many.

    Args:
        records: The store's calls, or some of them.
        path: The file.
        model: Whose answers, as the config spells it: `provider:name`.

    Raises:
        ConfigError: two of them answer the same request: the model was asked with other parameters
            or at another endpoint as well. No file is written.
    """
    answers: dict[str, str] = {}
    for record in records:
        asked = _Asked.model_validate_json(record.request)
        if f"{asked.provider}:{asked.model}" == model:
            _add(answers, asked, record)
    path.write_text("".join(f"{line}\n" for line in answers.values()), encoding="utf-8")
    return len(answers)


def _add(answers: dict[str, str], asked: _Asked, record: CallRecord) -> None:
    line = _line(asked, record)
    if answers.setdefault(_key(asked.messages, asked.shape.body, asked.draw), line) != line:
        raise ConfigError(
            f"the same request has two answers, the later one of {record.started_at}",
            where=f"{asked.endpoint}, {canonical(asked.parameters)}",
            hint="give only the records of one run: they differ in started_at and paid_by",
        )


def _line(asked: _Asked, record: CallRecord) -> str:
    usage = {
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
    }
    return canonical(
        {
            "messages": asked.messages,
            "schema": asked.shape.body,
            "draw": asked.draw,
            "content": record.response,
            "finish_reason": record.finish_reason,
            "usage": usage,
        }
    )


def _index(text: str, path: Path) -> dict[str, Recorded]:
    found: dict[str, Recorded] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        answer = _parse(line, f"{path}, line {number}")
        key = _key(answer.messages, answer.shape, answer.draw)
        if found.setdefault(key, answer) != answer:
            raise ConfigError(
                "the same request is recorded with two answers", where=f"{path}, line {number}"
            )
    return found


def _parse(line: str, where: str) -> Recorded:
    try:
        return Recorded.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"this is no recorded answer: {at} {first['msg']}",
            where=where,
            hint="see docs/models.md",
        ) from None


def _key(messages: Iterable[Mapping[str, str]], schema: object, draw: int) -> str:
    asked = canonical({"messages": list(messages), "schema": schema, "draw": draw})
    return hashlib.sha256(asked.encode()).hexdigest()


class ReplayChat(BaseChatModel):
    """Answers what was recorded, and nothing else."""

    answers: dict[str, Recorded]

    @property
    def _llm_type(self) -> str:
        return "coreeval-replay"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        """Return the answer recorded for these messages, schema and draw."""
        draw, name = cast("int", kwargs.get("draw", 0)), kwargs.get("schema_name")
        asked = as_dicts(messages)
        keys = (_key(asked, schema, draw) for schema in (kwargs.get("schema"), name))
        found = next((self.answers[key] for key in keys if key in self.answers), None)
        if found is None:
            raise ModelCallError(
                f"this request is not among the recorded answers (schema {name}, draw {draw}, "
                f"last message: {asked[-1]['content'][:80]!r})"
            )
        return ChatResult(generations=[ChatGeneration(message=_message(found))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)


def _message(answer: Recorded) -> AIMessage:
    sent, said = answer.usage.prompt_tokens, answer.usage.completion_tokens
    usage = UsageMetadata(input_tokens=sent, output_tokens=said, total_tokens=sent + said)
    metadata = {"finish_reason": answer.finish_reason, "model_name": "recorded", "refusal": ""}
    return AIMessage(content=answer.content, response_metadata=metadata, usage_metadata=usage)
