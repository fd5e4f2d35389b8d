"""One address for one article: what is left of a URL without the way it was reached."""

import hashlib
import re
from urllib.parse import parse_qsl, urlencode, urlsplit

_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_cid|mc_eid|cmp|cmpid|cid|ocid|ref|ref_src|"
    r"smid|sref|src|source|rss|feed|amp|outputtype|output|ito|ns_\w+|at_\w+|partner|share|xtor"
)
_MIRRORS = re.compile(r"^(?:www\d?|amp|m|mobile)\.")


def host_of(url: str) -> str:
    """Return a URL's host without `www.`; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def is_front_page(url: str) -> bool:
    """Tell whether a URL names a site, not an article."""
    parts = urlsplit(url)
    return parts.path.strip("/") in ("", "index.html", "index.php") and not parts.query


def canonical(url: str) -> str:
    """Drop scheme, `www.`, ports, tracking parameters, AMP variants and the fragment."""
    parts = urlsplit(url)
    host = _MIRRORS.sub("", host_of(url))
    path = re.sub(r"^/amp(?=/)|/amp(?:\.html)?$", "", parts.path.rstrip("/")).rstrip("/")
    kept = sorted(
        (key, value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.fullmatch(key.lower())
    )
    return host + path + (f"?{urlencode(kept)}" if kept else "")


def evidence_id(url: str) -> str:
    """Return the first 16 hex digits of the sha256 of the canonical URL."""
    return hashlib.sha256(canonical(url).encode("utf-8", "surrogatepass")).hexdigest()[:16]
