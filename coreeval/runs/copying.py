"""Copies of a run's texts in another folder, which a takedown cannot reach."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coreeval.errors import RunStateError
from coreeval.runs.manifest import read_manifest
from coreeval.tools.workspace import RunFiles, Workspace


@contextmanager
def refuse_takedown(place: Path) -> Iterator[None]:
    """Raise an error after a block that copies texts if a takedown has begun or ended during it.

    The caller then deletes the copy.

    Args:
        place: The directory of a run; of anything else, nothing is checked.

    Raises:
        RunStateError: the run's manifest or its workspace's takedown list has changed.
    """
    before = _read_state(place)
    yield
    if _read_state(place) != before:
        raise RunStateError(
            "the run or the takedown list has changed while texts were copied; nothing was written",
            where=str(place),
            hint="repeat the command",
        )


def _read_state(place: Path) -> tuple[bytes, bytes]:
    manifest = RunFiles(place).manifest
    if not manifest.exists():
        return b"", b""
    listed = Workspace(Path(read_manifest(manifest).workspace)).takedown
    return manifest.read_bytes(), listed.read_bytes() if listed.exists() else b""
