"""One statement as a job: priced, started once, waited for, read page by page, or cancelled."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar, cast

from google.api_core.exceptions import Conflict, GoogleAPICallError
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigquery import Client, QueryJob, QueryJobConfig
from requests.exceptions import RequestException
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from coreeval.tools.gdelt.bigquery.outcome import Outcome, Refused
from coreeval.tools.gdelt.bigquery.pages import Row
from coreeval.tools.gdelt.bigquery.parameters import parameters
from coreeval.tools.gdelt.bigquery.refusals import explained, is_transient, refusal
from coreeval.tools.gdelt.bigquery.statements import Statement, check_bounds
from coreeval.tools.gdelt.bigquery.turn import Turn

LABELS = {"app": "coreeval", "part": "knowledge"}
"""What the project's bill can be split by."""
PAGE_ROWS = 5_000
CANCEL_S = 10.0
ONCE = Retry(predicate=lambda _: False)
"""The client's own retries, switched off: they know no deadline of ours, and may start anew."""
_FAILURES = (GoogleAPICallError, GoogleAuthError, RequestException)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often one request is sent, and how long is waited in between."""

    tries: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 16.0
    poll_s: float = 0.5


class Jobs:
    """Runs statements, one at a time, over one client."""

    def __init__(self, client: Client, *, patience: Patience | None = None) -> None:
        self._client = client
        self._patience = patience or Patience()
        self._project = str(client.project)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def price(self, statement: Statement, turn: Turn) -> int:
        """Return the bytes that a statement would read, at most; asking is free.

        Raises:
            CoreEvalError: the user has to mend something first.
            Refused: BigQuery gives no answer.
            Ended: the turn is over.
        """
        config = QueryJobConfig(dry_run=True, use_query_cache=False)
        job = self._sent(lambda: self._query(statement, config, turn), turn)
        if job.total_bytes_processed is None:
            raise Refused("unavailable", "BigQuery does not say what the request would read")
        return int(job.total_bytes_processed)

    def run(self, statement: Statement, turn: Turn, *, expected: int, most: int) -> Outcome:
        """Run a statement and return its rows.

        A job that was cancelled, or may have begun unseen, counts as billed in full.

        Args:
            statement: What is asked.
            turn: The time it may take; when it is over, the job is cancelled.
            expected: The bytes that it will be billed.
            most: The bytes beyond which BigQuery shall not run it, and bill nothing.

        Raises:
            CoreEvalError: the user has to mend something first.
        """
        job_id, job = f"coreeval-{uuid.uuid4().hex}", None
        try:
            config = QueryJobConfig(
                labels=LABELS,
                maximum_bytes_billed=most,
                job_timeout_ms=int(turn.left_s() * 1000),
            )
            job = self._sent(lambda: self._query(statement, config, turn, job_id), turn)
            self._await(job, turn)
            billed = int(job.total_bytes_billed or 0)
            if job.error_result:
                return Outcome(billed=billed, refused=self._failed(job))
            rows = self._sent(lambda: _read(job, turn), turn)
        except Refused as over:
            begun = job is not None or over.reason == "unavailable"
            if begun:
                self._cancel(job_id)
            return Outcome(billed=expected if begun else 0, refused=over)
        return Outcome(rows=tuple(rows), billed=billed)

    def _query(
        self, statement: Statement, config: QueryJobConfig, turn: Turn, job_id: str = ""
    ) -> QueryJob:
        """Start a job; if an earlier try has started it after all, find that one."""
        check_bounds(statement)
        config.query_parameters = parameters(statement)
        try:
            return self._client.query(
                statement.sql,
                config,
                job_id=job_id or None,
                retry=ONCE,
                job_retry=None,
                timeout=turn.left_s(),
            )
        except Conflict:
            found = self._client.get_job(job_id, retry=ONCE, timeout=turn.left_s())
            return cast(QueryJob, found)

    def _await(self, job: QueryJob, turn: Turn) -> None:
        while job.state != "DONE":
            turn.wait(self._patience.poll_s)
            self._sent(lambda: job.reload(retry=ONCE, timeout=turn.left_s()), turn)

    def _failed(self, job: QueryJob) -> Refused:
        told = dict(job.error_result or {})
        meant = refusal(str(told.get("reason", "")), str(told.get("message", "")), self._project)
        if not isinstance(meant, Refused):
            raise meant
        return meant

    def _sent(self, request: Callable[[], T], turn: Turn) -> T:
        """Send a request, and the very same again where that may help."""
        patience = self._patience
        tries = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_attempt(patience.tries),
            wait=wait_random_exponential(patience.first_wait_s, patience.longest_wait_s),
            sleep=turn.wait,
            reraise=True,
        )
        try:
            return tries(request)
        except _FAILURES as error:
            raise explained(error, self._project) from None

    def _cancel(self, job_id: str) -> None:
        """Ask BigQuery to stop a job that nobody waits for; it may not have begun."""
        with suppress(*_FAILURES):
            self._client.cancel_job(job_id, retry=ONCE, timeout=CANCEL_S)


def _read(job: QueryJob, turn: Turn) -> list[Row]:
    """Return all rows, over as many pages as it takes."""
    found = job.result(page_size=PAGE_ROWS, retry=ONCE, timeout=turn.left_s(), job_retry=None)
    rows: list[Row] = []
    for page in found.pages:
        rows += [dict(row.items()) for row in page]
        turn.left_s()
    return rows
