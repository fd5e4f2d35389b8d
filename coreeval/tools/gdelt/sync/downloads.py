"""Downloads files from GDELT's bulk mirror in the background, a few at a time.

Files are complete or missing. They are sent over TLS and checked against the mirror's MD5, or
otherwise by decompressing them. The disk never holds more files than the readers need.
"""

import asyncio
import base64
import binascii
import hashlib
import queue
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from multidict import MultiMapping
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from coreeval.config.models import split_address
from coreeval.errors import RunError, UsageError
from coreeval.project import make_user_agent
from coreeval.tools.clock import Clock
from coreeval.tools.gdelt.rows import FileDamage
from coreeval.tools.gdelt.sync.batches import BatchToFetch, is_final, is_gap
from coreeval.tools.gdelt.sync.feeds import MIRRORED
from coreeval.tools.gdelt.sync.file_reader import (
    GZIP_MAGIC,
    MOST_UNPACKED_DOWNLOAD,
    ZIP_MAGIC,
    FileTooLarge,
    Offer,
    line_groups,
)
from coreeval.tools.gdelt.sync.intake import Delivery
from coreeval.tools.gdelt.sync.store_ledger import BatchRow, BatchState
from coreeval.tools.http import describe_http_error

MIRROR = "https://storage.googleapis.com/data.gdeltproject.org"
"""The storage host behind data.gdeltproject.org: valid TLS, not throttled (research: gdelt §4)."""
LARGEST = 64 << 20
"""The most bytes of a download; a busy GKG batch has 6 MB, and translated ones are about as
large."""
ATTEMPTS = 5
PIECE = 1 << 18
TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=20, sock_read=60)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class FetchFailed(Exception):
    """The file could not be fetched, and an immediate retry would not help."""


class _TransientFailure(FetchFailed):
    """The try failed for a reason that may not recur."""


@dataclass(frozen=True, slots=True)
class MirrorFile:
    """A file on the mirror."""

    path: Path
    md5: str


def normalise_mirror_url(url: str) -> str:
    """Return the mirror's URL without a trailing slash; it may include `gdeltv2/`.

    Raises:
        UsageError: the URL is not https; plain http is only for a server on this machine.
    """
    check_address(
        url,
        what="a mirror",
        where="--mirror",
        hint=f"it must start with https:// and contain gdeltv2/, as {MIRROR} does",
    )
    return url.rstrip("/").removesuffix("/gdeltv2")


def check_address(url: str, *, what: str, where: str, hint: str) -> None:
    """Check that an address uses https and has no secrets, or is of a server on this machine.

    Raises:
        UsageError: it is not; the message contains no secrets.
    """
    try:
        parts = split_address(url)
        scheme, host = parts.scheme, parts.hostname
        secret = "@" in parts.netloc or bool(parts.query)
    except ValueError:
        scheme, host, secret = "", None, "@" in url
    if secret:
        raise UsageError(
            f"the address of {what} must not contain a password or a query",
            where=where,
            hint=f"use {what} that requires neither; other users can see a command line",
        )
    local = scheme == "http" and host in _LOOPBACK
    if not host or not (scheme == "https" or local):
        raise UsageError(f"this is not an address of {what}: {url!r}", where=where, hint=hint)


def new_session() -> aiohttp.ClientSession:
    """Return a session that uses proxies and leaves bodies compressed, for their checksums."""
    return aiohttp.ClientSession(
        timeout=TIMEOUT,
        trust_env=True,
        auto_decompress=False,
        headers={"Accept-Encoding": "gzip", "User-Agent": make_user_agent("GDELT files")},
    )


@dataclass(frozen=True, slots=True)
class Mirror:
    """A mirror, accessed through one session."""

    url: str
    session: aiohttp.ClientSession
    pause_s: float = 1.0
    """The seconds before the second try; they double with each further try."""

    async def fetch(self, path: str, to: Path) -> MirrorFile | None:
        """Fetch one file; return None if the mirror has no file of this name.

        Raises:
            FetchFailed: none of several tries returned a complete file with the right checksum.
            OSError: the file cannot be written.
        """
        waits = wait_exponential(self.pause_s, max=30) + wait_random(0, self.pause_s)
        tries = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=waits,
            retry=retry_if_exception_type(_TransientFailure),
            reraise=True,
        )
        try:
            return await tries(self._try, path, to)
        except BaseException:
            to.unlink(missing_ok=True)
            raise

    async def _try(self, path: str, to: Path) -> MirrorFile | None:
        try:
            async with self.session.get(f"{self.url}/{path}", allow_redirects=False) as response:
                if response.status == 404:
                    return None
                _check_status(response.status)
                found = await _save(response.content, to)
                expected = read_md5_header(response.headers)
        except ChecksumUnreadable as error:
            raise _TransientFailure(str(error)) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _TransientFailure(describe_http_error(error)) from None
        except ValueError:  # aiohttp reads the proxy's address for each request
            raise FetchFailed("HTTP_PROXY or HTTPS_PROXY is not a proxy address") from None
        if expected and expected != found.md5:
            raise _TransientFailure("the MD5 does not match")
        if not expected and (damage := await asyncio.to_thread(find_damage, to)):
            raise _TransientFailure(f"{damage}, and the mirror states no MD5")
        return found


