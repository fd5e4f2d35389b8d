"""The BigQuery backend: all queries of a run in one bounded request, priced in advance.

The statements are planned, priced by a dry run, and run within the cap. The local store's code
turns their results into ranked evidence.
"""

import asyncio
import concurrent.futures
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from coreeval.config.knowledge import BigQueryConfig, Feed
from coreeval.errors import BudgetSpent, ConfigError, CoreEvalError
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    NoEvidence,
    Precision,
    Retrieval,
    Window,
)
from coreeval.tools.chunks import chunks
from coreeval.tools.extras import require_extra
from coreeval.tools.gdelt.bigquery.request import (
    BigQueryRefusal,
    BillRecord,
    BytesBudget,
    DeadlineExpired,
    OddRow,
    RequestDeadline,
    StatementResult,
    count_sites,
    format_cost,
    least_billed_bytes,
    list_price_usd,
    to_article,
)
from coreeval.tools.gdelt.bigquery.statements import (
    BigQueryStatement,
    build_statement,
    list_word_forms,
    list_word_sets,
)
from coreeval.tools.gdelt.index.news_index import PRECISIONS
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.temporary_store import open_temporary_store

if TYPE_CHECKING:
    from google.auth.credentials import Credentials


ArticleSites = tuple[Article, int]
"""An article and the number of sites with exactly its title."""


def rank_articles(
    found: Sequence[ArticleSites],
    queries: Sequence[EntityQuery],
    window: Window,
    k: int,
    worst: int,
) -> dict[str, tuple[Evidence, ...]]:
    """Return up to `k` pieces of evidence for each query, best first."""
    articles = [article for article, _ in found]
    sites = {article.url: seen_on for article, seen_on in found if seen_on > 1}
    with open_temporary_store(articles, sites) as index:
        if index is None:
            return {query.id: () for query in queries}
        return index.rank_evidence(queries, window, k, worst)


MOST_ASKS = 20_000
"""The most names and topics in one statement. Their parameters stay below the 10 MB of a request; a
run that needs more uses another statement and pays for another scan."""


