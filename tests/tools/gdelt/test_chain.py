"""Several sources as one."""

from coreeval.tools.gdelt.chain import Chain
from tests.support.sources import WINDOW, Told, queries


def ids(found: object) -> list[str]:
    return [item.id for item in found]  # type: ignore[attr-defined]


async def test_the_next_source_is_asked_only_what_the_first_has_nothing_for() -> None:
    first = Told(found={"Ada": ["a"]})
    second = Told(name="doc", remote=True, found={"Ada": ["b"], "Bo": ["c"]})
    answer = await Chain([first, second]).fetch(queries("Ada", "Bo"), WINDOW, 5)
    assert ids(answer.by_query["q1"]) == ["a"]
    assert ids(answer.by_query["q2"]) == ["c"]
    assert second.asked == [["Bo"]]
    assert answer.reasons == {}
    assert (answer.cost_usd, answer.bytes_billed) == (2.0, 2)


async def test_a_source_is_left_alone_when_nothing_is_open() -> None:
    second = Told(name="doc")
    await Chain([Told(found={"Ada": ["a"]}), second]).fetch(queries("Ada"), WINDOW, 5)
    assert second.asked == []


async def test_no_news_is_said_only_if_all_have_looked() -> None:
    first = Told(reasons={"Bo": "not_covered"})
    second = Told(name="doc", reasons={"Ada": "throttled"}, note="DOC is busy")
    answer = await Chain([first, second]).fetch(queries("Ada", "Bo", "Cy"), WINDOW, 5)
    assert answer.reasons == {"q1": "throttled", "q2": "not_covered", "q3": "no_news"}
    assert answer.notes == ("DOC is busy",)


async def test_it_stands_for_all_its_sources() -> None:
    sources = [Told(found={"Ada": [], "Bo": []}, articles=7), Told(name="doc", found={"ada": []})]
    chain = Chain(sources)
    assert (chain.name, chain.remote) == ("local, doc", False)
    assert chain.coverage(WINDOW).articles == 7
    assert [name.name for name in chain.names(WINDOW)] == ["Ada", "Bo"]
    chain.close()
    assert all(source.closed for source in sources)
    assert Chain([Told(), Told(remote=True)]).remote
