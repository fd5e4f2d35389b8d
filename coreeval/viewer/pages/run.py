"""One run: how its samples ended, what it cost, what went wrong."""

from typing import get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from coreeval.config import ModelsConfig
from coreeval.meanings import OUTCOMES, RUNGS, STATES, STEPS
from coreeval.releases.live import live as live_of
from coreeval.releases.manifest import Manifest
from coreeval.schema import RoleName
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.figures import cost_rows, quality_of, total_cost
from coreeval.viewer.opening import opened, run_path
from coreeval.viewer.rendering import page

MEANINGS = {"outcomes": OUTCOMES, "rungs": RUNGS, "states": STATES, "steps": STEPS}
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
"""A report carries its styles in itself; it has no scripts, and fetches nothing."""


def show(request: Request) -> Response:
    """Show a run."""
    with opened(request) as run:
        overview = run.store.listing.overview()
        costs = cost_rows(overview.calls)
        return page(
            request,
            "run.html",
            run=run,
            now=live_of(run.files.root),
            overview=overview,
            costs=costs,
            cost=total_cost(costs),
            quality=quality_of(overview),
            roles=_roles(run.manifest),
            meanings=MEANINGS,
        )


def _roles(manifest: Manifest) -> dict[str, tuple[str, bool]]:
    """Return the model of each role, and whether that is rules of ours."""
    models = ModelsConfig.model_validate(manifest.models)
    roles: tuple[RoleName, ...] = get_args(RoleName)
    return {
        role: (models.for_role(role).model, models.for_role(role).is_rule_based) for role in roles
    }


def live(request: Request) -> Response:
    """Show the part of a run's page that changes while it runs; when it ends, all of the page."""
    key = request.path_params["key"]
    now = live_of(run_path(request, key))
    part = page(request, "run_now.html", key=key, now=now, meanings=MEANINGS)
    if now.status != "running":
        part.headers["HX-Refresh"] = "true"
    return part


def report(request: Request) -> Response:
    """Hand out the report as it lies in the run.

    Raises:
        HTTPException: 404, there is none yet; 403, it would show texts that are hidden.
    """
    if request.app.state.hide_texts:
        raise HTTPException(403, "Texts are hidden here, and the report quotes some.")
    found = RunFiles(run_path(request, request.path_params["key"])).report_html
    if not found.exists():
        raise HTTPException(404, "This run has no report; it is written when the run is complete.")
    return FileResponse(
        found, media_type="text/html", headers={"content-security-policy": REPORT_POLICY}
    )