class StatementRunner(Protocol):
    """A client that prices and runs statements."""

    def price(self, statement: BigQueryStatement, turn: RequestDeadline) -> int:
        """Return the bytes that a statement would read."""
        ...

    def run(
        self, statement: BigQueryStatement, turn: RequestDeadline, *, expected: int, most: int
    ) -> StatementResult:
        """Run a statement, limited to `most` billed bytes; errors are part of the result.

        A statement above the limit is refused with BudgetSpent.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(kw_only=True)
class BigQueryAnswer:
    """The result of a request."""

    found: list[ArticleSites] = field(default_factory=list)
    billed: int = 0
    """The bytes billed."""
    covered: bool = True
    """Whether the tables contain any part of the window."""
    refused: BigQueryRefusal | None = None
    """The reason that part or all of the request was not answered; None if all of it was."""
    notes: list[str] = field(default_factory=list)


def plan_statements(
    feeds: Sequence[Feed], queries: Sequence[EntityQuery], window: Window
) -> list[BigQueryStatement]:
    """Return the fewest statements that cover all queries."""
    wanted = list_word_sets(queries)
    return [
        build_statement(feed, window, some, list_word_forms(some))
        for some in chunks(wanted, MOST_ASKS)
        for feed in sorted(feeds, key=("gkg", "gal").index)
    ]


def run_statements(
    runner: StatementRunner,
    statements: Sequence[BigQueryStatement],
    turn: RequestDeadline,
    *,
    bill: BytesBudget,
    tell: Callable[[str], None],
) -> BigQueryAnswer:
    """Dry-run statements, report the price, and execute them; refusals are returned in the answer.

    Once anything has been billed, errors are returned in the answer too, so that what was paid for
    is used and counted.

    Raises:
        BudgetSpent: they would exceed the run's cap; nothing was billed.
        CoreEvalError: the user has to fix something first; nothing was billed.
    """
    answer = BigQueryAnswer()
    try:
        prices = [_price_statement(runner, each, turn) for each in statements]
    except BigQueryRefusal as refused:
        return _note_refusal(answer, refused, tell)
    answer.covered = any(prices)
    if not answer.covered:
        return answer
    expected = sum(prices)
    bill.reserve(expected)
    try:
        answer.notes.append(f"BigQuery was expected to bill {format_cost(expected)}")
        tell(f"BigQuery is going to read {format_cost(expected)}")
        for at, (each, price) in enumerate(zip(statements, prices, strict=True)):
            if price:
                asked = _add_pages(each, answer)
                outcome, prices[at] = _run_statement(runner, asked, turn, price, bill)
                if prices[at] > price:
                    answer.notes.append(
                        f"The {each.feed} table has grown since its dry run: BigQuery was expected "
                        f"to bill {format_cost(prices[at])} for it"
                    )
                _add_result(answer, each, outcome, tell)
    finally:
        bill.settle(sum(prices), answer.billed)
    answer.notes.append(f"BigQuery billed {format_cost(answer.billed)}")
    return answer


def _price_statement(
    runner: StatementRunner, statement: BigQueryStatement, turn: RequestDeadline
) -> int:
    """Return the bytes that a statement will be billed; 0 if there is nothing to read."""
    scanned = runner.price(statement, turn)
    return least_billed_bytes(statement, scanned) if scanned else 0


def _add_pages(statement: BigQueryStatement, answer: BigQueryAnswer) -> BigQueryStatement:
    """Return a statement that also looks up pages found by earlier ones, if its table is `gal`."""
    if statement.feed != "gal":
        return statement
    return replace(statement, urls=tuple(dict.fromkeys(found.url for found, _ in answer.found)))


def _run_statement(
    runner: StatementRunner,
    statement: BigQueryStatement,
    turn: RequestDeadline,
    price: int,
    bill: BytesBudget,
) -> tuple[StatementResult, int]:
    """Run a statement within its price; if its table has grown since, once more at the new price.

    Returns:
        The result, and the bytes that are now reserved for it.
    """
    outcome = runner.run(statement, turn, expected=price, most=price)
    if not isinstance(outcome.refused, BudgetSpent):
        return outcome, price
    try:
        grown = _price_statement(runner, statement, turn)
        if grown <= price:
            return outcome, price
        bill.reserve(grown, held=price)
    except (BigQueryRefusal, CoreEvalError) as refused:
        return replace(outcome, refused=refused), price
    return runner.run(statement, turn, expected=grown, most=grown), grown


def _add_result(
    answer: BigQueryAnswer,
    each: BigQueryStatement,
    outcome: StatementResult,
    tell: Callable[[str], None],
) -> None:
    """Add the result of one statement to the answer.

    Raises:
        CoreEvalError: the user has to fix something first, and nothing has been billed.
    """
    answer.billed += outcome.billed
    if outcome.refused:
        if isinstance(outcome.refused, CoreEvalError) and not answer.billed:
            raise outcome.refused
        _note_refusal(answer, outcome.refused, tell, f" about {each.feed}")
        if outcome.billed:
            answer.notes.append(f"The budget counts that request as {format_cost(outcome.billed)}")
    odd = 0
    for row in outcome.rows:
        try:
            told_by, sites = to_article(each.feed, row), count_sites(row)
        except OddRow:
            odd += 1
        else:
            answer.found += [(told_by, sites)] if told_by else []
    if odd:
        answer.notes.append(
            f"CoreEval skipped {odd:,} of {len(outcome.rows):,} rows from BigQuery, because their "
            "format was unexpected"
        )


def _note_refusal(
    answer: BigQueryAnswer,
    refused: BigQueryRefusal | CoreEvalError,
    tell: Callable[[str], None],
    about: str = "",
) -> BigQueryAnswer:
    """Note a refusal in our words, and tell the user Google's, which are not published."""
    if isinstance(refused, CoreEvalError):
        told = f"{refused.message}; {refused.hint}"
        refused = BigQueryRefusal("unavailable", told, note=f"unavailable ({refused.kind})")
    answer.refused = refused
    if refused.note != str(refused):
        tell(f"BigQuery did not answer{about}: {refused}")
    answer.notes.append(f"BigQuery did not answer{about}: {refused.note}")
    return answer


Tell = Callable[[str], None]
CANCEL_S = 15.0
"""The most seconds that cancelling the job of a stopped request may take."""


