"""The samples of a run: sorted, filtered, a page at a time; the address holds the state."""

from starlette.requests import Request
from starlette.responses import Response

from coreeval.viewer.opening import opened
from coreeval.viewer.rendering import page


def show(request: Request) -> Response:
    """List samples."""
    with opened(request) as run:
        return page(request, "samples.html", run=run)
