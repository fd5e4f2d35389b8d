"""What can be wrong in a task file: every problem as one line, none raised."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from string import Template
from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from coreeval.config import ROLES
from coreeval.schema import Label
from coreeval.tasks.labels import UNDECIDED, folded
from coreeval.tasks.taskfile import Target, TaskFile, mentions_target

TAKEN = frozenset(
    ("id", "split", "label", "label_text", "labels", "target", "outcome", "attempts",
     "semantic_status", "field")
)  # fmt: skip
"""Names that templates or the columns of a dataset already use for something else."""

_INNER: dict[object, type[BaseModel]] = {"labels": Label, "targets": Target}


class Problem(NamedTuple):
    """Something wrong in a task file."""

    message: str
    hint: str = ""


def read(raw: object) -> TaskFile | list[Problem]:
    """Return the content of a task file, or all that is wrong with it."""
    if not isinstance(raw, dict):
        return [Problem("a task file must be a mapping of keys to values")]
    try:
        file = TaskFile.model_validate(raw)
    except ValidationError as error:
        return [_explained(detail) for detail in error.errors()]
    return [problem for check in CHECKS for problem in check(file)] or file


def _explained(error: ErrorDetails) -> Problem:
    place, kind = error["loc"], error["type"]
    key = ".".join(str(part) for part in place if part != "[key]")
    if place[0] == "lines" and kind == "literal_error":
        return Problem(f"{key} is no role", nearest(str(place[1]), ROLES))
    if kind == "extra_forbidden":
        model = _INNER.get(place[0], TaskFile) if len(place) > 1 else TaskFile
        return Problem(f"unknown key {key!r}", nearest(str(place[-1]), sorted(model.model_fields)))
    if kind == "missing":
        return Problem(f"{key!r} is missing")
    quotes = "put it in quotes" if kind == "string_type" else ""
    return Problem(f"{key}: {error['msg'].removeprefix('Value error, ')}", quotes)


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint that names the most similar word, or all of them."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def _name(file: TaskFile) -> Iterator[Problem]:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", file.name):
        yield Problem(f"name: {file.name!r} cannot be part of an id", "use letters, digits, . _ -")


def _fields(file: TaskFile) -> Iterator[Problem]:
    for name in _repeated(file.fields):
        yield Problem(f"fields: {name!r} is there twice")
    for name in file.fields:
        if not (name.isidentifier() and name.isascii()):
            yield Problem(f"fields: {name!r} cannot be a field's name", "use letters, digits and _")
        if name in TAKEN:
            yield Problem(f"fields: {name!r} is used for something else", f"try 'text_{name}'")
    for name in file.factual_fields:
        if name not in file.fields:
            yield Problem(f"factual_fields: {name!r} is no field", nearest(name, file.fields))
    if file.symmetric and len(file.fields) != 2:
        yield Problem("symmetric: only a task with two fields can be symmetric")


def _labels(file: TaskFile) -> Iterator[Problem]:
    for number in _repeated(label.id for label in file.labels):
        yield Problem(f"labels: the id {number} is there twice", "give each label an id of its own")
    names = [name for label in file.labels for name in _names(label)]
    for name in _repeated(names):
        yield Problem(
            f"labels: the name {name!r} stands for two labels",
            "names and aliases are compared without case, and with _ and - as spaces",
        )
    ids = {str(label.id): label for label in file.labels}
    for label in file.labels:
        for name in _names(label):
            if name in ids and ids[name] != label:
                yield Problem(f"labels: the name {name!r} is the id of {ids[name].name!r}")
            if name == UNDECIDED:
                yield Problem(f"labels: {UNDECIDED!r} is what a judge says when no label fits")
            if not name:
                yield Problem(f"labels: the label with id {label.id} has an empty name or alias")


def _names(label: Label) -> set[str]:
    return {folded(name) for name in (label.name, *label.aliases)}


def _texts(file: TaskFile) -> Iterator[Problem]:
    allowed = (*file.fields, "labels", "target")
    yield from _variables("question", file.question, ("target",), must=())
    for number, template in enumerate(file.templates):
        yield from _variables(f"templates.{number}", template, allowed, must=file.fields)


def _variables(
    key: str, text: str, allowed: Sequence[str], *, must: Sequence[str]
) -> Iterator[Problem]:
    template = Template(text)
    if not template.is_valid():
        yield Problem(f"{key}: a $ stands alone", "write $$ for a dollar sign")
    found = template.get_identifiers()
    for name in found:
        if name not in allowed:
            yield Problem(f"{key}: ${name} is no field of the task", nearest(name, allowed))
    for name in must:
        if name not in found:
            yield Problem(f"{key}: the field {name!r} is never shown", f"put ${name} into it")


def _targets(file: TaskFile) -> Iterator[Problem]:
    spellings = [name for key, target in file.targets.items() for name in target.called(key)]
    for name in _repeated(spellings):
        yield Problem(f"targets: {name!r} stands for two targets")
    if file.targets and not mentions_target(file):
        yield Problem("targets: neither the question nor a template names $target")


def _repeated(values: Iterable[object]) -> list[object]:
    return [value for value, times in Counter(values).items() if times > 1]


CHECKS: tuple[Callable[[TaskFile], Iterator[Problem]], ...] = (
    _name,
    _fields,
    _labels,
    _texts,
    _targets,
)
