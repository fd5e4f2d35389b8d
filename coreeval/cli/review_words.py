"""The list of `coreeval review` in words: a few samples at a time, all that decides about them."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import brief, command, one_line

if TYPE_CHECKING:
    from coreeval.releases.review import Review
    from coreeval.releases.review.deciding import Recorded
    from coreeval.releases.review.decisions import Decision
    from coreeval.releases.review.listed import Listed, NewFact

PAGE = 5
"""Samples that are shown at a time: about what fits on a screen."""
WIDTH = 100
TITLE = 10
"""Columns of what stands before a text."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is to be said."""

    place: Path
    """As the user named the run."""
    filters: Sequence[str]
    """The options that chose the samples."""
    review: "Review"
    samples: Sequence["Listed"]
    page: int
    recorded: "Recorded | None"
    files: Sequence[Path]

    @property
    def pages(self) -> int:
        """How many pages there are; one if there is nothing to show."""
        return max(1, -(-len(self.samples) // PAGE))


def review_lines(shown: Shown) -> Iterator[str]:
    """Yield what was recorded, one page of the list, and what to do next."""
    yield from _recorded(shown)
    yield from (f"written: {brief(file)}" for file in shown.files)
    if not shown.files and not shown.recorded:
        yield from _page(shown)
    yield from _stand(shown)
    yield from _next(shown)


def _recorded(shown: Shown) -> Iterator[str]:
    if not shown.recorded:
        return
    for decision in shown.recorded.new[:PAGE]:
        yield one_line(f"{decision.verdict}: {decision.sample}")
    if more := len(shown.recorded.new[PAGE:]):
        yield f"and {more} more"
    if shown.recorded.unchanged:
        yield f"{shown.recorded.unchanged} were decided so already"


def _page(shown: Shown) -> Iterator[str]:
    first = (shown.page - 1) * PAGE
    for number, each in enumerate(shown.samples[first : first + PAGE], start=first + 1):
        yield f"-- {number} of {len(shown.samples)} " + "-" * 60
        yield from _sample(each)
    if shown.samples:
        yield "-" * 73


def _sample(each: "Listed") -> Iterator[str]:
    yield f"{one_line(each.sample)}   label: {each.label}{_decision(each.decision)}"
    for why in each.why:
        yield from _entry("why", f"{why.reason.replace('_', ' ')}: {why.detail}")
    for name, text in each.original.items():
        yield from _entry("original", _of_field(name, text, each))
    for name, text in each.new.items():
        yield from _entry("new", _of_field(name, text, each))
    for fact in each.facts:
        yield from _fact(fact)
    if each.beside:
        yield from _entry("beside", f"its evidence also names {', '.join(each.beside)}")


def _of_field(name: str, text: str, each: "Listed") -> str:
    return text if len(each.original) == 1 else f"{name}: {text}"


def _decision(decision: "Decision | None") -> str:
    if decision is None:
        return ""
    note = f": {decision.note}" if decision.note else ""
    return "   " + one_line(f"{decision.verdict} by {decision.by}, {decision.at[:10]}{note}")


def _fact(fact: "NewFact") -> Iterator[str]:
    how = f" ({fact.published_precision})" if fact.published_precision else ""
    yield from _entry("new fact", fact.told)
    yield from _entry("evidence", f"{fact.published_at[:10]}{how} {fact.domain}: {fact.source}")
    yield from _entry("", fact.url)


def _entry(title: str, text: str) -> list[str]:
    """Return a titled text, wrapped; an address stays one that can be clicked."""
    indent = " " * (TITLE + 6)
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=f"    {title:<{TITLE}}  ",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _stand(shown: Shown) -> Iterator[str]:
    state = shown.review.state(required=False)
    yield (
        f"{state.listed} samples are listed: {state.pending} open, {state.approved} approved; "
        f"{state.rejected} of the run are rejected"
    )


def _next(shown: Shown) -> Iterator[str]:
    place = shown.place
    if shown.page < shown.pages:
        following = ("--page", str(shown.page + 1))
        yield f"next page: {command('review', place, *shown.filters, *following)}"
    elif shown.page > shown.pages:
        yield f"it has no such page; the first: {command('review', place, *shown.filters)}"
    if shown.review.open:
        yield f"decide:    {command('review', place, '--by', 'NAME', '--approve', 'ID')}"
        yield f"in bulk:   {command('review', place, '--csv', 'FILE')}, then --from-csv FILE"
    else:
        run = shown.review.run
        yield f"publish:   {command('release', run, '--version', 'V', '--require-review')}"
