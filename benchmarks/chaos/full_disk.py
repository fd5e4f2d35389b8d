"""A disk that is full at twenty points: at four in each of five commands.

The disk is a tmpfs with the workspace, the run and what is made of it. Each command of a
benchmark's life follows the one before; one of them finds a part of the room that it needs, from
nothing to almost all. Then the disk grows, and that command, or `resume`, goes on to the end.
"""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.processes import Said, defects, say
from benchmarks.kills import Lab, lab, outcome
from benchmarks.volume import answered, get, server
from coreeval.graph.bundled import demo_data

SAMPLES = 10
ROOMY = 64 << 20
PAGE = 4096
WRITING = ("refresh", "evaluate", "gdelt sync", "release", "export")
PARTS = (0.0, 0.2, 0.5, 0.8)
"""Of what a command leaves on the disk; on its way it takes more."""
_NO_ROOM = ("full", "no space", "room")


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A tmpfs with all that commands write."""

    root: Path

    def resize(self, size: int) -> None:
        """Give it another size."""
        _mount("-o", f"remount,size={size}", str(self.root))

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        found = os.statvfs(self.root)
        return (found.f_blocks - found.f_bfree) * found.f_frsize


@dataclass(frozen=True, kw_only=True)
class Life:
    """A benchmark on a disk: its commands in their order."""

    lab: Lab
    disk: Path

    @property
    def env(self) -> Mapping[str, str]:
        """The workspace is on the disk."""
        return {"COREEVAL_HOME": str(self.disk / "home"), "HOME": str(self.disk / "user")}

    @property
    def run(self) -> Path:
        """The run's directory."""
        return self.disk / "run"

    @property
    def release(self) -> Path:
        """The release's directory."""
        return self.disk / "home" / "releases" / "demo-emotion" / "1"

    @property
    def commands(self) -> dict[str, list[object]]:
        """Every command, by what it does."""
        target = "{model: 'offline:contaminated'}"
        return {
            "refresh": ["refresh", self.lab.config, "--run-dir", self.run, "--limit", SAMPLES],
            "evaluate": ["evaluate", self.run, "--target", target],
            "gdelt sync": ["gdelt", "sync", "--from", demo_data() / "news"],
            "release": ["release", self.run, "--version", "1"],
            "verify": ["verify", self.release],
            "export": ["export", self.release, "--to", "jsonl", "--out", self.disk / "export"],
        }

    def say(self, name: str, *, again: bool = False) -> Said:
        """Give a command; a run that has begun is resumed."""
        given = self.commands[name]
        if again and name == "refresh" and (self.run / "run.db").exists():
            said = say("resume", self.run, folder=self.lab.config.parent, env=self.env)
            if said.error.get("kind") != "run_state":
                return said
        return say(*given, folder=self.lab.config.parent, env=self.env)

    @property
    def stored(self) -> int:
        """How many answers the call store has."""
        store = self.disk / "home" / "calls.db"
        try:
            return answered(store) if store.exists() else 0
        except sqlite3.OperationalError:  # it has not come to its tables
            return 0

    @property
    def made(self) -> Mapping[str, object]:
        """Outcomes all."""
        moved = Lab(config=self.run.parent / "any", url=self.lab.url)  # its run is beside it
        exported = {
            path.name: sorted(path.read_text("utf-8").splitlines())
            for path in (self.disk / "export").glob("*.jsonl")
        }
        released = {
            path.parent.name: pq.read_table(path).num_rows
            for path in self.release.rglob("*.parquet")
        }
        return {"outcomes": outcome(moved), "exported": exported, "released": released}


