"""Each way in which BigQuery can refuse: what stops the run, and what another source may answer."""

import asyncio
import socket
import threading
from typing import Literal

import pytest
from google.oauth2.credentials import Credentials

from coreeval.config.knowledge import BigQueryConfig
from coreeval.errors import BudgetSpent, ConfigError, CoreEvalError, CredentialError
from coreeval.schema import NoEvidence
from coreeval.tools.gdelt.bigquery import bigquery_source
from coreeval.tools.gdelt.bigquery.bigquery_source import BigQueryKnowledge
from coreeval.tools.gdelt.bigquery.client import open_client
from coreeval.tools.gdelt.bigquery.jobs import JobRunner
from coreeval.tools.gdelt.bigquery.request import RequestDeadline, StatementResult, format_cost
from coreeval.tools.gdelt.bigquery.statements import BigQueryStatement
from tests.support.bigquery.server import LEAST_BILLED, BigQueryServer, Step
from tests.support.endless_server import Kind, endless
from tests.tools.gdelt.bigquery.conftest import HASTE, Opener
from tests.tools.gdelt.bigquery.news import GAL, GKG, JUNE, named

NAME = "Mary Smith"


@pytest.fixture(autouse=True)
def rows(server: BigQueryServer) -> None:
    server.engine.add(gkg=GKG, gal=GAL)


STOPPING = [
    ("accessDenied", "Access Denied: Project p: bigquery.jobs.create", CredentialError,
     "roles/bigquery.jobUser"),
    ("accessNotConfigured", "BigQuery API has not been used in project 1", ConfigError,
     "gcloud services enable bigquery.googleapis.com --project local"),
    ("billingNotEnabled", "Billing has not been enabled for this project", ConfigError, "billing"),
    ("notFound", "Not found: Project nowhere", ConfigError, "knowledge.bigquery.project"),
    ("bytesBilledLimitExceeded", "Query exceeded limit", BudgetSpent,
     "run the command again"),
]  # fmt: skip


@pytest.mark.parametrize("step", ["dry_run", "insert"])
@pytest.mark.parametrize(("reason", "message", "kind", "hint"), STOPPING)
async def test_what_only_the_user_can_mend_stops_the_run(
    server: BigQueryServer, opened: Opener, step: Step, reason: str, message: str,
    kind: type[CoreEvalError], hint: str,
) -> None:  # fmt: skip
    server.fail(step, reason, message)
    with pytest.raises(kind) as caught:
        await opened().fetch(named(NAME), JUNE, 5)
    assert message in caught.value.message or "not enabled" in caught.value.message
    assert hint in caught.value.hint
    assert server.billed == 0 and len(server.steps(step)) == 1


@pytest.mark.parametrize(("reason", "message", "kind", "hint"), STOPPING)
async def test_after_a_paid_statement_its_news_is_used_whatever_stops_the_next(
    server: BigQueryServer, opened: Opener, reason: str, message: str,
    kind: type[CoreEvalError], hint: str,
) -> None:  # fmt: skip
    def refuse_next(step: Step, answer: object) -> object:
        if step == "results" and not server.faults:
            server.fail("insert", reason, message)
        return answer

    server.alter = refuse_next
    told = list[str]()
    source = opened(tell=told.append)
    found = await source.fetch(named(NAME, "islands"), JUNE, 5)
    assert [item.origin[:20] for item in found.by_query[NAME]] == ["gdelt-bq.gdeltv2.gkg"]
    assert found.reasons == {"islands": "unavailable"}
    assert found.bytes_billed == server.billed == LEAST_BILLED
    (said,) = [each for each in told if "did not answer about gal: " in each]
    assert hint in said and (message in said or "not enabled" in said)
    (noted,) = [note for note in found.notes if "did not answer" in note]
    assert noted == f"BigQuery did not answer about gal: unavailable ({kind.kind})"
    assert found.notes[-1] == f"BigQuery billed {format_cost(LEAST_BILLED)}"


