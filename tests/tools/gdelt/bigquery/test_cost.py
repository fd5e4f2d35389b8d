"""What it costs is known before, bounded, and recorded after."""

import re
from dataclasses import dataclass, field

import pytest

from coreeval.errors import BudgetSpent, RunError
from coreeval.tools.gdelt.bigquery.request import format_cost, list_price_usd
from tests.support.bigquery.engine import Parameters
from tests.support.bigquery.server import LEAST_BILLED, BigQueryServer
from tests.tools.gdelt.bigquery.conftest import Opener
from tests.tools.gdelt.bigquery.news import GAL, GKG, JUNE, named

BOTH = 2 * LEAST_BILLED
"""What the smallest request to both tables is billed."""


@pytest.fixture(autouse=True)
def rows(server: BigQueryServer) -> None:
    server.engine.add(gkg=GKG, gal=GAL)


async def test_the_price_is_told_before_and_recorded_after(
    server: BigQueryServer, opened: Opener
) -> None:
    said: list[tuple[str, int]] = []
    source = opened(tell=lambda text: said.append((text, len(server.steps("insert")))))
    found = await source.fetch(named("Mary Smith"), JUNE, 5)
    assert said == [(f"BigQuery is going to read {format_cost(BOTH)}", 0)]
    assert found.bytes_billed == server.billed == BOTH
    assert found.cost_usd == list_price_usd(BOTH) == pytest.approx(6.25 * BOTH / 2**40)
    assert found.notes == (
        f"BigQuery was expected to bill {format_cost(BOTH)}",
        f"BigQuery billed {format_cost(BOTH)}",
    )


async def test_every_job_is_priced_uncached_limited_and_labelled(
    server: BigQueryServer, opened: Opener
) -> None:
    await opened(timeout_s=60).fetch(named("Mary Smith"), JUNE, 5)
    assert [step for step, _ in server.asked if step in ("dry_run", "insert")] == [
        "dry_run", "dry_run", "insert", "insert",
    ]  # fmt: skip
    for body in server.steps("dry_run"):
        assert body["configuration"]["query"]["useQueryCache"] is False
    for body in server.steps("insert"):
        config = body["configuration"]
        assert int(config["query"]["maximumBytesBilled"]) == LEAST_BILLED
        assert config["labels"]["app"] == "coreeval"
        assert 0 < int(config["jobTimeoutMs"]) <= 60_000


async def test_above_the_cap_nothing_is_sent(server: BigQueryServer, opened: Opener) -> None:
    with pytest.raises(BudgetSpent) as caught:
        await opened(max_gb=0.02).fetch(named("Mary Smith"), JUNE, 5)
    assert caught.value.exit_code == 3
    assert caught.value.where == "knowledge.bigquery.max_gb"
    assert "0.02 GB" in caught.value.message
    assert (len(server.steps("dry_run")), server.steps("insert"), server.billed) == (2, [], 0)


async def test_the_cap_holds_for_all_requests_of_a_run(
    server: BigQueryServer, opened: Opener
) -> None:
    source = opened(max_gb=0.05)
    for _ in range(2):
        await source.fetch(named("Mary Smith"), JUNE, 5)
    with pytest.raises(BudgetSpent):
        await source.fetch(named("Mary Smith"), JUNE, 5)
    assert server.billed == 2 * BOTH


@dataclass
class Ledger:
    """A record of bills that notes how many jobs had been sent at each write."""

    server: BigQueryServer
    others: int = 0
    writes: list[tuple[int, int]] = field(default_factory=list)

    def read_others(self) -> int:
        return self.others

    def write(self, billed: int, cost_usd: float) -> None:
        assert cost_usd == list_price_usd(billed)
        self.writes.append((billed, len(self.server.steps("insert"))))


async def test_what_may_be_billed_is_recorded_before_a_job_is_sent(
    server: BigQueryServer, opened: Opener
) -> None:
    ledger = Ledger(server)
    source = opened(record=ledger)
    await source.fetch(named("Mary Smith"), JUNE, 5)
    await source.fetch(named("Mary Smith"), JUNE, 5)
    assert ledger.writes == [(BOTH, 0), (BOTH, 2), (2 * BOTH, 2), (2 * BOTH, 4)]


async def test_a_job_that_was_not_billed_is_not_left_in_the_record(
    server: BigQueryServer, opened: Opener
) -> None:
    server.job_error = ("bytesBilledLimitExceeded", "Query exceeded limit for bytes billed: 1.")
    ledger = Ledger(server)
    with pytest.raises(BudgetSpent, match="limit for bytes billed"):
        await opened(record=ledger).fetch(named("Mary Smith"), JUNE, 5)
    assert [billed for billed, _ in ledger.writes] == [BOTH, 0]


