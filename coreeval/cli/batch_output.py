"""The output of commands about the batches of a run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from coreeval.cli.output import one_line
from coreeval.tools.formatting import format_quantity, format_span

if TYPE_CHECKING:
    from coreeval.runs.batches import BatchStatus, BatchSummary

CENT = 0.01
SHOWN = 10
"""The most open batches listed; `--json` has them all."""


def batch_lines(found: "BatchSummary | None") -> Iterator[str]:
    """Yield the batches that a run waits for, and the savings of its batches."""
    if found is None or not found.batches:
        return
    done = sum(each.state == "collected" for each in found.batches)
    saved = f"; saved so far: {_format_usd(found.saved_usd)}" if found.saved_usd else ""
    more = (
        f"; expected further savings: {_format_usd(found.expected_usd)}"
        if found.expected_usd
        else ""
    )
    opened = f"{len(found.open)} open ({format_quantity(found.open_calls, 'call')}), "
    yield f"batches: {opened if found.open else ''}{done} ended{saved}{more}"
    yield from (f"  {_describe_batch(each)}" for each in found.open[:SHOWN])
    if len(found.open) > SHOWN:
        yield f"  and {len(found.open) - SHOWN} more; --json lists them all"


def _format_usd(usd: float) -> str:
    return f"{usd:.2f} USD" if usd >= CENT else f"{usd:.4f} USD"


def _describe_batch(batch: "BatchStatus") -> str:
    word = batch.status or "not known whether it was sent"
    ended = batch.succeeded + batch.failed
    failed = f", {batch.failed} failed" if batch.failed else ""
    name = f" ({one_line(batch.provider_id)})" if batch.provider_id else ""
    return (
        f"{one_line(batch.model)}: {ended} of {format_quantity(batch.total, 'call')} done{failed}, "
        f"{one_line(word)}, {format_span(batch.age_s)} old{name}"
    )