def attempt(folder: Path, _chance: Random) -> Outcome:
    """Find out how much room each command takes, then leave it a part of that."""
    served = lab(folder / "any", "emotion", "http://127.0.0.1:9", 0)
    with server(served.config, 0.0) as url:
        with on_disk(folder, url, 0) as (life, disk):
            taken = {name: needed(life, disk, name) for name in life.commands}
            expected = life.made
        points = [(name, part) for name in WRITING for part in PARTS]
        hit, broken = list[str](), list[str]()
        for number, (name, part) in enumerate(points, start=1):
            room = max(PAGE, int(taken[name] * part))
            with on_disk(folder, url, number) as (life, disk):
                stopped, trouble = fill(life, disk, expected, at=name, room=room)
            hit += [stopped] if stopped else []
            broken += [f"{name} with {room >> 10} KiB: {one}" for one in trouble[:1]]
    counted = ", ".join(f"{name} {hit.count(name)}" for name in WRITING)
    return Outcome(
        tried=len(points),
        held=len(points) - len(broken),
        measured=f"found no room: {counted}",
        broken=tuple(broken),
    )


def needed(life: Life, disk: Disk, name: str) -> int:
    """Give a command and return how many bytes it leaves on the disk."""
    before = disk.used
    said = life.say(name)
    assert not said.defect(0), said.defect(0)
    return disk.used - before


def fill(
    life: Life, disk: Disk, expected: object, *, at: str, room: int
) -> tuple[str, tuple[str, ...]]:
    """Go through the commands, one of which has only so much room, and then all it wants.

    Returns:
        The command that found no room, empty where it had enough, and what did not hold.
    """
    url = life.lab.url
    began, stopped, found = get(f"{url}/counts"), "", list[str]()
    unstored = 0
    for name in life.commands:
        if name == at:
            disk.resize(disk.used + room)
        said = life.say(name)
        if name == at and said.code:
            stopped = name
            found += [said.defect(1), told(said)]
            found += torn(life)
            disk.resize(ROOMY)
            unstored = get(f"{url}/counts")["requests"] - began["requests"] - life.stored
            said = life.say(name, again=True)
        found.append(said.defect(0))
        disk.resize(ROOMY)
    again = get(f"{url}/counts")["repeats"] - began["repeats"]
    if again > unstored:
        found.append(f"{again} calls were asked again, {unstored} were not stored")
    if not any(found) and life.made != expected:
        found.append("the outcome is another one")
    return stopped, defects(*found)


def told(said: Said) -> str:
    """Return what a message about a full disk lacks."""
    words = f"{said.error.get('message', '')} {said.error.get('hint', '')}".lower()
    if not any(word in words for word in _NO_ROOM):
        return f"{said.command}: the message does not speak of the disk: {dict(said.error)}"
    return ""


def torn(life: Life) -> Iterator[str]:
    """Yield what is on the full disk and is neither whole nor absent."""
    if life.release.exists():
        yield life.say("verify").defect(0)
    for path in life.run.glob("dataset/**/*.parquet"):
        try:
            pq.read_table(path)
        except (OSError, ValueError) as error:
            yield f"{path.name} is torn: {error}"
    if (life.run / "run.db").exists():
        said = say("status", life.run, folder=life.disk, env=life.env)
        yield said.defect(0, 1, 2)  # 2: it had not begun


@contextmanager
def on_disk(folder: Path, url: str, number: int) -> Iterator[tuple[Life, Disk]]:
    """Mount a disk for the block."""
    one, root = lab(folder / f"lab{number}", "emotion", url, number), folder / f"disk{number}"
    root.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={ROOMY}", "chaos", str(root))
    try:
        yield Life(lab=one, disk=root), Disk(root=root)
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


def _mount(*options: str) -> None:
    subprocess.run(["mount", *options], check=True, capture_output=True)


def no_mount() -> str:
    """Return why no disk can be mounted here."""
    if os.geteuid() or not shutil.which("mount"):
        return "only root can mount a disk of a given size"
    return ""


FULL_DISK = Case(
    name="a disk that is full at twenty points",
    promise="one message (what, where, what to do), nothing torn; with room again all ends as if "
    "undisturbed, nothing stored is asked again",
    attempt=attempt,
    obstacle=no_mount,
)
