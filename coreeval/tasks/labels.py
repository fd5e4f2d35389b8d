"""Finding a label by whatever a file or a model calls it."""

from collections.abc import Callable

from coreeval.schema import Label, Task

UNDECIDED = "unclear"
"""What a blind judge answers when no label fits; no label may be called so."""


def folded(text: str) -> str:
    """Return a name without regard to case, and with `_`, `-` and runs of spaces made equal."""
    return " ".join(text.replace("_", " ").replace("-", " ").casefold().split())


def find_label(task: Task, value: object) -> Label | None:
    """Return the label that a name, an alias or an integer id stands for; None for anything else.

    A whole number may come as text or as a float, as files without types have it.
    """
    return label_finder(task)(value)


def label_finder(task: Task) -> Callable[[object], Label | None]:
    """Return `find_label` for one task, prepared once for many rows."""
    ids = {label.id: label for label in task.labels}
    names = {folded(name): label for label in task.labels for name in (label.name, *label.aliases)}

    def find(value: object) -> Label | None:
        number = _whole(value)
        if number is None:
            return names.get(folded(str(value)))
        return ids.get(number) or names.get(str(number))

    return find


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None
