"""What a run came to as a whole: outcomes, money, time, and why samples were left as they were."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Integer, cast, func, select

from coreeval.schema import Value
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.causes import cause_of

PENDING = "pending"
"""Of a sample that has not ended; it stands beside the outcomes, so that all add up."""


class CallSum(Value):
    """Calls of one role to one model; a call that several samples share counts once."""

    role: str
    model: str
    cached: bool
    """Whether they were found in the call store, paid by another run, or billed to this one."""
    calls: int
    prompt_tokens: int
    cached_tokens: int
    """Those of the prompt tokens that the provider had in its own cache."""
    completion_tokens: int
    usd: float | None
    """Sum of the calls whose price is known; None where none is."""
    priced: int
    """Calls whose price is known."""


class NodeSum(Value):
    """All steps of one node."""

    node: str
    steps: int
    seconds: float
    """Of all steps together, waiting included."""
    errors: int
    """Steps that ended with an error."""


class CauseSum(Value):
    """Samples that were not accepted for one reason."""

    outcome: str
    cause: str
    samples: int
    example: str
    """Id of the first of them."""


class VerdictSum(Value):
    """What a check or judge said of all attempts."""

    name: str
    passed: int
    failed: int


class Overview(Value):
    """A run in figures."""

    total: int
    outcomes: dict[str, int]
    """Samples by outcome, `pending` included; they add up to the total."""
    labels: dict[str, dict[str, int]]
    """The same by the samples' label."""
    attempts: dict[int, int]
    """Samples that have ended by the attempts that they took."""
    rungs: dict[str, int]
    """Samples that have ended by the rung of the knowledge ladder that found their news."""
    semantic: dict[str, int]
    """Samples that have ended by the status of their rewording."""
    kept: int
    """Samples that were taken from a release."""
    calls: tuple[CallSum, ...]
    """The dearest first; those billed add up to `cost` of the manifest."""
    nodes: tuple[NodeSum, ...]
    """The slowest first."""
    causes: tuple[CauseSum, ...]
    """The most frequent first."""
    verdicts: tuple[VerdictSum, ...]
    """The one that fails most first."""


def overview_of(connection: Connection) -> Overview:
    """Add up a run."""
    ended = _ended(connection)
    outcomes, labels = _outcomes(ended)
    return Overview(
        total=len(ended),
        outcomes=dict(outcomes),
        labels=labels,
        attempts=dict(sorted(Counter(r["attempts"] for r in ended if r["outcome"]).items())),
        rungs=dict(Counter(r["rung"] for r in ended if r["outcome"]).most_common()),
        semantic=dict(Counter(r["semantic_status"] for r in ended if r["outcome"]).most_common()),
        kept=sum(row["kept_from"] is not None for row in ended),
        calls=_calls(connection),
        nodes=_nodes(connection),
        causes=_causes(ended),
        verdicts=_verdicts(connection),
    )


Rows = list[dict[str, Any]]


def _ended(connection: Connection) -> Rows:
    said = t.results.c
    columns = (
        t.samples.c.id, t.samples.c.label_text, said.outcome, said.reason, said.attempts, said.rung,
        said.semantic_status, said.kept_from,
    )  # fmt: skip
    query = select(*columns).outerjoin(t.results, said.sample_id == t.samples.c.id)
    return [dict(row) for row in connection.execute(query.order_by(t.samples.c.seq)).mappings()]


def _outcomes(rows: Rows) -> tuple[Counter[str], dict[str, dict[str, int]]]:
    labels: dict[str, dict[str, int]] = {}
    for row in rows:
        of_label = labels.setdefault(row["label_text"], {})
        outcome = row["outcome"] or PENDING
        of_label[outcome] = of_label.get(outcome, 0) + 1
    return Counter(row["outcome"] or PENDING for row in rows), labels


def _calls(connection: Connection) -> tuple[CallSum, ...]:
    called = t.calls.c
    tokens = [called.prompt_tokens, called.cached_tokens, called.completion_tokens]
    once = (
        select(
            func.min(called.role).label("role"),
            called.model,
            func.min(cast(called.cached, Integer)).label("cached"),
            *(func.max(column).label(column.name) for column in tokens),
            func.max(called.usd).label("usd"),
        )
        .group_by(called.key, called.model)
        .subquery()
    )
    by = (once.c.role, once.c.model, once.c.cached)
    query = select(
        *by,
        func.count().label("calls"),
        *(func.sum(once.c[column.name]).label(column.name) for column in tokens),
        func.sum(once.c.usd).label("usd"),
        func.count(once.c.usd).label("priced"),
    ).group_by(*by)
    sums = (
        CallSum.model_validate({**row, "cached": bool(row["cached"])})
        for row in connection.execute(query).mappings()
    )
    return tuple(sorted(sums, key=lambda one: (one.cached, -(one.usd or 0), -one.calls)))


def _nodes(connection: Connection) -> tuple[NodeSum, ...]:
    ran = t.steps.c
    columns = (
        ran.node,
        func.count().label("steps"),
        func.sum(ran.seconds).label("seconds"),
        func.sum(cast(ran.error != "", Integer)).label("errors"),
    )
    found = connection.execute(select(*columns).group_by(ran.node)).mappings()
    return tuple(sorted(map(NodeSum.model_validate, found), key=lambda one: -one.seconds))


def _causes(rows: Rows) -> tuple[CauseSum, ...]:
    left = [row for row in rows if row["outcome"] not in (None, "accepted")]
    numbers = Counter((row["outcome"], cause_of(row["outcome"], row["reason"])) for row in left)
    first: dict[tuple[str, str], str] = {}
    for row in left:
        first.setdefault((row["outcome"], cause_of(row["outcome"], row["reason"])), row["id"])
    return tuple(
        CauseSum(outcome=pair[0], cause=pair[1], samples=number, example=first[pair])
        for pair, number in numbers.most_common()
    )


def _verdicts(connection: Connection) -> tuple[VerdictSum, ...]:
    said = t.verdicts.c
    query = select(said.name, func.count(), func.sum(cast(said.passed, Integer)))
    return _in_order(
        VerdictSum(name=name, passed=passed, failed=number - passed)
        for name, number, passed in connection.execute(query.group_by(said.name))
    )


def _in_order(sums: Iterable[VerdictSum]) -> tuple[VerdictSum, ...]:
    return tuple(sorted(sums, key=lambda one: -one.failed))
