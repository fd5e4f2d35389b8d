"""What a run may have billed by BigQuery, and what it has been."""

import threading

from coreeval.errors import BudgetSpent
from coreeval.tools.gdelt.bigquery.prices import GB, told


class Bill:
    """The bytes of one run: reserved before a request, settled after it. Safe between threads."""

    def __init__(self, max_gb: float) -> None:
        self._most = int(max_gb * GB)
        self._taken = 0
        self._lock = threading.Lock()

    def reserve(self, expected: int) -> None:
        """Set bytes aside for a request.

        Raises:
            BudgetSpent: the run would go beyond its cap; nothing is sent.
        """
        with self._lock:
            left = self._most - self._taken
            if expected > left:
                raise BudgetSpent(
                    f"BigQuery would read {told(expected)}, and the run may read {told(left)} more",
                    where="knowledge.bigquery.max_gb",
                    hint="raise it, shorten knowledge.window, or leave a table out of"
                    " knowledge.bigquery.feeds; nothing was billed for this request",
                )
            self._taken += expected

    def settle(self, expected: int, billed: int) -> None:
        """Put what was billed in the place of what was set aside for it."""
        with self._lock:
            self._taken += billed - expected