async def test_what_others_were_billed_for_the_run_counts(
    server: BigQueryServer, opened: Opener
) -> None:
    with pytest.raises(BudgetSpent, match=re.escape(format_cost(50_000_000 - 2 * BOTH))):
        await opened(max_gb=0.05, record=Ledger(server, 2 * BOTH)).fetch(
            named("Mary Smith"), JUNE, 5
        )
    assert server.steps("insert") == []


async def test_nothing_is_sent_that_cannot_be_recorded(
    server: BigQueryServer, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> None:
        raise RunError("the disk is full")

    monkeypatch.setattr(Ledger, "write", write)
    with pytest.raises(RunError, match="the disk is full"):
        await opened(record=Ledger(server)).fetch(named("Mary Smith"), JUNE, 5)
    assert server.steps("insert") == []


async def test_a_table_that_has_grown_since_its_price_was_asked_is_not_read(
    server: BigQueryServer, opened: Opener
) -> None:
    server.job_error = ("bytesBilledLimitExceeded", "Query exceeded limit for bytes billed: 1.")
    with pytest.raises(BudgetSpent, match="limit for bytes billed"):
        await opened().fetch(named("Mary Smith"), JUNE, 5)
    assert server.billed == 0


GROWN = 3 * LEAST_BILLED


def grow(server: BigQueryServer, table: str) -> None:
    """Let a table grow between its first dry run and its first job."""
    before = server.engine.scanned

    def scanned(sql: str, parameters: Parameters) -> int:
        small = before(sql, parameters)
        sent = [body["configuration"]["query"]["query"] for body in server.steps("insert")]
        return GROWN if sql in sent and f"gdeltv2.{table}`" in sql else small

    server.engine.scanned = scanned  # type: ignore[method-assign]


@pytest.mark.parametrize("table", ["gkg_partitioned", "gal"])
async def test_a_table_that_has_grown_is_read_at_its_new_price(
    server: BigQueryServer, opened: Opener, table: str
) -> None:
    grow(server, table)
    source = opened(max_gb=0.05)
    found = await source.fetch(named("Mary Smith", "islands"), JUNE, 5)
    assert found.reasons == {}
    assert found.bytes_billed == server.billed == LEAST_BILLED + GROWN
    assert len(server.steps("dry_run")) == len(server.steps("insert")) == 3
    assert any(
        "has grown since its dry run" in note and format_cost(GROWN) in note for note in found.notes
    )
    with pytest.raises(BudgetSpent, match=re.escape(format_cost(50_000_000 - server.billed))):
        await source.fetch(named("Mary Smith"), JUNE, 5)


async def test_growth_above_the_cap_leaves_out_only_the_table_that_has_grown(
    server: BigQueryServer, opened: Opener
) -> None:
    grow(server, "gal")
    told = list[str]()
    source = opened(max_gb=0.03, tell=told.append)
    found = await source.fetch(named("Mary Smith", "islands"), JUNE, 5)
    assert found.by_query["Mary Smith"]
    assert found.reasons == {"islands": "unavailable"}
    assert found.bytes_billed == server.billed == LEAST_BILLED
    assert any(f"about gal: BigQuery would read {format_cost(GROWN)}" in each for each in told)


async def test_growth_above_the_cap_of_the_first_table_stops_before_anything_is_billed(
    server: BigQueryServer, opened: Opener
) -> None:
    grow(server, "gkg_partitioned")
    source = opened(max_gb=0.03)
    with pytest.raises(BudgetSpent, match="may read only"):
        await source.fetch(named("Mary Smith"), JUNE, 5)
    assert server.billed == 0
    server.engine.scanned = lambda *_: LEAST_BILLED  # type: ignore[method-assign]
    assert (await source.fetch(named("Mary Smith"), JUNE, 5)).bytes_billed == BOTH


async def test_a_window_without_rows_is_not_paid_for(
    server: BigQueryServer, opened: Opener
) -> None:
    july = JUNE.model_copy(
        update={"start": JUNE.end, "end": JUNE.end.replace(month=8)},
    )
    found = await opened().fetch(named("Mary Smith"), july, 5)
    assert found.reasons == {"Mary Smith": "not_covered"}
    assert (server.steps("insert"), found.cost_usd) == ([], 0.0)
