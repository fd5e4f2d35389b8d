"""The list of a run's samples, filtered, sorted and in pages.

The address contains the filter, the order and the page.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Literal, Self
from urllib.parse import urlencode

from pydantic import Field, ValidationError
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval.runs.history import redact_row
from coreeval.runs.target_answers import describe_right
from coreeval.schema import Value
from coreeval.tools.stores.run_correctness import ARMS, CORRECTNESS
from coreeval.tools.stores.run_overview import Overview
from coreeval.tools.stores.run_queries import SORTS, ListPlace, ListRow, SampleFilter, SampleSort
from coreeval.viewer.catalog import OpenRun, open_requested_run
from coreeval.viewer.rendering import render_page, wants_fragment

PAGE_SIZE = 50
"""The number of samples on a page."""
MOST_ERROR_CHARACTERS = 60
"""The most characters of a value that an error repeats."""
DESCENDING_FIRST: tuple[SampleSort, ...] = ("attempts", "calls", "usd", "seconds")
"""Columns that are sorted in descending order at first."""
FILTER_FIELDS: Mapping[str, str] = {
    "outcome": "outcomes",
    "label": "label",
    "attempts": "attempts_min",
    "usd": "usd_min",
    "rung": "rung",
    "semantic": "semantic_status",
    "cause": "cause",
    "text": "text",
    "kept": "kept",
    "target": "target",
    **{f"on_{arm}": f"on_{arm}" for arm in ARMS},
}
"""The fields of the filter, by parameter of an address."""


class ListView(Value):
    """A list of samples with the filter, order and page that a reader requested."""

    chosen: SampleFilter = SampleFilter()
    sort: SampleSort = "order"
    descending: bool = False
    page: int = Field(default=1, ge=1, le=10**9)
    after: ListPlace | None = None
    """The end of the previous page, where this one starts; None if `page` is sufficient."""
    before: ListPlace | None = None
    """The beginning of the next page."""

    @classmethod
    def from_query(cls, query: QueryParams, *, hide_texts: bool = False) -> Self:
        """Parse an address; empty conditions are ignored.

        Raises:
            HTTPException: 400, the address is invalid, or searches hidden texts.
        """
        chosen: dict[str, Any] = {
            field: query[name]
            for name, field in FILTER_FIELDS.items()
            if query.get(name, "").strip()
        }
        if "outcomes" in chosen:
            chosen["outcomes"] = tuple(filter(None, query.getlist("outcome")))
        if hide_texts and "text" in chosen:
            raise HTTPException(400, "Texts are hidden here, so they cannot be searched.")
        sort = query.get("sort") or "order"
        asked = {"sort": sort.lstrip("-"), "descending": sort.startswith("-")}
        try:
            view = cls.model_validate({**asked, "chosen": chosen, "page": query.get("page") or 1})
        except ValidationError as error:
            raise HTTPException(400, _describe_error(error)) from None
        beside = {name: _read_place(name, query, view.sort) for name in ("after", "before")}
        return view.model_copy(update=beside)

    @property
    def offset(self) -> int:
        """Return the number of samples before this page."""
        return (self.page - 1) * PAGE_SIZE

    @property
    def filter_pairs(self) -> list[tuple[str, str]]:
        """Return the filter as query parameters."""
        said = self.chosen.model_dump(mode="json", exclude_defaults=True)
        values = {name: said[field] for name, field in FILTER_FIELDS.items() if field in said}
        return [
            (name, str(each).lower() if isinstance(each, bool) else str(each))
            for name, value in values.items()
            for each in (value if isinstance(value, list) else [value])
        ]

    @property
    def order(self) -> str:
        """Return the order as a query parameter: `-usd` puts the most expensive first."""
        return ("-" if self.descending else "") + self.sort

    @property
    def query(self) -> str:
        """Return the encoded filter and order for a sample's page."""
        order = [("sort", self.order)] if self.order != "order" else []
        return urlencode([*self.filter_pairs, *order])

    def at(
        self, page: int, *, after: ListPlace | None = None, before: ListPlace | None = None
    ) -> str:
        """Return the query of another page of the list.

        Args:
            page: Its number.
            after: The position after which it starts, if known, which makes the query faster.
            before: The position before which it ends, if known.
        """
        beside = {"after": after, "before": before}
        place = {"page": page} | {name: str(each) for name, each in beside.items() if each}
        return "&".join(filter(None, [self.query, urlencode(place) if page > 1 else ""]))

    def sorted_by(self, sort: SampleSort) -> str:
        """Return the query of the list in another order; the current order is reversed."""
        turned = not self.descending if self.sort == sort else sort in DESCENDING_FIRST
        return self.model_copy(update={"sort": sort, "descending": turned, "page": 1}).query

    def without(self, name: str) -> str:
        """Return the query of the list without one condition."""
        usual = SampleFilter.model_fields[FILTER_FIELDS[name]].default
        chosen = self.chosen.model_copy(update={FILTER_FIELDS[name]: usual})
        return self.model_copy(update={"chosen": chosen, "page": 1}).query


