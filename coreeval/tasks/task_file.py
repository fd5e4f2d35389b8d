"""Loads a built-in task or a task file, and checks everything in it.

A task file has the keys of a `Task`, and stance targets by short name. For kinds other than labels,
it may leave out values that most tasks of its kind share (`kinds.yaml`). Checks return one line for
each problem and do not raise it.
"""

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from coreeval.config import ROLES
from coreeval.config.user_files import (
    UNREADABLE_HINT,
    YAML_HINT,
    YamlError,
    describe_unreadable,
    find_line,
    parse_yaml,
    read_text,
)
from coreeval.config.value_errors import describe_value_error
from coreeval.errors import TaskError, suggest_name
from coreeval.languages import ENGLISH
from coreeval.schema import Label, Task, Value
from coreeval.tasks.kinds import KINDS, kind_of
from coreeval.tasks.kinds.choice import LETTERS
from coreeval.tasks.label_finder import fold_name, parse_label_number

UNDECIDED = "unclear"
"""The answer of a blind judge if no label fits; labels must not have this name."""


class TaskTarget(Value):
    """A target of a stance."""

    name: str
    """The full name of the target, as used in prompts."""
    spellings: tuple[str, ...] = ()
    """Other short names for it, e.g. those used for folders."""
    terms: tuple[str, ...] = Field(min_length=1)
    """Words that refer to it in a text."""

    def all_names(self, key: str) -> set[str]:
        """Return all folded names of the target under `key` in the file."""
        return {fold_name(name) for name in (key, self.name, *self.spellings)}


class TaskFile(Task):
    """The content of a task file."""

    targets: dict[str, TaskTarget] = {}
    """Targets by their short names in a config."""

    def find_target(self, name: str) -> TaskTarget | None:
        """Return the target with this name."""
        named = (
            target
            for key, target in self.targets.items()
            if fold_name(name) in target.all_names(key)
        )
        return next(named, None)

    def to_task(self, **changes: object) -> Task:
        """Return only the task, with some values replaced."""
        return Task.model_validate(self.model_dump(exclude={"targets"}) | changes)


def mentions_target(task: Task) -> bool:
    """Return whether the question or a template has the variable `$target`."""
    texts = (task.question, *task.templates)
    return any("target" in Template(text).get_identifiers() for text in texts)


RESERVED_NAMES = frozenset(
    ("id", "split", "label", "label_text", "labels", "target", "outcome", "attempts",
     "semantic_status", "field", "number", "item", "choices", "answer", "answer_text", "answers",
     "answer_type", "unit", "tolerance", "program", "summary")
)  # fmt: skip
"""Names that templates or dataset columns already use for something else."""

_NESTED_MODELS: dict[object, type[BaseModel]] = {"labels": Label, "targets": TaskTarget}


class TaskProblem(NamedTuple):
    """An error in a task file."""

    message: str
    hint: str = ""
    key: str = ""
    """The path of its key, with dots; empty if the message starts with it and a colon."""

    def find_line(self, path: Path) -> int | None:
        """Return its line in the file; None if the file does not have the key."""
        return find_line(path, (self.key or self.message.partition(":")[0]).split("."))


def parse_task_file(raw: object) -> TaskFile | list[TaskProblem]:
    """Return the content of a task file, or everything that is wrong with it."""
    if not isinstance(raw, dict):
        return [TaskProblem("a task file must be a mapping of keys to values")]
    if problem := _find_kind_defect(raw):
        return [problem]
    kind = raw.get("kind", "labels")
    try:
        file = TaskFile.model_validate(_kind_defaults().get(kind, {}) | raw)
    except ValidationError as error:
        return [_explain_error(detail) for detail in _order_errors(error.errors())]
    if kind != "labels":
        file = file.model_copy(update={"labels": KINDS[file.kind].labels(file)})
    return [problem for check in TASK_CHECKS for problem in check(file)] or file


