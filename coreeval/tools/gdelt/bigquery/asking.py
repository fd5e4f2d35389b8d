"""One request to BigQuery: plan its statements, learn their price, run them within the cap."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from coreeval.config.remote_news import Feed
from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.bigquery.asks import asks, forms
from coreeval.tools.gdelt.bigquery.bill import Bill
from coreeval.tools.gdelt.bigquery.outcome import Outcome, Refused
from coreeval.tools.gdelt.bigquery.pages import article
from coreeval.tools.gdelt.bigquery.prices import billed_at_least, told
from coreeval.tools.gdelt.bigquery.ranking import Found
from coreeval.tools.gdelt.bigquery.statements import Statement, statement
from coreeval.tools.gdelt.bigquery.turn import Turn

MOST_ASKS = 20_000
"""Things that one statement asks for. Their parameters stay below the 10 MB of a request; a run
that asks for more takes another statement, and pays for another scan."""


class Runner(Protocol):
    """What statements are run by."""

    def price(self, statement: Statement, turn: Turn) -> int:
        """Return the bytes that a statement would read."""
        ...

    def run(self, statement: Statement, turn: Turn, *, expected: int, most: int) -> Outcome:
        """Run a statement that may be billed at most so many bytes."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(kw_only=True)
class Answer:
    """What a request came to."""

    found: list[Found] = field(default_factory=list)
    billed: int = 0
    """Bytes."""
    covered: bool = True
    """Whether the tables hold anything of the window."""
    refused: Refused | None = None
    """Why a part of it, or all, was not answered."""
    notes: list[str] = field(default_factory=list)


def plan(feeds: Sequence[Feed], queries: Sequence[EntityQuery], window: Window) -> list[Statement]:
    """Return the statements that ask for everything; as few as there can be."""
    wanted = asks(queries)
    return [
        statement(feed, window, some, forms(some))
        for at in range(0, len(wanted), MOST_ASKS)
        for some in [wanted[at : at + MOST_ASKS]]
        for feed in sorted(feeds, key=("gkg", "gal").index)
    ]


def answered(
    runner: Runner,
    statements: Sequence[Statement],
    turn: Turn,
    *,
    bill: Bill,
    tell: Callable[[str], None],
) -> Answer:
    """Run statements after telling their price; what is refused is told in the answer.

    Raises:
        BudgetSpent: they would go beyond the run's cap; none was sent.
        CoreEvalError: the user has to mend something first.
    """
    answer = Answer()
    try:
        prices = [_priced(runner, each, turn) for each in statements]
    except Refused as refused:
        return _refused(answer, refused)
    answer.covered = any(prices)
    if not answer.covered:
        return answer
    expected = sum(prices)
    bill.reserve(expected)
    try:
        answer.notes.append(f"BigQuery was expected to bill {told(expected)}")
        tell(f"BigQuery is going to read {told(expected)}")
        for each, price in zip(statements, prices, strict=True):
            _run(runner, each, turn, price, answer)
    finally:
        bill.settle(expected, answer.billed)
    answer.notes.append(f"BigQuery billed {told(answer.billed)}")
    return answer


def _priced(runner: Runner, statement: Statement, turn: Turn) -> int:
    """Return what a statement will be billed; nothing if there is nothing to read."""
    scanned = runner.price(statement, turn)
    return billed_at_least(statement, scanned) if scanned else 0


def _run(runner: Runner, each: Statement, turn: Turn, price: int, answer: Answer) -> None:
    """Add what one statement finds; the later table is asked for what the former found as well."""
    if not price:
        return
    urls = (
        tuple(dict.fromkeys(found.url for found, _ in answer.found)) if each.feed == "gal" else ()
    )
    outcome = runner.run(replace(each, urls=urls), turn, expected=price, most=price)
    answer.billed += outcome.billed
    if outcome.refused:
        _refused(answer, outcome.refused)
        if outcome.billed:
            answer.notes.append(f"That request counts as billed {told(outcome.billed)}")
    for row in outcome.rows:
        if told_by := article(each.feed, row):
            answer.found.append((told_by, int(str(row["sites"]))))


def _refused(answer: Answer, refused: Refused) -> Answer:
    answer.refused = refused
    answer.notes.append(f"BigQuery did not answer: {refused}")
    return answer
