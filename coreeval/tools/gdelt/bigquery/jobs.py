"""Runs a statement as a job: prices it, starts it once, waits, reads its pages, or cancels it.

Input from users and texts is only ever the value of a parameter.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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

from coreeval.errors import CoreEvalError
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
    """Return the parameters named in a statement's SQL."""
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
    """Format a time as in GKG, with 14 digits: with 8, DATE matches no row, at the same cost."""
    return (at - (at.utcoffset() or timedelta())).strftime("%Y%m%d%H%M%S")


def _scalar_parameter(name: str, kind: str, value: str | float | datetime) -> ScalarQueryParameter:
    return ScalarQueryParameter(name, kind, value)


def _array_parameter(name: str, values: Sequence[str]) -> ArrayQueryParameter:
    return ArrayQueryParameter(name, "STRING", list(values))


LABELS = {"app": "coreeval", "part": "knowledge"}
"""The labels by which the project's bill can be split."""
PAGE_ROWS = 5_000
CANCEL_S = 10.0
ONCE = Retry(predicate=lambda _: False)
"""A setting without retries: the client's retries ignore our deadline and may start another job."""
_FAILURES = (GoogleAPICallError, GoogleAuthError, RequestException)
_ODD_ANSWERS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors that the client raises for a response that is not in Google's format."""
_MOST_BYTES = (1 << 63) - 1
"""The largest integer in BigQuery."""
T = TypeVar("T")


@contextmanager
def _reading_answer() -> Iterator[None]:
    """Reject a response that is not in Google's format; only the client is called inside the block.

    Raises:
        BigQueryRefusal: the response is malformed.
    """
    try:
        yield
    except _FAILURES:  # some of them are ValueErrors as well
        raise
    except _ODD_ANSWERS as error:
        told = f"BigQuery's answer cannot be read: {type(error).__name__}"
        raise BigQueryRefusal("unavailable", told) from None


def _to_bytes(told: object) -> int:
    """Return a number of bytes.

    Raises:
        ValueError: it is not a number, is negative, or is too large.
    """
    number = int(str(told))
    if not 0 <= number <= _MOST_BYTES:
        raise ValueError("not a number of bytes")
    return number


@dataclass(frozen=True, kw_only=True)
class Patience:
    """The number of tries of one request, and the waits between them."""

    tries: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 16.0
    poll_s: float = 0.5


class JobRunner:
    """A runner that executes one statement at a time with one client."""

    def __init__(self, client: Client, *, patience: Patience | None = None) -> None:
        self._client = client
        self._patience = patience or Patience()
        self._project = str(client.project)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def price(self, statement: BigQueryStatement, turn: RequestDeadline) -> int:
        """Return the most bytes that a statement would read; the dry run is free.

        Raises:
            CoreEvalError: the user has to fix something first.
            BigQueryRefusal: BigQuery does not answer.
            DeadlineExpired: the time is up.
        """
        config = _configure(statement, dry_run=True, use_query_cache=False)
        job = self._send(lambda: self._query(statement, config, turn), turn)
        with _reading_answer():
            told = job.total_bytes_processed
            if told is not None:
                return _to_bytes(told)
        raise BigQueryRefusal(
            "unavailable", "BigQuery did not say how much data the request would read"
        )

    def run(
        self, statement: BigQueryStatement, turn: RequestDeadline, *, expected: int, most: int
    ) -> StatementResult:
        """Run a statement and return its rows.

        A job that was cancelled, or may have started unnoticed, counts as billed in full. Errors
        are part of the result, so that what was billed is known.

        Args:
            statement: The statement.
            turn: The time it may take; when it is over, the job is cancelled.
            expected: The bytes that it will be billed.
            most: The limit on bytes; BigQuery does not run or bill a statement above it.
        """
        most_rows = statement.rows * len(statement.asks) + len(statement.urls)
        job_id, job = f"coreeval-{uuid.uuid4().hex}", None
        try:
            config = _configure(
                statement,
                labels=LABELS,
                maximum_bytes_billed=most,
                job_timeout_ms=int(turn.remaining_s() * 1000),
            )
            job = self._send(lambda: self._query(statement, config, turn, job_id), turn)
            self._await(job, turn)
            with _reading_answer():
                billed = _to_bytes(job.total_bytes_billed or 0)
                failure = dict(job.error_result or {})
            if failure:
                return StatementResult(billed=billed, refused=self._explain_failure(failure))
            rows = self._send(lambda: _read_rows(job, turn, most_rows), turn)
        except (BigQueryRefusal, CoreEvalError) as over:
            unheard = isinstance(over, BigQueryRefusal) and over.reason == "unavailable"
            begun = job is not None or unheard
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
        """Start a job; if an earlier try has started it after all, return that one."""
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
        while self._send(lambda: job.state, turn) != "DONE":
            turn.wait(self._patience.poll_s)
            self._send(lambda: job.reload(retry=ONCE, timeout=turn.remaining_s()), turn)

    def _explain_failure(self, told: Mapping[str, object]) -> BigQueryRefusal | CoreEvalError:
        reason, message = str(told.get("reason", "")), str(told.get("message", ""))
        return classify_reason(reason, message, self._project)

    def _send(self, request: Callable[[], T], turn: RequestDeadline) -> T:
        """Send one request of the client, and repeat it if that may help.

        Raises:
            BigQueryRefusal: there is no answer, or it cannot be read.
            CoreEvalError: the user has to fix something first.
        """
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
            with _reading_answer():
                return tries(send_in_time)
        except _FAILURES as error:
            raise explain_error(error, self._project) from None

    def _cancel(self, job_id: str) -> None:
        """Ask BigQuery to cancel a job, which may not have started."""
        with suppress(*_FAILURES, *_ODD_ANSWERS), limit_request_time(CANCEL_S):
            self._client.cancel_job(job_id, retry=ONCE, timeout=CANCEL_S)


def _configure(statement: BigQueryStatement, **settings: object) -> QueryJobConfig:
    """Return the job config of a statement, with its parameters."""
    check_bounds(statement)
    return QueryJobConfig(query_parameters=to_parameters(statement), **settings)


def _read_rows(job: QueryJob, turn: RequestDeadline, most: int) -> list[Row]:
    """Return all rows, page by page.

    Raises:
        ValueError: there are more rows than requested.
    """
    found = job.result(page_size=PAGE_ROWS, retry=ONCE, timeout=turn.remaining_s(), job_retry=None)
    rows: list[Row] = []
    for page in found.pages:
        rows += [dict(row.items()) for row in page]
        if len(rows) > most:
            raise ValueError("more rows than were asked for")
        turn.remaining_s()
    return rows
