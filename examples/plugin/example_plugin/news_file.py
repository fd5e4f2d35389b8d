"""A source of news: a file of JSON lines with `url`, `title`, `published` and `summary`."""

import json
from collections.abc import Sequence
from datetime import datetime

from coreeval.plugins import EntityQuery, KnowledgeSettings, NewsArticle, Window


class NewsFile:
    """Offers the articles of `knowledge.path`; CoreEval finds those that fit a sample."""

    plugin_api: int = 1

    async def find(
        self, queries: Sequence[EntityQuery], window: Window, settings: KnowledgeSettings
    ) -> list[NewsArticle]:
        """Return the articles of the window."""
        if settings.path is None:
            raise ValueError("knowledge.path must name the file of articles")
        found = map(_read_article, settings.path.read_text("utf-8").splitlines())
        return [each for each in found if window.start <= each.published_at < window.end]


def _read_article(line: str) -> NewsArticle:
    row = json.loads(line)
    return NewsArticle(
        url=row["url"],
        title=row["title"],
        published_at=datetime.fromisoformat(row["published"]),
        snippet=row.get("summary", ""),
        licence=row.get("licence", ""),
    )
