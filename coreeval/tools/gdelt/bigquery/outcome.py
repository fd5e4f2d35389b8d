"""How one statement ended."""

from dataclasses import dataclass

from coreeval.schema import NoEvidence
from coreeval.tools.gdelt.bigquery.pages import Row


class Refused(Exception):
    """BigQuery gave no answer, and there is nothing that the user has to mend first."""

    def __init__(self, reason: NoEvidence, message: str) -> None:
        super().__init__(message)
        self.reason: NoEvidence = reason


class Ended(Refused):
    """The time is up, or somebody stopped the request."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a statement came to, and what it is billed."""

    rows: tuple[Row, ...] = ()
    billed: int = 0
    """Bytes."""
    refused: Refused | None = None
    """Why there are no rows; None where the rows are the answer."""
