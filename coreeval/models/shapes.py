"""The shape of an answer: a strict JSON schema built once, and a strict reader."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from coreeval.models.reading import json_text, mended, without_thoughts
from coreeval.models.schemas import Narrowing, strict_schema

T = TypeVar("T", bound=BaseModel)
MOST_VALUES = 20_000
"""Values that an answer may have, as far as commas and brackets tell. The largest that a role asks
for have some hundreds; more than 100,000 take longer to check than the event loop may stand."""
_MOST_TOLD = 1000
"""Faults of one answer beyond which they are only counted: listing 100,000 takes 0.3 s."""


class InvalidAnswer(Exception):
    """The text is no answer to what was asked; the message says why, for whoever asks again."""


class AnswerShape(Generic[T]):
    """What an answer must look like: a pydantic class, its schema, and what a task adds to it.

    Build it once per role: making the schema costs more than reading an answer with it.

    Args:
        model: The class that an answer becomes.
        name: What the schema is called on the wire.
        choices: Allowed strings of the properties of that name, wherever they stand.
        records: Exact keys of the text mappings of that name, wherever they stand.
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
        """Read an answer; thoughts before it and a code fence round it are passed over.

        Args:
            text: What the model said.
            mend: Whether slips of JSON are put right and words round it passed over: for a model
                that was asked in words only.

        Raises:
            InvalidAnswer: it is not exactly one JSON object of this shape, with every key.
        """
        said = json_text(text)
        if not said:
            raise InvalidAnswer("empty")
        if sum(map(said.count, ",[{")) > MOST_VALUES:
            raise InvalidAnswer(f"it has more than {MOST_VALUES:,} values")
        try:
            value = self.model.model_validate(_mended(said) if mend else _read(said))
        except ValidationError as error:
            raise InvalidAnswer(_complaint(error)) from None
        _check(value, self._narrowing, at="")
        return value


class PlainAnswer(BaseModel):
    """What a model said, in its own words."""

    text: str
    """Without thoughts; all else as it came, down to blanks. It may be empty."""


class PlainShape(AnswerShape[PlainAnswer]):
    """No shape at all: the endpoint is asked for none, and whatever is said is the answer."""

    def __init__(self) -> None:
        super().__init__(PlainAnswer, name="plain")
        self.schema = {}

    def parse(self, text: str, *, mend: bool = False) -> PlainAnswer:
        """Return what was said."""
        bare = without_thoughts(text)
        return PlainAnswer(text=text if bare == text else bare.strip())


def _mended(text: str) -> object:
    """Read JSON as it stands where that is possible, else mended."""
    try:
        return _read(text)
    except InvalidAnswer:
        return _read(mended(text))


def _read(text: str) -> object:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidAnswer("it holds half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise InvalidAnswer(f"it is not one JSON object and nothing else: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(f"its JSON cannot be read: {error}") from None
    return value


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counted.items() if count > 1)
        raise InvalidAnswer(f"the key {twice!r} stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise InvalidAnswer(f"{name} is not JSON")


def _complaint(error: ValidationError) -> str:
    """Say what the first three things wrong are, without repeating the answer."""
    if (count := error.error_count()) > _MOST_TOLD:
        return f"{count:,} things are wrong with it"
    problems = error.errors(include_url=False, include_input=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in problems[:3]]
    more = len(problems) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def _check(value: object, narrowing: Narrowing, *, at: str) -> None:
    """Check what the class leaves open: that no key is missing, and what the task allows."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            _check(item, narrowing, at=f"{at}[{index}]")
    if not isinstance(value, BaseModel):
        return
    for name in type(value).model_fields:
        inner, place = getattr(value, name), f"{at}.{name}".lstrip(".")
        if name not in value.model_fields_set:
            raise InvalidAnswer(f"{place} is missing")
        _check_narrowed(name, inner, narrowing, place)
        _check(inner, narrowing, at=place)


def _check_narrowed(name: str, value: object, narrowing: Narrowing, place: str) -> None:
    allowed = narrowing.choices.get(name)
    if allowed is not None and value not in allowed:
        raise InvalidAnswer(f"{place} is {value!r}; allowed: {', '.join(allowed)}")
    keys = narrowing.records.get(name)
    if keys is not None and (not isinstance(value, Mapping) or set(value) != set(keys)):
        raise InvalidAnswer(f"{place} must have exactly the keys {', '.join(keys)}")
