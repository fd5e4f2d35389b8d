"""A pydantic class as the strict JSON schema that structured output asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

_KEPT = ("type", "enum", "items", "anyOf", "$ref", "properties", "$defs")
"""What strict structured output takes everywhere; limits are checked when the answer is read."""

Schema = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """What a task knows about properties that their types leave open, by property name."""

    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Strings that may stand there, such as the task's labels."""
    records: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Keys of a mapping of texts, such as the task's fields: exactly these."""

    def schema_of(self, name: str) -> dict[str, object] | None:
        """Return the schema of a property that is narrowed."""
        if name in self.choices:
            return {"type": "string", "enum": list(self.choices[name])}
        if name in self.records:
            return _object({key: {"type": "string"} for key in self.records[name]})
        return None


def strict_schema(model: type[BaseModel], narrowing: Narrowing) -> dict[str, object]:
    """Return a class's JSON schema in the subset that strict structured output accepts.

    Every property is required and no other is allowed; titles, defaults and limits are left out.

    Raises:
        TypeError: the class has a part that no strict schema can say, such as a free mapping.
    """
    return _Builder(narrowing).build(model.model_json_schema(), at=model.__name__)


@dataclass(frozen=True)
class _Builder:
    narrowing: Narrowing

    def build(self, node: Schema, *, at: str) -> dict[str, object]:
        if "$ref" in node:
            return {"$ref": node["$ref"]}
        if "const" in node:
            return {"type": node["type"], "enum": [node["const"]]}
        _check_sayable(node, at)
        out = {key: self._part(key, node[key], at) for key in _KEPT if key in node}
        return out | _object(_mapping(out["properties"])) if "properties" in out else out

    def _part(self, key: str, value: object, at: str) -> object:
        if key in ("properties", "$defs"):
            parts = _mapping(value).items()
            return {name: self._named(name, part, f"{at}.{name}") for name, part in parts}
        if key == "items":
            return self.build(_mapping(value), at=f"{at}[]")
        if key == "anyOf" and isinstance(value, list):
            return [self.build(_mapping(part), at=at) for part in value]
        return value

    def _named(self, name: str, node: object, at: str) -> dict[str, object]:
        return self.narrowing.schema_of(name) or self.build(_mapping(node), at=at)


def _object(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _check_sayable(node: Schema, at: str) -> None:
    free = node.get("type") == "object" and "properties" not in node
    if free or "prefixItems" in node or not {"type", "anyOf", "enum"} & set(node):
        raise TypeError(f"{at}: no strict schema can say {dict(node)}")


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"not a schema: {value!r}")
    return value
