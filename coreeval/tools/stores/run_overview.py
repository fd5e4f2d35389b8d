"""The overview of a run: outcomes, cost, time, and why samples were not accepted."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, func, select

from coreeval.schema import Value
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_triggers import PENDING

MOST_CAUSES = 200
"""The most causes reported, since endpoints may word a failure differently each time."""


class CallSum(Value):
    """The calls of one role to one model; a call that several samples share counts once."""

    role: str
    model: str
    cached: bool
    """Whether they were found in the call store, paid for by another run, instead of billed to this
    one."""
    calls: int
    prompt_tokens: int
    cached_tokens: int
    """The prompt tokens that were in the provider's own cache."""
    completion_tokens: int
    usd: float | None
    """The cost of the calls with a known price; None if no price is known."""
    priced: int
    """The number of calls with a known price."""

    @property
    def cached_share(self) -> float | None:
        """The share of prompt tokens in the provider's cache; None without any tokens."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


def merge_call_sums(passes: Iterable[Iterable[CallSum]]) -> tuple[CallSum, ...]:
    """Return the calls of several passes of a run together, most expensive first."""
    found: dict[tuple[str, str, bool], CallSum] = {}
    for one in chain.from_iterable(passes):
        place = (one.role, one.model, one.cached)
        found[place] = _add_sums(found[place], one) if place in found else one
    return tuple(
        sorted(
            found.values(),
            key=lambda one: (one.cached, -(one.usd or 0.0), -one.calls, one.role, one.model),
        )
    )


def _add_sums(one: CallSum, other: CallSum) -> CallSum:
    known = [each.usd for each in (one, other) if each.usd is not None]
    return CallSum(
        role=one.role,
        model=one.model,
        cached=one.cached,
        calls=one.calls + other.calls,
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        usd=sum(known) if known else None,
        priced=one.priced + other.priced,
    )


class NodeSum(Value):
    """The totals of all steps of one node."""

    node: str
    steps: int
    seconds: float
    """The seconds of all steps together, including waits."""
    errors: int
    """The number of steps that ended with an error."""


class CauseSum(Value):
    """The samples that were not accepted for one reason."""

    outcome: str
    cause: str
    samples: int
    example: str
    """The id of the first such sample."""


class VerdictSum(Value):
    """The verdicts of a check or judge on all attempts."""

    name: str
    passed: int
    failed: int


class Overview(Value):
    """The totals of a run."""

    total: int
    outcomes: dict[str, int]
    """The number of samples by outcome, including `pending`; the sum is the total."""
    labels: dict[str, dict[str, int]]
    """The number of samples by label and outcome."""
    attempts: dict[int, int]
    """The number of finished samples by number of attempts."""
    rungs: dict[str, int]
    """The number of finished samples by the rung of the knowledge ladder that found their news."""
    semantic: dict[str, int]
    """The number of finished samples by the status of their rewording."""
    kept: int
    """The number of samples taken from a release."""
    calls: tuple[CallSum, ...]
    """The calls, most expensive first. The billed ones add up to `cost` in the manifest, together
    with those of the pass that writes the control arm, which has a store of its own."""
    nodes: tuple[NodeSum, ...]
    """The nodes, slowest first."""
    causes: tuple[CauseSum, ...]
    """The causes, most frequent first, at most `MOST_CAUSES`."""
    verdicts: tuple[VerdictSum, ...]
    """The verdicts, those that fail most often first."""


def load_overview(connection: Connection) -> Overview:
    """Return the overview of a run, from its counts."""
    kinds = [dict(row) for row in connection.execute(_BY_KIND).mappings()]
    ended = [row for row in kinds if row["outcome"] != PENDING]
    return Overview(
        total=sum(row["samples"] for row in kinds),
        outcomes=_count_by(kinds, "outcome"),
        labels={
            label: _count_by((row for row in kinds if row["label"] == label), "outcome")
            for label in sorted({row["label"] for row in kinds})
        },
        attempts=dict(sorted(_count_by(ended, "attempts").items())),
        rungs=_count_by(ended, "rung"),
        semantic=_count_by(ended, "semantic_status"),
        kept=sum(row["samples"] for row in ended if row["kept_from"] is not None),
        calls=tuple(_calls(connection)),
        nodes=tuple(_sums(connection, NodeSum, t.step_sums, t.step_sums.c.seconds)),
        causes=tuple(_causes(connection, ended)),
        verdicts=tuple(_sums(connection, VerdictSum, t.verdict_sums, t.verdict_sums.c.failed)),
    )


Rows = Iterable[Mapping[str, Any]]
_KIND = [t.listing.c[name] for name in t.KIND]
_BY_KIND = select(
    *_KIND, func.count().label("samples"), func.min(t.listing.c.seq).label("first")
).group_by(*_KIND)
"""An index that contains only these columns answers it."""
V = TypeVar("V", bound=Value)


def _count_by(rows: Rows, name: str) -> dict[Any, int]:
    """Return the number of samples by one of their properties, the most frequent first."""
    numbers = Counter[Any]()
    for row in rows:
        numbers[row[name]] += row["samples"]
    return dict(numbers.most_common())


def _calls(connection: Connection) -> Iterator[CallSum]:
    dearest = (t.call_sums.c.cached, t.call_sums.c.usd.desc(), t.call_sums.c.calls.desc())
    query = select(t.call_sums).order_by(*dearest, *t.call_sums.primary_key)
    for row in connection.execute(query).mappings():
        yield CallSum.model_validate({**row, "usd": row["usd"] if row["priced"] else None})


def _sums(
    connection: Connection, kind: type[V], table: Table, most: ColumnElement[Any]
) -> Iterator[V]:
    for row in connection.execute(
        select(table).order_by(most.desc(), *table.primary_key)
    ).mappings():
        yield kind.model_validate(dict(row))


def _causes(connection: Connection, ended: Rows) -> Iterator[CauseSum]:
    found = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for row in ended:
        if row["outcome"] != "accepted":
            found[row["outcome"], row["cause"]].append(row)
    firsts = {pair: min(row["first"] for row in rows) for pair, rows in found.items()}
    named = select(t.listing.c.seq, t.listing.c.sample).where(t.listing.c.seq.in_(firsts.values()))
    ids = {seq: sample for seq, sample in connection.execute(named)}
    numbers = {pair: sum(row["samples"] for row in rows) for pair, rows in found.items()}
    for outcome, cause in sorted(numbers, key=lambda pair: -numbers[pair])[:MOST_CAUSES]:
        yield CauseSum(
            outcome=outcome,
            cause=cause,
            samples=numbers[outcome, cause],
            example=ids[firsts[outcome, cause]],
        )
