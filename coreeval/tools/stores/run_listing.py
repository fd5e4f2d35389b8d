"""The samples of a run as a list: filtered, sorted, a page at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

from sqlalchemy import CTE, ColumnElement, Connection, Engine, Row, and_, func, or_, select

from coreeval.schema import Value
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_overview import Overview, overview_of

Sort = Literal[
    "order", "sample", "outcome", "label", "attempts", "usd", "calls", "seconds", "rung",
    "semantic_status", "ended_at",
]  # fmt: skip
SORTS: tuple[Sort, ...] = get_args(Sort)
"""What a list can be sorted by; `order` is the benchmark's, which also settles ties."""
EXCERPT = 160
"""Characters of a sample's text that a list shows."""
MOST_SOUGHT = 500
"""Characters of a text that is looked for; SQLite takes patterns of at most 50,000 bytes."""


class SampleFilter(Value):
    """Which samples are listed: those that meet all that is said."""

    outcomes: tuple[str, ...] = ()
    """Any of these, `pending` among them; empty for all."""
    label: str | None = None
    """Name of the label."""
    attempts_min: int | None = None
    usd_min: float | None = None
    """Least that the sample's calls cost this run."""
    rung: str | None = None
    semantic_status: str | None = None
    cause: str | None = None
    """One of the overview's."""
    text: str = ""
    """Part of an id, of a text in any arm, or of a reason; capitals from A to Z do not matter."""
    kept: bool | None = None
    """Whether it was taken from a release."""


EVERY = SampleFilter()


class Listed(Value):
    """One sample in a list."""

    seq: int
    """Its place in the benchmark."""
    sample: str
    """Its id."""
    label: str
    """Name of its label."""
    excerpt: str
    """The beginning of its text."""
    outcome: str
    """How it ended, or `pending`."""
    cause: str
    """Why it was not accepted, as the overview groups it; empty where it was."""
    reason: str
    """The same in full."""
    attempts: int
    rung: str
    semantic_status: str
    """Empty while it is pending."""
    kept_from: str | None
    """Version of the release that it was taken from."""
    calls: int
    """Calls that its steps used, be they found or billed."""
    billed_calls: int
    usd: float | None
    """What the billed ones cost; None where one of them has no known price. A call that several
    samples share is part of each."""
    tokens: int
    """Of the billed ones, prompt and answer together."""
    seconds: float
    """Of all its steps together."""
    ended_at: str
    """Empty while it is pending."""


class Page(Value):
    """A part of a list."""

    rows: tuple[Listed, ...]
    total: int
    """Samples that meet the filter, on whatever page."""


class Neighbours(Value):
    """The samples beside one in a list."""

    previous: str | None
    next: str | None
    position: int | None
    """From 1; None where the list does not have the sample."""
    total: int


class RunListing:
    """Lists of samples, and what the run came to as a whole; nothing is written."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(
        self,
        chosen: SampleFilter = EVERY,
        *,
        sort: Sort = "order",
        descending: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> Page:
        """Return a part of the list of the samples that meet a filter."""
        found = _found(chosen, sort)
        total = select(func.count()).select_from(found).scalar_subquery()
        query = select(found.c.seq, total).order_by(*_order(found, descending))
        with self._engine.connect() as connection:
            rows = connection.execute(query.offset(offset).limit(limit)).all()
            number = rows[0][1] if rows else connection.scalar(select(total))
            listed = tuple(_listed(connection, [seq for seq, _ in rows]))
        return Page(rows=listed, total=number)

    def neighbours(
        self,
        sample_id: str,
        chosen: SampleFilter = EVERY,
        *,
        sort: Sort = "order",
        descending: bool = False,
    ) -> Neighbours:
        """Return the samples before and after one in the list of a filter."""
        found = _found(chosen, sort)
        with self._engine.connect() as connection:
            total = connection.scalar(select(func.count()).select_from(found)) or 0
            here = select(t.samples.c.seq).where(t.samples.c.id == sample_id).scalar_subquery()
            own = connection.execute(select(found).where(found.c.seq == here)).one_or_none()
            if own is None:
                return Neighbours(previous=None, next=None, position=None, total=total)
            later, earlier = _beyond(found, own, descending), _beyond(found, own, not descending)
            before = or_(earlier, and_(found.c.key == own.key, found.c.seq < own.seq))
            after = or_(later, and_(found.c.key == own.key, found.c.seq > own.seq))
            place = connection.scalar(select(func.count()).select_from(found).where(before)) or 0
            last = _order(found, not descending, backwards=True)
            return Neighbours(
                previous=_first(connection, found, before, last),
                next=_first(connection, found, after, _order(found, descending)),
                position=place + 1,
                total=total,
            )

    def overview(self) -> Overview:
        """Return the run in figures."""
        with self._engine.connect() as connection:
            return overview_of(connection)


def _found(chosen: SampleFilter, sort: Sort) -> CTE:
    """Return the number and the sort key of each sample that meets a filter."""
    key = t.listing.c["seq" if sort == "order" else sort]
    query = select(t.listing.c.seq, key.label("key")).where(*_conditions(chosen))
    return query.cte("found")


def _conditions(chosen: SampleFilter) -> Iterator[ColumnElement[bool]]:
    listed = t.listing.c
    if chosen.outcomes:
        yield listed.outcome.in_(chosen.outcomes)
    for name in ("label", "rung", "semantic_status", "cause"):
        if (value := getattr(chosen, name)) is not None:
            yield listed[name] == value
    if chosen.attempts_min is not None:
        yield listed.attempts >= chosen.attempts_min
    if chosen.usd_min is not None:
        yield listed.usd >= chosen.usd_min
    if chosen.kept is not None:
        yield listed.kept_from.is_not(None) if chosen.kept else listed.kept_from.is_(None)
    if chosen.text:
        said = t.sought.c.text.icontains(chosen.text[:MOST_SOUGHT], autoescape=True)
        yield listed.seq.in_(select(t.sought.c.seq).where(said))


def _order(found: CTE, descending: bool, *, backwards: bool = False) -> list[ColumnElement[Any]]:
    """Return what a list is sorted by; ties are in the benchmark's order."""
    key, seq = found.c.key, found.c.seq
    return [key.desc() if descending else key, seq.desc() if backwards else seq]


def _beyond(found: CTE, own: Row[Any], descending: bool) -> ColumnElement[bool]:
    key: ColumnElement[Any] = found.c.key
    return key < own.key if descending else key > own.key


def _first(
    connection: Connection,
    found: CTE,
    among: ColumnElement[bool],
    order: list[ColumnElement[Any]],
) -> str | None:
    chosen = select(found.c.seq).where(among).order_by(*order).limit(1).scalar_subquery()
    return connection.scalar(select(t.samples.c.id).where(t.samples.c.seq == chosen))


def _listed(connection: Connection, seqs: Sequence[int]) -> Iterator[Listed]:
    """Yield the rows of samples in this order."""
    query = (
        select(t.listing, t.samples.c.fields, func.coalesce(t.results.c.reason, "").label("reason"))
        .join(t.samples, t.samples.c.seq == t.listing.c.seq)
        .outerjoin(t.results, t.results.c.sample_id == t.samples.c.id)
        .where(t.listing.c.seq.in_(seqs))
    )
    rows = {row["seq"]: dict(row) for row in connection.execute(query).mappings()}
    for seq in seqs:
        row = rows[seq]
        unpriced = row.pop("priced") < row["billed_calls"]
        text = " · ".join(row.pop("fields").values())
        yield Listed.model_validate(
            row | {"usd": None if unpriced else row["usd"], "excerpt": text[:EXCERPT]}
        )
