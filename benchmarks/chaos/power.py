"""The power fails while a run is written, and while a release is.

What the disk was made to take is told apart from what the program has merely written: a library
that is loaded into the process (durable.c) copies each file at the moment at which it has been
flushed (fsync, fdatasync), and notes every rename and removal between. A prefix of these events is
what a disk holds when the power fails there:

* A file has the bytes of its last flush; what was written since is lost. A file that was never
  flushed is missing, and one that was renamed without a flush is there and empty, as on ext4 and
  XFS. This is the least that a disk may keep.
* Renames and removals are kept in their order, up to the last flush of any file: a journalling
  file system commits them together. Of those after it a prefix of any length is kept.
* At every third cut the power fails within a flush: of the file that was being flushed, each
  sector of 512 bytes is the old or the new one, by chance.

The run that is recorded comes to its end, so that it is known what had been answered when. A third
of the cuts are at moments while answers came, the others at any event: most of those are of the
news store and the release. From each cut the workspace is put together anew, and `resume` and
`release` go on.
"""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.processes import defects, say
from benchmarks.kills import Lab, lab, outcome
from benchmarks.volume import get, server
from coreeval.tools.stores.batch_writer import FLUSH_S

CUTS = 24
SAMPLES = "10"
SECTOR = 512
LATENCY_S = 0.3
"""Of an answer, so that they come over several times `FLUSH_S`."""
SLACK_S = 1.0
"""How much longer than `FLUSH_S` a flush may take to begin on a crowded machine."""
PRICE = {"input": 1.0, "output": 1.0}
BUDGET = 5.0
_SOURCE = Path(__file__).with_name("durable.c")
Keys = set[str]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A flush (S), a flushed folder (D), a rename (R) or a removal (U)."""

    at: float
    kind: str
    path: Path
    other: str
    """The copy of a flushed file; where a file was renamed to."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """When the power fails."""

    done: int
    """How many events the disk has behind it."""
    moment: float
    torn: bool
    """Whether it is in the middle of the next one."""

    def __str__(self) -> str:
        return f"{'within the flush ' if self.torn else ''}after event {self.done}"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A run and its release, left alone and recorded."""

    lab: Lab
    log: Path
    events: Sequence[Event]
    answered: Mapping[str, float]
    """When each call was answered, by its key."""
    outcome: object
    released: object

    @property
    def folder(self) -> Path:
        """All that the run and the release consist of."""
        return self.lab.config.parent

    @property
    def release(self) -> Path:
        """The release's directory."""
        return self.folder / ".coreeval" / "releases" / "demo-emotion" / "1"


def attempt(folder: Path, chance: Random) -> Outcome:
    """Record a run, and cut the power at moments spread over its events."""
    library = folder / "durable.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
    any_lab = lab(folder / "any", "emotion", "http://127.0.0.1:9", 0)
    lost, events, broken = 0, 0, list[str]()
    with server(any_lab.config, LATENCY_S) as url:
        for number, budget in enumerate((True, False)):
            place = folder / f"recording{number}"
            place.mkdir()
            one = lab(place / "lab", "emotion", url, number)
            made = record(priced(one) if budget else one, place / "log", library)
            gone, found = cut_all(made, chance, budget=budget)
            lost, events, broken = lost + gone, events + len(made.events), [*broken, *found]
    return Outcome(
        tried=CUTS,
        held=CUTS - len(broken),
        measured=f"{events} flushes, renames and removals; {lost / CUTS:.1f} answers a cut were "
        f"lost, none older than {FLUSH_S} s",
        broken=tuple(broken),
    )


def cut_all(made: Recording, chance: Random, *, budget: bool) -> tuple[int, list[str]]:
    """Cut the power again and again; return how many answers were lost, and what did not hold."""
    lost, broken = 0, list[str]()
    for cut in cuts_of(made, chance):
        gone, found = go_on(made, cut, chance, budget=budget)
        lost += gone
        broken += [f"{cut} of {len(made.events)}: {one}" for one in found[:1]]
    return lost, broken


