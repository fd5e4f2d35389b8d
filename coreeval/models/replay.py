"""Recorded answers in place of a model: a run can be repeated without keys or network.

Each line of the file is one answer: `{"messages", "schema", "draw", "content", "finish_reason"?,
"usage"?, "method"?, "logprobs"?}`, where `schema` is the requested JSON schema or its name, and
`logprobs` has `content` as in chat completions; they are returned if requested. In place of the
request, a line may have its hash, `asked`, for texts that may not be published.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import AIMessage
from pydantic import Field, SecretStr, ValidationError, model_validator

from coreeval.config import Method, ModelConfig
from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import ConfigError, NotRecorded, UsageError
from coreeval.models.chat import ChatModel, check_usage, make_ai_message
from coreeval.models.model import FinishReason, Identity, Model, RequestOptions, request_parameters
from coreeval.schema import Value
from coreeval.tools.files import write_text
from coreeval.tools.outputs import refuse_foreign_output
from coreeval.tools.stores.call_records import CallRecord, canonical_json

Line = dict[str, Any]
"""An answer in the form of the file."""


class _Usage(Value):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class RecordedAnswer(Value):
    """One recorded answer and the request that it answers."""

    messages: tuple[dict[str, str], ...] | None = None
    output_schema: dict[str, object] | str | None = Field(None, alias="schema")
    draw: int = 0
    asked: str = ""
    """In place of these three: their hash, from `question_key`."""
    content: str
    finish_reason: FinishReason = "stop"
    usage: _Usage = _Usage()
    logprobs: dict[str, object] | None = None
    method: Method | None = None
    """How the model was asked to follow the schema, if known."""

    @model_validator(mode="after")
    def _one_request(self) -> Self:
        told = self.messages is not None and self.output_schema is not None
        if told == bool(self.asked):
            raise ValueError("an answer needs messages and schema, or asked")
        return self

    @property
    def key(self) -> str:
        """The hash of the request."""
        return self.asked or question_key(self.messages or (), self.output_schema, self.draw)


class _StoredSchema(Value):
    name: str
    body: dict[str, object] = Field(alias="schema")


class _StoredRequest(Value):
    """A request in the form of the call store."""

    provider: str
    endpoint: str
    model: str
    parameters: dict[str, object]
    output_schema: _StoredSchema = Field(alias="schema")
    messages: tuple[dict[str, str], ...]
    draw: int


def open_replay(config: ModelConfig) -> Model:
    """Open a file of recorded answers.

    Raises:
        ConfigError: the file does not exist, or one of its lines is not a recorded answer.
    """
    path = Path(config.place)
    try:
        raw = read_bytes(path, most_bytes=MOST_DATA_BYTES)
    except OSError as error:
        raise ConfigError(
            f"cannot read the recorded answers: {error.strerror}", where=str(path)
        ) from None
    # The content is the endpoint's name: a changed file does not reuse stored calls.
    endpoint = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    identity = Identity(
        provider="replay", endpoint=endpoint, model=path.name, parameters=request_parameters(config)
    )
    chat = ReplayChat(
        settings=config,
        key=SecretStr(""),
        answers=_index_answers(raw.decode(errors="replace"), path),
        cache=False,
    )
    return Model(chat=chat, identity=identity, config=config, is_recorded=True, has_logprobs=True)


def write_answers(records: Iterable[CallRecord], path: Path, *, model: str) -> int:
    """Write a model's calls from a call store as a file for `replay:`; return their number.

    Calls whose texts a takedown has erased are left out.

    Args:
        records: The store's calls, or some of them.
        path: The file.
        model: The model whose answers are written, as in the config: `provider:name`.

    Raises:
        ConfigError: two calls answer the same request, because the model was also called with other
            parameters or at another endpoint. No file is written.
        UsageError: none of the calls is an answer of the model. No file is written.
    """
    answers, others = dict[str, Line](), set[str]()
    for record in records:
        if record.is_erased:
            continue
        asked = _StoredRequest.model_validate_json(record.request)
        name = f"{asked.provider}:{asked.model}"
        if name == model:
            _add_answer(answers, asked, record)
        else:
            others.add(name)
    if not answers:
        raise _no_answers_error(model, sorted(others))
    refuse_foreign_output(path, '{"content":')
    write_text(path, "".join(f"{canonical_json(line)}\n" for line in answers.values()))
    return len(answers)


def _no_answers_error(model: str, others: Sequence[str]) -> UsageError:
    near = difflib.get_close_matches(model, others, n=3) or others[:10]
    there = f"there are answers from {', '.join(near)}" if near else "there are no calls"
    return UsageError(f"there is no answer from {model!r} among these calls", hint=there)


def _add_answer(answers: dict[str, Line], asked: _StoredRequest, record: CallRecord) -> None:
    """Add an answer; one with log-probabilities replaces the same answer without them."""
    line, key = (
        _to_line(asked, record),
        question_key(asked.messages, asked.output_schema.body, asked.draw),
    )
    known = answers.setdefault(key, line)
    answers[key] = {**known, **line}
    if {**line, **known} != answers[key]:
        raise ConfigError(
            f"the same request has two answers, the later one from {record.started_at}",
            where=f"{asked.endpoint}, {canonical_json(asked.parameters)}",
            hint="use only the calls of one run: coreeval calls export --run RUN",
        )


def to_answer_line(record: CallRecord) -> Line:
    """Return a call of the call store as a line of a `replay:` file."""
    return _to_line(_StoredRequest.model_validate_json(record.request), record)


def line_key(line: Mapping[str, Any]) -> str:
    """Return the hash of the request that a line answers."""
    return RecordedAnswer.model_validate(line).key


def hash_request(line: Mapping[str, Any]) -> Line:
    """Return a line with its texts replaced by the hash of the request."""
    answer = RecordedAnswer.model_validate(line)
    rest = {name: value for name, value in line.items() if name not in ("messages", "schema")}
    return rest | {"draw": answer.draw, "asked": answer.key}


def _to_line(asked: _StoredRequest, record: CallRecord) -> Line:
    usage = {
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
    }
    line = {
        "messages": list(asked.messages),
        "schema": asked.output_schema.body,
        "draw": asked.draw,
        "content": record.response,
        "finish_reason": record.finish_reason,
        "usage": usage,
    }
    told = {"logprobs": {"content": json.loads(record.logprobs)}} if record.logprobs else {}
    return line | told | ({"method": record.method} if record.method else {})


def _index_answers(text: str, path: Path) -> dict[str, RecordedAnswer]:
    found: dict[str, RecordedAnswer] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        answer = _parse_line(line, f"{path}, line {number}")
        if found.setdefault(answer.key, answer) != answer:
            raise ConfigError(
                "the same request is recorded with two answers", where=f"{path}, line {number}"
            )
    return found


def _parse_line(line: str, where: str) -> RecordedAnswer:
    try:
        return RecordedAnswer.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"this is not a recorded answer: {at} {first['msg']}",
            where=where,
            hint="see coreeval docs models",
        ) from None


def question_key(messages: Iterable[Mapping[str, str]], schema: object, draw: int) -> str:
    """Return the hash that identifies a recorded answer."""
    asked = canonical_json({"messages": list(messages), "schema": schema, "draw": draw})
    return hashlib.sha256(asked.encode()).hexdigest()


class ReplayChat(ChatModel):
    """A chat model that returns only recorded answers."""

    answers: dict[str, RecordedAnswer]

    async def answer(self, messages: list[dict[str, str]], options: RequestOptions) -> AIMessage:
        """Return the answer recorded for these messages, schema and draw.

        Raises:
            NotRecorded: no such answer is recorded.
        """
        keys = (
            question_key(messages, schema, options.draw)
            for schema in (options.schema, options.name)
        )
        found = next((self.answers[key] for key in keys if key in self.answers), None)
        if found is None:
            file = Path(self.settings.name).name
            raise NotRecorded(
                f"this request is not among the recorded answers of {file} "
                f"(schema {options.name}, draw {options.draw}, last message: "
                f"{messages[-1]['content'][:80]!r})"
            )
        usage = check_usage(
            prompt=found.usage.prompt_tokens, completion=found.usage.completion_tokens
        )
        said = make_ai_message(
            found.content,
            finish=found.finish_reason,
            model="recorded",
            usage=usage,
            logprobs=found.logprobs if options.logprobs else None,
        )
        if found.method:
            said.response_metadata["method"] = found.method
        return said
