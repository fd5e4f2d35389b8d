"""Words of benchmarks, news and models on a page: escaped, isolated, their tricks visible."""

import unicodedata

from markupsafe import Markup, escape

from coreeval.tools.text import find_unseen


def shown(text: str) -> Markup:
    """Return a text for a page: it reads in its own direction, and what it hides is marked."""
    return Markup("<bdi>{}</bdi>").format(marked(text))


def marked(text: str) -> Markup:
    """Return a text, escaped, with a visible mark for each character that has no shape."""
    parts, done = [], 0
    for match in find_unseen(text):
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
