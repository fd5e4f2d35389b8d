"""Writing both forms of a report."""

from pathlib import Path

from coreeval.evaluation.report.document import Findings, report_document
from coreeval.evaluation.report.page import report_page
from coreeval.tools.files import write_json, write_text


def write_report(found: Findings, *, json_path: Path, html_path: Path) -> None:
    """Write report.json for programs and report.html for people, each as one replacement."""
    document = report_document(found)
    write_json(json_path, document)
    write_text(html_path, report_page(document))
