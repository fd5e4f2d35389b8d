"""What a run says of its targets: scores on the arms, PCR, series, as its report has them."""

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from coreeval.evaluation.report.report_file import read_report
from coreeval.evaluation.report.report_page import detection_part
from coreeval.viewer.opening import opened
from coreeval.viewer.rendering import page


def show(request: Request) -> Response:
    """Show what was detected; nothing is computed, and no series is fetched."""
    with opened(request) as run:
        report = read_report(run.files)
        part = Markup(detection_part(report)) if report else None
        return page(request, "detection.html", run=run, part=part)
