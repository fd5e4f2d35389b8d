"""The shape of an answer: a strict JSON schema built once, and a strict reader.

A pydantic class becomes the schema that structured output asks for. The log-probabilities of an
answer's first tokens are kept with its call.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Generic, NoReturn, TypeVar

from pydantic import BaseModel, Field, ValidationError

from coreeval.models.answer_text import extract_json, repair_json, strip_thoughts

_SCHEMA_KEYS = ("type", "enum", "items", "anyOf", "$ref", "properties", "$defs")
"""What strict structured output takes everywhere; limits are checked when the answer is read."""

Schema = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """A task's constraints on properties, by property name, beyond their types."""

    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Allowed strings, such as the task's labels."""
    records: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The exact keys of a mapping of texts, such as the task's fields."""

    def schema_of(self, name: str) -> dict[str, object] | None:
        """Return the schema of a property if it is narrowed, otherwise None."""
        if name in self.choices:
            return {"type": "string", "enum": list(self.choices[name])}
        if name in self.records:
            return _object_schema({key: {"type": "string"} for key in self.records[name]})
        return None


def strict_schema(model: type[BaseModel], narrowing: Narrowing) -> dict[str, object]:
    """Return a class's JSON schema in the subset that strict structured output accepts.

    Every property is required and no other is allowed; titles, defaults and limits are omitted.

    Raises:
        TypeError: the class has a part that a strict schema cannot express, such as a free mapping.
    """
    return _SchemaBuilder(narrowing).build(model.model_json_schema(), at=model.__name__)


@dataclass(frozen=True)
class _SchemaBuilder:
    narrowing: Narrowing

    def build(self, node: Schema, *, at: str) -> dict[str, object]:
        if "$ref" in node:
            return {"$ref": node["$ref"]}
        if "const" in node:
            return {"type": node["type"], "enum": [node["const"]]}
        _check_sayable(node, at)
        out = {key: self._build_part(key, node[key], at) for key in _SCHEMA_KEYS if key in node}
        return (
            out | _object_schema(_require_mapping(out["properties"]))
            if "properties" in out
            else out
        )

    def _build_part(self, key: str, value: object, at: str) -> object:
        if key in ("properties", "$defs"):
            parts = _require_mapping(value).items()
            return {name: self._build_property(name, part, f"{at}.{name}") for name, part in parts}
        if key == "items":
            return self.build(_require_mapping(value), at=f"{at}[]")
        if key == "anyOf" and isinstance(value, list):
            return [self.build(_require_mapping(part), at=at) for part in value]
        return value

    def _build_property(self, name: str, node: object, at: str) -> dict[str, object]:
        return self.narrowing.schema_of(name) or self.build(_require_mapping(node), at=at)


def _object_schema(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _check_sayable(node: Schema, at: str) -> None:
    free = node.get("type") == "object" and "properties" not in node
    if free or "prefixItems" in node or not {"type", "anyOf", "enum"} & set(node):
        raise TypeError(f"{at}: a strict schema cannot express {dict(node)}")


def _require_mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"not a schema: {value!r}")
    return value


T = TypeVar("T", bound=BaseModel)
MOST_ANSWER_CHARACTERS = 1 << 18
"""The most characters of an answer that are read and stored: 65,536 tokens at 4 characters each,
the most that models return with their thoughts (DeepSeek-R1: at most 64K,
https://api-docs.deepseek.com). A longer answer is invalid; its beginning is stored."""
MOST_VALUES = 20_000
"""The most values in an answer, counted by commas and brackets. The largest answers of a role have
some hundreds; checking more than 100,000 would block the event loop for too long."""
_MOST_TOLD = 1000
"""The most errors of one answer that are listed; further ones are only counted, because listing
100,000 takes 0.3 s."""


class InvalidAnswer(Exception):
    """The text does not answer the request; the message says why, also to the model."""


def refuse_truth_value(value: object) -> object:
    """Return a value that is neither `true` nor `false`, which Python takes for 1 and 0.

    Raises:
        ValueError: it is one of them.
    """
    if isinstance(value, bool):
        raise ValueError("it is a truth value in place of a number")
    return value


