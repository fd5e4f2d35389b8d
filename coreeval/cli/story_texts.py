"""Texts of a story on lines of a terminal, and what differs between two of them."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from coreeval.cli.output import ADDED, END, REMOVED

if TYPE_CHECKING:
    from coreeval.schema import Arm
    from coreeval.viewer.history import ArmDiff

WIDTH = 100
_MARKS = str.maketrans("", "", REMOVED + ADDED + END)


def texts(title: str, fields: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a sample's text fields."""
    for name, text in fields.items():
        yield from wrapped(f"{title} {name}: {text}")


def differing(diffs: "Iterable[ArmDiff]", before: "Arm", after: "Arm") -> Iterator[str]:
    """Yield the lines of what differs between two arms, what is gone and what is new marked."""
    marks = {"same": ("", ""), "removed": (REMOVED, END), "added": (ADDED, END)}
    for diff in diffs:
        if (diff.before, diff.after) == (before, after):
            words = "".join(
                piece.text.translate(_MARKS).join(marks[piece.op]) for piece in diff.pieces
            )
            yield from folded(f"{before} -> {after} {diff.field}: {words}")


def wrapped(text: str) -> list[str]:
    """Return indented lines; an address stays whole, so that it can be clicked."""
    return folded(text.translate(_MARKS))


def folded(text: str) -> list[str]:
    """Return indented lines as they are: marks stay in them."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
