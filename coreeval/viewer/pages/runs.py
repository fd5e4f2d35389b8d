"""The first page: the runs and releases that are here."""

from starlette.requests import Request
from starlette.responses import Response

from coreeval.viewer.rendering import page


def show(request: Request) -> Response:
    """List runs, newest first, and releases."""
    return page(request, "runs.html", runs=request.app.state.shelf.all_runs())