class OutputSchema(Generic[T]):
    """The form of an answer: a pydantic class, its schema, and a task's constraints.

    Build it once per role: building the schema costs more than parsing an answer.

    Args:
        model: The class that an answer is parsed into.
        name: The schema's name in requests.
        choices: Allowed strings by property name, at any depth.
        records: Exact keys of mappings of texts by property name, at any depth.
    """

    def __init__(
        self,
        model: type[T],
        *,
        name: str | None = None,
        choices: Mapping[str, Sequence[str]] | None = None,
        records: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.model = model
        self.name = name or model.__name__
        self._narrowing = Narrowing(choices=choices or {}, records=records or {})
        self.schema = strict_schema(model, self._narrowing)

    def parse(self, text: str, *, mend: bool = False) -> T:
        """Parse an answer, skipping the thoughts before it and a code fence around it.

        Args:
            text: The model's answer.
            mend: Whether to repair JSON mistakes and skip the words around the object: for a model
                that was asked in words only.

        Raises:
            InvalidAnswer: it is not exactly one JSON object of this shape, with every key and with
                values of the JSON types that the schema names.
        """
        said = extract_json(text)
        if not said:
            raise InvalidAnswer("empty")
        if sum(map(said.count, ",[{")) > MOST_VALUES:
            raise InvalidAnswer(f"it has more than {MOST_VALUES:,} values")
        try:
            read = json.dumps(_read_repaired(said) if mend else _read_json(said))
            value = self.model.model_validate_json(read, strict=True)
        except ValidationError as error:
            raise InvalidAnswer(_describe_errors(error)) from None
        _check_value(value, self._narrowing, at="")
        return value


class PlainAnswer(BaseModel):
    """A model's answer as free text."""

    text: str
    """The text without thoughts, otherwise unchanged; it may be empty."""


class PlainOutput(OutputSchema[PlainAnswer]):
    """No schema: the endpoint is not asked for one, and any text is the answer."""

    def __init__(self) -> None:
        super().__init__(PlainAnswer, name="plain")
        self.schema = {}

    def parse(self, text: str, *, mend: bool = False) -> PlainAnswer:
        """Return the answer as plain text."""
        bare = strip_thoughts(text)
        return PlainAnswer(text=text if bare == text else bare.strip())


def _read_repaired(text: str) -> object:
    """Read JSON as it is if possible, otherwise after repair."""
    try:
        return _read_json(text)
    except InvalidAnswer:
        return _read_json(repair_json(text))


def _read_json(text: str) -> object:
    try:
        value = json.loads(
            text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant
        )
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidAnswer("it holds half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise InvalidAnswer(f"it is not one JSON object and nothing else: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(f"its JSON cannot be read: {error}") from None
    return value


def _refuse_duplicates(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counted.items() if count > 1)
        raise InvalidAnswer(f"the key {twice!r} stands twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidAnswer(f"{name} is not JSON")


def _describe_errors(error: ValidationError) -> str:
    """Describe the first three errors without repeating the answer."""
    if (count := error.error_count()) > _MOST_TOLD:
        return f"{count:,} things are wrong with it"
    problems = error.errors(include_url=False, include_input=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in problems[:3]]
    more = len(problems) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def _check_value(value: object, narrowing: Narrowing, *, at: str) -> None:
    """Check what the class does not: that no key is missing and that the task allows each value."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            _check_value(item, narrowing, at=f"{at}[{index}]")
    if not isinstance(value, BaseModel):
        return
    for name in type(value).model_fields:
        inner, place = getattr(value, name), f"{at}.{name}".lstrip(".")
        if name not in value.model_fields_set:
            raise InvalidAnswer(f"{place} is missing")
        _check_narrowed(name, inner, narrowing, place)
        _check_value(inner, narrowing, at=place)


def _check_narrowed(name: str, value: object, narrowing: Narrowing, place: str) -> None:
    allowed = narrowing.choices.get(name)
    if allowed is not None and value not in allowed:
        raise InvalidAnswer(f"{place} is {value!r}; allowed: {', '.join(allowed)}")
    keys = narrowing.records.get(name)
    if keys is not None and (not isinstance(value, Mapping) or set(value) != set(keys)):
        raise InvalidAnswer(f"{place} must have exactly the keys {', '.join(keys)}")


FIRST_TOKENS: Final = 32
"""The number of tokens kept: enough for a value with a few words before it."""
MOST_CANDIDATES: Final = 20
"""The number of alternatives kept per token: the most that OpenAI returns."""


class _Candidate(BaseModel):
    token: str
    logprob: float


class _Place(_Candidate):
    top_logprobs: list[_Candidate] = Field(default=[])


class _Logprobs(BaseModel):
    content: list[_Place]


def dump_first_tokens(told: object, text: str) -> str:
    """Return an answer's first tokens as JSON, in the form received; "" if there are none.

    Each is `{token, logprob, top_logprobs}`, in natural logarithms. Thoughts before the answer are
    skipped; values that rounding made positive become 0; values that are not numbers are omitted.

    Args:
        told: The `logprobs` field of a chat completion's choice.
        text: The answer.
    """
    try:
        places = _Logprobs.model_validate(told).content
    except ValidationError:
        return ""
    kept = [
        _dump_place(place)
        for place in _skip_thoughts(places, text)[:FIRST_TOKENS]
        if isfinite(place.logprob)
    ]
    return json.dumps(kept, ensure_ascii=False, allow_nan=False) if kept else ""


def _skip_thoughts(places: Sequence[_Place], text: str) -> Sequence[_Place]:
    """Return the tokens from the start of the answer on."""
    begin = "".join(place.token for place in places).rfind(strip_thoughts(text).strip())
    at = 0
    for number, place in enumerate(places):
        at += len(place.token)
        if at > begin:
            return places[number:]
    return places


def _dump_place(place: _Place) -> dict[str, object]:
    beside = [
        _dump_candidate(one)
        for one in place.top_logprobs[:MOST_CANDIDATES]
        if isfinite(one.logprob)
    ]
    return {**_dump_candidate(place), "top_logprobs": beside}


def _dump_candidate(one: _Candidate) -> dict[str, object]:
    return {"token": _replace_surrogates(one.token), "logprob": min(0.0, one.logprob)}


def _replace_surrogates(token: str) -> str:
    """Return a token that can be encoded: half a surrogate pair becomes a question mark."""
    return token.encode("utf-8", "replace").decode()
