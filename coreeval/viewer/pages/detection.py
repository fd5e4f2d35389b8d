"""What a run says of its targets: scores on the arms, PCR, series, as its report has them."""

import json
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from coreeval.errors import RunCorrupt
from coreeval.evaluation.report.page import detection_part
from coreeval.tools.workspace import RunFiles, command
from coreeval.viewer.opening import opened
from coreeval.viewer.rendering import page

_NOTHING: dict[str, list[Any]] = {"targets": []}
"""What a report from before drops were taken apart says of them."""


def show(request: Request) -> Response:
    """Show what was detected; nothing is computed, and no series is fetched."""
    with opened(request) as run:
        report = _report_of(run.files)
        part = Markup(detection_part(report)) if report else None
        return page(request, "detection.html", run=run, part=part)


def _report_of(files: RunFiles) -> dict[str, Any] | None:
    """Return the run's report; None before there is one.

    Raises:
        RunCorrupt: it is damaged.
    """
    try:
        report = json.loads(files.report_json.read_bytes())
        found = {key: report[key] for key in ("arms", "pcr", "numleak")}
        return found | {"decomposition": report.get("decomposition", _NOTHING)}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise RunCorrupt(
            f"report.json is damaged: {error}",
            where=str(files.report_json),
            hint=f"write it anew: {command('evaluate', files.root)}",
        ) from None
