"""Recorded answers in a model's place: a run can be repeated without keys and without a network.

A line of the file is one answer: `{"messages", "schema", "draw", "content", "finish_reason"?,
"usage"?, "logprobs"?}`, where `schema` is the JSON schema that was asked for or just its name and
`logprobs` has `content` as chat completions do; they are told to whoever asks for them.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from langchain_core.messages import AIMessage
from pydantic import Field, SecretStr, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError, ModelCallError, UsageError
from coreeval.models.chat import AskedChat, ai_message, usage_of
from coreeval.models.forms import Finish, Form
from coreeval.models.model import Identity, Model, parameters_of
from coreeval.schema import Value
from coreeval.tools.files import write_text
from coreeval.tools.stores.call_rows import CallRecord, Json, canonical


class _Usage(Value):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Recorded(Value):
    """One recorded answer and the request that it answers."""

    messages: tuple[dict[str, str], ...]
    shape: dict[str, object] | str = Field(alias="schema")
    draw: int = 0
    content: str
    finish_reason: Finish = "stop"
    usage: _Usage = _Usage()
    logprobs: dict[str, object] | None = None


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
    chat = ReplayChat(
        settings=config,
        key=SecretStr(""),
        answers=_index(raw.decode(errors="replace"), path),
        cache=False,
    )
    return Model(chat=chat, identity=identity, config=config, tells_logprobs=True)


def write_answers(records: Iterable[CallRecord], path: Path, *, model: str) -> int:
    """Write a model's calls of a call store as a file for `replay:`; return how many.

    Args:
        records: The store's calls, or some of them.
        path: The file.
        model: Whose answers, as the config spells it: `provider:name`.

    Raises:
        ConfigError: two of them answer the same request: the model was asked with other parameters
            or at another endpoint as well. No file is written.
        UsageError: none of them is an answer of the model. No file is written.
    """
    answers, others = dict[str, Json](), set[str]()
    for record in records:
        asked = _Asked.model_validate_json(record.request)
        name = f"{asked.provider}:{asked.model}"
        if name == model:
            _add(answers, asked, record)
        else:
            others.add(name)
    if not answers:
        raise _no_answers(model, sorted(others))
    write_text(path, "".join(f"{canonical(line)}\n" for line in answers.values()))
    return len(answers)


def _no_answers(model: str, others: Sequence[str]) -> UsageError:
    near = difflib.get_close_matches(model, others, n=3) or others[:10]
    there = f"there are answers of {', '.join(near)}" if near else "there are no calls at all"
    return UsageError(f"there is no answer of {model!r} among these calls", hint=there)


def _add(answers: dict[str, Json], asked: _Asked, record: CallRecord) -> None:
    """Add an answer; the same with log-probabilities takes the place of one without."""
    line, key = _line(asked, record), _key(asked.messages, asked.shape.body, asked.draw)
    known = answers.setdefault(key, line)
    answers[key] = {**known, **line}
    if {**line, **known} != answers[key]:
        raise ConfigError(
            f"the same request has two answers, the later one of {record.started_at}",
            where=f"{asked.endpoint}, {canonical(asked.parameters)}",
            hint="take only the calls of one run: coreeval calls export --run RUN",
        )


def _line(asked: _Asked, record: CallRecord) -> Json:
    usage = {
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
    }
    told = {"logprobs": {"content": json.loads(record.logprobs)}} if record.logprobs else {}
    return {
        "messages": asked.messages,
        "schema": asked.shape.body,
        "draw": asked.draw,
        "content": record.response,
        "finish_reason": record.finish_reason,
        "usage": usage,
        **told,
    }


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


class ReplayChat(AskedChat):
    """Answers what was recorded, and nothing else."""

    answers: dict[str, Recorded]

    async def answer(self, messages: list[dict[str, str]], form: Form) -> AIMessage:
        """Return the answer recorded for these messages, schema and draw.

        Raises:
            ModelCallError: there is none.
        """
        keys = (_key(messages, schema, form.draw) for schema in (form.schema, form.name))
        found = next((self.answers[key] for key in keys if key in self.answers), None)
        if found is None:
            raise ModelCallError(
                f"this request is not among the recorded answers (schema {form.name}, draw "
                f"{form.draw}, last message: {messages[-1]['content'][:80]!r})"
            )
        usage = usage_of(prompt=found.usage.prompt_tokens, completion=found.usage.completion_tokens)
        return ai_message(
            found.content,
            finish=found.finish_reason,
            model="recorded",
            usage=usage,
            logprobs=found.logprobs if form.logprobs else None,
        )
