"""Records in a run's store what a remote news source bills, before its answer arrives."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import Fetch


@dataclass
class NewsBill:
    """What this process may be billed by one backend: one row among the requests of a run.

    Args:
        backend: The backend.
        store: The store of the pass that asks.
        elsewhere: The store of the other pass, if the run has one.
    """

    backend: str
    store: RunStore
    elsewhere: Sequence[RunStore] = ()
    _number: int | None = field(default=None, init=False)
    """The number of the row; None before it is written."""
    _written: int = field(default=0, init=False)
    """The bytes in the row."""

    def read_others(self) -> int:
        """Return the bytes billed to the run by other processes and passes."""
        fetches = (fetch for store in (self.store, *self.elsewhere) for fetch in store.fetches())
        billed = sum(fetch.bytes_billed for fetch in fetches if fetch.backend == self.backend)
        return billed - self._written

    def write(self, billed: int, cost_usd: float) -> None:
        """Record the bytes that this process is billed, or may be for what it is about to send."""
        row = Fetch(
            backend=self.backend, queries=0, found=0, bytes_billed=billed, cost_usd=cost_usd
        )
        self._number = self.store.add_fetch(row, self._number)
        self._written = billed