async def test_credentials_that_end_while_a_job_runs_do_not_hide_its_bill(
    server: BigQueryServer, opened: Opener
) -> None:
    server.held = True
    server.fail("get", "authError", "Invalid Credentials")
    told = list[str]()
    found = await opened(feeds=["gkg"], tell=told.append).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert found.bytes_billed == LEAST_BILLED
    assert server.cancelled == list(server.jobs)
    (said,) = [each for each in told if "did not answer about gkg: " in each]
    assert "Google refused the credentials" in said and "gcloud auth" in said


REASONS: list[tuple[str, str, NoEvidence]] = [
    ("rateLimitExceeded", "Exceeded rate limits", "throttled"),
    ("quotaExceeded", "Quota exceeded: free query bytes scanned", "throttled"),
    ("invalidQuery", "Syntax error: Unexpected keyword", "rejected"),
    ("invalidQuery", "Unrecognized name: V2Persons", "rejected"),
    ("notFound", "Not found: Table gdelt-bq:gdeltv2.gkg_partitioned", "rejected"),
    ("resourcesExceeded", "Resources exceeded during query execution", "rejected"),
    ("backendError", "Error encountered during execution", "unavailable"),
    ("internalError", "An internal error occurred", "unavailable"),
]


@pytest.mark.parametrize("step", ["dry_run", "insert", "job"])
@pytest.mark.parametrize(("reason", "message", "expected"), REASONS)
async def test_all_else_gives_the_queries_a_reason(
    server: BigQueryServer, opened: Opener, step: Literal["dry_run", "insert", "job"],
    reason: str, message: str, expected: NoEvidence,
) -> None:  # fmt: skip
    if step == "job":
        server.job_error = (reason, message)
    else:
        server.fail(step, reason, message, times=99)
    told = list[str]()
    found = await opened(feeds=["gkg"], tell=told.append).fetch(named(NAME), JUNE, 5)
    assert found.by_query == {NAME: ()}
    assert found.reasons == {NAME: expected}
    assert any(message in each for each in told)
    assert not any(message in note for note in found.notes), "notes are published"
    assert server.billed == 0
    if expected != "unavailable":
        assert found.cost_usd == 0.0
    tries = HASTE.tries if reason in ("rateLimitExceeded", "backendError", "internalError") else 1
    assert len(server.steps("insert" if step == "job" else step)) == (1 if step == "job" else tries)


async def test_one_table_answers_while_the_other_fails(
    server: BigQueryServer, opened: Opener
) -> None:
    server.fail("insert", "backendError", times=HASTE.tries)
    found = await opened().fetch(named(NAME, "Ontario", "Nobody Atall"), JUNE, 5)
    assert [item.origin[:20] for item in found.by_query["Ontario"]] == ["gdelt-bq.gdeltv2.gal"]
    assert found.reasons == {NAME: "unavailable", "Nobody Atall": "unavailable"}


@pytest.mark.parametrize("step", ["dry_run", "insert", "results"])
@pytest.mark.parametrize("reason", ["rateLimitExceeded", "backendError"])
async def test_a_passing_failure_is_tried_again(
    server: BigQueryServer, opened: Opener, step: Step, reason: str
) -> None:
    server.fail(step, reason, times=2)
    found = await opened(feeds=["gkg"]).fetch(named(NAME), JUNE, 5)
    assert found.by_query[NAME]
    assert len(server.jobs) == 1
    ids = {body["jobReference"]["jobId"] for body in server.steps("insert")}
    assert len(ids) == 1


@pytest.mark.parametrize("step", ["dry_run", "insert", "results"])
async def test_an_answer_that_was_lost_is_not_paid_for_twice(
    server: BigQueryServer, opened: Opener, step: Step
) -> None:
    server.lose(step)
    found = await opened(feeds=["gkg"]).fetch(named(NAME), JUNE, 5)
    assert found.by_query[NAME]
    assert len(server.jobs) == 1
    assert found.bytes_billed == server.billed


async def test_a_job_that_runs_is_waited_for(server: BigQueryServer, opened: Opener) -> None:
    server.held = True
    asked = asyncio.ensure_future(opened(feeds=["gkg"]).fetch(named(NAME), JUNE, 5))
    while len(server.steps("get")) < 3:
        await asyncio.sleep(0.01)
    server.release()
    assert (await asked).by_query[NAME]


