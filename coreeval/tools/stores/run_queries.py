"""The samples of a run, as filtered and sorted lists and as states for comparing runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field
from sqlalchemy import (
    CTE,
    BigInteger,
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Engine,
    FromClause,
    Select,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from coreeval.schema import Arm, ReplacedFact, Result, Sample, Value
from coreeval.tools.files import MOST_INTEGER
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_correctness import ARMS, Correctness, select_answered
from coreeval.tools.stores.run_overview import Overview, load_overview
from coreeval.tools.stores.run_search import select_samples_with
from coreeval.tools.stores.run_tables import SampleResult

SampleSort = Literal[
    "order", "sample", "outcome", "label", "attempts", "usd", "calls", "seconds", "rung",
    "semantic_status", "ended_at",
]  # fmt: skip
SORTS: tuple[SampleSort, ...] = get_args(SampleSort)
"""The sort keys of a list; `order` is the benchmark's order, which also breaks ties."""
EXCERPT_CHARS = 160
"""The most characters of a sample's text in a list."""


Position = Annotated[int, Field(ge=-MOST_INTEGER, le=MOST_INTEGER)]


class SampleFilter(Value):
    """A filter of samples, which must match all of its fields."""

    outcomes: tuple[str, ...] = ()
    """The outcomes to list, including `pending`; empty for all."""
    label: str | None = None
    """The name of the label; None for all."""
    attempts_min: int | None = Field(default=None, ge=0, le=MOST_INTEGER)
    usd_min: float | None = Field(default=None, allow_inf_nan=False)
    """The least amount that the sample's calls cost this run; None for any."""
    rung: str | None = None
    semantic_status: str | None = None
    cause: str | None = None
    """A cause as in the overview; None for all."""
    text: str = ""
    """A part of an id, of a text in any arm, or of a reason; A to Z match in either case."""
    kept: bool | None = None
    """Whether it was taken from a release; None for both."""
    target: str | None = None
    """The target whose answers the next fields are about; None for any one target."""
    on_original: Correctness | None = None
    """How the target answered the original text; None for any way, or no answer."""
    on_semantic: Correctness | None = None
    on_updated: Correctness | None = None
    on_control: Correctness | None = None

    @property
    def answered(self) -> Mapping[Arm, Correctness] | None:
        """Return the required correctness by arm; None if any sample may be listed."""
        found = {arm: how for arm in ARMS if (how := getattr(self, f"on_{arm}"))}
        return None if self.target is None and not found else found

    @property
    def is_search(self) -> bool:
        """Return whether tables other than the list are searched."""
        return bool(self.text) or self.answered is not None


ALL_SAMPLES = SampleFilter()


class ListRow(Value):
    """A sample in a list."""

    seq: int
    """The sample's position in the benchmark."""
    sample: str
    """The sample's id."""
    label: str
    """The name of the sample's label."""
    excerpt: str
    """The beginning of the sample's text."""
    outcome: str
    """The sample's outcome, or `pending`."""
    cause: str
    """The reason that it was not accepted, as grouped in the overview; "" if it was accepted."""
    reason: str
    """The reason in full."""
    attempts: int
    rung: str
    semantic_status: str
    """The status of the rewording; "" while the sample is pending."""
    kept_from: str | None
    """The version of the release that it was taken from; None if it was not."""
    calls: int
    """The number of calls that its steps used, from the store or billed."""
    billed_calls: int
    usd: float | None
    """The cost of the billed calls; None if one of them has no known price. A call shared by
    several samples counts fully for each."""
    tokens: int
    """The prompt and answer tokens of the billed calls."""
    seconds: float
    """The seconds of all its steps together."""
    ended_at: str
    """When the sample ended; "" while it is pending."""


class ListPlace(Value):
    """A sample's place in a sorted list, even if the sample has moved since."""

    seq: Position
    """The sample's position in the benchmark, which breaks ties."""
    key: Position | Annotated[float, Field(allow_inf_nan=False)] | str
    """The sample's value in the column that the list is sorted by."""

    @classmethod
    def from_text(cls, text: str, sort: SampleSort) -> Self:
        """Parse the text from `str`, for a list in this order.

        Raises:
            ValueError: the text is not a place.
        """
        seq, _, key = text.partition(":")
        return cls(seq=int(seq), key=_sort_key(sort).type.python_type(key))

    def __str__(self) -> str:
        return f"{self.seq}:{self.key}"


class SamplePage(Value):
    """One page of a list."""

    rows: tuple[ListRow, ...]
    total: int
    """The number of samples that match the filter, on all pages."""
    first: ListPlace | None = None
    """The place of the first row; None if there are none."""
    last: ListPlace | None = None
    """The place of the last row; None if there are none."""


