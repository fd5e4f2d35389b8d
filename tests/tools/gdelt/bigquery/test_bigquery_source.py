"""What comes back from BigQuery is what the local store finds in the same rows."""

from pathlib import Path

import pytest

from coreeval.schema import EntityQuery, Evidence, Precision, Window
from coreeval.tools.gdelt.bigquery.statements import COPIES
from coreeval.tools.gdelt.local import open_local
from coreeval.tools.knowledge import KnowledgeSource
from tests.support.bigquery.files import fill
from tests.support.bigquery.server import BigQueryServer
from tests.tools.gdelt.bigquery.conftest import Opener
from tests.tools.gdelt.bigquery.news import GAL, GKG, JUNE, NAMES, folder_of, named
from tests.tools.gdelt.file_samples import gkg_line
from tests.tools.gdelt.test_real_files import SHARED

RUNS_2026 = Window.model_validate({"start": "2026-06-08T00:00Z", "end": "2026-06-11T00:00Z"})
RUNS_2020 = Window.model_validate({"start": "2020-03-01T00:00Z", "end": "2020-04-01T00:00Z"})


def told(items: tuple[Evidence, ...]) -> list[dict[str, object]]:
    return [item.model_dump(exclude={"origin"}) for item in items]


@pytest.mark.parametrize("precision", ["cluster", "crawl"])
async def test_names_are_answered_as_by_the_local_store(
    server: BigQueryServer, opened: Opener, tmp_path: Path, precision: Precision
) -> None:
    folder = folder_of(tmp_path / "news")
    fill(server.engine, folder)
    with open_local(folder, tmp_path / "cache", min_precision=precision) as local:
        theirs = await local.fetch(named(*NAMES), JUNE, 5)
    ours = await opened(min_precision=precision).fetch(named(*NAMES), JUNE, 5)
    for name in NAMES:
        assert told(ours.by_query[name]) == told(theirs.by_query[name]), name
    assert ours.reasons == theirs.reasons
    assert {name for name in NAMES if not ours.by_query[name]} == {
        "Filler Name3",  # named once, far down the page
        "Nobody Atall",
    }


@pytest.mark.parametrize("window", [RUNS_2026, RUNS_2020], ids=["2026", "2020"])
async def test_real_rows_are_answered_as_by_the_local_store(
    server: BigQueryServer, opened: Opener, tmp_path: Path, window: Window
) -> None:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    fill(server.engine, SHARED / "gkg")
    with open_local(SHARED / "gkg", tmp_path, min_precision="crawl") as local:
        names = named(*(name.name for name in local.names(window)))
        theirs = await local.fetch(names, window, 8)
    ours = await opened(min_precision="crawl").fetch(names, window, 8)
    assert len(names) > 200
    assert {name: told(found) for name, found in ours.by_query.items()} == {
        name: told(found) for name, found in theirs.by_query.items()
    }
    assert len(server.jobs) == 1


async def test_topics_are_found_by_the_weight_of_their_words(
    server: BigQueryServer, opened: Opener
) -> None:
    server.engine.add(gkg=GKG, gal=GAL)
    asked = [
        EntityQuery(id=text, text=text, rung="structure")
        for text in ("electric ferry reaches port", "harvest submarine", "dragon sphinx unicorn")
    ]
    found = (await opened().fetch(asked, JUNE, 9)).by_query
    assert found["electric ferry reaches port"][0].id
    assert [item.title for item in found["harvest submarine"]] == [
        "Rain slows harvest across the north"
    ]
    assert found["dragon sphinx unicorn"] == ()


async def test_500_names_are_one_statement_for_each_table(
    server: BigQueryServer, opened: Opener
) -> None:
    server.engine.add(gkg=GKG, gal=GAL)
    names = [f"Person Number{at}" for at in range(499)]
    found = await opened().fetch(named(*names, "Mary Smith"), JUNE, 5)
    assert found.by_query["Mary Smith"]
    assert len(found.by_query) == 500
    assert len(server.steps("insert")) == len(server.steps("dry_run")) == 2


