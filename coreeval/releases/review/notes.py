"""Notes and tags of people on samples: an append-only log next to the decisions.

A note is about a sample of a benchmark, so all runs of the benchmark show it. The last line of a
sample has its current tags. A line that cannot be read is skipped and reported.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from coreeval.errors import RunCorrupt, RunLocked, UsageError
from coreeval.runs.manifest import Manifest, read_manifest, require_workspace
from coreeval.runs.names import require_tag
from coreeval.schema import Text, Value
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import append_lines, hold_lock
from coreeval.tools.formatting import list_first
from coreeval.tools.stores.heartbeat import refuse_special_file
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

MOST_CHARACTERS: Final = 2000
"""The most characters of a note (own choice)."""
MOST_NAME_CHARACTERS: Final = 100
MOST_SAMPLE_TAGS: Final = 20
_MOST_TOLD: Final = 5
"""The most damaged lines that are listed."""


class SampleNote(Value):
    """One line of the log: a person's note, and the tags of the sample from then on."""

    sample: str
    note: str = ""
    """The note; empty if only the tags changed."""
    tags: tuple[str, ...] = ()
    by: Text
    """The name of the person, as given."""
    at: str
    run: str = ""
    """The run whose page was read."""


class Remarks(Value):
    """The notes and tags of one sample."""

    tags: tuple[str, ...] = ()
    notes: tuple[SampleNote, ...] = ()
    """The lines with a note, in order."""

    def __bool__(self) -> bool:
        """Return whether there is a tag or a note."""
        return bool(self.tags or self.notes)


NO_REMARKS: Final = Remarks()


@dataclass(frozen=True)
class FoundNotes:
    """The readable content of a log."""

    remarks: Mapping[str, Remarks] = field(default_factory=dict)
    """The remarks by sample; samples without tags and notes are left out."""
    problem: RunCorrupt | None = None
    """The reason that notes or tags may be missing; None if the whole log was read."""

    def of(self, sample: str) -> Remarks:
        """Return the remarks about one sample."""
        return self.remarks.get(sample, NO_REMARKS)


@dataclass(frozen=True)
class NoteLog:
    """The log of notes of one benchmark; it may not exist yet."""

    path: Path

    def read(self) -> FoundNotes:
        """Return the remarks of all samples; lines that are not notes are left out."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return FoundNotes()
        found: dict[str, list[SampleNote]] = {}
        damaged = []
        for number, content in enumerate(lines, start=1):
            if line := _parse(content):
                found.setdefault(line.sample, []).append(line)
            elif content:
                damaged.append(number)
        remarks = {sample: _gather(said) for sample, said in found.items()}
        return FoundNotes(
            {sample: each for sample, each in remarks.items() if each},
            self._describe_damage(damaged) if damaged else None,
        )

    def append(self, line: SampleNote, before: Collection[str]) -> None:
        """Add a line; on return it survives a power failure.

        Args:
            line: The note, with the tags that its author set.
            before: The tags that the author saw before. Only tags that the author added or removed
                are changed; tags that others set meanwhile stay.

        Raises:
            UsageError: the sample would have too many tags, or there is nothing to save.
            RunCorrupt: the lock is a link, pipe or device.
            RunLocked: another process is adding notes.
        """
        lock = self.path.with_suffix(".notes-lock")
        refuse_special_file(lock)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        busy = RunLocked("another process is saving a note", where=str(self.path), hint="try again")
        with hold_lock(lock, busy, wait_s=2):
            now = self.read().of(line.sample).tags
            tags = _check_tags({*now, *line.tags} - ({*before} - {*line.tags}))
            if not line.note and tags == now:
                raise UsageError(
                    "there is nothing to save", hint="write a note, or change the tags"
                )
            merged = line.model_copy(update={"tags": tags})
            append_lines(self.path, [json.dumps(merged.model_dump())])

    def _describe_damage(self, numbers: Sequence[int]) -> RunCorrupt:
        """Return the error for lines that are not notes, by their numbers."""
        one = len(numbers) == 1
        told = list_first([str(number) for number in numbers], _MOST_TOLD)
        return RunCorrupt(
            f"line {told} is not a valid note" if one else f"lines {told} are not valid notes",
            where=str(self.path),
            hint=f"restore the file from a backup, or delete the line{'' if one else 's'}",
        )


def _gather(lines: Sequence[SampleNote]) -> Remarks:
    """Return what the lines about one sample amount to."""
    return Remarks(tags=lines[-1].tags, notes=tuple(line for line in lines if line.note))


def _parse(content: bytes) -> SampleNote | None:
    """Return the note in a line; None if it is not a note."""
    try:
        return SampleNote.model_validate_json(content)
    except ValidationError:
        return None


def open_notes(manifest: Manifest) -> NoteLog:
    """Return the notes on the samples of a run's benchmark.

    Raises:
        RunCorrupt: the log is a link, pipe or device, or is too large.
    """
    return NoteLog(Workspace(Path(manifest.workspace)).notes(manifest.name))


def read_notes(manifest: Manifest) -> FoundNotes:
    """Return the readable notes on the samples of a run's benchmark."""
    try:
        return open_notes(manifest).read()
    except RunCorrupt as error:
        return FoundNotes(problem=error)


def add_note(
    run: Path,
    sample: str,
    note: str,
    tags: Sequence[str],
    *,
    by: str,
    before: Collection[str] = (),
    now: Clock = utc_now,
) -> None:
    """Save a note on a sample of a run, and changes to the sample's tags.

    Args:
        run: The run's directory.
        sample: The id of the sample.
        note: The note; empty to change only the tags.
        tags: All tags of the sample, as set by the person.
        by: The name of the person.
        before: The tags that the person saw before; those not in `tags` are removed.
        now: The clock that dates the note.

    Raises:
        UsageError: the run has no such sample, a value is too long, a word is not a tag, the name
            is empty, or there is nothing to save.
        RunStateError: there is no run, or its workspace is missing.
        RunCorrupt: the log of notes is a link, pipe or device, or is too large.
        RunLocked: another process is adding notes.
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
    require_workspace(manifest)
    open_notes(manifest).append(line, before)


def _refuse_no_name() -> str:
    raise UsageError("a note needs a name", hint="enter the author's name")


def _check_length(what: str, text: str, most: int) -> str:
    if len(text) > most:
        raise UsageError(
            f"{what} has {len(text):,} characters", hint=f"at most {most:,} characters: shorten it"
        )
    return text


def _check_tags(words: Collection[str]) -> tuple[str, ...]:
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
