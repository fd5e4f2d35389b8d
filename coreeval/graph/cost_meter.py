"""Forecasts the cost of a run's stage from the cost of its ended samples."""

import math

from coreeval.tools.stores.heartbeat import CostForecast, Spend

FEWEST_ENDED = 10
"""The fewest ended samples for a forecast."""
FEWEST_MARKS = 3
"""The fewest heartbeats with ended samples: the interval is computed from their differences."""


class CostMeter:
    """Measures the cost of the ended samples of one stage at each heartbeat."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._last = 0, 0.0
        self._steps: list[tuple[int, float]] = []
        """The number of samples that ended between two heartbeats, and the amount spent."""

    def add(self, done: int, spend: Spend) -> None:
        """Record how many samples have ended, and the total spent so far."""
        mark = done, spend.billed_usd
        if self._first is None:
            self._first = self._last = mark
            return
        ended, usd = done - self._last[0], spend.billed_usd - self._last[1]
        if ended > 0:
            self._steps.append((ended, max(0.0, usd)))
            self._last = mark

    def forecast(self, done: int, total: int, spend: Spend) -> CostForecast | None:
        """Return the forecast of the total when all samples have ended; None if too few have.

        With n ended samples that cost r each, and m that are left, the forecast is the amount
        spent plus m r. The variance of a sample's cost, s^2, is that of the amounts between
        heartbeats around r times their samples; the interval is two standard errors of the cost
        of the rest each way: 2 s sqrt(m + m^2 / n).
        """
        ended = sum(number for number, _ in self._steps)
        if ended < FEWEST_ENDED or len(self._steps) < FEWEST_MARKS:
            return None
        paid = sum(usd for _, usd in self._steps)
        if not paid:
            return None
        each, left = paid / ended, total - done
        squares = sum((usd - each * number) ** 2 / number for number, usd in self._steps)
        variance = squares / (len(self._steps) - 1)
        off = 2 * math.sqrt(variance * (left + left * left / ended))
        usd = spend.billed_usd + each * left
        return CostForecast(
            usd=usd,
            low_usd=max(spend.billed_usd, usd - off),
            high_usd=usd + off,
            exceeds_budget=None if spend.budget_usd is None else usd > spend.budget_usd,
        )


def describe_excess(stage: str, found: CostForecast, spend: Spend) -> str:
    """Return the remark that a run will exceed its budget."""
    return (
        f"the run is expected to cost about {found.usd:.2f} USD by the end of the {stage} stage "
        f"({found.low_usd:.2f} to {found.high_usd:.2f}), more than the budget of "
        f"{spend.budget_usd or 0.0:.2f} USD. It will stop before it exceeds the budget. Answers "
        "are kept; continue with: coreeval resume RUN --budget USD"
    )
