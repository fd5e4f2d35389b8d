"""Downloads: the history of a sample, a list of samples, and the files of a report."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from coreeval.runs.history import build_history_document, redact_row
from coreeval.tools.stores.run_queries import ListRow
from coreeval.tools.text import format_sheet
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.catalog import OpenRun, find_run_path, open_requested_run
from coreeval.viewer.sample_list import ListView
from coreeval.viewer.sample_page import read_history

SHEET_COLUMNS: Final = (
    "sample", "label", "outcome", "reason", "attempts", "rung", "semantic_status", "calls", "usd",
    "seconds", "excerpt",
)  # fmt: skip
_ROWS_AT_ONCE: Final = 5000
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def list_report_files(files: RunFiles) -> Mapping[str, Path]:
    """Return the files of a run's report that exist, by name."""
    known = (files.report_html, files.report_json, files.items)
    return {path.name: path for path in known if path.exists()}


def send_file(request: Request) -> Response:
    """Send a file of the run's report.

    Raises:
        HTTPException: 404, there is no such file; 403, it would show hidden texts.
    """
    if request.app.state.hide_texts:
        raise HTTPException(
            403, "Texts are hidden here, but the files of the report quote some of them."
        )
    files = list_report_files(RunFiles(find_run_path(request, request.path_params["key"])))
    name = request.path_params["name"]
    if name not in files:
        raise HTTPException(404, f"This run has no file {name!r} to download.")
    return FileResponse(files[name], filename=name)


def send_story(request: Request) -> Response:
    """Send the history of a sample as JSON."""
    with open_requested_run(request) as run:
        history = read_history(request, run)
    document = build_history_document(history)
    name = _UNSAFE.sub("-", history.sample.id).strip("-.") or "sample"
    return Response(
        json.dumps(document, ensure_ascii=False, indent=1),
        media_type="application/json",
        headers={"content-disposition": f'attachment; filename="{name[:100]}.json"'},
    )


def send_list(request: Request) -> Response:
    """Send all samples of a list as CSV, in its order."""
    hide = request.app.state.hide_texts
    view = ListView.from_query(request.query_params, hide_texts=hide)
    with open_requested_run(request) as run:
        rows = (redact_row(row) if hide else row for row in _iter_rows(run, view))
        sheet = format_sheet(SHEET_COLUMNS, map(_format_cells, rows))
    return Response(
        sheet,
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="samples.csv"'},
    )


def _iter_rows(run: OpenRun, view: ListView) -> Iterator[ListRow]:
    after = None
    while True:
        found = run.store.listing.page(
            view.chosen,
            sort=view.sort,
            descending=view.descending,
            limit=_ROWS_AT_ONCE,
            after=after,
        )
        yield from found.rows
        if len(found.rows) < _ROWS_AT_ONCE:
            return
        after = found.last


def _format_cells(row: ListRow) -> list[str]:
    values = (getattr(row, name) for name in SHEET_COLUMNS)
    return ["" if value is None else str(value) for value in values]
