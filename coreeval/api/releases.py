"""Making and reading releases."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel

from coreeval.api.gates import GatesLike, read_gates
from coreeval.api.places import ReleaseLike, RunLike, find_release, find_run
from coreeval.api.tables import Cell, CellKind, Result, Table, parse_columns
from coreeval.releases import create
from coreeval.releases.release import Release as ReadRelease
from coreeval.releases.release import ReleasedArm, read_release
from coreeval.releases.release_document import build_release_document
from coreeval.releases.release_manifest import ArmRow, FactRow, SampleRow
from coreeval.tools.clock import Clock, utc_now

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(Result, ReadRelease):
    """A release: `path` is its directory, `manifest` its release.json."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval release --json` prints."""
        return build_release_document(self)

    @property
    def summary(self) -> str:
        """The name, the version and the size of the updated arm, in a line."""
        made = self.manifest
        size = f"{made.arms['updated']} of {made.counts['total']} samples updated"
        return f"release {made.name} {made.version}: {size} ({self.path})"

    @property
    def table(self) -> Table:
        """The samples without their texts; `samples` streams the same rows as values.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        return _tabulate("samples", SampleRow, self.samples())

    def facts_table(self) -> Table:
        """Return the replaced facts with their evidence; `facts` streams them as values.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        return _tabulate("replaced facts", FactRow, self.facts())

    def arm_table(self, arm: ReleasedArm) -> Table:
        """Return the texts of an arm: `id`, the fields of the task, `label, label_text, outcome`.

        Args:
            arm: `updated`, `semantic` or `original`; the last is empty if the benchmark's licence
                does not allow redistribution.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        rows = [_flatten_arm_row(row) for row in self.arm(arm)]
        names = dict.fromkeys(name for row in rows for name in row)
        columns: dict[str, CellKind] = {
            name: "integer" if name == "label" else "text" for name in names or ("id",)
        }
        return Table.from_dicts(f"{arm} arm", columns, rows)


def _flatten_arm_row(row: ArmRow) -> dict[str, Cell]:
    gold: dict[str, Cell] = {"label": row.label, "label_text": row.label_text}
    return {"id": row.id, **row.fields, **gold, "outcome": row.outcome}


def _tabulate(title: str, kind: type[BaseModel], rows: Iterable[BaseModel]) -> Table:
    """Return values of one type as a table with a column for each field."""
    columns = {name: _KINDS.get(name, "text") for name in kind.model_fields}
    return Table.from_dicts(title, columns, (row.model_dump() for row in rows))


_KINDS: Final = parse_columns("attempts:integer label:integer after_cutoff:texts")


def load_release(release: ReleaseLike) -> Release:
    """Return a release.

    Args:
        release: The directory of the release, or the id of its run, for the last release of that
            run.

    Raises:
        ReleaseError: there is no such release, or it cannot be read.
    """
    found = read_release(find_release(release))
    return Release(path=found.path, manifest=found.manifest)


def make_release(
    run: RunLike,
    *,
    version: str,
    out: Path | str | None = None,
    parent: ReleaseLike | Literal["latest"] | None = "latest",
    snippets: bool = True,
    takedown: Path | str | None = None,
    require_review: bool = False,
    gates: GatesLike | None = None,
    allow_empty_arm: bool = False,
    now: Clock = utc_now,
) -> Release:
    """Make an immutable release from a run's dataset.

    Args:
        run: A complete run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        version: The version of the release.
        out: The release's directory; by default `releases/<name>/<version>` in the workspace.
        parent: The release to follow; `latest` is the release that the run was based on, or else
            the latest release with the same name. None for no parent.
        snippets: Whether to quote the news in the provenance.
        takedown: A list that replaces the one in the run's config.
        require_review: Whether a person must first decide on all samples that `review` lists.
        gates: Gates that the release must meet before it gets its name.
        allow_empty_arm: Whether to make the release even if no sample has a new text.
        now: The clock that dates the release.

    Raises:
        RunStateError: there is no run.
        ReleaseError: the version exists, the run is unfinished, the parent is missing, or only the
            run itself names the workspace to write into.
        ReviewOpen: a person has yet to decide on some samples.
        GateNotMet: a gate is not met, or no sample has a new text; nothing is left behind.
        RunLocked: another process is using the run, or is making a release in the same folder.
        RunError: the release cannot be written; nothing is left under its name.
    """
    made = create.make_release(
        find_run(run),
        version=version,
        out=None if out is None else Path(out),
        parent="latest" if parent == "latest" else _find_parent(parent),
        snippets=snippets,
        takedown=None if takedown is None else Path(takedown),
        require_review=require_review,
        gates=None if gates is None else read_gates(gates),
        allow_empty_arm=allow_empty_arm,
        now=now,
    )
    return Release(path=made.path, manifest=made.manifest)


def _find_parent(parent: ReleaseLike | None) -> Path | None:
    if isinstance(parent, ReadRelease):
        return parent.path
    return None if parent is None else Path(parent)
