"""How a run goes on in words: the same figures in the progress of a command and in `status`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from coreeval.cli.output import one_line

if TYPE_CHECKING:
    from coreeval.tools.stores.heartbeat import ProgressSnapshot, Spend, Wait

REASON = 120
"""Characters of what an endpoint said that are shown."""
WAITS = 3
"""Things that are waited for of which a line is shown."""
_CAUSES: Mapping[str, str] = {
    "budget": "{who}: {number} wait for money that those in flight may leave over",
    "throttled": "{who}: throttled by its endpoint, {number} wait",
    "resting": "{who}: {number} will be sent again after a failure",
    "news": "news: {number} looked for",
    "turn": "{who}: {number} wait for their turn (limits of the endpoint or the config)",
    "answer": "{who}: {number} sent and not answered",
    "step": "the step {who}: {number} in it",
}


def span(seconds: float) -> str:
    """Return a time span in the largest unit that fits it twice."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _rate(per_minute: float) -> str:
    return f"{per_minute:.0f}" if per_minute >= 100 else f"{per_minute:.3g}"


def pace_words(pulse: "ProgressSnapshot") -> Iterator[str]:
    """Yield rate and time left, requests in flight, and the slowest role."""
    if pulse.per_minute is not None:
        yield f"{_rate(pulse.per_minute)}/min"
    if pulse.left_s:
        yield f"{span(pulse.left_s)} left"
    if pulse.sent:
        yield f"{pulse.sent} in flight"
    if pulse.roles:
        slowest = pulse.roles[0]
        yield f"slowest: {slowest.role} {slowest.mean_s:.2g} s"


def spend_words(spend: "Spend") -> Iterator[str]:
    """Yield what was spent, where anything was or may be."""
    spent = spend.billed_usd + spend.reserved_usd
    if spend.budget_usd is not None:
        yield f"{spent:.4g} of {spend.budget_usd:.4g} USD"
    elif spent:
        yield f"{spent:.4g} USD"
    if spend.unpriced:
        yield f"{spend.unpriced} answers of unknown price"


def idle_words(idle_s: float) -> str:
    """Return that nothing moves, and for how long."""
    return f"no progress for {span(idle_s)}"


def wait_words(waits: "tuple[Wait, ...]") -> list[str]:
    """Return what is waited for, what explains most first."""
    return [_wait(wait) for wait in waits[:WAITS]]


def _wait(wait: "Wait") -> str:
    what = _CAUSES[wait.cause].format(who=wait.who, number=wait.number)
    reason = one_line(wait.reason)
    said = f": {reason[:REASON]}" if reason else ""
    return f"{what}, the longest for {span(wait.seconds)}{said}"


def brief_counts(counts: Mapping[str, int]) -> str:
    """Return counts on part of a line: the rejections together, what did not occur left out."""
    rejected = sum(count for name, count in counts.items() if name.startswith("rejected_"))
    others = {name: count for name, count in counts.items() if not name.startswith("rejected_")}
    accepted = others.pop("accepted", 0)
    brief = {"accepted": accepted, "rejected": rejected, **dict(sorted(others.items()))}
    return ", ".join(f"{name} {count}" for name, count in brief.items() if count)
