"""Wikipedia's Portal:Current events: its pages, and the address of each fact on them.

A page covers a day, and a fact is one sentence of it. A fact's address is that of the page with a
fragment of two parts. `fact-` and twelve hex digits of the sentence's hash distinguish the facts of
a day. The text directive after it shows the sentence in a browser. The cited news cannot be the
address: two facts may cite one article, GDELT may list that article too, and then one of them would
be lost or change its licence.
"""

import hashlib
import re
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import quote

from coreeval.tools.gdelt.rows import date_in_url

FEED: Final = "current_events"
LICENCE: Final = "CC BY-SA 4.0"
"""The licence of Wikipedia's texts."""
WIKI: Final = "https://en.wikipedia.org/wiki/"
PORTAL: Final = "Portal:Current_events/"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_SHARE_ALIKE = re.compile(r"\bCC[ -]BY[ -]SA\b", re.IGNORECASE)
SHOWN_WORDS = 8
"""The number of words by which a browser finds a sentence on its page."""


def page_name(day: date) -> str:
    """Return the name of a day's page: `Portal:Current_events/2025_September_14`."""
    return f"{PORTAL}{day.year}_{_MONTHS[day.month - 1]}_{day.day}"


def day_of_page(name: str) -> date | None:
    """Return the day at the end of a page's name or address; None if it is not a day's page."""
    if PORTAL not in name.replace(" ", "_"):
        return None
    path = name.replace(" ", "_").partition(PORTAL)[2].partition("#")[0]
    found = date_in_url(f"https://x/{PORTAL}{path}", datetime.max.replace(tzinfo=UTC))
    return found.date() if found else None


def fact_url(day: date, sentence: str) -> str:
    """Return the address of a fact, which depends only on its day and words."""
    number = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    words = " ".join(sentence.split()[:SHOWN_WORDS])
    shown = quote(words, safe="", errors="replace").replace("-", "%2D")
    return f"{WIKI}{page_name(day)}#fact-{number}:~:text={shown}"


def may_be_used(licence: str) -> bool:
    """Return whether a fact with this licence may be used; an empty one is Wikipedia's own."""
    return not licence.strip() or _SHARE_ALIKE.search(licence) is not None