def _read_place(name: str, query: QueryParams, sort: SampleSort) -> ListPlace | None:
    said = query.get(name)
    try:
        return ListPlace.from_text(said, sort) if said else None
    except (ValueError, OverflowError):
        known = (
            f"It must be a number, a colon and a value of {sort}, as in the links between pages."
        )
        raise HTTPException(400, _complain(name, said, known)) from None


def _describe_error(error: ValidationError) -> str:
    first = error.errors()[0]
    field = str(first["loc"][-1])
    name = next((name for name, known in FILTER_FIELDS.items() if known == field), field)
    known = f" Known: {', '.join(SORTS)}." if name == "sort" else ""
    return _complain(name, first["input"], f"{first['msg']}.{known}")


def _complain(name: str, value: object, why: str) -> str:
    said = repr(value)
    shown = said if len(said) <= MOST_ERROR_CHARACTERS else f"{said[:MOST_ERROR_CHARACTERS]}..."
    return f"The address is not valid: {name} is {shown}. {why}"


def show_samples(request: Request) -> Response:
    """List samples; htmx gets only the list."""
    return _render_list(request, "samples")


def show_targets(request: Request) -> Response:
    """List samples with each target's answers on each arm, below the totals of each target."""
    return _render_list(request, "targets")


def _render_list(request: Request, place: Literal["samples", "targets"]) -> Response:
    """Return a list as a page of a run with this name, or only the list for htmx."""
    hide, bundle = request.app.state.hide_texts, request.app.state.bundle
    view = ListView.from_query(request.query_params, hide_texts=hide)

    def show_row(row: ListRow) -> ListRow:
        restricted = bundle.restrict_row(row) if bundle else row
        return redact_row(restricted) if hide else restricted

    with open_requested_run(request) as run:
        listed = read_list(run, view, show_row) | {"place": place}
        if wants_fragment(request):
            return render_page(request, f"{place}_list.html", **listed)
        choices = _count_choices(run.store.listing.overview())
        tally = run.store.target_answers.tally() if place == "targets" else ()
        return render_page(
            request,
            f"{place}.html",
            **listed,
            choices=choices,
            states=CORRECTNESS,
            tally=tally,
        )


def read_list(
    run: OpenRun, view: ListView, show_row: Callable[[ListRow], ListRow]
) -> dict[str, Any]:
    """Return the samples of a view and the targets' answers, by name in the templates."""
    answers = run.store.target_answers
    found = run.store.listing.page(
        view.chosen,
        sort=view.sort,
        descending=view.descending,
        offset=view.offset,
        limit=PAGE_SIZE,
        after=view.after,
        before=view.before,
    )
    return {
        "run": run,
        "view": view,
        "rows": [show_row(row) for row in found.rows],
        "answered": answers.by_sample([row.seq for row in found.rows]),
        "targets": answers.targets(),
        "describe_right": describe_right,
        "total": found.total,
        "first": found.first,
        "last": found.last,
        "pages": max(1, ceil(found.total / PAGE_SIZE)),
    }


def _count_choices(overview: Overview) -> dict[str, dict[str, int]]:
    """Return the choices of each filter, with their numbers of samples."""
    return {
        "outcome": overview.outcomes,
        "label": {label: sum(ends.values()) for label, ends in overview.labels.items()},
        "rung": overview.rungs,
        "semantic": overview.semantic,
    }
