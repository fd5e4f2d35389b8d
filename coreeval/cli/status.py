"""`coreeval status`: the progress and speed of a run, and whether anything is stuck."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from coreeval.cli.batch_output import batch_lines
from coreeval.cli.options import LATEST_RUN, RunArgument
from coreeval.cli.output import (
    AsJson,
    command,
    comparability_lines,
    control_lines,
    offline_lines,
    one_line,
    outcome_lines,
    redraw,
    show,
)
from coreeval.errors import UsageError
from coreeval.meanings import STATES
from coreeval.runs.progress_lines import (
    forecast_parts,
    format_idle_time,
    pace_parts,
    spend_parts,
    wait_lines,
    worker_lines,
)
from coreeval.tools.formatting import format_quantity, format_span
from coreeval.tools.workspace import RunFiles

if TYPE_CHECKING:
    from coreeval.runs.status import CacheUse, RunStatus

SHOWN = 10
"""The most failed samples and bad rows listed; `--json` has them all."""
WATCH_EVERY_S = 2.0


def status(
    run: RunArgument = LATEST_RUN,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep refreshing the status until the run stops.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run's progress and failures, and what it is waiting for."""
    if watch and as_json:
        raise UsageError(
            "--watch and --json cannot be used together",
            hint="with --json, run the command repeatedly",
        )
    from coreeval.runs.status import explain_run_faults, read_status
    from coreeval.runs.status_document import build_status_document

    with explain_run_faults(run):
        if watch:
            _watch(run, time.sleep)
        else:
            now = read_status(run)
            show(build_status_document(now) if as_json else {}, as_json, lambda: _words(now))


def _watch(run: Path, sleep: Callable[[float], None]) -> None:
    """Show a run's progress until no process works on it, or until Ctrl-C."""
    from coreeval.runs.status import read_status

    read = cache(_read_lists)  # they are read again only if there are more
    try:
        while (now := read_status(run)).status == "running":
            redraw(_words(now, read))
            sleep(WATCH_EVERY_S)
        redraw(_words(now, read))
    except KeyboardInterrupt:
        return


class _Lists(NamedTuple):
    """The first failed samples and bad rows of a run.db, one line each."""

    failed: list[str]
    bad: list[str]


def _read_lists(run: Path, failed: int, bad_rows: int) -> _Lists:
    """Return the lists of a run.db, given the number of each, up to `SHOWN`."""
    from coreeval.runs.status import read_bad_lines, read_failures

    failures = read_failures(run, most=SHOWN) if failed else []
    bad = read_bad_lines(run, most=SHOWN) if bad_rows else []
    return _Lists(
        [f"{one.sample}: {one.reason}" for one in failures],
        [f"{Path(row.file).name} line {row.line}: {row.reason}" for row in bad],
    )


ReadLists = Callable[[Path, int, int], _Lists]


def _words(now: "RunStatus", read: ReadLists = _read_lists) -> str:
    return "\n".join(_lines(now, read))


def _lines(now: "RunStatus", read: ReadLists) -> Iterator[str]:
    yield f"{now.run}   task {now.task}"
    total = format_quantity(now.counts["total"], "sample has", "samples have")
    yield f"{STATES[now.status]}: {now.ended} of {total} ended"
    yield from outcome_lines(now.counts)
    yield from control_lines(now.control)
    yield from comparability_lines(now.comparability)
    yield from _life(now)
    yield from batch_lines(now.batches)
    yield from _troubles(now, read)
    if now.status in {"interrupted", "stopped", "waiting", "killed"}:
        yield _next_line(now)
    elif now.status == "complete" and now.failed:
        yield f"again:   {command('retry', now.run)}"
    yield from offline_lines(now.ruled)


def _next_line(now: "RunStatus") -> str:
    if now.is_replay:
        return f"again:   {command('cassette', 'replay', 'FILE', '--out', 'DIR')}"
    return f"resume:  {command('resume', now.run)}"


def _life(now: "RunStatus") -> Iterator[str]:
    """Yield the run's process, its speed and cost, and its waits."""
    sign, pulse = now.sign, now.pulse
    if now.ended_at:
        until = "waiting since" if now.status == "waiting" else "ended"
        yield f"started {now.created_at}, {until} {now.ended_at}"
    elif sign:
        who = f"process {sign.pid} on {sign.host}"
        yield f"last activity {format_span(sign.age_s)} ago, from {who}"
    if pulse:
        share = f" {pulse.done}/{pulse.total}" if pulse.total else ""
        yield ", ".join([f"{pulse.stage}{share}", *pace_parts(pulse)])
        yield from (f"  {words}" for words in worker_lines(pulse.workers))
    spent = [*spend_parts(now.spend), *forecast_parts(pulse.cost if pulse else None)]
    if now.batches and now.batches.open and now.spend.reserved_usd:
        spent.append(
            f"of which {now.spend.reserved_usd:.4g} USD is reserved for calls without an answer"
        )
    yield from (f"spent: {words}" for words in [", ".join(spent)] if words)
    yield from _cache_lines(now.cache_use)
    if now.stalled and pulse:
        yield f"{format_idle_time(now.idle_s)}; the run is waiting for:"
        yield from (f"  {words}" for words in wait_lines(pulse.waits) or ["unknown"])


def _cache_lines(used: "Sequence[CacheUse]") -> Iterator[str]:
    """Yield the cached share of each role's prompts; nothing if none were cached."""
    if any(one.cached_tokens for one in used):
        yield "prompt tokens from the providers' caches:"
        yield from (
            f"  {one.role} ({one_line(one.model)}): {one.cached_share:.0%} of {one.prompt_tokens:,}"
            for one in used
        )


def _troubles(now: "RunStatus", read: ReadLists) -> Iterator[str]:
    stuck = [f"{one.sample} in the {one.node} step since {one.since}" for one in now.stuck]
    yield from _listed("stuck", stuck, len(stuck))
    failed = now.counts["failed"]
    lists = read(now.run, min(failed, SHOWN), min(now.bad_rows, SHOWN))
    yield from _listed("failed", lists.failed, failed)
    if now.control:
        failed = now.control["failed"]
        again = read(RunFiles(now.run).control.root, min(failed, SHOWN), 0)
        yield from _listed("failed, control arm", again.failed, failed)
    yield from _listed("bad row", lists.bad, now.bad_rows)


def _listed(title: str, lines: list[str], number: int) -> Iterator[str]:
    """Yield the first lines under a title, and the number of further lines."""
    yield from (f"  {title}: {one_line(line)}" for line in lines[:SHOWN])
    if number > SHOWN:
        yield f"  {title}: and {number - SHOWN} more; --json lists them all"
