"""A diff as one page that needs nothing beside itself; text from outside is escaped."""

from importlib import resources
from pathlib import Path

from coreeval.releases.diff import Diff
from coreeval.tools.files import write_text
from coreeval.tools.text import visible_value

SHOWN = 1000
"""Samples that a page shows; a browser would choke on a whole large benchmark."""


def write_page(path: Path, diff: Diff) -> None:
    """Write the page as one atomic replacement."""
    write_text(path, page_of(diff))


def page_of(diff: Diff) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined

    template = resources.files("coreeval.releases").joinpath("diff.html.jinja")
    environment = Environment(
        autoescape=True,
        finalize=visible_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    document = diff.model_dump(mode="json")
    shown, left = document["changed"][:SHOWN], max(0, len(document["changed"]) - SHOWN)
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        document | {"changed": shown, "left": left, "titles": [str(diff.before), str(diff.after)]}
    )