async def test_who_gives_up_cancels_the_job(server: BigQueryServer, opened: Opener) -> None:
    server.held = True
    asked = asyncio.ensure_future(opened(feeds=["gkg"]).fetch(named(NAME), JUNE, 5))
    while not server.steps("get"):
        await asyncio.sleep(0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert server.cancelled == list(server.jobs)


async def test_the_deadline_cancels_the_job_and_counts_it(
    server: BigQueryServer, opened: Opener
) -> None:
    server.held = True
    found = await opened(feeds=["gkg"], timeout_s=0.4).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert any("no answer within 0.4 s" in note for note in found.notes)
    assert server.cancelled == list(server.jobs)
    assert found.bytes_billed > 0


@pytest.mark.parametrize("step", ["dry_run", "insert"])
async def test_a_server_that_says_nothing_is_not_waited_for(
    server: BigQueryServer, opened: Opener, step: Step
) -> None:
    server.hang(step)
    found = await opened(feeds=["gkg"], timeout_s=0.5).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert len(server.steps("cancel")) == (1 if step == "insert" else 0)


async def test_nobody_answers(opened: Opener) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
    found = await opened(endpoint=nowhere).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert "cannot be reached" in found.notes[0]
    assert found.cost_usd == 0.0


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_what_is_asked_and_the_token_stay_where_they_were_sent(
    server: BigQueryServer, status: int
) -> None:
    with BigQueryServer().running() as other:
        other.engine.add(gkg=GKG, gal=GAL)
        server.redirect = (status, other.url)
        config = BigQueryConfig(endpoint=server.url, project="p", feeds=("gkg",))
        client = open_client(config, Credentials(token="s3cret-token"))  # type: ignore[no-untyped-call]
        source = BigQueryKnowledge(
            JobRunner(client, patience=HASTE), config, min_precision="cluster"
        )
        found = await source.fetch(named(NAME), JUNE, 5)
        source.close()
        assert other.asked == []
    assert len(server.asked) == 1, "it is not asked again"
    assert server.headers[0]["authorization"] == "Bearer s3cret-token"
    assert found.reasons == {NAME: "unavailable"}
    assert any("it redirects" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["trickle", "slow head"])
async def test_a_gateway_that_trickles_ends_with_the_time(opened: Opener, kind: Kind) -> None:
    with endless(kind) as url:
        found = await opened(endpoint=url, timeout_s=0.5).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert any("no answer within 0.5 s" in note for note in found.notes)


async def test_a_gateway_that_sends_without_end_is_not_read_on(opened: Opener) -> None:
    with endless("gzip") as url:
        found = await opened(endpoint=url).fetch(named(NAME), JUNE, 5)
    assert found.reasons == {NAME: "unavailable"}
    assert any("more than 32 MiB" in note for note in found.notes)


class _Stuck:
    """Runs statements, and is stuck where no deadline reaches."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.freed = threading.Event()

    def price(self, statement: BigQueryStatement, turn: RequestDeadline) -> int:
        return 1

    def run(
        self, statement: BigQueryStatement, turn: RequestDeadline, *, expected: int, most: int
    ) -> StatementResult:
        self.threads.append(threading.current_thread())
        self.freed.wait(30)
        return StatementResult()

    def close(self) -> None:
        self.freed.set()


async def test_a_thread_that_does_not_end_is_left_behind_and_counts_as_billed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bigquery_source, "CANCEL_S", 0.05)
    stuck = _Stuck()
    source = BigQueryKnowledge(stuck, BigQueryConfig(project="p", timeout_s=0.1))
    found = await source.fetch(named(NAME), JUNE, 5)
    asked = asyncio.ensure_future(source.fetch(named(NAME), JUNE, 5))
    while len(stuck.threads) < 2:
        await asyncio.sleep(0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert [thread.daemon and thread.is_alive() for thread in stuck.threads] == [True, True]
    source.close()
    for thread in stuck.threads:
        thread.join(10)
    assert found.reasons == {NAME: "unavailable"} and found.bytes_billed > 0
    assert any("no answer within 0.1 s" in note for note in found.notes)
