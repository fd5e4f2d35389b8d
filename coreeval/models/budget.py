"""The budget of a run: money is reserved before each request and settled when it is answered."""

import asyncio
from typing import TYPE_CHECKING

from coreeval.config import PriceConfig
from coreeval.errors import BudgetSpent
from coreeval.models.model import Model
from coreeval.tools.catalogs import FREE, Prices, cost, find_price, worst_case_cost
from coreeval.tools.stores.call_ledger import Ledger, Reservation, SpendingTotal

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


def answer_cost(answer: "AIMessage", price: PriceConfig | None) -> float | None:
    """Return the cost of an answer; None if the price or the tokens are unknown."""
    usage = answer.usage_metadata
    if price == FREE:
        return 0.0
    if price is None or usage is None:
        return None
    details = usage.get("input_token_details", {})
    return cost(
        price,
        prompt=usage["input_tokens"],
        cached=details.get("cache_read", 0),
        written=details.get("cache_creation", 0),
        completion=usage["output_tokens"],
    )


SHARED_PATIENCE_S = 150.0
"""The longest wait for other processes of a run to settle their reservations; an answer may take
two minutes (`timeout_s`). Reservations of a killed process are never settled."""
_LOOK_EVERY_S = 0.2


class Budget:
    """Pays for a run's calls and stops before its budget is exceeded.

    Args:
        ledger: Where reservations are committed.
        prices: Prices of models; a price in a model's own config takes precedence.
        budget_usd: The most that the run may cost, including its earlier processes; None for no
            limit.
        patience_s: How long to wait for other processes of the run, in seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        prices: Prices,
        *,
        budget_usd: float | None = None,
        patience_s: float = 0.0,
    ) -> None:
        self._ledger = ledger
        self._prices = prices
        self._budget = budget_usd
        self._patience_s = patience_s
        self._change = asyncio.Condition()
        self._looking = asyncio.Lock()
        self._seen: SpendingTotal | None = None
        """The ledger's total when it first refused, updated since."""
        self._seen_at = 0.0
        self._in_flight = 0
        self._taken = 0.0
        """US dollars spent by the run so far or reserved for this process's requests in flight."""
        if budget_usd is not None:
            self._taken = self._read_taken()

    def _read_taken(self) -> float:
        """Return what is spent or reserved according to the ledger; nothing is in flight here."""
        spent = self._ledger.spent()
        # other processes may release reservations soon: the ledger has the current total
        return spent.billed_usd + (0.0 if self._patience_s else spent.unknown_usd)

    def find_price(self, model: Model) -> PriceConfig | None:
        """Return a model's price, if it is known."""
        return find_price(model.config, self._prices)

    async def reserve(
        self, model: Model, key: str, *, prompt_bytes: int, max_tokens: int
    ) -> Reservation | None:
        """Reserve the maximum cost of a request; None if there is no limit.

        Waits while requests in flight may release part of their reservations.

        Raises:
            BudgetSpent: what is left does not cover it.
        """
        price = self.find_price(model)
        if self._budget is None or price is None:
            return None
        most = worst_case_cost(price, prompt_bytes=prompt_bytes, max_tokens=max_tokens)
        async with self._change:
            await self._change.wait_for(lambda: self._fits(most) or not self._in_flight)
            if not self._fits(most):  # batches may have cost less than was reserved
                self._taken = min(self._taken, self._read_taken())
            if not self._fits(most):
                raise self._budget_error(model, most, self._taken)
            self._taken += most
            self._in_flight += 1
        try:
            put_aside = await self._ledger.reserve(key, most, budget_usd=self._budget)
            if put_aside is None:  # other processes have reserved money, too
                async with self._looking:
                    put_aside = await self._wait_for_others(model, key, most, self._budget)
        except BaseException:
            await self._finish_request(most, 0.0)
            raise
        return put_aside

    async def _wait_for_others(
        self, model: Model, key: str, most: float, budget_usd: float
    ) -> Reservation:
        """Reserve as soon as other processes have settled enough of their reservations.

        Raises:
            BudgetSpent: what is left does not cover it, or nothing was settled for too long.
        """
        clock = asyncio.get_running_loop().time
        while (put_aside := await self._ledger.reserve(key, most, budget_usd=budget_usd)) is None:
            spent = self._ledger.spent()
            if spent != self._seen:
                self._seen, self._seen_at = spent, clock()
            is_over = spent.billed_usd + most > budget_usd
            if is_over or clock() - self._seen_at >= self._patience_s:
                raise self._budget_error(model, most, spent.billed_usd + spent.unknown_usd)
            await asyncio.sleep(_LOOK_EVERY_S)
        return put_aside

    def _fits(self, most: float) -> bool:
        return self._budget is None or self._taken + most <= self._budget

    def _budget_error(self, model: Model, most: float, taken: float) -> BudgetSpent:
        return BudgetSpent(
            f"the budget of {self._budget:.4f} USD does not cover the next call to {model.name}, "
            f"which may cost {most:.4f} USD: {taken:.4f} USD is already spent or reserved",
            where="run.budget_usd",
            hint="set a larger budget (--budget USD); answers are kept",
        )

    async def settle(self, reservation: Reservation | None, usd: float | None) -> None:
        """Settle an answered request at its cost; its record ends the reservation in the ledger."""
        if reservation is not None:
            await self._finish_request(reservation.usd, reservation.usd if usd is None else usd)

    async def release(self, reservation: Reservation | None) -> None:
        """Release the reservation of a refused request, which cost nothing."""
        if reservation is not None:
            self._ledger.release(reservation)
            await self._finish_request(reservation.usd, 0.0)

    async def write_off(self, reservation: Reservation | None) -> None:
        """Count the full reservation as spent, because the cost of the request is unknown."""
        if reservation is not None:
            await self._finish_request(reservation.usd, reservation.usd)

    async def _finish_request(self, put_aside: float, usd: float) -> None:
        async with self._change:
            self._taken += usd - put_aside
            self._in_flight -= 1
            self._change.notify_all()
