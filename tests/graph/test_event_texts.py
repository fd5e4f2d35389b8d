"""What samples are shown of articles: fetched once, kept with the run, quoted in provenance."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from coreeval.agents.document_terms import SNIPPET_CHARS
from coreeval.graph.event_texts import EventTexts
from coreeval.graph.monitor import Progress
from coreeval.runs.arms import cut_excerpt
from coreeval.schema import Evidence, Sample
from coreeval.tools.articles.article_text import ArticleText, NoText, TextRetrieval
from coreeval.tools.articles.sources import ArticleTexts
from coreeval.tools.stores.run_events import NewsSearch, StoredEvent
from coreeval.tools.stores.run_store import RunStore

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BODY = "A fire destroyed a warehouse in Oslo. Nobody was hurt. The damage was put at 12 million."


def news(key: str) -> Evidence:
    return Evidence(
        id=key,
        url=f"https://example.org/{key}",
        domain="example.org",
        title="Fire in Oslo",
        snippet="A description.",
        published_at=NOW,
        published_precision="crawl",
        origin="test",
    )


class Shelf:
    """Has the text of one article, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def fetch_texts(self, items: Sequence[Evidence]) -> TextRetrieval:
        self.asked += [item.id for item in items]
        text = ArticleText(
            id="e1",
            url="https://example.org/e1",
            text=BODY,
            text_sha256="ab" * 32,
            title="Fire in Oslo",
            publisher="Example",
            published_at=NOW,
            date_source="stated",
            published_precision="exact",
            language="en",
            source="file",
            licence="CC BY 4.0",
        )
        others = {
            item.id: NoText(id=item.id, reason="wall", depth="description")
            for item in items
            if item.id != "e1"
        }
        return TextRetrieval(by_id={**others, "e1": text}, notes=("a note",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with RunStore.open(tmp_path / "run.db", now=lambda: NOW) as opened:
        opened.add_samples(
            Sample(id=key, split="test", fields={"text": "How great was the damage?"}, label=0,
                   label_text="joy")
            for key in ("s1", "s2")
        )  # fmt: skip
        yield opened


def event(key: str) -> StoredEvent:
    return StoredEvent(key=f"c{key}", rung="named", reports=(key,))


async def test_passages_are_kept_for_what_a_sample_is_offered_and_never_fetched_again(
    store: RunStore,
) -> None:
    await store.history.add_evidence(map(news, ("e1", "e2", "e3")))
    for sample, events, dealt in (
        ("s1", ("e1", "e2", "e3"), ["ce1", "ce2", "ce3"]),
        ("s2", ("e1",), []),
    ):
        search = NewsSearch(asked=[], events=[event(key) for key in events], dealt=dealt)
        await store.events.add(sample, search)
    shelf, shown = Shelf(), list[Progress]()
    texts = EventTexts(store=store, texts=cast(ArticleTexts, shelf), offered=2, watch=shown.append)
    await texts.keep_passages()
    await texts.keep_passages()
    assert sorted(shelf.asked) == ["e1", "e2"]  # e3 is not offered at first
    assert store.events.passages("s1") == {"e1": BODY}
    assert store.events.passages("s2") == {}
    found = store.history.evidence(["e1", "e2"])
    assert (found["e1"].depth, found["e1"].source, found["e1"].licence) == (
        "article",
        "file",
        "CC BY 4.0",
    )
    assert found["e1"].published_precision == "exact"
    assert found["e1"].snippet == "A description."  # the body stays in the cache
    assert found["e2"].depth == "description"
    said = [each.note for each in shown if each.note]
    assert said[0] == "a note" and "1 article without a text" in said[1]


@pytest.mark.parametrize("at", [0, 500, 1985])
def test_an_excerpt_has_the_quote_in_it_and_no_more_than_allowed(at: int) -> None:
    text = "x" * at + "twelve million." + "y" * (1985 - at)
    excerpt = cut_excerpt(text, "twelve million.")
    assert "twelve million." in excerpt and len(excerpt) == SNIPPET_CHARS


def test_an_excerpt_without_the_quote_is_the_beginning() -> None:
    assert cut_excerpt("short", "elsewhere") == "short"
    assert cut_excerpt("a" * 400, "elsewhere") == "a" * SNIPPET_CHARS
