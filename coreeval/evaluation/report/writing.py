"""Writing both forms of a report, and the table of samples beside them."""

from coreeval.evaluation.report.document import Findings, report_document
from coreeval.evaluation.report.items import write_items
from coreeval.evaluation.report.page import report_page
from coreeval.tools.files import write_json, write_text
from coreeval.tools.workspace import RunFiles


def write_report(found: Findings, files: RunFiles) -> None:
    """Write report.json, report.html and, where a target labelled texts, items.csv."""
    document = report_document(found)
    write_json(files.report_json, document)
    write_text(files.report_html, report_page(document))
    if found.levels.items:
        write_items(files.items, found.levels.columns, found.levels.rows())
