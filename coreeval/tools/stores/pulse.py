"""What the process that works on a run knows of itself, as each heartbeat carries it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

Cause = Literal["budget", "throttled", "resting", "news", "turn", "answer", "step"]
"""What is waited for: money that requests in flight may leave over; an endpoint that said to come
later; the next try of a request that failed; a news source; a place among the requests in flight;
an answer; a step without a model. What explains most comes first."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Something that holds a run up, or would if it lasted."""

    cause: Cause
    who: str
    """A model, a step or a news source."""
    number: int
    """Calls or samples that wait."""
    seconds: float
    """How long the one that has waited longest has."""
    reason: str = ""
    """What the endpoint said last, where it refused."""


@dataclass(frozen=True, kw_only=True)
class RoleSpeed:
    """How fast a role is answered, since this process took the run up."""

    role: str
    model: str
    answers: int
    mean_s: float
    """Seconds from request to answer, on average; what waits to be sent does not count."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What a run has spent by the ledger, in US dollars."""

    billed_usd: float
    """Of answers that are stored and have a price."""
    reserved_usd: float
    """The most that requests can cost which are in flight, or of which nobody knows the end."""
    unpriced: int
    """Stored answers that were paid for at a price that is not known."""
    budget_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """A run at one moment, as the process that works on it sees it."""

    stage: str
    done: int = 0
    total: int = 0
    """Of what the stage counts: samples, or questions to targets; 0 where it counts nothing."""
    per_minute: float | None = None
    """How many of these ended a minute of late; None while there is too little to tell."""
    left_s: float | None = None
    """Seconds until the stage is done, at that rate."""
    idle_s: float = 0.0
    """Seconds since anything moved: an answer came, a step or a sample ended."""
    sent: int = 0
    """Requests in flight."""
    roles: tuple[RoleSpeed, ...] = ()
    """Slowest first."""
    waits: tuple[Wait, ...] = ()
    """What is waited for: what explains most first."""
    spend: Spend | None = None
    """What the run had spent at the last heartbeat; None until that was read."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return a pulse from what `dataclasses.asdict` made of one."""
        roles = tuple(RoleSpeed(**role) for role in row["roles"])
        waits = tuple(Wait(**wait) for wait in row["waits"])
        spend = Spend(**row["spend"]) if row.get("spend") else None
        return cls(**{**row, "roles": roles, "waits": waits, "spend": spend})
