"""The cost limit of a sample: no call is sent after its calls have exceeded it.

The cost is that of all calls that the sample used and its run paid for, including stored calls from
before a kill. A call for several samples, such as a batch of labels, counts by its share for each.
Answers paid for by another run cost nothing.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coreeval.errors import SampleBudgetSpent

KEY = "run.max_usd_per_sample"


class SampleCost:
    """The cost of one sample's calls, and its limit.

    Args:
        limit_usd: The cost in US dollars beyond which no further call is sent.
    """

    def __init__(self, limit_usd: float | None = None) -> None:
        self._limit = math.inf if limit_usd is None else limit_usd
        self.spent_usd = 0.0

    def restore(self, spent_usd: float) -> None:
        """Add the cost of the sample's earlier steps, if they ran elsewhere."""
        self.spent_usd = max(self.spent_usd, spent_usd)

    @property
    def is_over(self) -> bool:
        """Return whether the calls have cost more than the limit."""
        return self.spent_usd > self._limit

    @property
    def is_half_spent(self) -> bool:
        """Return whether the calls have cost more than half of the limit."""
        return 2 * self.spent_usd > self._limit

    def build_error(self) -> SampleBudgetSpent:
        """Return the error of a sample that may make no further call."""
        return SampleBudgetSpent(
            f"sample_budget: {self.spent_usd:.4f} of {self._limit:.4f} USD spent ({KEY}); raise "
            "the limit in the config, then run coreeval retry RUN, which uses the stored answers"
        )


_COST: ContextVar[SampleCost | None] = ContextVar("sample_cost", default=None)
_STEP: ContextVar[list[float] | None] = ContextVar("step_cost", default=None)
_SHARE: ContextVar[float] = ContextVar("cost_share", default=1.0)


@contextmanager
def limit_sample_cost(limit_usd: float | None) -> Iterator[None]:
    """Limit what the calls of the sample that is run inside the block may cost."""
    token = _COST.set(SampleCost(limit_usd))
    try:
        yield
    finally:
        _COST.reset(token)


@contextmanager
def count_step_cost(spent_usd: float) -> Iterator[list[float]]:
    """Yield a list that collects the cost of each call inside the block, in US dollars.

    Args:
        spent_usd: The cost of the sample's finished steps.
    """
    if cost := _COST.get():
        cost.restore(spent_usd)
    found: list[float] = []
    token = _STEP.set(found)
    try:
        yield found
    finally:
        _STEP.reset(token)


@contextmanager
def share_cost(samples: int) -> Iterator[None]:
    """Count calls inside the block only by the current sample's share: they serve several."""
    token = _SHARE.set(1 / samples)
    try:
        yield
    finally:
        _SHARE.reset(token)


def add_sample_cost(usd: float) -> None:
    """Count a call of the current sample, if there is one."""
    share, cost, step = usd * _SHARE.get(), _COST.get(), _STEP.get()
    if cost is not None:
        cost.spent_usd += share
    if step is not None:
        step.append(share)


def has_spent_half() -> bool:
    """Return whether the current sample has cost more than half of its limit."""
    cost = _COST.get()
    return cost is not None and cost.is_half_spent


def find_overspent() -> SampleCost | None:
    """Return the cost of the current sample if it may make no further call; None if it may."""
    cost = _COST.get()
    return cost if cost is not None and cost.is_over else None
