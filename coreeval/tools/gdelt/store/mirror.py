"""GDELT's bulk mirror: whole files or none, over TLS, checked against the mirror's own MD5."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from coreeval.errors import UsageError
from coreeval.tools.http import describe_http_error

MIRROR = "https://storage.googleapis.com/data.gdeltproject.org"
"""The storage host behind data.gdeltproject.org: valid TLS, not throttled (research: gdelt §4)."""
LARGEST = 64 << 20
"""Bytes of a download; a busy GKG batch has 6 MB, translated ones are about as large."""
ATTEMPTS = 5
PIECE = 1 << 18
TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=20, sock_read=60)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MD5 = re.compile(r'"?([0-9a-f]{32})"?$')


class FetchFailed(Exception):
    """A file could not be fetched, and trying again at once does not help."""


class _Hiccup(FetchFailed):
    """A try that went wrong in a way that another one may not."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file as the mirror has it."""

    path: Path
    md5: str


def checked_mirror(url: str) -> str:
    """Return the mirror's URL without a slash at its end; `gdeltv2/` may be part of it.

    Raises:
        UsageError: it is not https; plain http is for a server on this machine only.
    """
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname
        secret = "@" in parts.netloc or bool(parts.query)
    except ValueError:
        scheme, host, secret = "", None, "@" in url
    if secret:
        raise UsageError(
            "the address of a mirror must not hold a password or a query",
            where="--mirror",
            hint="name a mirror that asks for none; a command line is seen by others",
        )
    local = scheme == "http" and host in _LOOPBACK
    if not host or not (scheme == "https" or local):
        raise UsageError(
            f"this is no address of a mirror: {url!r}",
            where="--mirror",
            hint=f"it starts with https:// and holds gdeltv2/, as {MIRROR} does",
        )
    return url.rstrip("/").removesuffix("/gdeltv2")


def new_session() -> aiohttp.ClientSession:
    """Return a session that leaves bodies packed, as they were checksummed, and heeds proxies."""
    return aiohttp.ClientSession(
        timeout=TIMEOUT,
        trust_env=True,
        auto_decompress=False,
        headers={"Accept-Encoding": "gzip", "User-Agent": "coreeval"},
    )


@dataclass(frozen=True, slots=True)
class Mirror:
    """One mirror, asked through one session."""

    url: str
    session: aiohttp.ClientSession
    pause_s: float = 1.0
    """Seconds before the second try; it doubles with each."""

    async def fetch(self, path: str, to: Path) -> Fetched | None:
        """Fetch one file; None where the mirror has none of this name.

        Raises:
            FetchFailed: no try of several brought a whole file with the right checksum.
            OSError: it cannot be written.
        """
        waits = wait_exponential(self.pause_s, max=30) + wait_random(0, self.pause_s)
        tries = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=waits,
            retry=retry_if_exception_type(_Hiccup),
            reraise=True,
        )
        try:
            return await tries(self._try, path, to)
        except BaseException:
            to.unlink(missing_ok=True)
            raise

    async def _try(self, path: str, to: Path) -> Fetched | None:
        try:
            async with self.session.get(f"{self.url}/{path}", allow_redirects=False) as response:
                if response.status == 404:
                    return None
                _check_status(response.status)
                found = await _saved(response.content, to)
                expected = expected_md5(response.headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _Hiccup(describe_http_error(error)) from None
        if expected and expected != found.md5:
            raise _Hiccup("the MD5 does not match")
        return found


def _check_status(status: int) -> None:
    if status == 200:
        return
    if status == 429 or status >= 500:
        raise _Hiccup(f"HTTP {status}")
    raise FetchFailed(f"HTTP {status}")


async def _saved(content: aiohttp.StreamReader, to: Path) -> Fetched:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    with to.open("wb") as file:
        async for piece in content.iter_chunked(PIECE):
            size += len(piece)
            if size > LARGEST:
                raise FetchFailed(f"it is larger than {LARGEST >> 20} MB")
            digest.update(piece)
            file.write(piece)
    return Fetched(to, digest.hexdigest())


def expected_md5(headers: Mapping[str, str]) -> str | None:
    """Return the MD5 that a response states: in x-goog-hash, or as its ETag."""
    stated = re.search(r"md5=([A-Za-z0-9+/=]+)", headers.get("x-goog-hash", ""))
    if stated:
        try:
            return base64.b64decode(stated[1], validate=True).hex()
        except binascii.Error:
            return None
    tag = _MD5.match(headers.get("ETag", ""))
    return tag[1] if tag else None
