"""The batches of a run for `coreeval status` and the pages; read without SQLAlchemy."""

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import has_store

_BATCHES = """
    SELECT id, model, state, provider_id, status, problem, total, succeeded, failed, usd, live_usd,
        made_at, ended_at
    FROM batches WHERE payer = :payer ORDER BY made_at, id
"""
_OPEN = ("sending", "sent")
_OPEN_CALLS = """
    SELECT payer, sum(total) AS calls FROM batches WHERE state IN ('sending', 'sent') GROUP BY payer
"""


@dataclass(frozen=True, kw_only=True)
class BatchStatus:
    """The state of a batch."""

    id: str
    model: str
    state: str
    """`sending`, `sent`, `collected`, `refused` or `lost`."""
    provider_id: str
    status: str
    """The last status reported by the provider."""
    problem: str
    total: int
    """The number of its calls."""
    succeeded: int
    failed: int
    usd: float | None
    """The cost of its answers in US dollars; None before it is collected."""
    live_usd: float | None
    """The cost of the same answers without a batch."""
    made_at: str
    ended_at: str
    age_s: float
    """The seconds from its creation until its collection, or until now."""

    @property
    def is_open(self) -> bool:
        """Return whether answers may still arrive."""
        return self.state in _OPEN


@dataclass(frozen=True, kw_only=True)
class BatchSummary:
    """The batches of a run."""

    batches: tuple[BatchStatus, ...]

    @property
    def open(self) -> list[BatchStatus]:
        """Return the batches whose answers may still arrive."""
        return [each for each in self.batches if each.is_open]

    @property
    def open_calls(self) -> int:
        """Return the number of calls in open batches."""
        return sum(each.total for each in self.open)

    @property
    def saved_usd(self) -> float:
        """Return the savings of the collected answers, compared with live calls."""
        return sum((each.live_usd or 0.0) - (each.usd or 0.0) for each in self.batches)

    @property
    def expected_usd(self) -> float | None:
        """Return the expected savings of open batches, at the rate of collected ones, if any."""
        done = sum(each.succeeded for each in self.batches if each.state == "collected")
        return self.saved_usd / done * self.open_calls if done else None


def read_batches(calls: Path, payer: str, *, now: Clock = utc_now) -> BatchSummary:
    """Return the batches of a run.

    Args:
        calls: The call store of its workspace.
        payer: The run's name there.
        now: The clock.

    Raises:
        RunCorrupt: the store is damaged.
        RunError: it cannot be read now.
    """
    if not has_store(calls):
        return BatchSummary(batches=())
    with open_readonly(calls, what="the call store") as store:
        rows = [dict(row) for row in store.execute(_BATCHES, {"payer": payer})]
    moment = now()

    def age_s(row: dict[str, str]) -> float:
        end = datetime.fromisoformat(row["ended_at"]) if row["ended_at"] else moment
        return round(max(0.0, (end - datetime.fromisoformat(row["made_at"])).total_seconds()), 1)

    return BatchSummary(batches=tuple(BatchStatus(**row, age_s=age_s(row)) for row in rows))


def count_open_calls(calls: Path) -> dict[str, int]:
    """Return the number of calls in open batches, by payer; payers without any are left out.

    Raises:
        RunCorrupt: the call store is damaged.
        RunError: it cannot be read now.
    """
    if not has_store(calls):
        return {}
    with open_readonly(calls, what="the call store") as store:
        return {row["payer"]: int(row["calls"]) for row in store.execute(_OPEN_CALLS)}


def build_batch_document(found: BatchSummary | None) -> dict[str, Any] | None:
    """Return the batches of a run for `--json`; None if its calls were sent at once."""
    if found is None:
        return None
    return {
        "open": len(found.open),
        "open_calls": found.open_calls,
        "saved_usd": found.saved_usd,
        "expected_usd": found.expected_usd,
        "batches": [asdict(each) for each in found.batches],
    }