def _check_status(status: int) -> None:
    if status == 200:
        return
    if status == 429 or status >= 500:
        raise _TransientFailure(f"HTTP {status}")
    raise FetchFailed(f"HTTP {status}")


async def _save(content: aiohttp.StreamReader, to: Path) -> MirrorFile:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    with to.open("wb") as file:
        async for piece in content.iter_chunked(PIECE):
            size += len(piece)
            if size > LARGEST:
                raise FetchFailed(f"it is larger than {LARGEST >> 20} MB")
            digest.update(piece)
            file.write(piece)
    return MirrorFile(to, digest.hexdigest())


_STATED = re.compile(r"(?:^|[,\s])md5=([^,\s]*)")
_MD5 = re.compile(r'"?([0-9a-f]{32})"?$')
_MD5_BYTES = 16


class ChecksumUnreadable(ValueError):
    """A server states an invalid MD5."""


def read_md5_header(headers: MultiMapping[str]) -> str | None:
    """Return the MD5 that a response states in x-goog-hash or as its ETag; None without one.

    x-goog-hash may have several lines, one for each kind of checksum.

    Raises:
        ChecksumUnreadable: x-goog-hash has an invalid MD5, or two different ones.
    """
    stated = set(_STATED.findall(",".join(headers.getall("x-goog-hash", []))))
    if len(stated) > 1:
        raise ChecksumUnreadable("the mirror states two different MD5s")
    for word in stated:
        return _decode_md5(word)
    tag = _MD5.match(headers.get("ETag", ""))
    return tag[1] if tag else None


def _decode_md5(word: str) -> str:
    try:
        digest = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != _MD5_BYTES:
        raise ChecksumUnreadable(f"the mirror states an invalid MD5: {word[:40]!r}")
    return digest.hex()


