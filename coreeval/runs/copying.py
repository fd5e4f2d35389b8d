"""Copies of a run's texts in another folder, which a takedown cannot reach."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from coreeval.agents.safety import fold_name, load_active_takedown
from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunStateError
from coreeval.runs.manifest import read_manifest
from coreeval.tools.files import write_text
from coreeval.tools.workspace import RunFiles, Workspace

_MOST_CHARACTERS: Final = 1 << 16
"""The most characters of a mark that are read: about a thousand names."""


@contextmanager
def refuse_takedown(place: Path) -> Iterator[None]:
    """Raise an error if a takedown of a run is in progress before, during or after a block.

    The block copies texts; the caller then deletes the copy.

    Args:
        place: The directory of a run; of anything else, nothing is checked.

    Raises:
        RunStateError: a takedown of the run has not finished, or the run's manifest or its
            workspace's takedown list has changed.
        ConfigError: the takedown list cannot be read.
    """
    before = _read_state(place)
    yield
    if _read_state(place) != before:
        raise RunStateError(
            "the run or the takedown list has changed while texts were copied; nothing was written",
            where=str(place),
            hint="repeat the command",
        )


def refuse_unfinished_takedown(files: RunFiles) -> None:
    """Refuse to copy texts of a run whose takedown has not finished.

    Raises:
        RunStateError: the run is marked.
    """
    if files.takedown_mark.exists():
        raise RunStateError(
            "a takedown of this run has not finished, so a copy could contain the person's name; "
            "nothing was written",
            where=str(files.root),
            hint="wait until `coreeval takedown` ends; if it was killed, run it again; if it could "
            "not read a file of this run, first restore this file, or delete the run",
        )


def mark_takedown(runs: Sequence[RunFiles], names: Sequence[str]) -> None:
    """Make `refuse_takedown` refuse these runs, also after a kill, until `unmark_takedown`.

    Marks of earlier takedowns stay. A mark contains digests, not names.

    Raises:
        OSError: a mark cannot be written.
    """
    for files in runs:
        write_text(files.takedown_mark, "\n".join(sorted(_read_mark(files) | _digest(names))))


def unmark_takedown(runs: Sequence[RunFiles], names: Sequence[str]) -> list[Path]:
    """Allow copies again, once the names are erased from all of these runs.

    Returns:
        The runs that stay marked, because an earlier takedown of another person has not finished.

    Raises:
        OSError: a mark cannot be changed.
    """
    still_marked = []
    for files in runs:
        if left := _read_mark(files) - _digest(names):
            write_text(files.takedown_mark, "\n".join(sorted(left)))
            still_marked.append(files.root)
        else:
            files.takedown_mark.unlink(missing_ok=True)
    return still_marked


def _digest(names: Sequence[str]) -> set[str]:
    return {sha256(fold_name(name).encode()).hexdigest() for name in names}


def _read_mark(files: RunFiles) -> set[str]:
    try:
        with files.takedown_mark.open(encoding="ascii", errors="replace") as file:
            return set(file.read(_MOST_CHARACTERS).split())
    except FileNotFoundError:
        return set()


def _read_state(place: Path) -> tuple[bytes, str]:
    if not (place / "manifest.json").exists():
        return b"", ""
    files = RunFiles(place)
    refuse_unfinished_takedown(files)
    listed = Workspace(Path(read_manifest(files.manifest).workspace)).takedown
    content = read_bytes(files.manifest, most_bytes=MOST_DATA_BYTES)
    return content, load_active_takedown((), listed).fingerprint
