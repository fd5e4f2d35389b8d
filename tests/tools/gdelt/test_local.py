import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import Interrupted, KnowledgeError
from coreeval.schema import EntityQuery, Evidence, Precision, Rung, Window
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.local import LocalKnowledge, open_folder, open_local
from coreeval.tools.gdelt.sync.sync import Around, sync_folder
from coreeval.tools.knowledge import KnowledgeSource
from tests.tools.gdelt.file_samples import gal_line, gkg_line, listed, write, write_artlist

JUNE = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `news` and, in `cache`, the store of it; only to look at."""
    folder = tmp_path_factory.mktemp("shared")
    open_folder(written(folder / "news"), folder / "cache")
    return folder


@pytest.fixture
def source(shared: Path) -> Iterator[LocalKnowledge]:
    with open_local(shared / "news", shared / "cache") as opened:
        yield opened


@pytest.fixture
def news(tmp_path: Path) -> Path:
    return written(tmp_path / "news")


def written(folder: Path) -> Path:
    """Write news of June into a folder."""
    folder.mkdir()
    write(
        folder / "a.gkg.csv",
        gkg_line(title="Ferry Board orders ten electric ferries", url="https://a.example/1",
                 published="20260609100000", persons="Carla Espinoza Guti,20;John Howard,30",
                 organisations="Ferry Board,5", date="20260610033000"),
        gkg_line(title="Rain slows harvest across the north", url="https://b.example/2026/06/20/r",
                 date="20260620120000", persons="Mary Smith,9"),
    )  # fmt: skip
    write(
        folder / "b.gal.json.gz",
        gal_line("Ferry Board orders ten new electric ferries", "https://c.example/1",
                 "2026-06-09T12:00:00Z", "The ships will serve the islands from autumn."),
        gal_line("Ferry Board orders ten electric ferries today", "https://c.example/2",
                 "2026-06-09T13:00:00Z"),
        gal_line("Will electric ferries reach the islands?", "https://d.example/1",
                 "2026-06-09T14:00:00Z"),
        gal_line("Old ferries sold to a yard in May", "https://e.example/1",
                 "2026-05-09T14:00:00Z"),
    )  # fmt: skip
    write_artlist(
        folder / "c.json",
        listed("Bakers raise the price of bread", "https://f.example/1", "20260625T100000Z"),
        listed("Il governo parla di nuovi traghetti", "https://g.example/1", "20260625T100000Z",
               "Italian"),
    )  # fmt: skip
    return folder


async def ask(source: KnowledgeSource, text: str, *aliases: str, k: int = 10) -> list[Evidence]:
    query = EntityQuery(id="q", text=text, aliases=aliases)
    return list((await source.fetch([query], JUNE, k)).by_query["q"])


async def urls(source: KnowledgeSource, text: str, *aliases: str) -> list[str]:
    return [evidence.url for evidence in await ask(source, text, *aliases)]


async def test_a_story_is_followed_by_one_telling_of_another_site(source: LocalKnowledge) -> None:
    found = await ask(source, "electric ferry")
    assert [evidence.url for evidence in found] == [
        "https://c.example/1",
        "https://a.example/1",
        "https://d.example/1",
    ]
    assert found[0].cluster == found[1].cluster != ""
    assert found[2].cluster == ""


async def test_evidence_can_be_traced(source: LocalKnowledge) -> None:
    first, second, _ = await ask(source, "electric ferries")
    assert first.snippet == "The ships will serve the islands from autumn."
    assert first.origin == "b.gal.json.gz:1"
    assert second.published_at == datetime(2026, 6, 9, 10, tzinfo=UTC)
    assert second.published_precision == "exact"
    assert "Ferry Board" in [entity.name for entity in second.entities]


async def test_all_words_must_match_in_the_text_or_in_one_name(source: LocalKnowledge) -> None:
    assert await urls(source, "Mary Smith") == ["https://b.example/2026/06/20/r"]
    assert await urls(source, "John Espinoza") == []
    assert await urls(source, "ferr") == []
    assert await urls(source, "electric buses") == []
    assert await urls(source, "islands ships") == ["https://c.example/1"]


async def test_a_topic_is_found_by_some_of_its_words_after_all_of_them(
    source: LocalKnowledge,
) -> None:
    async def titles(text: str, rung: Rung) -> list[str]:
        query = EntityQuery(id="q", text=text, rung=rung)
        return [item.title for item in (await source.fetch([query], JUNE, 9)).by_query["q"]]

    found = await titles("electric ferry reaches", "structure")
    assert found[0] == "Will electric ferries reach the islands?"
    assert "Ferry Board orders ten new electric ferries" in found[1:]
    assert await titles("electric ferry submarine", "named") == []
    assert await titles("electric ferry submarine", "structure") != []
    assert await titles("electric ferry submarine", "alias") == []
    assert await titles("ferry submarine unicorn dragon sphinx", "structure") == []


async def test_other_spellings_find_too(source: LocalKnowledge) -> None:
    assert await urls(source, "Carla Espinoza Gutiérrez") == ["https://a.example/1"]
    assert await urls(source, "Zzz", "Mary Smith Ltd.") == ["https://b.example/2026/06/20/r"]
    assert await urls(source, "harvesting") == ["https://b.example/2026/06/20/r"]


async def test_a_batch_answers_each_query_and_says_why_not(source: LocalKnowledge) -> None:
    queries = [EntityQuery(id=name, text=name) for name in ("ferry", "unicorns", "of the")]
    answer = await source.fetch(queries, JUNE, 1)
    assert {name: len(found) for name, found in answer.by_query.items()} == {
        "ferry": 1, "unicorns": 0, "of the": 0,
    }  # fmt: skip
    assert answer.reasons == {"unicorns": "no_news", "of the": "no_news"}
    winter = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 2, 1, tzinfo=UTC))
    assert (await source.fetch(queries[:1], winter, 1)).reasons == {"ferry": "not_covered"}
    assert (await source.fetch([], JUNE, 1)).by_query == {}


async def test_many_may_ask_at_once(source: LocalKnowledge) -> None:
    alone = await ask(source, "electric ferries")
    together = await asyncio.gather(*(ask(source, "electric ferries") for _ in range(20)))
    assert all(found == alone for found in together)


@pytest.mark.parametrize(
    ("precision", "count"), [("exact", 4), ("url", 5), ("cluster", 5), ("crawl", 6)]
)
def test_less_certain_dates_are_let_in_on_request(
    shared: Path, precision: Precision, count: int
) -> None:
    with open_local(shared / "news", shared / "cache", min_precision=precision) as opened:
        assert opened.coverage(JUNE).articles == count


def test_coverage_names_the_gaps(source: LocalKnowledge) -> None:
    coverage = source.coverage(JUNE)
    assert coverage.first == datetime(2026, 6, 9, 10, tzinfo=UTC)
    assert coverage.last == datetime(2026, 6, 20, tzinfo=UTC)
    assert coverage.days == 2
    assert coverage.gaps == (
        "2026-06-01..2026-06-08",
        "2026-06-10..2026-06-19",
        "2026-06-21..2026-06-30",
    )
    assert source.require(JUNE) == coverage


def test_the_window_excludes_its_end(source: LocalKnowledge) -> None:
    start, end = datetime(2026, 6, 9, 10, tzinfo=UTC), datetime(2026, 6, 9, 12, tzinfo=UTC)
    assert source.coverage(Window(start=start, end=end)).articles == 1


def test_an_empty_window_says_what_there_is(source: LocalKnowledge) -> None:
    late = Window(start=datetime(2026, 6, 21, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))
    with pytest.raises(KnowledgeError) as caught:
        source.require(late)
    assert "2026-05-09..2026-06-20" in caught.value.message
    assert caught.value.where.endswith("news")
    assert caught.value.hint == (
        "set knowledge.min_precision: crawl, which finds 1 article; or in the config, under "
        "knowledge:, write `window: {start: 2026-06-01, end: 2026-06-21}`"
    )
    both = source.suggest_window(Window(start=datetime(2026, 6, 20, tzinfo=UTC), end=late.start))
    assert both is not None and both.end == late.start
    assert (source.coverage(both).articles or 0) >= 2 and both.start < datetime(
        2026, 6, 20, tzinfo=UTC
    )
    assert (
        source.suggest_window(Window(start=datetime(2026, 5, 1, tzinfo=UTC), end=late.end)) is None
    )
    empty = Window(start=datetime(2020, 1, 1, tzinfo=UTC), end=datetime(2020, 2, 1, tzinfo=UTC))
    assert source.coverage(empty).gaps == ("2020-01-01..2020-01-31",)
    with pytest.raises(KnowledgeError, match="no news between 2020-01-01 and 2020-02-01") as caught:
        source.require(empty)
    assert caught.value.hint.endswith("window: {start: 2026-05-21, end: 2026-06-21}`")


def test_names_of_the_window(source: LocalKnowledge) -> None:
    names = {(name.name, name.type) for name in source.names(JUNE)}
    assert ("Ferry Board", "organisation") in names
    assert ("Mary Smith", "person") in names
    early = Window(start=JUNE.start, end=datetime(2026, 6, 15, tzinfo=UTC))
    assert "Mary Smith" not in {name.name for name in source.names(early)}


def test_stats_account_for_every_row(source: LocalKnowledge) -> None:
    stats = source.stats()
    lost = sum(stats.bad.values()) + stats.duplicates + sum(stats.dropped.values())
    assert stats.rows == 8 == lost + stats.articles
    assert stats.dropped == {"other_language": 1}
    assert sum(stats.precision.values()) == stats.articles == 7
    assert stats.clusters == 1


def test_the_store_is_made_once_for_each_state_of_the_folder(news: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = open_folder(news, cache)
    made = (first / "store.db").stat().st_mtime_ns
    assert open_folder(news, cache) == first
    assert (first / "store.db").stat().st_mtime_ns == made
    write(news / os.fsdecode(b"K\xf6ln.csv"), gkg_line())
    assert open_folder(news, cache) != first
    assert not list(cache.glob("*.part"))


def test_two_at_once_make_one_store(
    news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    rename = Path.rename

    def counted(path: Path, target: str | os.PathLike[str]) -> Path:
        made.append(path.name)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", counted)
    threads = [threading.Thread(target=open_folder, args=(news, tmp_path / "c")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([name for name in made if name.endswith(".part")]) == 1


def test_what_a_killed_build_left_is_cleared(news: Path, tmp_path: Path) -> None:
    index = open_folder(news, tmp_path / "cache")
    index.rename(index.with_suffix(".part"))
    assert open_folder(news, tmp_path / "cache") == index
    assert (index / "store.db").exists()


def test_a_store_whose_making_was_stopped_is_not_taken(
    news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "coreeval.tools.gdelt.sync.sync.StoreLayout.clear_leftovers",
            lambda *_: signal.raise_signal(signal.SIGINT),
        )
        with pytest.raises(Interrupted, match="stopped while CoreEval was"):
            open_folder(news, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"]
    with open_local(news, tmp_path / "cache") as opened:
        assert opened.coverage(JUNE).articles


def test_a_damaged_store_names_the_folder_to_delete(shared: Path, tmp_path: Path) -> None:
    news, cache = shared / "news", shutil.copytree(shared / "cache", tmp_path / "cache")
    index = open_folder(news, cache)
    (words,) = index.glob("parts/*/index.bin")
    whole = words.read_bytes()
    for data in (b"", b"nothing", whole[:200], whole[:-1], whole[:30] + b"?" + whole[31:]):
        words.write_bytes(data)
        with pytest.raises(KnowledgeError, match="damaged") as caught:
            open_local(news, cache)
        assert caught.value.where == str(index)


async def test_what_is_damaged_inside_is_told_when_it_is_read(shared: Path, tmp_path: Path) -> None:
    news, cache = shared / "news", shutil.copytree(shared / "cache", tmp_path / "cache")
    store = open_folder(news, cache)
    (texts,) = store.glob("parts/*/texts.bin")
    whole = texts.read_bytes()
    texts.unlink()
    texts.write_bytes(whole[:10] + bytes(30) + whole[40:])
    with (
        open_local(news, cache) as opened,
        pytest.raises(KnowledgeError, match="damaged"),
    ):
        await ask(opened, "ferry")


def test_files_without_a_single_article(tmp_path: Path) -> None:
    write(tmp_path / "a.gkg.csv", gkg_line(title=""))
    with pytest.raises(KnowledgeError, match="contains no articles"):
        open_local(tmp_path, tmp_path / "cache")


async def test_files_with_nothing_to_offer(tmp_path: Path) -> None:
    write(tmp_path / "a.gkg.csv", gkg_line(title="Too short"))
    with open_local(tmp_path, tmp_path / "cache") as opened:
        assert opened.stats().dropped == {"short": 1}
        assert opened.names(JUNE) == []
        answer = await opened.fetch([EntityQuery(id="q", text="short")], JUNE, 3)
        assert answer.reasons == {"q": "not_covered"}
        for ask in (lambda: opened.require(JUNE), opened.span):
            with pytest.raises(KnowledgeError, match="no searchable article; 1 article is not"):
                ask()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="does not exist"):
        open_local(tmp_path / "nowhere", tmp_path / "cache")


def bilingual(folder: Path) -> Path:
    """Write news in two languages about one thing."""
    folder.mkdir()
    write(
        folder / "news.gal.json",
        gal_line("Fähre Nordstern fährt wieder nach Fahrplan", "https://de.example/1",
                 "2026-06-09T12:00:00Z", lang="de"),
        gal_line("Ferry Nordstern runs on time again", "https://en.example/1",
                 "2026-06-09T12:00:00Z"),
    )  # fmt: skip
    return folder


@pytest.mark.parametrize(("language", "url"), [("de", "https://de.example/1"),
                                               ("en", "https://en.example/1")])  # fmt: skip
async def test_a_folder_offers_the_news_of_the_language_asked(
    tmp_path: Path, language: str, url: str
) -> None:
    news = bilingual(tmp_path / "news")
    with open_local(news, tmp_path / "cache", language=language) as opened:
        (found,) = await ask(opened, "Nordstern")
        assert (found.url, found.language) == (url, language)
        assert opened.coverage(JUNE).articles == 1


async def test_a_store_of_two_languages_answers_in_the_one_asked(tmp_path: Path) -> None:
    store = tmp_path / "store"
    sync_folder(store, bilingual(tmp_path / "news"), around=Around(finish=compact))
    with (
        open_local(store, tmp_path, language="de") as opened,
        pytest.raises(KnowledgeError, match="no German news, only English") as none,
    ):
        opened.require(JUNE)
    assert "--languages en,de" in none.value.hint
    compact(store, ("en", "de"))
    for language in ("de", "en"):
        with open_local(store, tmp_path, language=language) as opened:
            (found,) = await ask(opened, "Nordstern")
            assert found.language == language
            assert opened.require(JUNE).articles == 1
    assert compact(store).parts == 0
