"""`coreeval trace`: what happened to each sample, step by step."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.cli.arguments import RunArgument
from coreeval.cli.meanings import offline_roles
from coreeval.cli.output import AsJson, Document, command, note, show
from coreeval.cli.story import show_story
from coreeval.cli.trace_list import export, list_lines
from coreeval.cli.trace_options import (
    SHOWN,
    AttemptsOption,
    CallsOption,
    CauseOption,
    CostOption,
    DescendingOption,
    HideOption,
    LabelOption,
    LimitOption,
    LinesOption,
    OffsetOption,
    OutcomeOption,
    SampleArgument,
    SortOption,
    TextOption,
)
from coreeval.errors import UsageError
from coreeval.meanings import OUTCOMES

if TYPE_CHECKING:
    from coreeval.tools.stores.call_store import CallStore
    from coreeval.tools.stores.run_queries import SampleFilter, SampleSort
    from coreeval.tools.stores.run_store import RunStore
    from coreeval.viewer.history import SampleHistory

_FILTERS = {
    "outcomes": "--outcome",
    "label": "--label",
    "attempts_min": "--attempts",
    "usd_min": "--min-cost",
    "cause": "--cause",
    "text": "--text",
}


def trace(
    run: RunArgument,
    sample: SampleArgument = None,
    outcome: OutcomeOption = None,
    label: LabelOption = None,
    attempts: AttemptsOption = None,
    min_cost: CostOption = None,
    cause: CauseOption = None,
    text: TextOption = None,
    sort: SortOption = "order",
    descending: DescendingOption = False,
    offset: OffsetOption = 0,
    limit: LimitOption = None,
    calls: CallsOption = False,
    jsonl: LinesOption = None,
    hide_texts: HideOption = False,
    as_json: AsJson = False,
) -> None:
    """Tell the story of a sample, or how each one ended."""
    said = (outcome, label, attempts, min_cost, cause, text)
    given = {name: value for name, value in zip(_FILTERS, said, strict=True) if value}
    _check(sample, given, hide_texts)
    by = _sort(sort)
    with _opened(run, hide_texts) as book:
        if jsonl is not None:
            ids = [sample] if sample else book.store.listing.ids(_chosen(given), by, descending)
            export(map(book.story, ids[offset:][:limit]), jsonl, as_json)
        elif sample is not None:
            show_story(book.story(sample), book.offline_roles, as_json=as_json, calls=calls)
        else:
            most = limit or (max(1, book.store.total()) if as_json else SHOWN)
            listed = book.listed(_chosen(given), by, descending, offset, most)
            show(listed, as_json, lambda: "\n".join(list_lines(listed, run, offset, bool(given))))


def _check(sample: str | None, given: Mapping[str, object], hide_texts: bool) -> None:
    if sample is not None and given:
        option = _FILTERS[next(iter(given))]
        raise UsageError(f"{option} is for the list of samples", hint="leave out SAMPLE or it")
    if hide_texts and "text" in given:
        raise UsageError("--text searches what --hide-texts hides", hint="leave out one of them")


def _sort(name: str) -> "SampleSort":
    from coreeval.tools.stores.run_queries import SORTS

    _known("order", name, SORTS)
    return next(sort for sort in SORTS if sort == name)


def _known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise UsageError(
            f"there is no {what} {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}",
        )


def _chosen(given: Mapping[str, Any]) -> "SampleFilter":
    """Return the filter; pending samples are listed only where they are asked for."""
    from coreeval.tools.stores.run_queries import SampleFilter

    for name in given.get("outcomes", ()):
        _known("outcome", name, tuple(OUTCOMES))
    ended = tuple(name for name in OUTCOMES if name != "pending")
    return SampleFilter.model_validate({"outcomes": ended, **given})


@contextmanager
def _opened(run: Path, hide_texts: bool) -> Iterator["_Book"]:
    from coreeval.releases.opening import opened_calls, opened_run

    with opened_run(run) as (_, manifest, store), opened_calls(manifest, note) as calls:
        yield _Book(
            run=run,
            store=store,
            calls=calls,
            prompts=manifest.prompts,
            offline_roles=offline_roles(manifest),
            hide_texts=hide_texts,
        )


@dataclass(frozen=True, kw_only=True)
class _Book:
    """The stories of a run, with their texts or without."""

    run: Path
    store: "RunStore"
    calls: "CallStore | None"
    prompts: Mapping[str, str]
    offline_roles: list[str]
    hide_texts: bool

    def story(self, sample_id: str) -> "SampleHistory":
        """Return the story of a sample.

        Raises:
            UsageError: there is no such sample.
        """
        from coreeval.viewer.history import read_sample_history
        from coreeval.viewer.redaction import redact_history

        try:
            story = read_sample_history(self.store, self.calls, sample_id, prompts=self.prompts)
        except KeyError:
            raise self._unknown(sample_id) from None
        return redact_history(story) if self.hide_texts else story

    def listed(
        self, chosen: "SampleFilter", sort: "SampleSort", descending: bool, offset: int, most: int
    ) -> Document:
        """Return a part of the list of samples."""
        from coreeval.viewer.redaction import redact_row

        page = self.store.listing.page(
            chosen, sort=sort, descending=descending, offset=offset, limit=most
        )
        rows = map(redact_row, page.rows) if self.hide_texts else page.rows
        return {
            "samples": [row.model_dump() for row in rows],
            "total": page.total,
            "offline_roles": self.offline_roles,
        }

    def _unknown(self, wanted: str) -> UsageError:
        """Return an error that names samples whose ids end like the one that was asked for."""
        from coreeval.tools.stores.run_queries import ALL_SAMPLES

        last = wanted.rpartition("/")[2]
        known = (each for each in self.store.listing.ids(ALL_SAMPLES) if last)
        near = [each for each in known if each.rpartition("/")[2] == last][:3]
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        listing = f"list them: {command('trace', self.run)}"
        return UsageError(
            f"the run has no sample {wanted!r}", where=str(self.run), hint=hint or listing
        )
