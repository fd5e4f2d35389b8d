"""Exporting a run or a release for other tools, or to the Hugging Face Hub."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coreeval.api.places import ReleaseLike, SideLike, find_release, find_side
from coreeval.api.tables import CommandResult, Result, Table, parse_columns
from coreeval.releases.exports import export as exports
from coreeval.tools.endpoints import import_for_hub
from coreeval.tools.env_file import hold_env_file, read_env_file
from coreeval.tools.extras import require_extra
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True, kw_only=True, repr=False)
class Export(Result, exports.ExportResult):
    """The export of a run or a release for another tool: `out` is the folder."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval export --json` prints."""
        return {
            "source": str(self.material.path),
            "kind": self.material.kind,
            "name": self.material.name,
            "version": self.material.version,
            "to": self.to,
            "out": str(self.out),
            "rows": dict(self.rows),
        }

    @property
    def summary(self) -> str:
        """The exported data and its folder, in a line."""
        made = self.material
        return f"exported the {made.kind} {made.name} {made.version} as {self.to}: {self.out}"

    @property
    def table(self) -> Table:
        """The numbers of written rows, questions or cases: `what, rows`."""
        return Table("rows written", {"what": "text", "rows": "integer"}, self.rows.items())


ExportFormat = Literal["hf", "lm-eval", "inspect", "junit", "csv", "spreadsheet", "jsonl"]


def export(source: SideLike, *, to: ExportFormat | str, out: Path | str) -> Export:
    """Export a run or a release for use in another tool.

    Args:
        source: A finished run or a release: a directory, a run's id or name, `latest`, or a `Run`
            or `Release`.
        to: The format: hf, lm-eval, inspect, junit, csv, spreadsheet or jsonl.
        out: A new or empty folder; its files appear only when the export is complete.

    Raises:
        UsageError: there is no such format, `out` is not empty, or a required package is missing.
        ReleaseError: the release has been altered since it was made, or has names on the takedown
            list.
        RunStateError: there is no such run or release, or the run has not ended.
        RunError: the export cannot be written.
    """
    made = exports.export(find_side(source), to=to, out=Path(out))
    return Export(material=made.material, to=made.to, out=made.out, rows=made.rows)


@hold_env_file()
def push(
    release: ReleaseLike, *, to: str, public: bool = False, dry_run: bool = False
) -> CommandResult:
    """Publish a release on the Hugging Face Hub, in one commit.

    Args:
        release: The release: its directory, the id of its run, or a `Release`.
        to: The dataset on the hub, `OWNER/NAME`.
        public: Whether a newly created repository is public.
        dry_run: Whether to upload nothing, and only return the files that would be uploaded.

    Returns:
        A result whose table has a row for each file that is uploaded or removed.

    Raises:
        ReleaseError: there is no release, it has been altered since it was made, or it has names on
            the takedown list.
        UsageError: the `huggingface-hub` package is missing, or `to` is not a name.
        CredentialError: there is no token for the hub.
        RunError: the hub cannot be reached or refuses the release.
    """
    read_env_file(Path.cwd())
    with import_for_hub(os.environ), require_extra("hf", "coreeval push"):
        from coreeval.releases.exports.hub import push as work

    done = work(find_release(release), to=to, public=public, dry_run=dry_run)
    manifest = done.release.manifest
    document = {
        "release": str(done.release.path),
        "name": manifest.name,
        "version": manifest.version,
        "digest": done.release.digest,
        "repository": done.repository,
        "url": done.url,
        "uploaded": list(done.uploaded),
        "removed": list(done.removed),
        "kept": done.kept,
        "commit": done.commit,
        "dry_run": dry_run,
    }
    changes = [(path, "uploaded") for path in done.uploaded]
    changes += [(path, "removed") for path in done.removed]
    files = format_quantity(len(changes), "file differs", "files differ")
    return CommandResult(
        document,
        f"{manifest.name} {manifest.version} on {done.repository}: {files}",
        Table("files", parse_columns("file change"), changes),
    )
