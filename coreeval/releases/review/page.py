"""The list as one page to read: no scripts, nothing fetched, everything in it escaped."""

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.releases.review.decided import Review
from coreeval.releases.review.listed import Listed, Named
from coreeval.releases.review.persons import SHORTEST
from coreeval.tools.files import write_text
from coreeval.tools.text import visible_value
from coreeval.tools.workspace import command

if TYPE_CHECKING:
    from markupsafe import Markup


def write_page(path: Path, review: Review, samples: Sequence[Listed]) -> None:
    """Write samples of a review as a page."""
    from jinja2 import Environment, StrictUndefined

    template = resources.files("coreeval.releases.review").joinpath("page.html.jinja")
    environment = Environment(
        autoescape=True, finalize=visible_value, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"marked": _marked, "is_web": _is_web}
    page = environment.from_string(template.read_text(encoding="utf-8")).render(
        run=str(review.run),
        command=command("review", review.run),
        samples=samples,
        open=len(review.open),
        listed=len(review.samples),
    )
    write_text(path, page)


def _marked(text: str, names: Sequence[Named]) -> "Markup":
    """Return a text, escaped, with the names in it marked."""
    from markupsafe import Markup, escape

    last = (each.name.split()[-1] for each in names)
    spellings = {*(each.name for each in names), *(name for name in last if len(name) >= SHORTEST)}
    if not spellings:
        return escape(text)
    longest_first = sorted(map(re.escape, spellings), key=len, reverse=True)
    parts = re.split(rf"(?<!\w)({'|'.join(longest_first)})(?!\w)", text, flags=re.IGNORECASE)
    marked = (
        Markup("<mark>{}</mark>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )
    return Markup("").join(marked)


def _is_web(url: str) -> bool:
    """Tell whether an address is one of the web: a link to any other could do something."""
    return url.startswith(("https://", "http://"))