_OF_CODE = ("hidden_fields", "carried_fields")
"""Keys of a task that its kind sets."""


def _find_kind_defect(raw: dict[str, object]) -> TaskProblem | None:
    """Return the problems with the kind, and with keys that only some kinds have."""
    kind = raw.get("kind", "labels")
    if not isinstance(kind, str) or kind not in KINDS:
        near = _suggest(str(kind), list(KINDS))
        return TaskProblem(f"there is no kind {kind!r}", near, "kind")
    if kind != "labels" and "labels" in raw:
        return TaskProblem(f"a task of the kind {kind} has no labels", "remove them", "labels")
    if kind != "choice" and "options" in raw:
        return TaskProblem(f"a task of the kind {kind} has no options", "remove the key", "options")
    own = next((key for key in _OF_CODE if key in raw), None)
    return TaskProblem(f"unknown key {own!r}", "remove it: the kind sets it", own) if own else None


@cache
def _kind_defaults() -> dict[str, dict[str, object]]:
    """Return the values that a task file may leave out, by kind."""
    text = (resources.files("coreeval.tasks") / "kinds.yaml").read_text(encoding="utf-8")
    found: dict[str, dict[str, object]] = parse_yaml(text)
    return found


def _order_errors(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return the errors with unknown keys first, and without missing keys that these misspell."""
    unknown = [one["loc"] for one in errors if one["type"] == "extra_forbidden"]
    missing = [one["loc"] for one in errors if one["type"] == "missing"]
    misspelt = set[tuple[int | str, ...]]()
    for *above, key in unknown:
        beside = [str(place[-1]) for place in missing if [*place[:-1]] == above]
        near = difflib.get_close_matches(str(key), beside, n=1, cutoff=0.5)
        misspelt.update((*above, name) for name in near)
    told = [one for one in errors if one["loc"] not in misspelt]
    return sorted(told, key=lambda one: one["loc"] not in unknown)


def _explain_error(error: ErrorDetails) -> TaskProblem:
    place, kind = error["loc"], error["type"]
    key = ".".join(str(part) for part in place if part != "[key]")
    if place[0] == "lines" and kind == "literal_error":
        return TaskProblem(f"{key} is not a role", _suggest(str(place[1]), ROLES), key)
    if kind == "extra_forbidden":
        model = _NESTED_MODELS.get(place[0], TaskFile) if len(place) > 1 else TaskFile
        known = sorted(model.model_fields)
        is_rest = place[0] == "labels" and error["input"] is None
        hint = _COMMA_HINT if is_rest else _suggest(str(place[-1]), known)
        return TaskProblem(f"unknown key {key!r}", hint, key)
    if kind == "missing":
        return TaskProblem(f"{key!r} is missing", key=key)
    return TaskProblem(f"{key}: {describe_value_error(error)}")


_suggest = partial(suggest_name, likeness=0.5)
_COMMA_HINT = 'quote a meaning that has a comma, as in meaning: "glad, or proud"'
"""The hint for a key without a value: YAML ends an unquoted text in {…} at a comma."""


def _check_name(file: TaskFile) -> Iterator[TaskProblem]:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", file.name):
        yield TaskProblem(
            f"name: {file.name!r} cannot be part of an id", "use letters, digits, . _ -"
        )


def _check_fields(file: TaskFile) -> Iterator[TaskProblem]:
    reserved = RESERVED_NAMES.union(LETTERS if file.kind == "choice" else ())
    for name in _find_repeats(file.fields):
        yield TaskProblem(f"fields: {name!r} occurs twice")
    for name in file.fields:
        if not (name.isidentifier() and name.isascii()):
            yield TaskProblem(
                f"fields: {name!r} cannot be a field's name", "use letters, digits and _"
            )
        if name in reserved:
            yield TaskProblem(f"fields: {name!r} is a reserved name", f"try 'text_{name}'")
    for name in file.factual_fields:
        if name not in file.fields:
            yield TaskProblem(
                f"factual_fields: {name!r} is not a field", _suggest(name, file.fields)
            )
    if file.symmetric and len(file.fields) != 2:
        yield TaskProblem("symmetric: only a task with two fields can be symmetric")


def _check_sizes(file: TaskFile) -> Iterator[TaskProblem]:
    for name in kind_of(file).needed_fields:
        if name not in file.fields:
            yield TaskProblem(
                f"fields: a task of the kind {file.kind} needs a field {name!r}",
                f"fields: [context, {name}], or [{name}] alone",
            )
    if file.kind == "labels" and len(file.labels) < _FEWEST_LABELS:
        yield TaskProblem(f"labels: a task needs {_FEWEST_LABELS} labels, but has one")
    if file.kind == "choice" and file.options < _FEWEST_LABELS:
        yield TaskProblem("options: a choice needs at least 2 options", "options: 4")


def _check_labels(file: TaskFile) -> Iterator[TaskProblem]:
    for number in _find_repeats(label.id for label in file.labels):
        yield TaskProblem(
            f"labels: the id {number} occurs twice", "use a different id for each label"
        )
    names = [name for label in file.labels for name in _label_names(label)]
    for name in _find_repeats(names):
        yield TaskProblem(
            f"labels: the name {name!r} is used for two labels",
            "names and aliases are compared without case, and with _ and - as spaces",
        )
    yield from _find_misleading_numbers(file.labels)
    for label in file.labels:
        for name in _label_names(label):
            if name == UNDECIDED:
                yield TaskProblem(f"labels: {UNDECIDED!r} is what a judge says when no label fits")
            if not name:
                yield TaskProblem(
                    f"labels: the label with id {label.id} has an empty name or alias"
                )


def _find_misleading_numbers(labels: Sequence[Label]) -> Iterator[TaskProblem]:
    """Yield each name that is the id of another label, however its number is written."""
    ids = {str(label.id): label for label in labels}
    for label in labels:
        for name in dict.fromkeys((label.name, *label.aliases)):
            meant = (fold_name(name), str(parse_label_number(name)))
            if other := next((ids[each] for each in meant if ids.get(each, label) != label), None):
                yield TaskProblem(
                    f"labels: the name {name!r} is the id of {other.name!r}",
                    "a label whose name is a number needs this number as its id",
                )


def _label_names(label: Label) -> set[str]:
    return {fold_name(name) for name in (label.name, *label.aliases)}


def _check_texts(file: TaskFile) -> Iterator[TaskProblem]:
    allowed = (*file.fields, "labels", "target", *kind_of(file).template_variables)
    misspelt = _find_misspelt_fields(file, allowed)
    for field, name in misspelt.items():
        yield TaskProblem(
            f"fields: no template shows {field!r}, but all show ${name}",
            "write the same name in both places",
        )
    allowed = (*allowed, *misspelt.values())
    shown = [field for field in file.fields if field not in misspelt]
    yield from _check_variables("question", file.question, ("target",), must=())
    for number, template in enumerate(file.templates):
        must = () if _shows_item(template) else shown
        yield from _check_variables(f"templates.{number}", template, allowed, must=must)


def _find_misspelt_fields(file: TaskFile, allowed: Sequence[str]) -> dict[str, str]:
    """Return each field that no template shows, with the similar name that all of them show."""
    shown = [set(Template(text).get_identifiers()) for text in file.templates]
    common = sorted(set.intersection(*shown) - {*allowed}) if shown else []
    unseen = [field for field in file.fields if not any(field in names for names in shown)]
    near = {field: difflib.get_close_matches(field, common, n=1, cutoff=0.5) for field in unseen}
    return {field: names[0] for field, names in near.items() if names}


def _shows_item(template: str) -> bool:
    """Return whether a template shows all fields at once."""
    return "item" in Template(template).get_identifiers()


def _check_variables(
    key: str, text: str, allowed: Sequence[str], *, must: Sequence[str]
) -> Iterator[TaskProblem]:
    template = Template(text)
    if not template.is_valid():
        yield TaskProblem(f"{key}: a $ without a name", "write $$ for a dollar sign")
    found = template.get_identifiers()
    for name in found:
        if name not in allowed:
            yield TaskProblem(f"{key}: ${name} is not a field of the task", _suggest(name, allowed))
    for name in must:
        if name not in found:
            yield TaskProblem(f"{key}: the {name!r} field is never shown", f"add ${name} to it")


def _check_targets(file: TaskFile) -> Iterator[TaskProblem]:
    spellings = [name for key, target in file.targets.items() for name in target.all_names(key)]
    for name in _find_repeats(spellings):
        yield TaskProblem(f"targets: {name!r} is used for two targets")
    if file.targets and not mentions_target(file):
        yield TaskProblem("targets: neither the question nor a template names $target")


def _check_words(file: TaskFile) -> Iterator[TaskProblem]:
    words = {
        "target": () if file.target is None else (file.target,),
        "target_terms": file.target_terms,
        "markers": file.markers,
    }
    for key, target in file.targets.items():
        words[f"targets.{key}"] = (key, target.name, *target.spellings, *target.terms)
    for key, listed in words.items():
        if not all(word.strip() for word in listed):
            yield TaskProblem(f"{key}: one of its words is blank", "remove it")


_FEWEST_LABELS = 2


def _find_repeats(values: Iterable[object]) -> list[object]:
    return [value for value, times in Counter(values).items() if times > 1]


TASK_CHECKS: tuple[Callable[[TaskFile], Iterator[TaskProblem]], ...] = (
    _check_name,
    _check_fields,
    _check_sizes,
    _check_labels,
    _check_texts,
    _check_targets,
    _check_words,
)


PAPER_TASKS = ("emotion", "irony", "stance", "mrpc", "rte")
"""Names of the tasks of the CoreEval paper."""
GENERAL_TASKS = (
    "multiple_choice",
    "question_answering",
    "reading_comprehension",
    "summarization",
)
"""Names of the tasks for any benchmark of their kind."""
BUILT_IN = (*PAPER_TASKS, *GENERAL_TASKS)
"""Names of the tasks included in the package."""
ALL_TARGETS = "all"
"""Value of `dataset.target` if each sample has its own target."""


def load_task(name_or_path: str, target: str | None = None, language: str | None = None) -> Task:
    """Return a built-in task, or the task in a YAML file.

    `target` is for tasks whose question names one (stance). A short name in the file stands for its
    full name and terms; any other name is used unchanged. `all` leaves the task without a target;
    load it again for each target of the samples. `language` replaces the language in the file.

    Raises:
        TaskError: the task does not exist, its file has a mistake, or a target is missing or
            superfluous.
    """
    where = _find_file(name_or_path)
    found = parse_task_file(_read_yaml(where))
    if isinstance(found, TaskFile):
        task = _apply_target(_add_general_lines(found), target, where)
        return task.model_copy(update={"language": language}) if language else task
    first, others = found[0], len(found) - 1
    line = first.find_line(where)
    more = f"{others} more: `coreeval validate` lists them" if others else ""
    hint = "; ".join(part for part in (first.hint, more) if part)
    at = f"{where}, line {line}" if line else str(where)
    raise TaskError(first.message, where=at, hint=hint)


def hash_task(task: Task) -> str:
    """Return the sha256 of a task: its labels, its fields and its instructions to roles.

    The language counts unless it is English, so that older tasks keep their hash.
    """
    known = {"language"} if task.language == ENGLISH else set[str]()
    return hashlib.sha256(task.model_dump_json(exclude=known).encode()).hexdigest()


def explain_task(path: str) -> list[str]:
    """Return every problem and note on a task file, one line each; never raise a TaskError.

    Lines that start with `note: ` are not mistakes.
    """
    try:
        where = _find_file(path)
        found = parse_task_file(_read_yaml(where))
    except TaskError as error:
        return [_format_problem(TaskProblem(error.message, error.hint))]
    if isinstance(found, TaskFile):
        return _collect_notes(found)
    lines = [problem.find_line(where) for problem in found]
    return [
        f"{where.name}{f', line {line}' if line else ''}: {_format_problem(problem)}"
        for problem, line in zip(found, lines, strict=True)
    ]


def _format_problem(problem: TaskProblem) -> str:
    text = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return " ".join(text.split())


def _collect_notes(file: TaskFile) -> list[str]:
    general = ", ".join(role for role in ROLES if role not in file.lines)
    notes = list[str]()
    if general:
        notes.append(
            f"note: lines is not set for {general}, which get general instructions "
            "(optional: coreeval docs tasks)"
        )
    if bare := [label for label in file.labels if _repeats_name(label)]:
        notes.append(
            f"note: labels: {len(bare)} of {len(file.labels)} meanings only repeat the name, "
            f"such as {bare[0].meaning!r}: describe when a text has each label"
        )
    shown = kind_of(file).gold_variable
    notes += [
        f"note: templates.{number} does not show ${shown}: it should contain the {shown} in full"
        for number, template in enumerate(file.templates)
        if shown and f"${shown}" not in template and f"${{{shown}}}" not in template
    ]
    if mentions_target(file) and not file.target:
        notes.append("note: texts name $target: a config for this task needs dataset.target")
    return notes


def _repeats_name(label: Label) -> bool:
    """Return whether a meaning is like the one that `coreeval init` writes."""
    name = re.escape(label.name.replace("_", " "))
    return re.fullmatch(f"the .+ is {name}", label.meaning) is not None


def _find_file(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if name_or_path in BUILT_IN:
        return Path(str(resources.files("coreeval.tasks"))) / f"{name_or_path}.yaml"
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return path
    raise TaskError(
        f"there is no built-in task {name_or_path!r}",
        hint=f"{_suggest(name_or_path, BUILT_IN)} (built in: {', '.join(BUILT_IN)}; "
        "the path of your own task file must end in .yaml)",
    )


def _read_yaml(path: Path) -> object:
    try:
        return parse_yaml(read_text(path))
    except FileNotFoundError:
        hint = f"built in: {', '.join(BUILT_IN)}"
        raise TaskError("task file not found", where=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        told = f"cannot read the task file: {describe_unreadable(error)}"
        raise TaskError(told, where=str(path), hint=UNREADABLE_HINT) from None
    except YamlError as error:
        raise TaskError(f"this is not YAML: {error}", where=str(path), hint=YAML_HINT) from None


def _add_general_lines(file: TaskFile) -> TaskFile:
    """Return a task with the general line added for each role that has none."""
    shape = "one_field" if len(file.fields) == 1 else "several_fields"
    text = (resources.files("coreeval.tasks") / "custom_lines.yaml").read_text(encoding="utf-8")
    lines = parse_yaml(text)[shape if file.kind == "labels" else file.kind]
    return file.model_copy(update={"lines": lines | file.lines})


def _apply_target(file: TaskFile, target: str | None, where: Path) -> Task:
    if not mentions_target(file):
        if target is None:
            return file.to_task()
        raise TaskError(
            f"the task {file.name} takes no target, but dataset.target is {target!r}",
            where=str(where),
            hint="remove dataset.target",
        )
    if not (file.target if target is None else target.strip()):
        names = ", ".join((*file.targets, "or 'all' for a folder with several targets"))
        raise TaskError(
            f"the task {file.name} needs a target",
            where=str(where),
            hint=f"dataset.target: {names}",
        )
    if target == ALL_TARGETS:
        return file.to_task(target=None, target_terms=())
    wanted = target or str(file.target)
    known = file.find_target(wanted)
    if known:
        return file.to_task(target=known.name, target_terms=known.terms)
    own = file.target_terms if wanted == file.target else ()
    return file.to_task(target=wanted, target_terms=own or (wanted,))
