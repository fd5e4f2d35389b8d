"""Files fetched from their publishers, within a bound."""

import hashlib
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.series.layouts import MOST_BYTES
from coreeval.models.http import find_proxy, load_trusted_certificates
from coreeval.tools.http import BoundedClient
from coreeval.tools.redirects import to_same_host

_PATIENCE: Final = httpx2.Timeout(30.0, connect=10.0)
_LONGEST_S: Final = 600.0
_REDIRECTS: Final = 5
_HEADERS: Final = {"User-Agent": "coreeval (a series for an audit)", "Accept-Encoding": "gzip"}


def cache_path(url: str, cache: Path) -> Path:
    """Return where a fetched file is kept: its name, with what tells URLs apart."""
    parts = urlsplit(url)
    name = re.sub(r"[^A-Za-z0-9.=-]+", "_", f"{Path(parts.path).name}_{parts.query}").strip("_")
    return cache / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name[:80]}"


def fetch(url: str, *, hint: str) -> bytes:
    """Return what is at a URL.

    Raises:
        DatasetError: nothing answers, something else than success does, or it is too much; `hint`
            says how to do without.
    """
    client = BoundedClient(
        most_s=_LONGEST_S,
        most_bytes=MOST_BYTES,
        proxy=find_proxy(url),
        verify=load_trusted_certificates(None),
        trust_env=False,
        timeout=_PATIENCE,
        headers=_HEADERS,
        follow_redirects=True,
        event_hooks={"request": [to_same_host(url)]},
        max_redirects=_REDIRECTS,
    )
    try:
        with client:
            answer = client.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        told = str(error) or type(error).__name__
        raise DatasetError(f"it cannot be fetched: {told}", where=url, hint=hint) from None
    if answer.status_code != 200:
        raise DatasetError(
            f"the publisher answered with status {answer.status_code}", where=url, hint=hint
        )
    return answer.content
