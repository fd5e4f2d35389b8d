"""Articles of a plugin are dated, screened and ranked as those of other sources are."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.config import Config, parse_config
from coreeval.config.plugins import PluginUse
from coreeval.errors import PluginFailed
from coreeval.schema import EntityQuery, Retrieval, Window
from coreeval.tools.gdelt.plugin_source import open_plugin_source
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.plugins import allow_plugin
from tests.config.test_load import BASE
from tests.support.plugins import Site, site

__all__ = ["site"]
WINDOW = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 2, 1, tzinfo=UTC))
QUERIES = [EntityQuery(id="a", text="Lake Constance"), EntityQuery(id="b", text="Mount Etna")]
LAKE = (
    "NewsArticle('https://news.example/lake', 'Lake Constance has frozen over for the first time',"
    " datetime(2026, 1, 5, tzinfo=UTC), 'Skaters cross it.', licence='CC BY 4.0')"
)
ETNA = LAKE.replace("Lake Constance", "Mount Etna").replace("/lake", "/etna")


def _config(changes: dict[str, object]) -> Config:
    news = {"backends": ["news_of:News"], "window": {"start": "2026-01-01"}, **changes}
    return parse_config({**BASE, "knowledge": news}, where="here", base=Path("/"))


def _open(
    site: Site,
    tmp_path: Path,
    found: str,
    more: str = "",
    changes: dict[str, object] | None = None,
    heard: list[Retrieval] | None = None,
) -> KnowledgeSource:
    """Return the source of a plugin that finds what an expression says."""
    site.write(
        "news_of",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n"
        "from coreeval.plugins import NewsArticle\n"
        f"class News:\n    plugin_api = 1\n    calls = 0\n    {more}\n"
        "    async def find(self, queries, window, settings):\n"
        "        News.calls += 1\n"
        f"        return {found}\n",
    )
    allow_plugin(PluginUse("knowledge", "news_of:News"))
    told = heard if heard is not None else []
    config = _config(changes or {})
    return open_plugin_source("news_of:News", config, "en", tmp_path, heard=told.append)


async def test_each_query_gets_its_articles(site: Site, tmp_path: Path) -> None:
    late = LAKE.replace("/lake", "/late").replace("2026, 1, 5", "2026, 3, 5")
    source = _open(site, tmp_path, f"[{LAKE}, {ETNA}, {late}]")
    found = await source.fetch([*QUERIES, EntityQuery(id="c", text="Zanzibar")], WINDOW, 5)
    (lake,) = found.by_query["a"]
    assert (lake.url, lake.domain) == ("https://news.example/lake", "news.example")
    assert (lake.source, lake.licence, lake.origin) == (
        "plugin", "CC BY 4.0", "plugin:news_of:News:1",
    )  # fmt: skip
    assert (lake.published_precision, lake.snippet) == ("exact", "Skaters cross it.")
    assert [each.title.split(" has")[0] for each in found.by_query["b"]] == ["Mount Etna"]
    assert (found.by_query["c"], found.reasons) == ((), {"c": "no_news"})
    assert source.coverage(WINDOW).articles is None
    assert (source.name, source.remote) == ("plugin:news_of:News", True)
    source.close()


async def test_licences_and_credentials_count_as_in_other_news(site: Site, tmp_path: Path) -> None:
    closed = ETNA.replace("CC BY 4.0", "CC BY-ND 4.0")
    private = LAKE.replace("/lake", "/lake?token=5f3a9c1b7e")
    found = await _open(site, tmp_path, f"[{private}, {closed}]").fetch(QUERIES, WINDOW, 5)
    (lake,) = found.by_query["a"]
    assert lake.licence == "CC BY 4.0"
    assert lake.url.startswith("https://news.example/lake?token=hidden-")
    assert found.by_query["b"] == ()
    assert found.notes == (
        "plugin:news_of:News: 1 article was left out, because the licence forbids derived works",
    )


async def test_a_time_that_nobody_states_is_less_certain(site: Site, tmp_path: Path) -> None:
    seen = LAKE.replace("licence=", "is_exact=False, licence=")
    for precision, count in (("cluster", 0), ("crawl", 1)):
        source = _open(site, tmp_path, f"[{seen}]", changes={"min_precision": precision})
        found = await source.fetch(QUERIES, WINDOW, 5)
        assert len(found.by_query["a"]) == count


async def test_the_config_reaches_it(site: Site, tmp_path: Path) -> None:
    source = _open(
        site,
        tmp_path,
        f"[{LAKE}] if (settings.path, settings.options['region'], settings.language) == "
        "(Path('/news.jsonl'), 'alps', 'en') else 1 / 0",
        changes={"path": "news.jsonl", "options": {"region": "alps"}},
    )
    assert (await source.fetch(QUERIES, WINDOW, 5)).by_query["a"]


@pytest.mark.parametrize(("more", "calls"), [("", 2), ("remote = True", 1)])
async def test_only_a_remote_one_is_kept_on_disk(
    site: Site, tmp_path: Path, more: str, calls: int
) -> None:
    there = 'len(list(Path(__file__).parent.glob("call-*")))'
    count = f"Path(__file__).with_name(f'call-{{{there}}}').write_text('x')"
    heard = list[Retrieval]()
    for _ in range(2):
        source = _open(site, tmp_path, f"{count} and [{LAKE}]", more, heard=heard)
        assert (await source.fetch(QUERIES, WINDOW, 5)).by_query["a"]
        source.close()
    assert len(list(site.folder.glob("call-*"))) == calls
    assert len(heard) == bool(more)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("[1]", r"must return NewsArticle\(url="),
        ("None", "failed in find: TypeError"),
        ("1 / 0", "failed in find: ZeroDivisionError"),
        (f"[{LAKE.replace(', tzinfo=UTC', '')}]", "a time without a time zone"),
        (f"[{LAKE.replace('https://news.example/lake', 'lake')}]", "with the invalid address"),
    ],
)
async def test_a_source_that_fails(site: Site, tmp_path: Path, found: str, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        await _open(site, tmp_path, found).fetch(QUERIES, WINDOW, 5)


async def test_it_is_closed_if_it_can_be(site: Site, tmp_path: Path) -> None:
    _open(site, tmp_path, "[]").close()
    source = _open(site, tmp_path, "[]", "def close(self): 1 / 0")
    with pytest.raises(PluginFailed, match="failed in close"):
        source.close()
