"""What a reader makes of one row: an article, or the reason why it is none."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from coreeval.schema import NamedEntity

Kind = Literal["gkg", "gal", "artlist"]
Reason = Literal[
    "columns", "collection", "untitled", "no_url", "no_date", "invalid_json", "damaged"
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One article as a GDELT file tells it, before it is dated, deduplicated and screened."""

    url: str
    title: str
    crawled_at: datetime
    """When GDELT saw the page; the latest time at which it can have been published."""
    stated_at: datetime | None = None
    """When the page says it was published."""
    language: str = "en"
    """ISO 639-1 code as marked by the file, `und` where it is unknown."""
    snippet: str = ""
    entities: tuple["NamedEntity", ...] = ()
    origin: str


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no article, and why."""

    reason: Reason


Rows = Iterator[Article | BadRow]
