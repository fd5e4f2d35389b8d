"""One statement as a job: priced, started once, waited for, read page by page, or cancelled.

What a user or a text says is only ever the value of a parameter.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar, cast

from google.api_core.exceptions import Conflict, GoogleAPICallError
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigquery import (
    ArrayQueryParameter,
    Client,
    QueryJob,
    QueryJobConfig,
    ScalarQueryParameter,
)
from requests.exceptions import RequestException
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from coreeval.tools.bounded_session import limit_request_time
from coreeval.tools.gdelt.bigquery.client import classify_reason, explain_error, is_transient
from coreeval.tools.gdelt.bigquery.request import (
    BigQueryRefusal,
    RequestDeadline,
    Row,
    StatementResult,
)
from coreeval.tools.gdelt.bigquery.statements import COPIES, BigQueryStatement, check_bounds

Parameter = ScalarQueryParameter | ArrayQueryParameter


def to_parameters(statement: BigQueryStatement) -> list[Parameter]:
    """Return the parameters that a statement's SQL names."""
    window = statement.window
    decay = (window.end - window.start) / 3
    named: list[Parameter] = [
        _scalar_parameter("first_day", "TIMESTAMP", statement.start),
        _scalar_parameter("end_day", "TIMESTAMP", statement.end),
        _scalar_parameter("window_start", "STRING", _format_stamp(window.start)),
        _scalar_parameter("window_end", "TIMESTAMP", window.end),
        _scalar_parameter("decay", "FLOAT64", max(decay.total_seconds(), 1.0)),
        _scalar_parameter("copies", "INT64", COPIES),
        _scalar_parameter("most", "INT64", statement.rows),
        _array_parameter("asks", [f"{ask.least} {ask.words}" for ask in statement.asks]),
        _array_parameter("forms", [f"{form.form} {form.word}" for form in statement.forms]),
        _array_parameter("urls", statement.urls),
    ]
    if statement.feed == "gkg":
        named.append(_scalar_parameter("first_batch", "INT64", int(_format_stamp(window.start))))
        named.append(_scalar_parameter("end_batch", "INT64", int(_format_stamp(statement.end))))
    return named


def _format_stamp(at: datetime) -> str:
    """Write a time as GKG does: 14 digits. With 8, DATE would match no row, and cost the same."""
    return (at - (at.utcoffset() or timedelta())).strftime("%Y%m%d%H%M%S")


def _scalar_parameter(name: str, kind: str, value: str | float | datetime) -> ScalarQueryParameter:
    return ScalarQueryParameter(name, kind, value)


def _array_parameter(name: str, values: Sequence[str]) -> ArrayQueryParameter:
    return ArrayQueryParameter(name, "STRING", list(values))


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


class JobRunner:
    """Runs statements, one at a time, over one client."""

    def __init__(self, client: Client, *, patience: Patience | None = None) -> None:
        self._client = client
        self._patience = patience or Patience()
        self._project = str(client.project)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def price(self, statement: BigQueryStatement, turn: RequestDeadline) -> int:
        """Return the bytes that a statement would read, at most; asking is free.

        Raises:
            CoreEvalError: the user has to mend something first.
            Refused: BigQuery gives no answer.
            Ended: the turn is over.
        """
        config = QueryJobConfig(dry_run=True, use_query_cache=False)
        job = self._send(lambda: self._query(statement, config, turn), turn)
        if job.total_bytes_processed is None:
            raise BigQueryRefusal(
                "unavailable", "BigQuery does not say what the request would read"
            )
        return int(job.total_bytes_processed)

    def run(
        self, statement: BigQueryStatement, turn: RequestDeadline, *, expected: int, most: int
    ) -> StatementResult:
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
                job_timeout_ms=int(turn.remaining_s() * 1000),
            )
            job = self._send(lambda: self._query(statement, config, turn, job_id), turn)
            self._await(job, turn)
            billed = int(job.total_bytes_billed or 0)
            if job.error_result:
                return StatementResult(billed=billed, refused=self._to_refusal(job))
            rows = self._send(lambda: _read_rows(job, turn), turn)
        except BigQueryRefusal as over:
            begun = job is not None or over.reason == "unavailable"
            if begun:
                self._cancel(job_id)
            return StatementResult(billed=expected if begun else 0, refused=over)
        return StatementResult(rows=tuple(rows), billed=billed)

    def _query(
        self,
        statement: BigQueryStatement,
        config: QueryJobConfig,
        turn: RequestDeadline,
        job_id: str = "",
    ) -> QueryJob:
        """Start a job; if an earlier try has started it after all, find that one."""
        check_bounds(statement)
        config.query_parameters = to_parameters(statement)
        try:
            return self._client.query(
                statement.sql,
                config,
                job_id=job_id or None,
                retry=ONCE,
                job_retry=None,
                timeout=turn.remaining_s(),
            )
        except Conflict:
            found = self._client.get_job(job_id, retry=ONCE, timeout=turn.remaining_s())
            return cast(QueryJob, found)

    def _await(self, job: QueryJob, turn: RequestDeadline) -> None:
        while job.state != "DONE":
            turn.wait(self._patience.poll_s)
            self._send(lambda: job.reload(retry=ONCE, timeout=turn.remaining_s()), turn)

    def _to_refusal(self, job: QueryJob) -> BigQueryRefusal:
        told = dict(job.error_result or {})
        meant = classify_reason(
            str(told.get("reason", "")), str(told.get("message", "")), self._project
        )
        if not isinstance(meant, BigQueryRefusal):
            raise meant
        return meant

    def _send(self, request: Callable[[], T], turn: RequestDeadline) -> T:
        """Send a request, and the very same again where that may help."""
        patience = self._patience
        tries = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_attempt(patience.tries),
            wait=wait_random_exponential(patience.first_wait_s, patience.longest_wait_s),
            sleep=turn.wait,
            reraise=True,
        )

        def send_in_time() -> T:
            with limit_request_time(turn.remaining_s()):
                return request()

        try:
            return tries(send_in_time)
        except _FAILURES as error:
            raise explain_error(error, self._project) from None

    def _cancel(self, job_id: str) -> None:
        """Ask BigQuery to stop a job that nobody waits for; it may not have begun."""
        with suppress(*_FAILURES), limit_request_time(CANCEL_S):
            self._client.cancel_job(job_id, retry=ONCE, timeout=CANCEL_S)


def _read_rows(job: QueryJob, turn: RequestDeadline) -> list[Row]:
    """Return all rows, over as many pages as it takes."""
    found = job.result(page_size=PAGE_ROWS, retry=ONCE, timeout=turn.remaining_s(), job_retry=None)
    rows: list[Row] = []
    for page in found.pages:
        rows += [dict(row.items()) for row in page]
        turn.remaining_s()
    return rows
