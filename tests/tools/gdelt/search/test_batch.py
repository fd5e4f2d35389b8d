from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from coreeval.schema import EntityQuery, Rung, Window
from coreeval.tools.gdelt.local import LocalKnowledge
from coreeval.tools.gdelt.parts.compact import compact
from coreeval.tools.gdelt.parts.crowds import CROWD
from coreeval.tools.gdelt.search.questions import spellings, weighed
from tests.tools.gdelt.parts.making import add_rows, row

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
        (spelling,) = spellings([EntityQuery(id="q", text="rare common usual odd", rung=rung)])
        words = list(weighed(spelling, held, 1000))
        assert sum(word.weight for word in words) == pytest.approx(1)
        assert words[0].word == "rare" and words[0].seed
        assert sum(word.weight for word in words if not word.seed) < spelling.share
    assert sum(word.seed for word in words) > 1
