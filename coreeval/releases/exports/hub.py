"""Pushes a release to the Hugging Face hub: missing files in one commit, and a version tag.

Files are compared by their hashes, so a push can be repeated: an existing release is left
unchanged, and files uploaded by an interrupted push are not sent again. During a push,
huggingface_hub uses our HTTP client. Imports huggingface_hub.
"""

import hashlib
import itertools
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx2
from httpx2 import HTTPError
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    RepoFile,
    set_client_factory,
)
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError
from huggingface_hub.utils import _http as hub_http
from huggingface_hub.utils.tqdm import disable_progress_bars

from coreeval.errors import CoreEvalError, CredentialError, ReleaseError, RunError, UsageError
from coreeval.releases.release import DIGEST, MANIFEST, Release, hash_file
from coreeval.releases.verify import require_whole
from coreeval.releases.withheld import refuse_listed_samples
from coreeval.tools.endpoints import HUB_VARIABLE
from coreeval.tools.env_file import hide_secrets
from coreeval.tools.http import BoundedClient, parse_retry_after, to_public_stores

_LONGEST_WAIT_S: Final = 120.0
_LONGEST_READING_S: Final = 600.0
"""Seconds in which a hub must list its files; uploads are not limited."""
_LONGEST_PAUSES_S: Final = 600.0
"""The total pause in seconds that a hub may request; the public hub counts requests over 300 s."""
_MOST_REQUESTS: Final = 2_000
_MOST_FILES: Final = 100_000
"""The most files in a push, and in a repository: a release needs a few dozen of both (own
choice)."""


class HubEndless(httpx2.RequestError):
    """A hub makes a push work or wait for longer than any release needs."""


class _HubLimits:
    """Limits on requests to a hub in one push; huggingface_hub itself has none."""

    def __init__(self) -> None:
        self._requests = itertools.count(1)
        self._reading_ends = time.monotonic() + _LONGEST_READING_S
        self._paused_s = 0.0

    def check_request(self, request: httpx2.Request) -> None:
        """Refuse a request that exceeds the limits."""
        if request.method != "GET":
            self._reading_ends = math.inf  # uploads have no time limit
        if next(self._requests) > _MOST_REQUESTS:
            told = f"its listing did not end after {_MOST_REQUESTS:,} requests"
            raise HubEndless(told, request=request)
        if time.monotonic() > self._reading_ends:
            told = f"it did not list its files within {_LONGEST_READING_S:g} s"
            raise HubEndless(told, request=request)

    def check_pause(self, response: httpx2.Response) -> None:
        """Refuse to wait longer than the limit if a response asks for a pause."""
        if response.status_code not in hub_http._DEFAULT_RETRY_ON_STATUS_CODES:
            return
        limit = hub_http.parse_ratelimit_headers(response.headers)
        if response.status_code == 429 and limit and limit.remaining == 0:
            pause: float = limit.reset_in_seconds
        else:
            pause = parse_retry_after(response.headers.get("retry-after")) or 0
        self._paused_s += min(pause, 2 * _LONGEST_PAUSES_S)  # a huge int would overflow the float
        if self._paused_s > _LONGEST_PAUSES_S:
            told = f"it requests pauses longer than {_LONGEST_PAUSES_S:g} s"
            raise HubEndless(told, request=response.request)


@contextmanager
def bounded_sessions(hub: str) -> Iterator[None]:
    """Limit what huggingface_hub reads and requests in the block, and restrict it to one hub.

    Its own client is restored afterwards, because other code may fetch files of any size.
    """
    before = hub_http._GLOBAL_CLIENT_FACTORY
    set_client_factory(partial(_build_client, hub, _HubLimits()))
    try:
        yield
    finally:
        set_client_factory(before)


def _build_client(hub: str, limits: _HubLimits) -> httpx2.Client:
    """Return a client like huggingface_hub's, but with limits and restricted to one hub."""
    checks = (to_public_stores(hub), limits.check_request, hub_http.hf_request_event_hook)
    return BoundedClient(
        most_s=_LONGEST_WAIT_S,
        event_hooks={"request": [*checks], "response": [limits.check_pause]},
        follow_redirects=True,
        timeout=None,
    )


_REPOSITORY = re.compile(r"(?:hf:)?([\w.-]+/[\w.-]+)")
_KIND = "dataset"
Files = Mapping[str, RepoFile]
"""The files of a repository by path."""


@dataclass(frozen=True, kw_only=True)
class PushResult:
    """The result of a push or a dry run."""

    release: Release
    repository: str
    url: str
    uploaded: tuple[str, ...]
    """Files that were missing from the hub, or differed."""
    removed: tuple[str, ...]
    """Files of an earlier release that this one does not have."""
    kept: int
    """Number of files that were already there."""
    commit: str | None
    """Id of the commit; None in a dry run."""


def push(release: Path, *, to: str, public: bool = False, dry_run: bool = False) -> PushResult:
    """Update a dataset repository to match a release, and tag it with the version.

    Args:
        release: The release's directory.
        to: `OWNER/NAME`, or `hf:OWNER/NAME`; the repository is created if it does not exist.
        public: Whether a newly created repository is public.
        dry_run: Compare without uploading.

    Raises:
        ReleaseError: the release does not verify, has names on the takedown list, or the hub has
            another release of its version.
        UsageError: `to` is not the name of a repository.
        CredentialError: the token is missing, or the hub refuses it.
        RunError: the hub cannot be reached or refused a part; the push can be retried.
    """
    named = _REPOSITORY.fullmatch(to)
    if not named:
        raise UsageError(f"{to!r} does not name a repository", hint="--to OWNER/NAME")
    made = require_whole(release)
    refuse_listed_samples(made)
    disable_progress_bars()
    api = HfApi(endpoint=os.environ.get(HUB_VARIABLE))
    with bounded_sessions(str(api.endpoint)):
        return _Push(api, made, named[1]).run(public=public, dry_run=dry_run)