class Neighbours(Value):
    """The samples before and after one in a list."""

    previous: str | None
    next: str | None
    position: int | None
    """The position from 1; None if the sample is not in the list."""
    total: int


class SampleListing:
    """The lists of samples and the totals of a run, read-only."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(
        self,
        chosen: SampleFilter = ALL_SAMPLES,
        *,
        sort: SampleSort = "order",
        descending: bool = False,
        offset: int = 0,
        limit: int = 50,
        after: ListPlace | None = None,
        before: ListPlace | None = None,
    ) -> SamplePage:
        """Return one page of the samples that match a filter.

        Args:
            chosen: The filter.
            sort: The sort key.
            descending: Whether the largest comes first.
            offset: The number of samples before the page, which are read and skipped, from the
                nearer end of the list.
            limit: The number of samples on the page.
            after: The place before the page, instead of an offset.
            before: The place after the page, instead of an offset.
        """
        found = _select_matching(chosen, sort, self._engine)
        total = select(func.count()).select_from(found)
        # A search reads many rows, so it runs once for the page and the total.
        together = [total.scalar_subquery()] if chosen.is_search else []
        query = select(found.c.seq, found.c.key, *together)
        with self._engine.connect() as connection:
            number = None if together else connection.scalar(total) or 0
            backwards, beside = before is not None, after or before
            if beside:
                query, offset = query.where(_is_beyond(found, beside, descending, backwards)), 0
            elif number is not None:
                backwards, offset, limit = _choose_end(offset, limit, number)
            query = query.order_by(*_order(found, descending, backwards)).limit(limit)
            rows = connection.execute(query.offset(literal(offset, BigInteger))).all()
            if number is None:
                number = rows[0][2] if rows else connection.scalar(total) or 0
            rows = rows[::-1] if backwards else rows
            places = [ListPlace(seq=row[0], key=row[1]) for row in rows]
            listed = tuple(_load_rows(connection, [place.seq for place in places]))
        ends = {"first": places[0], "last": places[-1]} if places else {}
        return SamplePage(rows=listed, total=number, **ends)

    def ids(
        self, chosen: SampleFilter, sort: SampleSort = "order", descending: bool = False
    ) -> list[str]:
        """Return the ids of all samples that match a filter."""
        found = _select_matching(chosen, sort, self._engine)
        query = select(t.samples.c.id).join(found, found.c.seq == t.samples.c.seq)
        with self._engine.connect() as connection:
            return list(connection.scalars(query.order_by(*_order(found, descending))))

    def neighbours(
        self,
        sample_id: str,
        chosen: SampleFilter = ALL_SAMPLES,
        *,
        sort: SampleSort = "order",
        descending: bool = False,
    ) -> Neighbours:
        """Return the samples before and after a sample in the filtered list."""
        found = _select_matching(chosen, sort, self._engine)
        with self._engine.connect() as connection:
            row = connection.execute(_select_neighbours(found, sample_id, descending)).one_or_none()
            if row is None:
                total = connection.scalar(select(func.count()).select_from(found)) or 0
                return Neighbours(previous=None, next=None, position=None, total=total)
        return Neighbours.model_validate(dict(row._mapping))

    def overview(self) -> Overview:
        """Return the overview of the run."""
        with self._engine.connect() as connection:
            return load_overview(connection)


def _select_matching(chosen: SampleFilter, sort: SampleSort, engine: Engine) -> CTE | Subquery:
    """Return the number and the sort key of each sample that matches a filter.

    A search runs only once per statement.
    """
    query = select(t.listing.c.seq, _sort_key(sort).label("key")).where(
        *_conditions(chosen, engine)
    )
    return query.cte("found") if chosen.is_search else query.subquery("found")


def _sort_key(sort: SampleSort) -> Column[Any]:
    return t.listing.c["seq" if sort == "order" else sort]


def _conditions(chosen: SampleFilter, engine: Engine) -> Iterator[ColumnElement[bool]]:
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
    for found in _searches(chosen, engine):
        yield listed.seq.in_(found)


def _searches(chosen: SampleFilter, engine: Engine) -> Iterator[Select[Any] | CompoundSelect[Any]]:
    """Yield the queries for the numbers of samples that other tables select."""
    if (answered := chosen.answered) is not None:
        yield select_answered(answered, chosen.target)
    if chosen.text:
        yield select_samples_with(chosen.text, engine)


def _order(
    found: FromClause, descending: bool, backwards: bool = False
) -> list[ColumnElement[Any]]:
    """Return the sort order of a list, or its reverse; ties are in the benchmark's order."""
    return [
        found.c.key.desc() if descending != backwards else found.c.key,
        found.c.seq.desc() if backwards else found.c.seq,
    ]


