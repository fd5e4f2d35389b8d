"""News by meaning: a headline is found that shares no word with the text."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from coreeval.schema import Window
from coreeval.tools.embeddings import Vectors
from coreeval.tools.gdelt.local import LocalKnowledge, open_local
from coreeval.tools.gdelt.nearest import NearestNews
from tests.tools.gdelt.file_samples import gal_line, write

JUNE = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))
TOPICS = {"outage": 0, "offline": 0, "download": 0, "ferry": 1, "ferries": 1, "bread": 2}


class Topics:
    """Embeds a text as the topics of its words; counts what it is asked."""

    name = "topics"

    def __init__(self) -> None:
        self.asked = list[str]()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        vectors = np.full((len(texts), 3), 0.1, np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.casefold().split():
                if word in TOPICS:
                    row[TOPICS[word]] += 1
        return vectors


@pytest.fixture
def source(tmp_path: Path) -> Iterator[LocalKnowledge]:
    folder = tmp_path / "news"
    folder.mkdir()
    write(
        folder / "b.gal.json.gz",
        gal_line("Ferry Board orders ten electric ferries", "https://c.example/1",
                 "2026-06-09T12:00:00Z"),
        gal_line("Ferry Board orders ten electric ferries today", "https://d.example/2",
                 "2026-06-09T13:00:00Z"),
        gal_line("Web services see a long outage", "https://d.example/1", "2026-06-10T14:00:00Z"),
        gal_line("Bakers raise the price of bread", "https://f.example/1", "2026-06-11T14:00:00Z"),
        gal_line("An outage of May", "https://e.example/1", "2026-05-09T14:00:00Z"),
    )  # fmt: skip
    with open_local(folder, tmp_path / "cache") as opened:
        yield opened


def test_what_is_near_in_meaning_is_found_without_a_shared_word(source: LocalKnowledge) -> None:
    embeds = Topics()
    nearest = NearestNews(source, JUNE, embeds)
    assert nearest.find("why does it not download", 2) == []  # nothing is embedded yet
    seen = list[tuple[int, int]]()

    def watch(done: int, total: int) -> bool:
        seen.append((done, total))
        return True

    assert nearest.embed(watch)
    assert seen == [(0, 3), (3, 3)]
    assert "An outage of May" not in embeds.asked
    assert sum("ferries" in title for title in embeds.asked) == 1  # one article of a story
    (first, cosine), (_, other) = nearest.find("why does it not download", 2)
    assert first.title == "Web services see a long outage"
    assert cosine == pytest.approx(1.0)
    assert other < 0.5


def test_a_stopped_embedding_goes_on_where_it_was(source: LocalKnowledge) -> None:
    embeds = Topics()
    nearest = NearestNews(source, JUNE, embeds)
    assert not nearest.embed(lambda done, total: False)
    assert embeds.asked == []
    assert nearest.embed(lambda done, total: True)
    assert nearest.embed(lambda done, total: True)
    assert len(embeds.asked) == 3
