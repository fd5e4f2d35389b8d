"""Finds a label by any name that a file or a model uses for it."""

from collections.abc import Callable

from coreeval.schema import Label, Task


def fold_name(text: str) -> str:
    """Return a case-folded name, with `_`, `-` and runs of spaces unified."""
    return " ".join(text.replace("_", " ").replace("-", " ").casefold().split())


def find_label(task: Task, value: object) -> Label | None:
    """Return the label for a name, an alias or an integer id; None for anything else.

    A name as written in the task comes before ids. A whole number may be a text or a float, because
    some files have no types; it is also the only label whose name is this number, as `1.0` is 1.
    """
    return make_label_finder(task)(value)


def make_label_finder(task: Task) -> Callable[[object], Label | None]:
    """Return `find_label` bound to one task and prepared for many rows."""
    ids = {label.id: label for label in task.labels}
    every = [(name, label) for label in task.labels for name in (label.name, *label.aliases)]
    exact, names = dict(every), {fold_name(name): label for name, label in every}
    numbers = dict[int, Label | None]()
    for name, label in every:
        if (number := parse_label_number(name)) is not None:
            numbers[number] = label if numbers.get(number, label) == label else None

    def find(value: object) -> Label | None:
        if label := exact.get(str(value).strip()):
            return label
        number = parse_label_number(value)
        if number is None:
            return names.get(fold_name(str(value)))
        return ids.get(number) or numbers.get(number)

    return find


def parse_label_number(value: object) -> int | None:
    """Return the id that a value means, such as 1 for "1.0"; None if it is a name."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and "_" in value:  # for Python, 1_0 is 10
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None
