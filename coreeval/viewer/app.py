"""The application: routes, templates, and what a mistake looks like."""

from collections.abc import Collection, Sequence
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from coreeval.errors import CoreEvalError, UsageError
from coreeval.tools.workspace import Workspace
from coreeval.viewer.rendering import make_environment, page
from coreeval.viewer.routes import ROUTES
from coreeval.viewer.security import HEADERS, OnlyReaders, SafeHeaders
from coreeval.viewer.shelf import Shelf

STATIC: list[str | tuple[str, str]] = [
    ("coreeval.viewer", "static"),
    ("coreeval.evaluation.report", "static"),
]
"""Packages and their folders: the pages' own, and the style of plots that a report has too."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def create_app(
    runs: Sequence[Path],
    *,
    workspace: Workspace | None = None,
    token: str | None = None,
    hide_texts: bool = False,
    allowed_hosts: Collection[str] = LOOPBACK,
) -> Starlette:
    """Return the pages of some runs.

    Args:
        runs: Directories of runs.
        workspace: Whose runs and releases are shown besides.
        token: What a reader must know; None lets everybody read who can reach the pages.
        hide_texts: Whether texts, prompts and answers are left out.
        allowed_hosts: Names that the pages are served under; `*` stands for any bare IP address.
    """
    app = Starlette(
        routes=[*ROUTES, Mount("/static", StaticFiles(packages=STATIC))],
        middleware=[
            Middleware(SafeHeaders),
            Middleware(OnlyReaders, hosts=allowed_hosts, token=token),
        ],
        exception_handlers={
            CoreEvalError: _told,
            HTTPException: _refused,
            Exception: _broken,
        },
    )
    app.state.shelf = Shelf(runs=runs, workspace=workspace)
    app.state.templates = make_environment()
    app.state.hide_texts = hide_texts
    return app


def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, CoreEvalError)
    status = 404 if isinstance(error, UsageError) else 500
    return _mistake(request, status, error.message, where=error.where, hint=error.hint)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _mistake(request, error.status_code, error.detail)


def _broken(request: Request, error: Exception) -> Response:
    """Answer for a bug; its traceback goes to where the server was started."""
    said = f"These pages made a mistake: {type(error).__name__}. The terminal shows where."
    answer = _mistake(request, 500, said)
    answer.headers.update(HEADERS)  # it is made outside of the middlewares
    return answer


def _mistake(
    request: Request, status: int, message: str, *, where: str = "", hint: str = ""
) -> Response:
    told = {"title": HTTPStatus(status).phrase, "message": message, "where": where, "hint": hint}
    return page(request, "error.html", status=status, **told)
