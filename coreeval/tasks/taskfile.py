"""A task file as it is written: a `Task`, and the targets that it knows by a short name."""

from string import Template

from pydantic import Field

from coreeval.schema import Task, Value
from coreeval.tasks.labels import folded


class Target(Value):
    """Something that a stance can be about."""

    name: str
    """The target written out, as prompts name it."""
    spellings: tuple[str, ...] = ()
    """Other short names for it, e.g. those that folders have."""
    terms: tuple[str, ...] = Field(min_length=1)
    """Words that name it in a text."""

    def called(self, key: str) -> set[str]:
        """Return all names, folded, of the target that the file keeps under `key`."""
        return {folded(name) for name in (key, self.name, *self.spellings)}


class TaskFile(Task):
    """The content of a task file."""

    targets: dict[str, Target] = {}
    """By the short name that a config uses."""

    def find_target(self, name: str) -> Target | None:
        """Return the target that goes by a name."""
        named = (
            target for key, target in self.targets.items() if folded(name) in target.called(key)
        )
        return next(named, None)

    def task(self, **changes: object) -> Task:
        """Return the task alone, with some values replaced."""
        return Task.model_validate(self.model_dump(exclude={"targets"}) | changes)


def mentions_target(task: Task) -> bool:
    """Tell whether the question or a template has the variable `$target`."""
    texts = (task.question, *task.templates)
    return any("target" in Template(text).get_identifiers() for text in texts)
