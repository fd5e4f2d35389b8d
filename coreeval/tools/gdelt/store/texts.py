"""Texts of pages as they are kept: nothing hidden in them, one line, bounded.

Most texts need nothing: telling so takes a tenth of what cleaning takes.
"""

from functools import lru_cache

from coreeval.tools.gdelt import untrusted
from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.urls import host_of

LONGEST_URL = 8000
"""Characters; no common server takes a longer address."""


def cleaned(raw: str, most: int) -> str:
    """Return a title or description without entities, hidden characters and double spaces.

    Args:
        raw: As the file has it.
        most: Characters that are kept.
    """
    if len(raw) <= most and _is_clean(raw):
        return raw
    return untrusted.clean(raw.replace('""', '"'), most)


def _is_clean(text: str) -> bool:
    """Tell whether cleaning would leave a text as it is."""
    return (
        text.isprintable()
        and "&" not in text
        and "<" not in text
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
