"""Notes and tags that people give samples: an append-only log beside the decisions.

A note is about a sample of a benchmark, so all runs of the benchmark show it. The tags of a sample
are those of its last line.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from coreeval.errors import RunCorrupt, RunLocked, UsageError
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.runs.names import require_tag
from coreeval.schema import Text, Value
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import append_lines, hold_lock
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

MOST_CHARACTERS: Final = 2000
"""The most characters of a note (own choice)."""
MOST_NAME_CHARACTERS: Final = 100
MOST_SAMPLE_TAGS: Final = 20


class SampleNote(Value):
    """One line of the log: a note of a person, and the tags that the sample has from then on."""

    sample: str
    note: str = ""
    """Empty if only the tags changed."""
    tags: tuple[str, ...] = ()
    by: Text
    """The name of the person, as given."""
    at: str
    run: str = ""
    """The run whose page was read."""


class Remarks(Value):
    """What people noted about one sample."""

    tags: tuple[str, ...] = ()
    notes: tuple[SampleNote, ...] = ()
    """The lines that have a note, in order."""

    def __bool__(self) -> bool:
        """Return whether there is a tag or a note."""
        return bool(self.tags or self.notes)

    def and_then(self, line: SampleNote) -> "Remarks":
        """Return the remarks after one more line."""
        notes = (*self.notes, line) if line.note else self.notes
        return Remarks(tags=line.tags, notes=notes)


NO_REMARKS: Final = Remarks()


@dataclass(frozen=True)
class NoteLog:
    """The log of notes of one benchmark; it may not exist yet."""

    path: Path

    def read(self) -> Mapping[str, Remarks]:
        """Return the remarks by sample.

        Raises:
            RunCorrupt: a line is not a note.
        """
        found: dict[str, Remarks] = {}
        for line in self._lines(""):
            found[line.sample] = found.get(line.sample, NO_REMARKS).and_then(line)
        return {sample: remarks for sample, remarks in found.items() if remarks}

    def find(self, sample: str) -> Remarks:
        """Return the remarks about one sample; other lines are not parsed.

        Raises:
            RunCorrupt: a line about it is not a note.
        """
        found = NO_REMARKS
        for line in self._lines(sample):
            found = found.and_then(line) if line.sample == sample else found
        return found

    def append(self, line: SampleNote) -> None:
        """Add a line; on return it survives a power failure.

        Raises:
            RunLocked: another process is adding notes.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        busy = RunLocked("another process is saving a note", where=str(self.path), hint="try again")
        with hold_lock(self.path.with_suffix(".notes-lock"), busy, wait_s=2):
            append_lines(self.path, [json.dumps(line.model_dump())])

    def _lines(self, sample: str) -> Iterator[SampleNote]:
        """Yield the lines, or those that may be about a sample."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        part = json.dumps(sample).encode() if sample else b""
        for number, line in enumerate(lines, start=1):
            if line and part in line:
                yield self._parse(number, line)

    def _parse(self, number: int, line: bytes) -> SampleNote:
        try:
            return SampleNote.model_validate_json(line)
        except ValidationError:
            raise RunCorrupt(
                f"line {number} is not a valid note",
                where=str(self.path),
                hint="restore the file from a backup, or delete this line",
            ) from None


def open_notes(manifest: Manifest) -> NoteLog:
    """Return the notes on the samples of a run's benchmark."""
    return NoteLog(Workspace(Path(manifest.workspace)).notes(manifest.name))


def add_note(
    run: Path, sample: str, note: str, tags: Sequence[str], *, by: str, now: Clock = utc_now
) -> None:
    """Keep a note on a sample of a run, and the tags that the sample has from then on.

    Args:
        run: The run's directory.
        sample: The id of the sample.
        note: The note; empty to change only the tags.
        tags: All tags of the sample.
        by: The name of the person.
        now: The clock that dates the note.

    Raises:
        UsageError: the run has no such sample, a value is too long, a word is not a tag, the name
            is empty, or there is nothing to save.
        RunStateError: there is no run.
    """
    files = RunFiles(run)
    manifest = read_manifest(files.manifest)
    line = SampleNote(
        sample=sample,
        note=_check_length("the note", note.replace("\r\n", "\n").strip(), MOST_CHARACTERS),
        tags=_check_tags(tags),
        by=_check_length("the name", by.strip(), MOST_NAME_CHARACTERS) or _refuse_no_name(),
        at=now().isoformat(timespec="seconds"),
        run=manifest.run,
    )
    _require_sample(files, sample)
    log = open_notes(manifest)
    if not line.note and line.tags == log.find(sample).tags:
        raise UsageError("there is nothing to save", hint="write a note, or change the tags")
    log.append(line)


def _refuse_no_name() -> str:
    raise UsageError("a note needs a name", hint="give the author's name")


def _check_length(what: str, text: str, most: int) -> str:
    if len(text) > most:
        raise UsageError(
            f"{what} has {len(text):,} characters", hint=f"at most {most:,} characters: shorten it"
        )
    return text


def _check_tags(words: Sequence[str]) -> tuple[str, ...]:
    tags = tuple(sorted({require_tag(word) for word in words}))
    if len(tags) > MOST_SAMPLE_TAGS:
        raise UsageError(f"a sample has at most {MOST_SAMPLE_TAGS} tags")
    return tags


def _require_sample(files: RunFiles, sample: str) -> None:
    with RunStore.open(files.require_store(), now=utc_now) as store:
        try:
            store.sample(sample)
        except KeyError:
            raise UsageError(f"the run has no sample {sample!r}", where=str(files.root)) from None
