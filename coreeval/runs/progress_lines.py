"""Describes the pace, costs and waits of a run, for progress bars and `status`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from coreeval.tools.formatting import format_duration, format_quantity, format_rate, format_span
from coreeval.tools.terminal import one_line

if TYPE_CHECKING:
    from coreeval.tools.stores.heartbeat import (
        CostForecast,
        ProgressSnapshot,
        Spend,
        Wait,
        WorkerSnapshot,
    )

REASON = 120
"""The most characters shown of an endpoint's message."""
WAITS = 3
"""The most waits shown, one line each."""
SILENT_S = 10.0
"""The seconds without a report after which a worker is silent; workers report every second.
"""
_CAUSES: Mapping[str, str] = {
    "budget": "{who}: {requests} waiting for budget that calls in flight may free",
    "throttled": "{who}: throttled by its endpoint, {requests} waiting",
    "resting": "{who}: {requests} waiting to be retried after a failure",
    "news": "news: {searches} not finished yet",
    "turn": "{who}: {requests} queued (limits of the endpoint or the config)",
    "answer": "{who}: {requests} sent but not answered yet",
    "step": "the {who} step: {samples} in progress",
}


def pace_parts(pulse: "ProgressSnapshot") -> Iterator[str]:
    """Yield rate and remaining time, requests in flight, and the slowest role."""
    if pulse.per_minute is not None:
        yield f"{format_rate(pulse.per_minute)}/min"
    if pulse.left_s:
        end = (
            f" (ends at about {pulse.ends_at[:16].replace('T', ' ')} UTC)" if pulse.ends_at else ""
        )
        yield f"{format_span(pulse.left_s)} left{end}"
    if pulse.sent:
        yield f"{pulse.sent} in flight"
    if pulse.roles:
        slowest = pulse.roles[0]
        yield f"slowest: {slowest.role} {format_duration(slowest.mean_s)}"


def spend_parts(spend: "Spend") -> Iterator[str]:
    """Yield the cost so far, if anything was or may be spent."""
    spent = spend.billed_usd + spend.reserved_usd
    if spend.budget_usd is not None:
        yield f"{spent:.4g} of {spend.budget_usd:.4g} USD"
    elif spent:
        yield f"{spent:.4g} USD"
    if spend.unpriced:
        yield f"{format_quantity(spend.unpriced, 'answer')} with an unknown price"


def forecast_parts(found: "CostForecast | None") -> Iterator[str]:
    """Yield the expected cost at the end of the stage, and whether the budget suffices."""
    if found is None:
        return
    ends = f"{found.low_usd:.4g} to {found.high_usd:.4g}"
    more = {None: "", True: ", more than the budget", False: ", within the budget"}
    yield f"{found.usd:.4g} USD expected at the end ({ends}{more[found.exceeds_budget]})"


def format_idle_time(idle_s: float) -> str:
    """Return a message that there is no progress, and for how long."""
    return f"no progress for {format_span(idle_s)}"


def wait_lines(waits: "tuple[Wait, ...]") -> list[str]:
    """Return what the run is waiting for, main reason first."""
    return [_wait_line(wait) for wait in waits[:WAITS]]


def worker_lines(workers: "tuple[WorkerSnapshot, ...]") -> list[str]:
    """Return the state of each worker process."""
    return [_worker_line(worker) for worker in workers]


def _worker_line(worker: "WorkerSnapshot") -> str:
    waits = f", {_wait_line(worker.waits[0])}" if worker.waits else ""
    silent = f", silent for {format_span(worker.age_s)}" if worker.age_s >= SILENT_S else ""
    return (
        f"worker {worker.number + 1} (process {worker.pid} on {one_line(worker.host)}): "
        f"{worker.ended} samples, {worker.per_second:.1f} calls/s, {worker.sent} in flight"
        f"{waits}{silent}"
    )


def _wait_line(wait: "Wait") -> str:
    what = _CAUSES[wait.cause].format(
        who=wait.who,
        requests=format_quantity(wait.number, "request"),
        searches=format_quantity(wait.number, "search", "searches"),
        samples=format_quantity(wait.number, "sample"),
    )
    reason = one_line(wait.reason)
    said = f": {reason[:REASON]}" if reason else ""
    return f"{what}, the longest for {format_span(wait.seconds)}{said}"


def format_counts(counts: Mapping[str, int]) -> str:
    """Return counts as part of a line, with rejections combined and zero counts left out."""
    rejected = sum(count for name, count in counts.items() if name.startswith("rejected_"))
    others = {name: count for name, count in counts.items() if not name.startswith("rejected_")}
    accepted = others.pop("accepted", 0)
    brief = {"accepted": accepted, "rejected": rejected, **dict(sorted(others.items()))}
    return ", ".join(f"{name} {count}" for name, count in brief.items() if count)
