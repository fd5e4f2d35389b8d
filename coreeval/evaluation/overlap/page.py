"""An overlap as one page that needs nothing beside itself; text from outside is escaped."""

from importlib import resources
from pathlib import Path

from coreeval.evaluation.overlap.document import overlap_document, side_by_side
from coreeval.evaluation.overlap.hits import Hit, Overlap
from coreeval.tools.files import write_text
from coreeval.tools.text import visible_value

SHOWN = 500
"""Hits that a page shows; a browser would choke on very many."""
NAMED = 5
"""Items of a hit that are named on either side."""


def write_page(path: Path, overlap: Overlap) -> Path:
    """Write the page as one atomic replacement."""
    write_text(path, page_of(overlap))
    return path


def page_of(overlap: Overlap) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined

    template = resources.files("coreeval.evaluation.overlap").joinpath("page.html.jinja")
    environment = Environment(
        autoescape=True,
        finalize=visible_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    document = overlap_document(overlap)
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        document
        | {
            "sides": [side for side in (document["a"], document["b"]) if side],
            "views": [_view(hit) for hit in overlap.hits[:SHOWN]],
            "left": max(0, len(overlap.hits) - SHOWN),
        }
    )


def _view(hit: Hit) -> dict[str, object]:
    pieces = side_by_side(hit)
    return {
        "kind": hit.kind,
        "similarity": hit.similarity,
        "same_answer": hit.same_answer,
        "within": hit.within,
        "columns": [
            {
                "pieces": shown,
                "items": [each for each in side[:NAMED]],
                "more": max(0, len(side) - NAMED),
            }
            for side, shown in ((hit.a, pieces.left), (hit.b, pieces.right))
        ],
    }
