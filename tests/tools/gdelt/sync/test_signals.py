"""Events and Mentions: one row for each page, and why other rows are none."""

from datetime import timedelta
from pathlib import Path

import pytest

from coreeval.tools.gdelt.sync.feeds import feed_of
from coreeval.tools.gdelt.sync.file_reader import Offer, Reading, read
from tests.tools.gdelt.file_samples import write
from tests.tools.gdelt.sync.kit import NOW, event_line, mention_line

PAGE, OTHER = "https://news.example/1", "https://news.example/2"


def reading_of(path: Path) -> Reading:
    return read(Offer(path=path, name="f"), set())


def test_events_are_put_together_by_page(tmp_path: Path) -> None:
    lines = [
        event_line(NOW, PAGE, mentions=4, sources=1, sqldate="20251005"),
        event_line(NOW, PAGE, mentions=9, sources=3, root=1),
        event_line(NOW - timedelta(minutes=15), OTHER, mentions=1),
        event_line(NOW, "BBC Monitoring"),
        event_line(NOW, PAGE).replace("20261005120000", "soon"),
        "1\t2\t3",
    ]
    reading = reading_of(write(tmp_path / "e.CSV", *lines))
    first, second = reading.signals.to_pylist()
    assert first == {
        "url": PAGE, "num_mentions": 9, "num_sources": 3, "num_articles": 9, "mentions": None,
        "confidence": None, "is_root": True, "sqldate": 20261005,
    }  # fmt: skip
    assert (second["url"], second["is_root"]) == (OTHER, False)
    assert reading.feed == "events"
    assert (reading.tally.rows, reading.tally.articles) == (6, 3)
    assert reading.tally.bad == {"no_url": 1, "no_date": 1, "columns": 1}
    assert len(reading.batches) == 2


def test_mentions_are_counted_by_page(tmp_path: Path) -> None:
    lines = [
        mention_line(NOW, PAGE, confidence=20),
        mention_line(NOW, PAGE, confidence=100),
        mention_line(NOW, "BBC", kind="2"),
        mention_line(NOW, OTHER, confidence=300),
        mention_line(NOW, OTHER).rpartition("\t")[0],
    ]
    reading = reading_of(write(tmp_path / "m.CSV", *lines))
    first, second = reading.signals.to_pylist()
    assert (first["mentions"], first["confidence"], first["is_root"]) == (2, 100, None)
    assert (second["mentions"], second["confidence"]) == (1, 100)
    assert reading.tally.bad["collection"] == reading.tally.bad["columns"] == 1


@pytest.mark.parametrize(
    ("line", "feed"),
    [
        (event_line(NOW, PAGE), "events"),
        (mention_line(NOW, PAGE), "mentions"),
        ("\t".join(["GLOBALEVENTID", *["x"] * 60]), None),
        ("\t".join(["x"] * 16), None),
    ],
)
def test_signals_are_known_by_their_columns(tmp_path: Path, line: str, feed: str | None) -> None:
    assert feed_of(write(tmp_path / "x.txt.gz", line)) == feed
