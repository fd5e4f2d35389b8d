"""A diff in the words of a terminal: `[-what is gone-]` and `{+what is new+}`, as git has it."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import brief, one_line
from coreeval.cli.story_texts import folded

if TYPE_CHECKING:
    from coreeval.releases.diff import Change, Diff, FactDiff, FieldDiff, SampleDiff
    from coreeval.releases.release_manifest import Changes
    from coreeval.releases.stale import Stale

VALUE = 60
"""Characters of a setting that are shown."""
_STANDS = {
    "added": "new in the updated arm",
    "removed": "gone from the updated arm",
    "changed": "other text",
    "same": "differs elsewhere",
}
_MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
_WHY = {"age": "too old", "cutoff": "from before a new target's cutoff", "undated": "undated"}


def diff_lines(diff: "Diff", most: int, page: Path | None) -> Iterator[str]:
    """Yield the sums, what differs of the making, and the first samples.

    Args:
        diff: The diff.
        most: How many samples are shown.
        page: Where it was written as a page.
    """
    yield f"{diff.before} -> {diff.after}"
    yield f"{'':<28}{'added':>9}{'removed':>9}{'changed':>9}{'kept':>9}"
    yield _row("samples of the updated arm", diff.samples)
    yield _row("replaced facts", diff.facts)
    for move in diff.outcomes:
        yield f"  {move.before} -> {move.after}: {move.samples}"
    yield from map(_setting, diff.settings)
    yield from _stale(str(diff.after), diff.stale)
    for one in islice(diff.changed, most):
        yield from _sample(one)
    if (left := len(diff.changed) - most) > 0:
        yield f"and {left} more samples differ: --show N, --sample SAMPLE, --page FILE or --json"
    if page:
        yield f"page: {brief(page)}"


def _row(title: str, counts: "Changes") -> str:
    numbers = (counts.added, counts.removed, counts.changed, counts.kept)
    return f"{title:<28}" + "".join(f"{number:>9}" for number in numbers)


def _setting(change: "Change") -> str:
    return f"  {change.name}: {_told(change.before)} -> {_told(change.after)}"


def _told(value: object) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = one_line(text)
    return (line if len(line) <= VALUE else f"{line[:VALUE]} …") or '""'


def _stale(title: str, found: Sequence["Stale"]) -> Iterator[str]:
    for why, number in Counter(one.why for one in found).most_common():
        yield f"stale in {title}, {_WHY[why]}: {number}"


def _sample(sample: "SampleDiff") -> Iterator[str]:
    yield f"{one_line(sample.id)}   {_STANDS[sample.updated]}"
    for change in sample.changes:
        if not change.name.endswith("_sha256"):
            yield f"  {_setting(change)}"
        else:
            yield "    the original has another text"
    for field in sample.fields:
        yield from folded(f"{field.arm} {field.field}: {_words(field)}")
    for fact in sample.facts:
        yield from folded(_fact(fact))


def _words(field: "FieldDiff") -> str:
    return "".join(_MARKS[piece.op].format(piece.text) for piece in field.pieces)


def _fact(diff: "FactDiff") -> str:
    fact = diff.fact
    triple = f"{fact.after_head} | {fact.after_relation} | {fact.after_tail}"
    mark = "+" if diff.op == "added" else "-"
    return f"{mark} {triple} ({fact.published_at[:10]} {fact.domain})"
