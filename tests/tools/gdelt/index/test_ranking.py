"""What the arrays do must be what the rules say, article by article."""

import math
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from coreeval.schema import EntityQuery, Rung, Window
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.news_index import ArticleColumns
from coreeval.tools.gdelt.index.part_writer import CROWD
from coreeval.tools.gdelt.index.query import (
    BY_NAME,
    IN_TEXT,
    IN_TITLE,
    Matches,
    list_spellings,
    weigh_words,
)
from coreeval.tools.gdelt.index.ranking import CAP, RECENCY, rank_matches
from coreeval.tools.gdelt.local import LocalKnowledge
from tests.tools.gdelt.index.part_samples import add_rows, row

END, DECAY = 10_000, 3_000.0
Find = tuple[int, float, float]


@pytest.mark.parametrize("seed", range(20))
def test_any_finds(seed: int) -> None:
    source = random.Random(seed)
    articles = articles_of(source, 300)
    finds: list[Find] = [
        (source.randrange(300), source.choice([0.4, 0.7, 1.0]),
         source.choice([IN_TITLE, IN_TEXT, BY_NAME]))
        for _ in range(source.choice([1, 20, 400, 2 * CAP]))
    ]  # fmt: skip
    for k in (1, 2, 7, 400):
        assert rank_matches(parts_of(finds), articles, END, DECAY, k) == slow(finds, articles, k)


def test_nothing_found() -> None:
    assert rank_matches([], articles_of(random.Random(1), 3), END, DECAY, 5) == []
    assert rank_matches(parts_of([]), articles_of(random.Random(1), 3), END, DECAY, 5) == []


def articles_of(source: random.Random, count: int) -> ArticleColumns:
    """Return articles of which most are told by several, and some have equal scores."""
    story = [source.choice([0, *range(1, 30)]) for _ in range(count)]
    return ArticleColumns(
        published=np.array([source.randrange(0, END, 1000) for _ in range(count)], np.int64),
        precision=np.zeros(count, np.uint8),
        prior=np.array([source.randrange(4) / 8 for _ in range(count)], np.float32),
        story=np.array(story, np.uint32),
        teller=np.array([source.randrange(1, 4) if one else 0 for one in story], np.uint32),
        source=np.zeros(count, np.uint8),
        language=np.zeros(count, np.uint16),
    )


def parts_of(finds: Sequence[Find]) -> list[Matches]:
    """Return finds as two parts have them."""
    middle = len(finds) // 2
    return [
        Matches(np.array([find[0] for find in some], np.int64),
              np.array([find[1] for find in some]), np.array([find[2] for find in some]))
        for some in (finds[:middle], finds[middle:])
    ]  # fmt: skip


def slow(finds: Sequence[Find], articles: ArticleColumns, k: int) -> list[int]:
    def score(find: Find) -> float:
        article, _, match = find
        fresh = math.exp((int(articles.published[article]) - END) / DECAY)
        return match + RECENCY * fresh + float(articles.prior[article])

    high = sorted(((whole, score((at, whole, match))) for at, whole, match in finds), reverse=True)
    least = high[min(CAP, len(high)) - 1]
    kept: dict[int, tuple[float, float]] = {}
    for find in finds:
        whole, points = find[1], score(find)
        if (whole, points) >= least:
            before = kept.get(find[0], (0.0, 0.0))
            kept[find[0]] = max(before[0], whole), max(before[1], points)
    order = sorted(kept, key=lambda at: (-kept[at][0], -kept[at][1], -articles.published[at], at))
    chosen: list[int] = []
    told = set()
    for at in order:
        story = int(articles.story[at])
        if story and story in told:
            continue
        told.add(story)
        others = [other for other in order if story and int(articles.story[other]) == story
                  and articles.teller[other] != articles.teller[at]]  # fmt: skip
        chosen += [at, *others[:1]]
    return chosen[:k]


