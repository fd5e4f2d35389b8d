"""An exchange for tests: no prices, no budget, keys as given."""

from collections.abc import Mapping

from coreeval.models import ModelPool, Retry
from coreeval.models.budget import Budget
from coreeval.tools.catalogs import Prices
from coreeval.tools.stores.call_store import CallStore


def exchange(
    store: CallStore,
    *,
    env: Mapping[str, str] | None = None,
    retry: Retry | None = None,
    in_flight: int = 64,
    prices: Prices | None = None,
    budget_usd: float | None = None,
) -> ModelPool:
    """Return an exchange over a call store."""
    budget = Budget(store.ledger, prices or {}, budget_usd=budget_usd)
    return ModelPool(store, budget, in_flight=in_flight, retry=retry, env=env or {})
