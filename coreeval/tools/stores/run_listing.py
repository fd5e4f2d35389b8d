"""The samples of a run as a list: filtered, sorted, a page at a time."""

from typing import Any, Literal, get_args

from sqlalchemy import (
    ColumnElement,
    Engine,
    Select,
    String,
    cast,
    func,
    or_,
    select,
)

from coreeval.schema import Value
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.causes import cause_of
from coreeval.tools.stores.run_overview import PENDING, Overview, overview_of

Sort = Literal[
    "order", "sample", "outcome", "label", "attempts", "usd", "calls", "seconds", "rung",
    "semantic_status", "ended_at",
]  # fmt: skip
SORTS: tuple[Sort, ...] = get_args(Sort)
"""What a list can be sorted by; `order` is the benchmark's, which also settles ties."""
EXCERPT = 160
"""Characters of a sample's text that a list shows."""


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
    """Part of an id, of a text in any arm, or of a reason; capitals do not matter."""
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
    """What they cost this run; None where a billed one has no known price."""
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
        seqs = self._ordered(chosen, sort, descending)
        rows = self._listed(seqs[offset : offset + limit])
        return Page(rows=tuple(rows), total=len(seqs))

    def neighbours(
        self,
        sample_id: str,
        chosen: SampleFilter = EVERY,
        *,
        sort: Sort = "order",
        descending: bool = False,
    ) -> Neighbours:
        """Return the samples before and after one in the list of a filter."""
        ids = [row.sample for row in self._listed(self._ordered(chosen, sort, descending))]
        place = ids.index(sample_id) if sample_id in ids else None
        if place is None:
            return Neighbours(previous=None, next=None, position=None, total=len(ids))
        return Neighbours(
            previous=ids[place - 1] if place else None,
            next=ids[place + 1] if place + 1 < len(ids) else None,
            position=place + 1,
            total=len(ids),
        )

    def overview(self) -> Overview:
        """Return the run in figures."""
        with self._engine.connect() as connection:
            return overview_of(connection)

    def _ordered(self, chosen: SampleFilter, sort: Sort, descending: bool) -> list[int]:
        listed = _listing().subquery()
        key = listed.c[sort if sort != "order" else "seq"]
        query = select(listed.c.seq, listed.c.outcome, listed.c.reason).where(
            *_conditions(listed.c, chosen)
        )
        with self._engine.connect() as connection:
            rows = connection.execute(
                query.order_by(key.desc() if descending else key, listed.c.seq)
            )
            return [
                seq
                for seq, outcome, reason in rows
                if chosen.cause is None or cause_of(outcome, reason) == chosen.cause
            ]

    def _listed(self, seqs: list[int]) -> list[Listed]:
        with self._engine.connect() as connection:
            found = connection.execute(_listing().where(t.samples.c.seq.in_(seqs))).mappings()
            rows = {row["seq"]: dict(row) for row in found}
        return [_row(rows[seq]) for seq in seqs]


def _row(row: dict[str, Any]) -> Listed:
    outcome = row["outcome"]
    ended = outcome not in (PENDING, "accepted")
    unpriced = row.pop("priced") < row["billed_calls"]
    row["excerpt"] = " · ".join(row.pop("fields").values())[:EXCERPT]
    row["usd"] = None if unpriced else row["usd"]
    row["cause"] = cause_of(outcome, row["reason"]) if ended else ""
    return Listed.model_validate(row)


def _listing() -> Select[Any]:
    ended, sample = t.results.c, t.samples.c
    billed = (t.calls.c.sample_id == sample.id, ~t.calls.c.cached)

    def of_calls(value: ColumnElement[Any], *where: ColumnElement[bool]) -> ColumnElement[Any]:
        return func.coalesce(select(value).where(*where).scalar_subquery(), 0)

    called = t.calls.c
    seconds = select(func.sum(t.steps.c.seconds)).where(t.steps.c.sample_id == sample.id)
    return select(
        sample.seq,
        sample.id.label("sample"),
        sample.label_text.label("label"),
        sample.fields,
        func.coalesce(ended.outcome, PENDING).label("outcome"),
        func.coalesce(ended.reason, "").label("reason"),
        func.coalesce(ended.attempts, 0).label("attempts"),
        func.coalesce(ended.rung, "").label("rung"),
        func.coalesce(ended.semantic_status, "").label("semantic_status"),
        ended.kept_from,
        func.coalesce(ended.ended_at, "").label("ended_at"),
        of_calls(func.count(), called.sample_id == sample.id).label("calls"),
        of_calls(func.count(), *billed).label("billed_calls"),
        of_calls(func.count(called.usd), *billed).label("priced"),
        of_calls(func.sum(called.usd), *billed).label("usd"),
        of_calls(func.sum(called.prompt_tokens + called.completion_tokens), *billed).label(
            "tokens"
        ),
        func.coalesce(seconds.scalar_subquery(), 0.0).label("seconds"),
    ).outerjoin(t.results, ended.sample_id == sample.id)


def _conditions(listed: Any, chosen: SampleFilter) -> list[ColumnElement[bool]]:  # noqa: ANN401
    found: list[ColumnElement[bool]] = []
    if chosen.outcomes:
        found.append(listed.outcome.in_(chosen.outcomes))
    for name in ("label", "rung", "semantic_status"):
        if (value := getattr(chosen, name)) is not None:
            found.append(listed[name] == value)
    if chosen.attempts_min is not None:
        found.append(listed.attempts >= chosen.attempts_min)
    if chosen.usd_min is not None:
        found.append(listed.usd >= chosen.usd_min)
    if chosen.kept is not None:
        found.append(listed.kept_from.is_not(None) if chosen.kept else listed.kept_from.is_(None))
    if chosen.text:
        texts = (listed.sample, cast(listed.fields, String), listed.reason)
        found.append(or_(*(text.icontains(chosen.text, autoescape=True) for text in texts)))
    return found
