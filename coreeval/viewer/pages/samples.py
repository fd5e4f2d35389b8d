"""The samples of a run: sorted, filtered, a page at a time; the address holds the state."""

from math import ceil
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from coreeval.tools.stores.run_overview import Overview
from coreeval.viewer.hiding import hidden_row
from coreeval.viewer.list_view import PAGE, ListView
from coreeval.viewer.opening import opened
from coreeval.viewer.rendering import page, wants_part


def show(request: Request) -> Response:
    """List samples; htmx is given the list without the page around it."""
    hide = request.app.state.hide_texts
    view = ListView.of(request.query_params, hide_texts=hide)
    with opened(request) as run:
        found = run.store.listing.page(
            view.chosen,
            sort=view.sort,
            descending=view.descending,
            offset=view.offset,
            limit=PAGE,
        )
        listed: dict[str, Any] = {
            "run": run,
            "view": view,
            "rows": [hidden_row(row) if hide else row for row in found.rows],
            "total": found.total,
            "pages": max(1, ceil(found.total / PAGE)),
        }
        if wants_part(request):
            return page(request, "samples_list.html", **listed)
        return page(
            request, "samples.html", **listed, choices=_choices(run.store.listing.overview())
        )


def _choices(overview: Overview) -> dict[str, dict[str, int]]:
    """Return what can be chosen, with the number of samples of each."""
    return {
        "outcome": overview.outcomes,
        "label": {label: sum(ends.values()) for label, ends in overview.labels.items()},
        "rung": overview.rungs,
        "semantic": overview.semantic,
    }
