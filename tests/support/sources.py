"""Knowledge sources that say what a test tells them to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    NoEvidence,
    Retrieval,
    Window,
)

WINDOW = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))


def piece(name: str) -> Evidence:
    """Return a piece of evidence that is told apart by its name."""
    return Evidence(
        id=name,
        url=f"https://a.example/{name}",
        domain="a.example",
        title=f"What happened to {name} today",
        published_at=datetime(2026, 6, 10, tzinfo=UTC),
        published_precision="exact",
        origin="test",
    )


@dataclass
class Told:
    """A source that knows what it was told, by the text of the query."""

    name: str = "local"
    remote: bool = False
    found: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reasons: Mapping[str, NoEvidence] = field(default_factory=dict)
    articles: int | None = None
    note: str = ""
    asked: list[list[str]] = field(default_factory=list)
    """The texts of each request."""
    closed: bool = False

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Answer, at a dollar and a byte a request."""
        self.asked.append([query.text for query in queries])
        by_query = {
            query.id: tuple(map(piece, self.found.get(query.text, ())))[:k] for query in queries
        }
        texts = {query.id: query.text for query in queries if not by_query[query.id]}
        return Retrieval(
            by_query=by_query,
            reasons={key: self.reasons.get(text, "no_news") for key, text in texts.items()},
            notes=(self.note,) if self.note else (),
            bytes_billed=1,
            cost_usd=1.0,
        )

    def coverage(self, window: Window) -> Coverage:
        """Tell how many articles there are said to be."""
        return Coverage(articles=self.articles)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return what there is evidence about."""
        return [NamedEntity(name=text, type="other") for text in self.found]

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


def queries(*texts: str) -> list[EntityQuery]:
    """Return a query for each text."""
    return [EntityQuery(id=f"q{number}", text=text) for number, text in enumerate(texts, start=1)]