JUNE = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))
STATED = datetime(2026, 6, 9, 7, tzinfo=UTC)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKnowledge]:
    store = tmp_path_factory.mktemp("store")
    crowd = [
        row(f"https://crowd{at}.example/{at}", f"Crane{at} lifts{at} boxes{at} near port{at}",
            stated=STATED, names=[("Ferry Board", "organisation")],
            snippet="It has a description." if at < 5 else "")
        for at in range(2 * CROWD)
    ]  # fmt: skip
    add_rows(
        store,
        *crowd,
        row("https://a.example/x", "Paris opens a new metro line in autumn", stated=STATED),
        row("https://b.example/x", "Paris wears a new dress at the gala", stated=STATED,
            names=[("Milan Gala", "event")]),
        row("https://c.example/x", "Paris hosts the summer games once more", stated=STATED,
            snippet="The mayor of the French capital is glad."),
        row("https://d.example/x", "Ocean heat is higher than ever before", stated=STATED,
            themes=["ENV_CLIMATECHANGE"]),
        row("https://e.example/x", "Climate change policy is debated in Bonn", stated=STATED),
        row("https://f.example/x", "Caf\u00e9 owner \u0141ukasz Gutierrez wins the prize",
            stated=STATED, names=[("Carla Espinoza Guti", "person")]),
    )  # fmt: skip
    compact(store)
    with LocalKnowledge(store, news=store, min_precision="crawl") as opened:
        yield opened


async def sites(
    source: LocalKnowledge, text: str, *, rung: Rung = "named", k: int = 10, **more: tuple[str, ...]
) -> list[str]:
    query = EntityQuery(id="q", text=text, rung=rung, **more)
    return [one.domain for one in (await source.fetch([query], JUNE, k)).by_query["q"]]


async def test_an_ambiguous_name_needs_its_context(source: LocalKnowledge) -> None:
    everywhere = {"a.example", "b.example", "c.example"}
    assert set(await sites(source, "Paris")) == everywhere
    assert await sites(source, "Paris", context=("metro ticket",)) == ["a.example"]
    assert await sites(source, "Paris", context=("the French",)) == ["c.example"]
    assert await sites(source, "Paris", context=("Milan Gala",)) == ["b.example"]
    assert await sites(source, "Paris", context=("unicorns", "Paris")) == []
    assert set(await sites(source, "Paris", rung="concept", context=("metro",))) == everywhere
    assert await sites(source, "Paris metro", context=("unicorns",)) == ["a.example"]


async def test_a_batch_keeps_contexts_apart(source: LocalKnowledge) -> None:
    queries = [
        EntityQuery(id="1", text="Paris", context=("metro",)),
        EntityQuery(id="2", text="Paris", context=("dress",)),
        EntityQuery(id="3", text="Paris"),
    ]
    found = (await source.fetch(queries, JUNE, 10)).by_query
    assert [len(found[name]) for name in "123"] == [1, 1, 3]
    assert found["1"][0].domain == "a.example" and found["2"][0].domain == "b.example"


async def test_a_theme_fills_in_after_the_words(source: LocalKnowledge) -> None:
    assert await sites(source, "climate change", rung="concept") == ["e.example", "d.example"]
    assert await sites(source, "climate change") == ["e.example"]


async def test_accents_case_and_cut_names(source: LocalKnowledge) -> None:
    assert await sites(source, "CARLA ESPINOZA GUTI\u00c9RREZ") == ["f.example"]
    assert await sites(source, "cafe owner") == ["f.example"]
    assert await sites(source, "\u0141ukasz Guti\u00e9rrez\u2019s") == ["f.example"]


async def test_the_best_of_a_crowd_are_found(source: LocalKnowledge) -> None:
    best = await sites(source, "Ferry Board", k=5)
    assert sorted(best) == [f"crowd{at}.example" for at in range(5)]
    assert len(await sites(source, "Ferry Board", k=3 * CROWD)) == 2 * CROWD


def test_an_article_has_a_seed_or_too_few_of_the_words() -> None:
    held = {"rare": 3, "common": 900, "usual": 500, "odd": 40}
    for rung in ("named", "concept"):
        (spelling,) = list_spellings([EntityQuery(id="q", text="rare common usual odd", rung=rung)])
        words = list(weigh_words(spelling, held, 1000))
        assert sum(word.weight for word in words) == pytest.approx(1)
        assert words[0].word == "rare" and words[0].seed
        assert sum(word.weight for word in words if not word.seed) < spelling.share
    assert sum(word.seed for word in words) > 1
