"""One run: how its samples ended, what it cost, what went wrong."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval.viewer.opening import opened
from coreeval.viewer.rendering import page


def show(request: Request) -> Response:
    """Show a run."""
    with opened(request) as run:
        return page(request, "run.html", run=run)


def live(request: Request) -> Response:
    """Show the part of a run's page that changes while it runs."""
    raise HTTPException(404)


def report(request: Request) -> Response:
    """Hand out the report as it lies in the run."""
    raise HTTPException(404)
