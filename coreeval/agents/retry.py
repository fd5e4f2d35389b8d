"""What happens to a sample whose text has defects: another try, and where it starts, or the end."""

from collections.abc import Sequence
from dataclasses import dataclass

from coreeval.agents.reflect import outcome_of, same_defects
from coreeval.schema import Defect, Outcome, Route

FURTHEST_BACK: tuple[Route, ...] = ("evidence", "replace", "compose")
"""Routes from the one that redoes most to the one that redoes least (research: pilot §8)."""


@dataclass(frozen=True, kw_only=True)
class Again:
    """Another attempt, starting at `route`."""

    route: Route


@dataclass(frozen=True, kw_only=True)
class End:
    """No further attempt."""

    outcome: Outcome
    reason: str


def decide(
    defects: Sequence[Defect], *, previous: Sequence[Defect], attempt: int, max_attempts: int
) -> Again | End:
    """Decide about a text with at least one defect.

    It ends at the last attempt, when it is unsafe, and when one of the defects comes a second
    time, word for word (a fourth attempt saved none of the pilot's rejected samples, pilot §8).
    """
    unsafe = any(defect.kind == "unsafe" for defect in defects)
    if unsafe or attempt >= max_attempts or same_defects(defects, previous):
        return End(outcome=outcome_of(defects), reason=summary(defects))
    routes = {defect.route for defect in defects}
    return Again(route=next(route for route in FURTHEST_BACK if route in routes))


def summary(defects: Sequence[Defect]) -> str:
    """Return one line that names each defect."""
    return "; ".join(f"{defect.check}: {defect.message}" for defect in defects)
