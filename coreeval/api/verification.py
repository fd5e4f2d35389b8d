"""Verification of releases."""

from typing import TYPE_CHECKING

from coreeval.api.places import ReleaseLike, find_release
from coreeval.api.tables import Result, Table
from coreeval.releases.verify import Verification as FoundProblems
from coreeval.releases.verify import verify as verify_files

if TYPE_CHECKING:
    from pydantic import JsonValue


class Verification(Result, FoundProblems):
    """Whether a release is byte for byte as it was made: `ok` and `problems`."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval verify --json` prints."""
        return {**self.model_dump(mode="json"), "ok": self.ok}

    @property
    def summary(self) -> str:
        """Whether the release is unchanged, in a line."""
        if self.ok:
            return f"{self.name} {self.version} is unchanged: {self.files} files"
        return f"{self.release} has changed since it was made"

    @property
    def table(self) -> Table:
        """The problems: `kind, file, message`."""
        rows = [(one.kind, one.file, one.message) for one in self.problems]
        return Table("problems", {"kind": "text", "file": "text", "message": "text"}, rows)


def verify(release: ReleaseLike, *, chain: bool = True, digest: str | None = None) -> Verification:
    """Verify every file of a release, and that each ancestor is the one that its child records.

    Args:
        release: The release: its directory, the id of its run, or a `Release`.
        chain: Whether to verify ancestors too.
        digest: The digest of release.json as it was published elsewhere, which an edited release
            cannot fake.

    Raises:
        ReleaseError: there is no release.
    """
    found = verify_files(find_release(release), chain=chain, digest=digest)
    return Verification.model_validate(found.model_dump())
