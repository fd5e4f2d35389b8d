"""Loads a task: a built-in one by name, or a user's own by path."""

import hashlib
from importlib import resources
from pathlib import Path

import yaml

from coreeval.config import ROLES
from coreeval.config.user_files import YAML_HINT, YamlError, parse_yaml, read_text
from coreeval.errors import TaskError
from coreeval.schema import Task
from coreeval.tasks.task_file import (
    TaskFile,
    TaskProblem,
    mentions_target,
    parse_task_file,
    suggest_name,
)

BUILT_IN = ("emotion", "irony", "stance", "mrpc", "rte")
"""Names of the tasks that come with the package: those of the CoreEval paper."""
ALL_TARGETS = "all"
"""What `dataset.target` says when each sample has a target of its own."""


def load_task(name_or_path: str, target: str | None = None) -> Task:
    """Return a built-in task, or the one in a YAML file.

    `target` is for tasks whose question names one (stance): a name that the file lists, which then
    is written out and brings its terms, or any other, used as it stands. `all` leaves the task
    without a target: load it once more for each target that the samples have.

    Raises:
        TaskError: no such task, a mistake in its file, or a target too many or too few.
    """
    where = _find_file(name_or_path)
    found = parse_task_file(_read_yaml(where))
    if isinstance(found, TaskFile):
        return _apply_target(_add_general_lines(found), target, where)
    first, others = found[0], len(found) - 1
    more = f"{others} more: coreeval validate lists them" if others else ""
    hint = "; ".join(part for part in (first.hint, more) if part)
    raise TaskError(first.message, where=str(where), hint=hint)


def hash_task(task: Task) -> str:
    """Return the sha256 of a task: its labels, its fields and what roles are told of it."""
    return hashlib.sha256(task.model_dump_json().encode()).hexdigest()


def explain_task(path: str) -> list[str]:
    """Return everything worth saying about a task file, one line each; never raises a TaskError.

    Lines that start with `note: ` are no mistakes.
    """
    try:
        found = parse_task_file(_read_yaml(_find_file(path)))
    except TaskError as error:
        return [_format_problem(TaskProblem(error.message, error.hint))]
    return (
        _collect_notes(found)
        if isinstance(found, TaskFile)
        else [_format_problem(problem) for problem in found]
    )


def _format_problem(problem: TaskProblem) -> str:
    text = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return " ".join(text.split())


def _collect_notes(file: TaskFile) -> list[str]:
    notes = [
        f"note: lines.{role} is absent: the {role} gets the general line for tasks of one's own"
        for role in ROLES
        if role not in file.lines
    ]
    notes += [
        f"note: templates.{number} does not show $labels: it should spell the labels out"
        for number, template in enumerate(file.templates)
        if "$labels" not in template and "${labels}" not in template
    ]
    if mentions_target(file) and not file.target:
        notes.append("note: texts name $target: a config for this task needs dataset.target")
    return notes


def _find_file(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if name_or_path in BUILT_IN:
        return Path(str(resources.files("coreeval.tasks"))) / f"{name_or_path}.yaml"
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return path
    raise TaskError(
        f"there is no built-in task {name_or_path!r}",
        hint=f"{suggest_name(name_or_path, BUILT_IN)} (built in: {', '.join(BUILT_IN)}; "
        "a task file of your own ends in .yaml)",
    )


def _read_yaml(path: Path) -> object:
    try:
        return parse_yaml(read_text(path))
    except FileNotFoundError:
        hint = f"built in: {', '.join(BUILT_IN)}"
        raise TaskError("there is no such task file", where=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"the task file cannot be read: {error}", where=str(path)) from None
    except YamlError as error:
        raise TaskError(f"this is not YAML: {error}", where=str(path), hint=YAML_HINT) from None


def _add_general_lines(file: TaskFile) -> TaskFile:
    """Return a task with the general line for each role that it has none for."""
    kind = "one_field" if len(file.fields) == 1 else "several_fields"
    text = (resources.files("coreeval.tasks") / "custom_lines.yaml").read_text(encoding="utf-8")
    return file.model_copy(update={"lines": yaml.safe_load(text)[kind] | file.lines})


def _apply_target(file: TaskFile, target: str | None, where: Path) -> Task:
    if not mentions_target(file):
        if target is None:
            return file.to_task()
        raise TaskError(
            f"the task {file.name} takes no target, but dataset.target is {target!r}",
            where=str(where),
            hint="remove dataset.target",
        )
    if target is None and file.target is None:
        names = ", ".join((*file.targets, "or 'all' for a folder that has several"))
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
