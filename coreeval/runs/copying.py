"""Copies of a run's texts in another folder, which a takedown cannot reach."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coreeval.errors import RunStateError
from coreeval.runs.manifest import read_manifest
from coreeval.tools.workspace import RunFiles, Workspace


@contextmanager
def refuse_takedown(place: Path) -> Iterator[None]:
    """Raise an error if a takedown of a run is in progress before, during or after a block.

    The block copies texts; the caller then deletes the copy.

    Args:
        place: The directory of a run; of anything else, nothing is checked.

    Raises:
        RunStateError: a takedown of the run has not finished, or the run's manifest or its
            workspace's takedown list has changed.
    """
    before = _read_state(place)
    yield
    if _read_state(place) != before:
        raise RunStateError(
            "the run or the takedown list has changed while texts were copied; nothing was written",
            where=str(place),
            hint="repeat the command",
        )


def mark_takedown(runs: Sequence[RunFiles]) -> None:
    """Make `refuse_takedown` refuse these runs, also after a kill, until `unmark_takedown`.

    Raises:
        OSError: a mark cannot be written.
    """
    for files in runs:
        files.takedown_mark.touch()


def unmark_takedown(runs: Sequence[RunFiles]) -> None:
    """Allow copies again, once the names are erased from all of these runs.

    Raises:
        OSError: a mark cannot be deleted.
    """
    for files in runs:
        files.takedown_mark.unlink(missing_ok=True)


def _read_state(place: Path) -> tuple[bytes, bytes]:
    if not (place / "manifest.json").exists():
        return b"", b""
    files = RunFiles(place)
    if files.takedown_mark.exists():
        raise RunStateError(
            "a takedown of this run has not finished, so a copy could contain the person's name; "
            "nothing was written",
            where=str(place),
            hint="wait until `coreeval takedown` ends; if it was killed, run it again",
        )
    listed = Workspace(Path(read_manifest(files.manifest).workspace)).takedown
    return files.manifest.read_bytes(), listed.read_bytes() if listed.exists() else b""
