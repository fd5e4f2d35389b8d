"""Texts of pages as they are kept: nothing hidden in them, one line, bounded.

Most texts need nothing: telling so takes a tenth of what cleaning takes.
"""

import re
from functools import lru_cache

from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.titles import clean
from coreeval.tools.gdelt.urls import host_of

LONGEST_TITLE = 500
LONGEST_SNIPPET = 1000
"""Characters; GAL's descriptions have about 146 (research: gdelt §1)."""
LONGEST_URL = 8000
"""Characters; no common server takes a longer address."""

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control characters, what reorders a text, and invisible letters that a model would read."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def cleaned(raw: str, most: int) -> str:
    """Return a title or description without entities, hidden characters and double spaces.

    Args:
        raw: As the file has it.
        most: Characters that are kept.
    """
    return (raw if _is_clean(raw) else without_unseen(clean(raw)))[:most].rstrip()


def without_unseen(text: str) -> str:
    """Drop control, bidi and tag characters, and what is no character at all."""
    text = _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _UNSEEN.sub("", text))
    return " ".join(text.split())


def _is_clean(text: str) -> bool:
    """Tell whether cleaning would leave a text as it is."""
    return (
        text.isprintable()
        and "&" not in text
        and '""' not in text
        and "  " not in text
        and text == text.strip(" ")
    )


def is_address(url: str) -> bool:
    """Tell whether a URL has a host and a believable length."""
    if len(url) > LONGEST_URL or not url.isprintable():
        return False
    return _has_host("/".join(url.split("/", 3)[:3]))


@lru_cache(maxsize=1 << 16)
def _has_host(start: str) -> bool:
    return bool(host_of(start))


@lru_cache(maxsize=1 << 14)
def seconds(stamp: str) -> int | None:
    """Return a stamp as seconds since 1970, None where it is none; a file has few of them."""
    moment = parse_stamp(stamp)
    return int(moment.timestamp()) if moment else None
