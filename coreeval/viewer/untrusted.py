"""Words of benchmarks, news and models on a page: escaped, isolated, their tricks visible."""

import re
import unicodedata

from markupsafe import Markup, escape

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Controls, and characters without a shape that reorder or hide others."""
_JOINERS = re.compile(r"(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")
"""Inside emoji and in some scripts they are orthography."""


def shown(text: str) -> Markup:
    """Return a text for a page: it reads in its own direction, and what it hides is marked."""
    return Markup("<bdi>{}</bdi>").format(marked(text))


def marked(text: str) -> Markup:
    """Return a text, escaped, with a visible mark for each character that has no shape."""
    kept = {match.start() for match in _JOINERS.finditer(text)}
    parts, done = [], 0
    for match in _UNSEEN.finditer(text):
        if match.start() not in kept:
            parts += [escape(text[done : match.start()]), _mark(match.group())]
            done = match.end()
    return Markup("").join([*parts, escape(text[done:])])


def _mark(character: str) -> Markup:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character").lower()
    return Markup('<span class="unseen" title="{}">{}</span>').format(name, code)


def web_link(url: str) -> str | None:
    """Return an address of the web; None for any other, which could do something."""
    return url if url.startswith(("https://", "http://")) else None