def _is_beyond(
    found: FromClause, place: ListPlace, descending: bool, backwards: bool
) -> ColumnElement[bool]:
    """Return the condition that a sample comes after a place in the list, or before it."""
    key, seq = found.c.key, found.c.seq
    further = key < place.key if descending != backwards else key > place.key
    later = seq < place.seq if backwards else seq > place.seq
    return or_(further, and_(key == place.key, later))


def _choose_end(offset: int, limit: int, total: int) -> tuple[bool, int, int]:
    """Return whether a page is nearer to the list's end, and its offset and limit from there."""
    rest = max(total - offset - limit, 0)
    if offset <= rest:
        return False, offset, limit
    return True, rest, min(limit, max(total - offset, 0))


def _select_neighbours(found: CTE | Subquery, sample_id: str, descending: bool) -> Select[Any]:
    """Return the query for a sample's neighbours in a list; no row if it is not in the list."""
    ids, other = t.samples.c, found.alias("other")
    here = select(ids.seq).where(ids.id == sample_id).scalar_subquery()
    own = select(found).where(found.c.seq == here).cte("own")
    same = other.c.key == own.c.key
    up, down = other.c.key > own.c.key, other.c.key < own.c.key
    before = or_(up if descending else down, and_(same, other.c.seq < own.c.seq))
    after = or_(down if descending else up, and_(same, other.c.seq > own.c.seq))

    def first(among: ColumnElement[bool], *order: ColumnElement[Any]) -> ColumnElement[Any]:
        seq = select(other.c.seq).where(among).order_by(*order).limit(1).correlate(own)
        return select(ids.id).where(ids.seq == seq.scalar_subquery()).scalar_subquery()

    earlier = select(func.count()).select_from(other).where(before).correlate(own)
    return select(
        first(before, *_order(other, descending, True)).label("previous"),
        first(after, *_order(other, descending)).label("next"),
        (earlier.scalar_subquery() + 1).label("position"),
        select(func.count()).select_from(found).scalar_subquery().label("total"),
    ).select_from(own)


def _load_rows(connection: Connection, seqs: Sequence[int]) -> Iterator[ListRow]:
    """Yield the rows of samples in the given order."""
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
        yield ListRow.model_validate(
            row | {"usd": None if unpriced else row["usd"], "excerpt": text[:EXCERPT_CHARS]}
        )


_SAMPLE = [t.samples.c[name] for name in Sample.model_fields]
_RESULT = [t.results.c[name] for name in Result.model_fields if name != "facts"]


ComparedSample = tuple[str, str, str, str | None, str | None]
"""The id, label, outcome, updated text and semantic text of a sample; texts are JSON as in the
file, or their digest, or None if the arm has none. A tuple, since there are many."""


class SampleStates:
    """The finished samples of a run: all of them with little data, or a few in full."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def stamp(self) -> tuple[int, str]:
        """Return the number of finished samples and the time of the last one, to detect changes."""
        query = select(func.count(), func.coalesce(func.max(t.results.c.ended_at), ""))
        with self._engine.connect() as connection:
            number, last = connection.execute(query).one()
        return number, last

    def all(self) -> Sequence[ComparedSample]:
        """Return the finished samples, in the benchmark's order."""
        ended = t.results.c
        updated = case((ended.outcome == "accepted", cast(ended.updated, Text)))
        semantic = case((ended.semantic_status == "reworded", cast(ended.semantic, Text)))
        query = (
            select(t.samples.c.id, t.samples.c.label_text, ended.outcome, updated, semantic)
            .join(t.results, ended.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def some(self, ids: Sequence[str]) -> dict[str, SampleResult]:
        """Return the finished samples among `ids`, with their replaced facts, by id."""
        facts = self._facts(ids)
        query = (
            select(*_SAMPLE, *_RESULT)
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .where(t.samples.c.id.in_(ids))
        )
        return {row["id"]: _to_result(row, facts.get(row["id"], [])) for row in self._rows(query)}

    def _facts(self, ids: Sequence[str]) -> dict[str, list[ReplacedFact]]:
        query = select(t.facts).where(t.facts.c.sample_id.in_(ids))
        found = dict[str, list[ReplacedFact]]()
        for row in self._rows(query.order_by(t.facts.c.sample_id, t.facts.c.ord)):
            fact = {name: row[name] for name in ReplacedFact.model_fields}
            found.setdefault(row["sample_id"], []).append(ReplacedFact.model_validate(fact))
        return found

    def _rows(self, query: Select[Any]) -> list[Mapping[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _to_result(row: Mapping[str, Any], facts: Sequence[ReplacedFact]) -> SampleResult:
    rest = {column.name: row[column.name] for column in _RESULT}
    return SampleResult(
        sample=Sample.model_validate({name: row[name] for name in Sample.model_fields}),
        result=Result.model_validate({**rest, "facts": tuple(facts)}),
    )
