"""The limit on what BigQuery may bill holds for a run, not for each of its processes."""

from pathlib import Path

import pytest

from coreeval.errors import BudgetSpent
from coreeval.graph.bundled import WINDOW, demo_data
from coreeval.graph.news_bill import NewsBill
from coreeval.graph.run import retry
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import Fetch
from tests.graph.kit import Lab
from tests.graph.test_failures import is_unlucky
from tests.support.bigquery.files import fill
from tests.support.bigquery.server import LEAST_BILLED, BigQueryServer
from tests.support.llm_server import Reply, Request, refused


def write_cap(lab: Lab, server: BigQueryServer, max_gb: float) -> None:
    bigquery = {"project": "p", "endpoint": server.url, "feeds": ["gal"], "max_gb": max_gb}
    lab.write(
        knowledge={
            "backends": ["bigquery"],
            "bigquery": bigquery,
            "window": WINDOW,
            "min_precision": "crawl",
        }
    )


def test_retry_continues_with_what_is_left_of_the_cap(lab: Lab) -> None:
    async def unkind(request: Request) -> str | Reply:
        return refused(400, "no") if is_unlucky(request) else await lab.answers(request)

    lab.server.answers = unkind
    with BigQueryServer().running() as server:
        fill(server.engine, demo_data() / "news")
        write_cap(lab, server, 0.015)
        used = lab.refresh().manifest.knowledge
        assert (used.requests, used.bytes_billed) == (1, server.billed) == (1, LEAST_BILLED)
        assert used.notes
        lab.server.answers = lab.answers
        with pytest.raises(BudgetSpent, match="may read only"):
            retry(lab.files.root)
        assert server.billed == LEAST_BILLED
        write_cap(lab, server, 0.03)  # decides nothing about the run, so it may be raised
        used = lab.resume().manifest.knowledge
        assert (used.requests, used.bytes_billed) == (2, server.billed) == (2, 2 * LEAST_BILLED)


def test_a_bill_is_one_row_and_counts_what_others_were_billed(tmp_path: Path) -> None:
    with (
        RunStore.open(tmp_path / "first.db", now=utc_now) as first,
        RunStore.open(tmp_path / "control.db", now=utc_now) as control,
    ):
        first.add_fetch(Fetch(backend="doc", queries=1, found=0, bytes_billed=1000))
        ours = NewsBill("bigquery", first, (control,))
        theirs = NewsBill("bigquery", control, (first,))
        ours.write(10, 0.1)
        theirs.write(5, 0.05)
        ours.write(7, 0.07)
        assert (ours.read_others(), theirs.read_others()) == (5, 7)
        assert NewsBill("bigquery", first, (control,)).read_others() == 12
        assert [fetch.bytes_billed for fetch in first.fetches()] == [1000, 7]