async def test_the_second_table_describes_what_the_first_one_found(
    server: BigQueryServer, opened: Opener
) -> None:
    server.engine.add(gkg=GKG, gal=GAL)
    (harvest,) = (await opened().fetch(named("Springfield"), JUNE, 5)).by_query["Springfield"]
    assert harvest.snippet == "Farmers in Ontario wait for a dry week."
    assert harvest.origin.startswith("gdelt-bq.gdeltv2.gal:20260620110000; gdelt-bq.gdeltv2.gkg")
    only_gkg = await opened(feeds=["gkg"]).fetch(named("Springfield"), JUNE, 5)
    assert only_gkg.by_query["Springfield"][0].snippet == ""


async def test_old_pages_that_were_crawled_late_are_no_news(
    server: BigQueryServer, opened: Opener
) -> None:
    server.engine.add(gkg=GKG)
    found = await opened(min_precision="crawl").fetch(named("Mary Smith"), JUNE, 9)
    assert {item.url for item in found.by_query["Mary Smith"]} == {
        "https://b.example/2026/06/20/r",
        "https://d.example/undated",
    }


async def test_names_are_values_and_never_sql(server: BigQueryServer, opened: Opener) -> None:
    server.engine.add(gkg=GKG)
    hostile = (
        "'; DROP TABLE gkg; --",
        "O\\'Brien",
        "`x`",
        '"',
        "\\",
        "日本",
        "a\x00b",
        "\u202eevil",
    )
    found = await opened().fetch(named(*hostile, "O'Brien"), JUNE, 5)
    assert found.by_query["O'Brien"]
    assert found.by_query["'; DROP TABLE gkg; --"] == ()
    (sent,) = {body["configuration"]["query"]["query"] for body in server.steps("insert")}
    assert "DROP" not in sent and "Brien" not in sent
    assert (await opened().fetch(named("Mary Smith"), JUNE, 5)).by_query["Mary Smith"]


async def test_all_pages_are_read(server: BigQueryServer, opened: Opener) -> None:
    server.engine.add(
        gkg=[
            gkg_line(title=f"Mary Smith opens bridge number{at} of town{at}",
                     persons="Mary Smith,3", date=f"2026061{at}120000",
                     url=f"https://s{at}.example/2026/06/1{at}/x")
            for at in range(7)
        ]
    )  # fmt: skip
    server.page_rows = 3
    found = await opened(feeds=["gkg"]).fetch(named("Mary Smith"), JUNE, 9)
    assert len(found.by_query["Mary Smith"]) == 7
    assert [asked.get("pageToken") for asked in server.steps("results")] == [None, "3", "6"]


async def test_copies_beyond_those_sent_still_count_as_sites(
    server: BigQueryServer, opened: Opener
) -> None:
    copies = [
        gkg_line(title="Mary Smith opens the long bridge in town", persons="Mary Smith,3",
                 url=f"https://s{at}.example/2026/06/10/x", date="20260610120000")
        for at in range(20)
    ]  # fmt: skip
    newer = gkg_line(title="Mary Smith closes a short bridge in town", persons="Mary Smith,3",
                     url="https://z.example/2026/06/12/y", date="20260612120000")  # fmt: skip
    server.engine.add(gkg=[*copies, newer])
    (found,) = (await opened(feeds=["gkg"]).fetch(named("Mary Smith"), JUNE, 9)).by_query.values()
    assert [item.title.split()[2] for item in found] == ["opens", "opens", "closes"]
    (job,) = server.jobs.values()
    assert len(job.rows) == COPIES + 1


async def test_names_so_far_and_coverage(server: BigQueryServer, opened: Opener) -> None:
    server.engine.add(gkg=GKG, gal=GAL)
    source: KnowledgeSource = opened()
    assert source.names(JUNE) == []
    await source.fetch(named("Mary Smith"), JUNE, 5)
    assert [name.name for name in source.names(JUNE)] == ["Mary Smith", "Springfield"]
    assert source.coverage(JUNE).articles is None
    assert (source.name, source.remote) == ("bigquery", True)


async def test_nothing_to_ask_is_not_asked(server: BigQueryServer, opened: Opener) -> None:
    found = await opened().fetch(named("of the", ""), JUNE, 5)
    assert found.reasons == {"of the": "no_news", "": "no_news"}
    assert (await opened().fetch([], JUNE, 5)).by_query == {}
    assert server.asked == []
