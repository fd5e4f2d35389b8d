"""Verifies that a release is unchanged, consistent, and follows the parents that it names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from coreeval.errors import ReleaseError
from coreeval.releases.contents import find_contradictions
from coreeval.releases.folders import list_names
from coreeval.releases.release import DIGEST, MANIFEST, Release, hash_file, read_release
from coreeval.releases.release_manifest import FileDigest, ParentRelease
from coreeval.runs.arms import shard_name
from coreeval.schema import Value
from coreeval.tools.files import is_plain_file, special_kind, special_kind_on_way
from coreeval.tools.workspace import command

ProblemKind = Literal[
    "missing", "extra", "changed", "link", "special", "digest", "manifest", "parent_missing",
    "parent_changed", "contents",
]  # fmt: skip
_IN_CACHE = (
    "download a copy with real files: hf download REPOSITORY --repo-type dataset --local-dir DIR"
)

"""The hint for the hub's cache, which has only links to its folder of blobs."""
_GIT_FILE = ".gitattributes"
"""The only file that the Hugging Face hub adds to those of a release."""
_CLIENT_FOLDER = ".cache/huggingface/"
"""Folder in which the hub's client records its downloads."""


class Problem(Value):
    """A difference between a release and its original state."""

    kind: ProblemKind
    file: str
    """Path in the release; in the parent's if the problem is there."""
    message: str


