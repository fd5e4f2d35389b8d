"""Recorded answers in a model's place: a run can be repeated without keys and without a network.

A line of the file is one answer: `{"messages", "schema", "draw", "content", "finish_reason"?,
"usage"?}`, where `schema` is the JSON schema that was asked for or just its name.
"""

import hashlib
import json
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


def write_answers(records: Iterable[CallRecord], path: Path) -> int:
    """Write calls of a call store as a file for `replay:`; return how many."""
    lines = [_line(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def _line(record: CallRecord) -> str:
    request = json.loads(record.request)
    usage = {
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
    }
    return canonical(
        {
            "messages": request["messages"],
            "schema": request["schema"]["schema"],
            "draw": record.draw,
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
