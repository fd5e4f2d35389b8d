"""A run or a release in the files of other tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coreeval.api.places import SideLike, find_side
from coreeval.api.tables import Result, Table
from coreeval.releases.exports import export as exports

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True, kw_only=True, repr=False)
class Export(Result, exports.ExportResult):
    """A run or a release as files for another tool: `out` is the folder."""

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
        """What was exported where, in a line."""
        made = self.material
        return f"exported the {made.kind} {made.name} {made.version} as {self.to}: {self.out}"

    @property
    def table(self) -> Table:
        """How many rows, questions or cases of what were written: `what, rows`."""
        return Table("rows written", {"what": "text", "rows": "integer"}, self.rows.items())


ExportFormat = Literal["hf", "lm-eval", "inspect", "junit", "csv", "spreadsheet", "jsonl"]


def export(source: SideLike, *, to: ExportFormat | str, out: Path | str) -> Export:
    """Write a run or a release for another tool.

    Args:
        source: A run that has ended, or a release: a directory, a run's id or name, `latest`, or
            the value.
        to: The format: hf, lm-eval, inspect, junit, csv, spreadsheet or jsonl.
        out: A new or empty folder; it appears when it is whole.

    Raises:
        UsageError: no such format, something at `out`, or a package that the format needs.
        ReleaseError: the release is not what was made.
        RunStateError: there is no such run or release, or the run has not come to its end.
        RunError: it cannot be written.
    """
    made = exports.export(find_side(source), to=to, out=Path(out))
    return Export(material=made.material, to=made.to, out=made.out, rows=made.rows)
