"""What `coreeval detect numleak` says in words of defences."""

import textwrap
from collections.abc import Iterator
from typing import Final

from coreeval.cli.output import Document, one_line
from coreeval.evaluation.numleak.defences.tradeoff import (
    CATEGORY_WORDS,
    DefenceRow,
    DefenceTable,
    defence_tables,
    describe_agreement,
)

WIDTH: Final = 100
_HEADS: Final = DefenceRow(
    defence="",
    plain="plain",
    any_ending="any end",
    blocked="blocked",
    span="95 % interval",
    near="near",
    r="r",
    useful="useful",
    categories=tuple(CATEGORY_WORDS.values()),
)


def defence_lines(defences: Document | None) -> Iterator[str]:
    """Yield what was found of each defence, as tables and in sentences."""
    if defences is None:
        return
    for group in defence_tables(defences):
        yield from _group_lines(group)
    if line := describe_agreement(defences["agreement"]):
        yield from _wrapped(line)
    left = defences["left_out"]
    if left:
        yield from _wrapped(
            f"{len(left)} answers under defences are left out; the first: {left[0]['reason']}"
        )
    for note in defences["notes"]:
        yield from _wrapped(note)
    yield ""


def _group_lines(group: DefenceTable) -> Iterator[str]:
    yield f"-- defences: {one_line(group.title)} ".ljust(WIDTH, "-")
    yield from (_line(row) for row in (_HEADS, *group.rows))
    for sentence in group.sentences:
        yield from _wrapped(sentence)
    if group.endings:
        names = ", ".join(row.defence for row in group.rows)
        yield from _wrapped(f"numbers by ending ({names}):")
    for ending, counts in group.endings:
        yield f"    {_cut(ending, 20):<20}" + "".join(f"{count:>10}" for count in counts)
    yield ""


def _line(row: DefenceRow) -> str:
    counts = f"{row.plain:>8}{row.any_ending:>8}{row.blocked:>9}  {row.span:<15}{row.near:>5}"
    heads = zip(row.categories, _HEADS.categories, strict=True)
    scores = "".join(f"{each:>{len(head) + 1}}" for each, head in heads)
    return f"  {_cut(row.defence, 14):<14}{counts}{row.r:>6}{row.useful:>7}{scores}".rstrip()


def _cut(text: str, wide: int) -> str:
    line = one_line(text)
    return line if len(line) <= wide else f"{line[: wide - 1]}…"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(one_line(text), WIDTH, subsequent_indent="    ")
