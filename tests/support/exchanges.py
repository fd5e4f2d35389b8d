"""An exchange for tests: no prices, no budget, keys as given."""

from collections.abc import Mapping

from coreeval.models import Exchange, Retry
from coreeval.models.purse import Purse
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
) -> Exchange:
    """Return an exchange over a call store."""
    purse = Purse(store.ledger, prices or {}, budget_usd=budget_usd)
    return Exchange(store, purse, in_flight=in_flight, retry=retry, env=env or {})
