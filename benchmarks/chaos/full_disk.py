"""A disk that is full at twenty points, from "hardly begins" to "almost all".

The disk is a tmpfs of that size, with the workspace, the run and what is made of it. Each command
of a benchmark's life follows the one before until one finds no room; then the disk grows, and that
command, or `resume`, goes on to the end.
"""

import os
import shutil
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

POINTS = 20
SAMPLES = 10
ROOMY = 64 << 20
PAGE = 4096
COMMANDS = ("refresh", "evaluate", "gdelt sync", "release", "verify", "export")
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
        return answered(store) if store.exists() else 0

    @property
    def made(self) -> Mapping[str, object]:
        """What came of it all."""
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
    """Find out how much room all takes, then take it away at twenty points."""
    served = lab(folder / "any", "emotion", "http://127.0.0.1:9", 0)
    with server(served.config, 0.0) as url:
        with on_disk(folder, url, 0, ROOMY) as (life, disk):
            found = defects(*(life.say(name).defect(0) for name in life.commands))
            expected, whole = life.made, disk.used
        sizes = [max(PAGE, whole * point // POINTS) for point in range(1, POINTS + 1)]
        hit, broken = set[str](), list(found)
        for number, size in enumerate(sizes, start=1):
            with on_disk(folder, url, number, size) as (life, disk):
                where, trouble = fill(life, disk, expected, url)
            hit.add(where)
            broken += [f"{size >> 10} KiB: {one}" for one in trouble[:1]]
    names = [name for name in COMMANDS if name in hit]
    measured = f"{sizes[0] >> 10} to {sizes[-1] >> 10} KiB; stopped in {', '.join(names)}"
    return Outcome(tried=POINTS, held=POINTS - len(broken), measured=measured, broken=tuple(broken))


def fill(life: Life, disk: Disk, expected: object, url: str) -> tuple[str, tuple[str, ...]]:
    """Go through the commands, with more room from the one on that finds none.

    Returns:
        The command that found no room, and what did not hold.
    """
    began, stopped, found = get(f"{url}/counts"), "", list[str]()
    unstored = 0
    for name in life.commands:
        said = life.say(name)
        if said.code and not stopped:
            stopped = name
            found.append(said.defect(1))
            found.append(told(said))
            unstored = get(f"{url}/counts")["requests"] - began["requests"] - life.stored
            found += torn(life)
            disk.resize(ROOMY)
            said = life.say(name, again=True)
        found.append(said.defect(0))
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
        yield said.defect(0, 1)


@contextmanager
def on_disk(folder: Path, url: str, number: int, size: int) -> Iterator[tuple[Life, Disk]]:
    """Mount a disk of a size for the block."""
    one, root = lab(folder / f"lab{number}", "emotion", url, number), folder / f"disk{number}"
    root.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={size}", "chaos", str(root))
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