class Verification(Value):
    """The result of a verification."""

    release: str
    """Path of the directory."""
    name: str = ""
    version: str = ""
    digest: str = ""
    """sha256 of release.json as it is now."""
    files: int = 0
    bytes: int = 0
    chain: tuple[str, ...] = ()
    """Versions of the ancestors with matching digests, nearest first."""
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the release is unchanged."""
        return not self.problems


def verify(path: Path, *, chain: bool = True, digest: str | None = None) -> Verification:
    """Verify every file of a release, and that each ancestor is the one that its child records.

    If the files are unchanged, their contents are checked: a release that contradicts itself was
    made so.

    Args:
        path: The release's directory.
        chain: Whether to look at ancestors.
        digest: The digest of release.json as it was published elsewhere, which an edited release
            cannot fake.

    Raises:
        ReleaseError: there is no release.
    """
    if not (path / MANIFEST).exists() and not (path / DIGEST).exists():
        read_release(path)  # raises if there is nothing to verify
    if _is_of_cache(path):
        cached = Problem(
            kind="link", file=MANIFEST, message=f"it is a link into the hub's cache; {_IN_CACHE}"
        )
        return Verification(release=str(path), problems=(cached,))
    problems = [*_digest_problems(path, digest)]
    try:
        release = read_release(path)
    except ReleaseError as error:
        kind: ProblemKind = "manifest" if (path / MANIFEST).exists() else "missing"
        found = Problem(kind=kind, file=MANIFEST, message=error.message)
        return Verification(release=str(path), problems=(*problems, found))
    listed = release.manifest.files
    problems += _file_problems(path, listed)
    problems += [] if problems else _content_problems(release)
    ancestors, broken = _ancestors(release) if chain else ([], None)
    return Verification(
        release=str(path),
        name=release.manifest.name,
        version=release.manifest.version,
        digest=release.digest,
        files=len(listed),
        bytes=sum(each.bytes for each in listed.values()),
        chain=tuple(ancestors),
        problems=(*problems, *([broken] if broken else [])),
    )


def _is_of_cache(path: Path) -> bool:
    """Return whether a folder is a snapshot in the Hugging Face cache, whose files are links."""
    kept = path.resolve().parent
    is_linked = (path / MANIFEST).is_symlink()
    return is_linked and kept.name == "snapshots" and (kept.parent / "blobs").is_dir()


def require_whole(path: Path) -> Release:
    """Return a release after checking that it is byte for byte unchanged, without its ancestors.

    Raises:
        ReleaseError: there is no release, or something in it was changed.
    """
    made, found = read_release(path), verify(path, chain=False)
    if not found.ok:
        first = found.problems[0]
        raise ReleaseError(
            f"the release has changed since it was made: {first.file}: {first.message}",
            where=str(path),
            hint=f"see all problems with: {command('verify', path)}",
        )
    return made


def _digest_problems(path: Path, published: str | None) -> Iterator[Problem]:
    """Yield the mismatches between release.json and its recorded digests."""
    if not is_plain_file(path, MANIFEST):
        return
    found = hash_file(path / MANIFEST)
    if published and found != published.strip().lower():
        message = f"its digest is {found}, not the published {published}"
        yield Problem(kind="digest", file=MANIFEST, message=message)
    vouched = f"{found}  {MANIFEST}\n".encode()
    if not (path / DIGEST).exists():
        yield Problem(kind="missing", file=DIGEST, message="the file is missing")
    elif not is_plain_file(path, DIGEST):
        return  # reported with the others that are not files
    elif (path / DIGEST).stat().st_size > len(vouched) or (path / DIGEST).read_bytes() != vouched:
        message = f"it does not match {DIGEST}: one of the two was changed"
        yield Problem(kind="digest", file=MANIFEST, message=message)


def _file_problems(path: Path, listed: dict[str, FileDigest]) -> Iterator[Problem]:
    for name, expected in listed.items():
        yield from _file_problem(path, name, expected)
    for name in sorted(set(list_names(path)) - listed.keys()):
        if kind := special_kind(path / name):
            yield _special_file_problem(name, kind)
        elif name not in {MANIFEST, DIGEST, _GIT_FILE} and not name.startswith(_CLIENT_FOLDER):
            message = "the file does not belong to the release"
            yield Problem(kind="extra", file=name, message=message)


def _content_problems(release: Release) -> Iterator[Problem]:
    for found in find_contradictions(release):
        shard = f"{found.folder}/{shard_name(release.manifest.split)}"
        file = shard if found.folder else MANIFEST
        yield Problem(kind="contents", file=file, message=found.message)


def _file_problem(folder: Path, name: str, expected: FileDigest) -> Iterator[Problem]:
    file = folder / name
    if kind := special_kind_on_way(folder, name):
        yield _special_file_problem(name, kind)
    elif not file.is_file():
        yield Problem(kind="missing", file=name, message="the file is missing")
    elif (size := file.stat().st_size) != expected.bytes:
        message = f"the file has {size} bytes, not {expected.bytes}"
        yield Problem(kind="changed", file=name, message=message)
    elif hash_file(file) != expected.sha256:
        yield Problem(
            kind="changed", file=name, message="the file has the right size but different content"
        )


def _special_file_problem(name: str, kind: str) -> Problem:
    if kind == "a link":
        message = "it is a link, which a release never contains: its target may be anywhere"
        return Problem(kind="link", file=name, message=message)
    return Problem(
        kind="special", file=name, message=f"it is {kind}, which a release never contains"
    )


def _ancestors(release: Release) -> tuple[list[str], Problem | None]:
    """Return the versions of the verified ancestors, and what breaks the chain, if anything."""
    held = list[str]()
    while parent := release.manifest.parent:
        place = find_parent_folder(release.path, parent)
        if place is None:
            where = parent.path or parent.version
            message = f"the parent {parent.version} of {release.manifest.version} is missing"
            return held, Problem(
                kind="parent_missing", file=where, message=f"{message}: {parent.digest}"
            )
        if hash_file(place / MANIFEST) != parent.digest:
            message = f"it is not the {parent.version} that {release.manifest.version} follows"
            return held, Problem(kind="parent_changed", file=str(place), message=message)
        held.append(parent.version)
        try:
            release = read_release(place)
        except ReleaseError as error:
            return held, Problem(kind="manifest", file=str(place), message=error.message)
    return held, None


def find_parent_folder(child: Path, parent: ParentRelease) -> Path | None:
    """Return the directory of a parent: its recorded path, otherwise one next to its child."""
    places = [(child.resolve() / parent.path).resolve()] if parent.path else []
    places.append(child.resolve().parent / parent.version)
    return next((place for place in places if is_plain_file(place, MANIFEST)), None)