class BigQueryKnowledge:
    """A knowledge source over GDELT's tables on BigQuery; safe to use from several threads.

    Args:
        runner: The client that runs the statements.
        config: The limits on what may be queried and billed.
        min_precision: The least certain kind of publication time to accept.
        tell: Receives messages that the user should see before money is spent.
        record: The record of what the run is billed; None without a run.
    """

    name = "bigquery"
    remote = True

    def __init__(
        self,
        runner: StatementRunner,
        config: BigQueryConfig,
        *,
        min_precision: Precision = "cluster",
        tell: Tell | None = None,
        record: BillRecord | None = None,
    ) -> None:
        self._runner = runner
        self._config = config
        self._worst = PRECISIONS.index(min_precision)
        self._tell = tell or (lambda _: None)
        self._bill = BytesBudget(config.max_gb, record)
        self._turns: set[RequestDeadline] = set()
        self._seen: dict[str, Evidence] = {}
        self._lock = threading.Lock()

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first.

        If it is cancelled, the job is cancelled too.

        Raises:
            BudgetSpent: it would cost more than the config allows; nothing was billed.
            CoreEvalError: the user has to fix something first: credentials, project, billing;
                nothing was billed.
        """
        statements = await asyncio.to_thread(plan_statements, self._config.feeds, queries, window)
        if not statements:
            nothing: dict[str, tuple[Evidence, ...]] = {query.id: () for query in queries}
            return Retrieval(by_query=nothing, reasons=dict.fromkeys(nothing, "no_news"))
        answer = await self._ask(statements)
        return await asyncio.to_thread(self._rank, answer, queries, window, k)

    async def _ask(self, statements: list[BigQueryStatement]) -> BigQueryAnswer:
        """Run statements in a thread, which is abandoned if it does not finish in time."""
        turn = RequestDeadline(self._config)
        self._turns.add(turn)
        work = _start_thread(
            lambda: run_statements(self._runner, statements, turn, bill=self._bill, tell=self._tell)
        )
        try:
            done, _ = await asyncio.wait({work}, timeout=self._config.timeout_s + CANCEL_S)
        except asyncio.CancelledError:
            turn.stop()
            await asyncio.wait({work}, timeout=CANCEL_S)
            raise
        finally:
            self._turns.discard(turn)
        if done:
            return work.result()
        turn.stop()
        late = f"no answer within {self._config.timeout_s:g} s (knowledge.bigquery.timeout_s)"
        unanswered = BigQueryAnswer(billed=self._bill.reserved)
        return _note_refusal(unanswered, DeadlineExpired(late), self._tell)

    def _rank(
        self, answer: BigQueryAnswer, queries: Sequence[EntityQuery], window: Window, k: int
    ) -> Retrieval:
        found = rank_articles(answer.found, queries, window, k, self._worst)
        with self._lock:
            self._seen |= {item.id: item for items in found.values() for item in items}
        missing = [query for query, evidence in found.items() if not evidence]
        return Retrieval(
            by_query=found,
            reasons=dict.fromkeys(missing, _no_evidence_reason(answer)),
            notes=tuple(answer.notes),
            bytes_billed=answer.billed,
            cost_usd=list_price_usd(answer.billed),
        )

    def coverage(self, window: Window) -> Coverage:
        """Return coverage without a number of articles, since counting rows would cost money."""
        return Coverage(articles=None)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the distinct names in the evidence fetched so far for the window."""
        with self._lock:
            inside = [
                evidence
                for evidence in self._seen.values()
                if window.start <= evidence.published_at < window.end
            ]
        named = (entity for evidence in inside for entity in evidence.entities)
        once = {entity.name.casefold(): entity for entity in named}
        return [once[name] for name in sorted(once)]

    def close(self) -> None:
        """Stop all requests and close the connections."""
        for turn in list(self._turns):
            turn.stop()
        self._runner.close()


def _start_thread(work: Callable[[], BigQueryAnswer]) -> asyncio.Future[BigQueryAnswer]:
    """Return a future for work in a daemon thread, which does not delay the exit."""
    promised: concurrent.futures.Future[BigQueryAnswer] = concurrent.futures.Future()

    def run() -> None:
        try:
            answer = work()
        # Any error is raised in the code that awaits the result.
        except BaseException as error:  # noqa: BLE001
            promised.set_exception(error)
        else:
            promised.set_result(answer)

    promised.set_running_or_notify_cancel()
    threading.Thread(target=run, name="bigquery", daemon=True).start()
    return asyncio.wrap_future(promised)


def _no_evidence_reason(answer: BigQueryAnswer) -> NoEvidence:
    """Return why a query has no evidence."""
    if answer.refused:
        return answer.refused.reason
    return "no_news" if answer.covered else "not_covered"


def open_bigquery(
    config: BigQueryConfig,
    *,
    min_precision: Precision = "cluster",
    tell: Tell | None = None,
    record: BillRecord | None = None,
    credentials: "Credentials | None" = None,
) -> BigQueryKnowledge:
    """Open GDELT's tables with the user's own credentials, without sending anything yet.

    Raises:
        ConfigError: the extra is not installed, or no project is named.
        CredentialError: there are no Google credentials.
    """
    needed = require_extra(
        "bigquery",
        "the bigquery backend",
        where="knowledge.backends",
        otherwise="remove bigquery from the list",
        error=ConfigError,
    )
    with needed, warnings.catch_warnings():
        # Google's packages warn about future requirements that do not matter here.
        warnings.simplefilter("ignore", FutureWarning)
        from coreeval.tools.gdelt.bigquery.client import open_client
        from coreeval.tools.gdelt.bigquery.jobs import JobRunner
    runner = JobRunner(open_client(config, credentials))
    return BigQueryKnowledge(runner, config, min_precision=min_precision, tell=tell, record=record)
