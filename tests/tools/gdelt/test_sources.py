"""Several sources as one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from coreeval.schema import EntityQuery, Retrieval, Window
from coreeval.tools.gdelt.sources import SourceCache, SourceChain
from coreeval.tools.json_cache import JsonCache
from tests.support.sources import WINDOW, Told, queries


def ids(found: object) -> list[str]:
    return [item.id for item in found]  # type: ignore[attr-defined]


async def test_the_next_source_is_asked_only_what_the_first_has_nothing_for() -> None:
    first = Told(found={"Ada": ["a"]})
    second = Told(name="doc", remote=True, found={"Ada": ["b"], "Bo": ["c"]})
    answer = await SourceChain([first, second]).fetch(queries("Ada", "Bo"), WINDOW, 5)
    assert ids(answer.by_query["q1"]) == ["a"]
    assert ids(answer.by_query["q2"]) == ["c"]
    assert second.asked == [["Bo"]]
    assert answer.reasons == {}
    assert (answer.cost_usd, answer.bytes_billed) == (2.0, 2)


async def test_a_source_is_left_alone_when_nothing_is_open() -> None:
    second = Told(name="doc")
    await SourceChain([Told(found={"Ada": ["a"]}), second]).fetch(queries("Ada"), WINDOW, 5)
    assert second.asked == []


async def test_no_news_is_said_only_if_all_have_looked() -> None:
    first = Told(reasons={"Bo": "not_covered"})
    second = Told(name="doc", reasons={"Ada": "throttled"}, note="DOC is busy")
    answer = await SourceChain([first, second]).fetch(queries("Ada", "Bo", "Cy"), WINDOW, 5)
    assert answer.reasons == {"q1": "throttled", "q2": "not_covered", "q3": "no_news"}
    assert answer.notes == ("DOC is busy",)


async def test_it_stands_for_all_its_sources() -> None:
    sources = [Told(found={"Ada": [], "Bo": []}, articles=7), Told(name="doc", found={"ada": []})]
    chain = SourceChain(sources)
    assert (chain.name, chain.remote) == ("local, doc", False)
    assert chain.coverage(WINDOW).articles == 7
    assert [name.name for name in chain.names(WINDOW)] == ["Ada", "Bo"]
    chain.close()
    assert all(source.closed for source in sources)
    assert SourceChain([Told(), Told(remote=True)]).remote


class Slow(Told):
    """A source that takes its time."""

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        await asyncio.sleep(0.01)
        return await super().fetch(queries, window, k)


def remembered(source: Told, folder: Path) -> SourceCache:
    return SourceCache(source, JsonCache(folder))


async def test_an_answer_outlives_the_process(tmp_path: Path) -> None:
    source = Told(name="doc", found={"Ada": ["a", "b"]})
    first = remembered(source, tmp_path)
    answer = await first.fetch(queries("Ada", "Bo"), WINDOW, 5)
    first.close()
    assert source.closed
    again = remembered(source, tmp_path)
    kept = await again.fetch(queries("Bo", "Ada"), WINDOW, 5)
    assert kept.by_query["q2"] == answer.by_query["q1"] and len(kept.by_query["q2"]) == 2
    assert kept.reasons == {"q1": "no_news"}
    assert (kept.cost_usd, kept.bytes_billed) == (0.0, 0)
    assert source.asked == [["Ada", "Bo"]]
    again.close()


async def test_another_window_or_number_is_another_question(tmp_path: Path) -> None:
    source = Told(found={"Ada": ["a", "b"]})
    known = remembered(source, tmp_path)
    await known.fetch(queries("Ada"), WINDOW, 1)
    assert len((await known.fetch(queries("Ada"), WINDOW, 2)).by_query["q1"]) == 2
    later = WINDOW.model_copy(update={"start": WINDOW.start.replace(day=2)})
    await known.fetch(queries("Ada"), later, 1)
    assert len(source.asked) == 3
    known.close()


async def test_many_that_ask_at_once_are_one_request(tmp_path: Path) -> None:
    source = Slow(found={"Ada": ["a"]})
    known = remembered(source, tmp_path)
    answers = await asyncio.gather(*[known.fetch(queries("Ada"), WINDOW, 5) for _ in range(20)])
    assert source.asked == [["Ada"]]
    assert {len(answer.by_query["q1"]) for answer in answers} == {1}
    assert sum(answer.cost_usd for answer in answers) == 1.0
    known.close()


async def test_who_gives_up_leaves_the_question_to_the_next(tmp_path: Path) -> None:
    source = Slow(found={"Ada": ["a"]})
    known = remembered(source, tmp_path)
    first = asyncio.create_task(known.fetch(queries("Ada"), WINDOW, 5))
    second = asyncio.create_task(known.fetch(queries("Ada"), WINDOW, 5))
    await asyncio.sleep(0.005)
    first.cancel()
    assert (await second).by_query["q1"]
    known.close()


async def test_a_failure_holds_for_this_process_only(tmp_path: Path) -> None:
    source = Told(reasons={"Ada": "throttled"}, note="busy")
    known = remembered(source, tmp_path)
    first = await known.fetch(queries("Ada"), WINDOW, 5)
    again = await known.fetch(queries("Ada"), WINDOW, 5)
    known.close()
    assert first.reasons == again.reasons == {"q1": "throttled"}
    assert (first.notes, again.notes) == (("busy",), ())
    assert len(source.asked) == 1
    resumed = remembered(Told(found={"Ada": ["a"]}), tmp_path)
    assert (await resumed.fetch(queries("Ada"), WINDOW, 5)).by_query["q1"]
    resumed.close()


async def test_what_no_disk_can_keep_is_still_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Told(found={"Ada": ["a"]})
    known = remembered(source, tmp_path)
    monkeypatch.setattr(JsonCache, "put", lambda *_, **__: False)
    for _ in range(2):
        assert (await known.fetch(queries("Ada"), WINDOW, 5)).by_query["q1"]
    assert len(source.asked) == 1
    known.close()
