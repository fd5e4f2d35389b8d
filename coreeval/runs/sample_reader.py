"""Reads the samples of a run: lists of samples, and the history of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coreeval.errors import UsageError, suggest_name
from coreeval.meanings import OUTCOMES
from coreeval.runs.history import (
    SampleHistory,
    read_sample_history,
    redact_history,
    redact_row,
)
from coreeval.runs.open import open_run_calls, open_run_reader
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.stores.run_queries import ALL_SAMPLES, SampleFilter, SampleSort
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.terminal import command

_SYNONYMS = {"updated": "accepted"}
"""Synonyms for outcomes; an accepted sample is in the updated arm."""


def read_outcomes(names: Sequence[str]) -> tuple[str, ...]:
    """Return outcomes by their names or synonyms; all but `pending` if no name is given.

    Raises:
        UsageError: there is no such outcome.
    """
    asked = tuple(_SYNONYMS.get(name, name) for name in names)
    for name in asked:
        require_known("outcome", name, tuple(OUTCOMES))
    return asked or tuple(name for name in OUTCOMES if name != "pending")


def require_known(what: str, name: str, known: Sequence[str]) -> None:
    """Raise an error for an unknown name, with the most similar known one.

    Raises:
        UsageError: the name is not known.
    """
    if name not in known:
        raise UsageError(f"there is no {what} {name!r}", hint=suggest_name(name, known))


@contextmanager
def open_sample_reader(
    run: Path, *, hide_texts: bool = False, told: Callable[[str], None] = lambda _: None
) -> Iterator["SampleReader"]:
    """Open a run's samples for the block.

    Args:
        run: The run's directory.
        hide_texts: Whether texts are replaced by their lengths and hashes.
        told: Called with the reason that prompts and answers cannot be read.

    Raises:
        RunStateError: there is no run, or its manifest cannot be read.
        RunCorrupt: run.db is damaged or missing.
    """
    with open_run_reader(run) as (_, manifest, store), open_run_calls(manifest, told) as calls:
        yield SampleReader(
            run=run,
            store=store,
            calls=calls,
            prompts=manifest.prompts,
            offline_roles=manifest.offline_roles,
            hide_texts=hide_texts,
            texts=manifest.arms if manifest.status == "complete" else None,
        )


@dataclass(frozen=True, kw_only=True)
class SampleReader:
    """Reader of a run's sample histories, with or without their texts."""

    run: Path
    store: RunStore
    calls: CallStore | None
    prompts: Mapping[str, str]
    offline_roles: list[str]
    hide_texts: bool
    texts: Mapping[str, int] | None
    """The number of texts by arm; None before the run is complete."""

    def story(self, sample_id: str) -> SampleHistory:
        """Return the history of a sample.

        Raises:
            UsageError: the sample does not exist.
        """
        try:
            story = read_sample_history(self.store, self.calls, sample_id, prompts=self.prompts)
        except KeyError:
            raise self._unknown(sample_id) from None
        return redact_history(story) if self.hide_texts else story

    def listed(
        self, chosen: SampleFilter, sort: SampleSort, descending: bool, offset: int, most: int
    ) -> dict[str, Any]:
        """Return a part of the list of samples."""
        page = self.store.listing.page(
            chosen, sort=sort, descending=descending, offset=offset, limit=most
        )
        rows = map(redact_row, page.rows) if self.hide_texts else page.rows
        answered = self.store.target_answers.by_sample([row.seq for row in page.rows])
        return {
            "samples": [row.model_dump() | {"targets": answered.get(row.seq, {})} for row in rows],
            "total": page.total,
            "offline_roles": self.offline_roles,
        }

    def explain_empty(self, given: Mapping[str, Any]) -> str:
        """Return the reason that no sample matches the filters."""
        if not given:
            return "no sample has ended yet"
        answered = {arm for tally in self.store.target_answers.tally() for arm in tally.arms}
        for arm in (*given.get("right", ()), *given.get("wrong", ())):
            if arm in answered:
                continue
            if self.texts is None:
                return f"no sample matches: no target has been evaluated on the {arm} texts yet"
            if arm != "original" and not self.texts.get(arm):
                return f"no sample matches: the run has no {arm} texts"
            named = () if answered else ("--target", "PROVIDER:NAME")
            ask = command("evaluate", self.run, *named)
            return (
                "no sample matches: no target was evaluated on the "
                f"{arm} texts; evaluate one: {ask}"
            )
        return "no sample matches"

    def _unknown(self, wanted: str) -> UsageError:
        """Return an error that suggests samples whose ids have the same ending."""
        last = wanted.rpartition("/")[2]
        known = (each for each in self.store.listing.ids(ALL_SAMPLES) if last)
        near = [each for each in known if each.rpartition("/")[2] == last][:3]
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        listing = f"list them: {command('trace', self.run)}"
        return UsageError(
            f"the run has no sample {wanted!r}", where=str(self.run), hint=hint or listing
        )
