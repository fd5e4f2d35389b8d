"""The BigQuery backend: all queries of a run in one bounded request, its price told first."""

import asyncio
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from coreeval.config.remote_news import BigQueryConfig
from coreeval.errors import ConfigError
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
from coreeval.tools.gdelt.bigquery.asking import Answer, Runner, answered, plan
from coreeval.tools.gdelt.bigquery.bill import Bill
from coreeval.tools.gdelt.bigquery.prices import usd
from coreeval.tools.gdelt.bigquery.ranking import ranked
from coreeval.tools.gdelt.bigquery.turn import Turn
from coreeval.tools.gdelt.parts.shelf import PRECISIONS

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

Tell = Callable[[str], None]
CANCEL_S = 15.0
"""How long a stopped request may take to cancel its job."""


class BigQueryKnowledge:
    """A knowledge source over GDELT's tables on BigQuery; safe to ask from several threads.

    Args:
        runner: What statements are run by.
        config: What may be asked and billed.
        min_precision: Least certain kind of publication time that is accepted.
        tell: Takes a sentence that the user should see before money is spent.
    """

    name = "bigquery"
    remote = True

    def __init__(
        self,
        runner: Runner,
        config: BigQueryConfig,
        *,
        min_precision: Precision = "cluster",
        tell: Tell | None = None,
    ) -> None:
        self._runner = runner
        self._config = config
        self._worst = PRECISIONS.index(min_precision)
        self._tell = tell or (lambda _: None)
        self._bill = Bill(config.max_gb)
        self._turns: set[Turn] = set()
        self._seen: dict[str, Evidence] = {}
        self._lock = threading.Lock()

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first.

        Whoever cancels it cancels the job as well.

        Raises:
            BudgetSpent: it would cost more than the config allows; nothing was billed.
            CoreEvalError: the user has to mend something first: credentials, project, billing.
        """
        turn = Turn(self._config)
        self._turns.add(turn)
        work = asyncio.ensure_future(asyncio.to_thread(self._fetch, queries, window, k, turn))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            turn.stop()
            await asyncio.wait({work}, timeout=CANCEL_S)
            raise
        finally:
            self._turns.discard(turn)

    def _fetch(
        self, queries: Sequence[EntityQuery], window: Window, k: int, turn: Turn
    ) -> Retrieval:
        statements = plan(self._config.feeds, queries, window)
        if not statements:
            nothing: dict[str, tuple[Evidence, ...]] = {query.id: () for query in queries}
            return Retrieval(by_query=nothing, reasons=dict.fromkeys(nothing, "no_news"))
        answer = answered(self._runner, statements, turn, bill=self._bill, tell=self._tell)
        found = ranked(answer.found, queries, window, k, self._worst)
        with self._lock:
            self._seen |= {item.id: item for items in found.values() for item in items}
        missing = [query for query, evidence in found.items() if not evidence]
        return Retrieval(
            by_query=found,
            reasons=dict.fromkeys(missing, _reason(answer)),
            notes=tuple(answer.notes),
            bytes_billed=answer.billed,
            cost_usd=usd(answer.billed),
        )

    def coverage(self, window: Window) -> Coverage:
        """Tell nothing: counting what the tables hold would have to be paid for."""
        return Coverage(articles=None)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the names in the evidence of the window that was fetched so far, each once."""
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
        """Stop what is being asked, and close the connections."""
        for turn in list(self._turns):
            turn.stop()
        self._runner.close()


def _reason(answer: Answer) -> NoEvidence:
    """Return why a query has no evidence."""
    if answer.refused:
        return answer.refused.reason
    return "no_news" if answer.covered else "not_covered"


def open_bigquery(
    config: BigQueryConfig,
    *,
    min_precision: Precision = "cluster",
    tell: Tell | None = None,
    credentials: "Credentials | None" = None,
) -> BigQueryKnowledge:
    """Open GDELT's tables with the user's own credentials; nothing is sent yet.

    Raises:
        ConfigError: the extra is not installed, or no project is named.
        CredentialError: there are no Google credentials.
    """
    try:
        with warnings.catch_warnings():
            # Google's packages foretell what they will need of others that play no part here.
            warnings.simplefilter("ignore", FutureWarning)
            from coreeval.tools.gdelt.bigquery.client import open_client
            from coreeval.tools.gdelt.bigquery.jobs import Jobs
    except ImportError as error:
        raise ConfigError(
            f"the bigquery backend needs a package that is not installed: {error.name}",
            where="knowledge.backends",
            hint="pip install 'coreeval[bigquery]', or take bigquery out of the list",
        ) from error
    runner = Jobs(open_client(config, credentials))
    return BigQueryKnowledge(runner, config, min_precision=min_precision, tell=tell)