class _Push:
    """The upload of one release to one repository."""

    def __init__(self, api: HfApi, release: Release, repository: str) -> None:
        self._api, self._release, self._repository = api, release, repository
        self._version = release.manifest.version
        self._digests = {
            **{path: known.sha256 for path, known in release.manifest.files.items()},
            **{path: hash_file(release.path / path) for path in (MANIFEST, DIGEST)},
        }

    def run(self, *, public: bool, dry_run: bool) -> PushResult:
        """Compare, upload and tag."""
        with _convert_errors(self._repository):
            head = self._head()
            tagged = self._tags().get(self._version) if head else None
            there = self._files(tagged or head)
        lacking = self._missing_files(there)
        if tagged and lacking:
            raise ReleaseError(
                f"the hub has a different {self._version}: {lacking[0]} differs",
                where=self._repository,
                hint="a published version never changes: release the run under a new version",
            )
        removed = [] if tagged else self._extra_files(there)
        if not dry_run and not tagged:
            with _convert_errors(self._repository):
                head = self._commit(head, lacking, removed, public=public)
                self._tag(head)
        return self._build_result(lacking, removed, None if dry_run else tagged or head)

    def _head(self) -> str | None:
        """Return the last commit; None if the repository does not exist."""
        try:
            return self._api.dataset_info(self._repository).sha
        except RepositoryNotFoundError:
            return None

    def _tags(self) -> dict[str, str]:
        refs = self._api.list_repo_refs(self._repository, repo_type=_KIND)
        return {tag.name: tag.target_commit for tag in refs.tags}

    def _files(self, commit: str | None) -> Files:
        if commit is None:
            return {}
        tree = self._api.list_repo_tree(
            self._repository, recursive=True, revision=commit, repo_type=_KIND
        )
        entries = [*itertools.islice(tree, _MOST_FILES + 1)]
        if len(entries) > _MOST_FILES:
            raise ValueError(f"it has more than {_MOST_FILES:,} files")
        return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}

    def _missing_files(self, there: Files) -> list[str]:
        return [path for path in sorted(self._digests) if not self._same(path, there.get(path))]

    def _same(self, path: str, other: RepoFile | None) -> bool:
        if other is None:
            return False
        if other.lfs:
            return other.lfs.sha256 == self._digests[path]
        return other.blob_id == git_blob(self._release.path / path)

    def _extra_files(self, there: Files) -> list[str]:
        """Return files on the hub, in the folders of a release, that this release lacks."""
        folders = set(self._release.manifest.arms)
        return [
            path
            for path in sorted(there)
            if path.partition("/")[0] in folders and path not in self._digests
        ]

    def _commit(
        self, head: str | None, lacking: list[str], removed: list[str], *, public: bool
    ) -> str:
        """Commit all changes at once; return the new commit, or the last one if nothing changes."""
        if head is None:
            self._api.create_repo(
                self._repository, repo_type=_KIND, private=not public, exist_ok=True
            )
            head = str(self._head())
        if not lacking and not removed:
            return head
        manifest = self._release.manifest
        added = [
            CommitOperationAdd(path_in_repo=path, path_or_fileobj=self._release.path / path)
            for path in lacking
        ]
        done = self._api.create_commit(
            self._repository,
            [*added, *(CommitOperationDelete(path_in_repo=path) for path in removed)],
            commit_message=f"{manifest.name} {manifest.version}",
            commit_description=f"sha256 of {MANIFEST}: {self._release.digest}",
            repo_type=_KIND,
            parent_commit=head,
        )
        return str(done.oid)

    def _tag(self, commit: str) -> None:
        self._api.create_tag(self._repository, tag=self._version, revision=commit, repo_type=_KIND)

    def _build_result(
        self, lacking: list[str], removed: list[str], commit: str | None
    ) -> PushResult:
        return PushResult(
            release=self._release,
            repository=self._repository,
            url=f"{self._api.endpoint}/datasets/{self._repository}",
            uploaded=tuple(lacking),
            removed=tuple(removed),
            kept=len(self._digests) - len(lacking),
            commit=commit,
        )


def git_blob(path: Path) -> str:
    """Return the id that git, and therefore the hub, gives to the bytes of a small file."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


_REFUSALS = (HTTPError, OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)
"""The errors that huggingface_hub raises; the last three mean that an answer is incomplete."""


@contextmanager
def _convert_errors(repository: str) -> Iterator[None]:
    """Convert hub errors raised inside the block into errors for the user."""
    try:
        yield
    except _REFUSALS as error:
        raise _convert_error(error, repository) from None


def _convert_error(error: Exception, repository: str) -> CoreEvalError:
    cause = error.__cause__ if type(error) is RuntimeError else None  # the hub's, of one file
    answer = cause or error
    status = answer.response.status_code if isinstance(answer, HfHubHTTPError) else None
    if status == 401 or isinstance(error, LocalTokenNotFoundError):
        return CredentialError(
            "the hub requires a token with write access, but received none or an invalid one",
            where=repository,
            hint="set HF_TOKEN in the environment or in .env; create a token on the hub, at "
            "/settings/tokens",
        )
    reason = " ".join(_first_line(each) for each in (error, cause) if each)
    if status == 412:
        reason = "someone changed the repository in the meantime"
    return RunError(
        f"the hub rejected the release: {reason}",
        where=repository,
        hint="run the same command again: all changes are made in one commit, and no file is "
        "uploaded twice",
    )


def _first_line(error: BaseException) -> str:
    said = getattr(error, "server_message", None) or str(error) or type(error).__name__
    return hide_secrets(str(said)).strip().splitlines()[0]