def cuts_of(made: Recording, chance: Random) -> Iterator[Cut]:
    """Yield cuts: one third each while answers come, between events, and within a flush."""
    times = made.answered.values()
    for number in range(CUTS // 2):
        if number % 3 == 0:
            moment = chance.uniform(min(times), max(times))
            done = sum(event.at <= moment for event in made.events)
            yield Cut(done=done, moment=moment, torn=False)
        else:
            done = chance.randrange(1, len(made.events))
            yield Cut(done=done, moment=made.events[done].at, torn=number % 3 == 2)


def priced(one: Lab) -> Lab:
    """Give a run a budget, so that what it sends is put aside before."""
    raw = yaml.safe_load(one.config.read_text("utf-8"))
    raw["models"]["default"]["price"] = PRICE
    raw["run"]["budget_usd"] = BUDGET
    one.config.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return one


def record(one: Lab, log: Path, library: Path) -> Recording:
    """Run and release with the library loaded."""
    log.mkdir()
    folder = one.config.parent
    env = {
        "LD_PRELOAD": str(library),
        "DURABLE_ROOT": f"{folder}/",
        "DURABLE_LOG": str(log),
    }
    (folder / "before").mkdir()
    shutil.copy2(one.config, folder / "before")
    shutil.move(folder / "before", log.parent / "before")
    for given in ([*one.refresh, "--limit", SAMPLES], ["release", one.run_dir, "--version", "1"]):
        said = say(*given, folder=folder, env=env)
        assert not said.defect(0), said.defect(0)
    made = Recording(
        lab=one, log=log, events=[], answered=answers(folder), outcome=outcome(one), released=None
    )
    events = list(read_events(log / "log"))
    return Recording(**{**vars(made), "events": events, "released": released(made.release)})


def read_events(log: Path) -> Iterator[Event]:
    """Yield the events of a log."""
    for line in log.read_text("utf-8").splitlines():
        at, kind, path, other = line.split("\t")
        yield Event(at=float(at), kind=kind, path=Path(path), other=other)


def answers(folder: Path) -> dict[str, float]:
    """Return when each stored call was answered, by its key."""
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as store:
        rows = store.execute("SELECT key, started_at, seconds FROM calls").fetchall()
    return {key: datetime.fromisoformat(at).timestamp() + took for key, at, took in rows}


def released(release: Path) -> object:
    """Return the rows of a release's files."""
    return {
        path.parent.name: pq.read_table(path).to_pylist() for path in release.rglob("*.parquet")
    }


def go_on(made: Recording, cut: Cut, chance: Random, *, budget: bool) -> tuple[int, Sequence[str]]:
    """Put together what a cut leaves, and go on from there.

    Returns:
        How many answers were lost, and what did not hold.
    """
    restore(made, cut, chance)
    moment = cut.moment
    stored, reserved = kept(made.folder)
    came = {key for key, at in made.answered.items() if at < moment}
    late = {key for key in came - stored if made.answered[key] < moment - FLUSH_S - SLACK_S}
    found = [*whole(made)]
    found += [f"{len(late)} answers older than {FLUSH_S} s were lost"] if late else []
    unpaid = len(came - stored - reserved) if budget else 0
    found += [f"{unpaid} requests were sent and nothing was put aside for them"] if unpaid else []
    before = get(f"{made.lab.url}/counts")["requests"]
    found += finish(made)
    asked = get(f"{made.lab.url}/counts")["requests"] - before
    if asked > len(made.answered) - len(stored):
        found.append(f"{asked} calls, {len(made.answered) - len(stored)} were not stored")
    return len(came - stored), defects(*found)


def restore(made: Recording, cut: Cut, chance: Random) -> None:
    """Put the workspace together as a disk has it at a cut."""
    shutil.rmtree(made.folder)
    shutil.copytree(made.log.parent / "before", made.folder)
    done = made.events[: cut.done]
    flushed = max((n for n, event in enumerate(done) if event.kind in "SD"), default=-1)
    for event in done[: chance.randint(flushed + 1, len(done))]:
        apply(event, made.log)
    if cut.torn and made.events[cut.done].kind == "S":
        tear(made.events[cut.done], made.log, chance)


def apply(event: Event, log: Path) -> None:
    """Do to the workspace what an event did."""
    path = event.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if event.kind == "S":
        shutil.copyfile(log / event.other, path)
    elif event.kind == "D":
        path.mkdir(parents=True, exist_ok=True)
    elif event.kind == "R":
        target = Path(event.other)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch()  # it was never flushed: its name is kept, its bytes are not
        path.rename(target)
    elif path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def tear(event: Event, log: Path, chance: Random) -> None:
    """Do half of a flush: each sector is the old or the new one."""
    new = (log / event.other).read_bytes()
    old = event.path.read_bytes() if event.path.exists() else b""
    if not event.path.parent.is_dir():
        return
    sectors = range(0, max(len(new), len(old)), SECTOR)
    kept = [(new if chance.random() < 0.5 else old)[at : at + SECTOR] for at in sectors]
    size = chance.choice((len(new), max(len(old), SECTOR)))
    event.path.write_bytes(b"".join(part.ljust(SECTOR, b"\0") for part in kept)[:size])


def kept(folder: Path) -> tuple[Keys, Keys]:
    """Return the keys of calls that a disk has kept, and of those for which money is put aside."""
    store = folder / ".coreeval" / "calls.db"
    if not store.exists() or not store.stat().st_size:
        return set(), set()
    copied = folder.parent / "looked at"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(store.parent, copied)
    with closing(sqlite3.connect(copied / "calls.db")) as found:
        names = {name for (name,) in found.execute("SELECT name FROM sqlite_master")}
        return tuple(  # type: ignore[return-value]
            {key for (key,) in found.execute(f"SELECT key FROM {table}")}
            if table in names
            else set()
            for table in ("calls", "reservations")
        )


def whole(made: Recording) -> Iterator[str]:
    """Yield what a cut has left that is neither whole nor absent."""
    manifest = made.lab.run_dir / "manifest.json"
    if manifest.exists():
        try:
            json.loads(manifest.read_text("utf-8"))
        except ValueError:
            yield "manifest.json is torn"
    if made.release.exists():
        yield say("verify", made.release, folder=made.folder).defect(0)


def finish(made: Recording) -> Iterator[str]:
    """Go on to the end; yield what did not hold."""
    begun = (made.lab.run_dir / "run.db").exists()
    said = say(*made.lab.resume, folder=made.folder) if begun else None
    if said is None or said.code == 2:  # nothing of the run was kept
        yield said.defect(2) if said else ""
        shutil.rmtree(made.lab.run_dir, ignore_errors=True)
        said = say(*made.lab.refresh, "--limit", SAMPLES, folder=made.folder)
    yield said.defect(0)
    if said.code == 0 and outcome(made.lab) != made.outcome:
        yield "the outcome is another one"
    if not made.release.exists():
        yield say("release", made.lab.run_dir, "--version", "1", folder=made.folder).defect(0)
    if released(made.release) != made.released:
        yield "the release is another one"
    yield say("verify", made.release, folder=made.folder).defect(0)


def no_compiler() -> str:
    """Return why flushes cannot be recorded here."""
    return "" if shutil.which("cc") else "no C compiler (cc) to build what records flushes"


POWER = Case(
    name="power fails while a run and its release are written",
    promise=f"a run goes on to the same end, at most {FLUSH_S} s of answers are asked again, all "
    "that was sent is accounted for, a manifest and a release are whole or absent",
    attempt=attempt,
    obstacle=no_compiler,
)