def find_damage(path: Path) -> str:
    """Return why a download without a checksum cannot be complete; "" if it may be.

    A file that is too large is left to the reader, which refuses it.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as raw:
        magic = raw.read(len(ZIP_MAGIC))
    if not magic:
        return "it is empty"
    if not magic.startswith((GZIP_MAGIC, ZIP_MAGIC)):
        return "it is not an archive"
    try:
        for _ in line_groups(path, MOST_UNPACKED_DOWNLOAD, one_entry=True):
            pass
    except FileTooLarge:
        return ""
    except FileDamage as error:
        return f"it is damaged: {error}"
    return ""


AT_ONCE = 4
"""The number of simultaneous downloads (research: gdelt §8)."""
WAITING = 8
"""The most batches on disk that are being fetched or waiting to be read."""
HOPELESS = 12
"""The number of failed batches in a row after which the mirror counts as unreachable; before the
first success, one round of simultaneous downloads suffices."""


@dataclass(slots=True)
class FetchTroubles:
    """The batches that could not be fetched."""

    failed: dict[str, str] = field(default_factory=dict)
    """The batches that failed, in whole or in part, and the reasons; the next sync tries them
    again."""
    late: int = 0
    """The number of batches that are not available yet and may still arrive."""
    growing: int = 0
    """The number of batches with some files, of which others may still arrive."""
    in_a_row: int = 0
    fetched: bool = False
    """Whether the mirror has responded at all."""

    def joined(self, other: "FetchTroubles") -> "FetchTroubles":
        """Return these problems combined with others."""
        return FetchTroubles(
            failed=self.failed | other.failed,
            late=self.late + other.late,
            growing=self.growing + other.growing,
        )


class Downloads:
    """A thread that fetches batches inside a `with` block; iterating yields the deliveries."""

    def __init__(
        self,
        wanted: Sequence[BatchToFetch],
        folder: Path,
        *,
        mirror: str,
        now: Clock,
        pause_s: float = 1.0,
    ) -> None:
        self.troubles = FetchTroubles()
        self._wanted = iter(wanted)
        self._folder = folder
        self._mirror = mirror
        self._now = now
        self._pause_s = pause_s
        self._arrived: queue.SimpleQueue[Delivery | BaseException | None] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._slots = asyncio.Semaphore(WAITING)
        self._thread = threading.Thread(target=self._work, name="downloads", daemon=True)
        self._all: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._all = self._loop.create_task(self._fetch_all())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __iter__(self) -> Iterator[Delivery]:
        """Yield each delivery as it arrives, until all have arrived or fetching is stopped.

        Raises:
            RunError: the mirror cannot be reached.
            OSError: a download cannot be written.
        """
        while (arrived := self._arrived.get()) is not None:
            if isinstance(arrived, BaseException):
                raise arrived
            yield arrived

    def stop(self) -> None:
        """Stop fetching."""
        if self._all:
            self._call(self._all.cancel)

    def _call(self, function: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function)  # type: ignore[arg-type]
        except RuntimeError:
            return  # it has already ended

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            assert self._all
            self._loop.run_until_complete(self._all)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the deliveries are awaited
            self._arrived.put(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._arrived.put(None)

    async def _fetch_all(self) -> None:
        async with new_session() as session:
            mirror = Mirror(self._mirror, session, self._pause_s)
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(AT_ONCE):
                        group.create_task(self._fetch_some(mirror))
            except ExceptionGroup as several:
                raise several.exceptions[0] from None  # the first error has ended the others

    async def _fetch_some(self, mirror: Mirror) -> None:
        for wanted in self._wanted:
            await self._slots.acquire()
            delivery = await self._fetch(mirror, wanted)
            if delivery:
                self._arrived.put(delivery)
            else:
                self._slots.release()

    async def _fetch(self, mirror: Mirror, wanted: BatchToFetch) -> Delivery | None:
        """Fetch the files of one batch; return None if there is nothing to record for it."""
        offers, failure = await self._offers(mirror, wanted)
        if failure:
            self._note_failure(wanted, failure)
            return self._deliver(wanted, offers, "part") if offers else None
        self.troubles.in_a_row, self.troubles.fetched = 0, True
        now = self._now()
        if offers or wanted.known:
            if MIRRORED[wanted.feed].grows and not is_final(wanted.batch, wanted.feed, now):
                self.troubles.growing += 1
            return self._deliver(wanted, offers, "read")
        if is_gap(wanted.feed, wanted.batch, now):
            return self._deliver(wanted, offers, "missing")
        self.troubles.late += 1
        return None

    def _deliver(
        self, wanted: BatchToFetch, offers: tuple[Offer, ...], state: BatchState
    ) -> Delivery:
        row = to_batch_row(wanted, state, self._now())
        return Delivery(offers=offers, batches=(row,), done=self._release)

    async def _offers(
        self, mirror: Mirror, wanted: BatchToFetch
    ) -> tuple[tuple[Offer, ...], FetchFailed | None]:
        """Fetch the files that are not known, up to the first that fails; return its error too."""
        offers: list[Offer] = []
        async with AsyncExitStack() as undo:
            for path in MIRRORED[wanted.feed].paths(wanted.batch):
                name = path.rpartition("/")[2]
                to = self._folder / name
                try:
                    fetched = None if name in wanted.known else await mirror.fetch(path, to)
                except FetchFailed as error:
                    undo.pop_all()
                    return tuple(offers), error
                if fetched:
                    undo.callback(to.unlink, missing_ok=True)
                    offers.append(
                        Offer(path=to, name=name, feed=wanted.feed, batch=wanted.batch,
                              md5=fetched.md5, downloaded=True)
                    )  # fmt: skip
            undo.pop_all()
        return tuple(offers), None

    def _note_failure(self, wanted: BatchToFetch, error: FetchFailed) -> None:
        troubles = self.troubles
        troubles.failed[f"{wanted.feed} {wanted.batch:%Y-%m-%d %H:%M}"] = str(error)
        troubles.in_a_row += 1
        if troubles.in_a_row >= (HOPELESS if troubles.fetched else AT_ONCE):
            raise RunError(
                f"the mirror cannot be used: {error}",
                where=self._mirror,
                hint="check the network and the proxy, then run the same command again to continue",
            )

    def _release(self) -> None:
        self._call(self._slots.release)


def to_batch_row(wanted: BatchToFetch, state: BatchState, now: datetime) -> BatchRow:
    """Return the row of a requested batch."""
    return BatchRow(wanted.feed, int(wanted.batch.timestamp()), state, int(now.timestamp()))
