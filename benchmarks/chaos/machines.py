"""A run and its workspace elsewhere: moved, opened by somebody else, on a read-only medium."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.power import priced
from benchmarks.chaos.processes import defects, say
from benchmarks.kills import Lab, lab
from benchmarks.volume import get, server
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore

SAMPLES = "8"
NOBODY = "nobody"
READING = ("status", "trace", "trace calls", "export", "export release", "verify", "diff", "review")
WRITING = ("resume", "retry", "release", "evaluate")
Words = Sequence[object]


def commands(run: Path, release: Path, out: Path) -> dict[str, Words]:
    """Return what can be asked of a run and of its release; what is made of them goes to `out`."""
    return {
        "status": ["status", run],
        "trace": ["trace", run],
        "trace calls": ["trace", run, "emotion/test/1", "--calls"],
        "export": ["export", run, "--to", "jsonl", "--out", out / "run"],
        "export release": ["export", release, "--to", "csv", "--out", out / "release"],
        "verify": ["verify", release],
        "diff": ["diff", run, release],
        "review": ["review", run],
        "resume": ["resume", run],
        "retry": ["retry", run],
        "release": ["release", run, "--version", "2"],
        "evaluate": ["evaluate", run, "--target", "{model: 'offline:contaminated'}"],
    }


def read_only(folder: Path, _chance: Random) -> Outcome:
    """Look at a run on a read-only tmpfs: closed, killed, and killed without its shared memory."""
    found, tried = list[str](), 0
    with made(folder) as one:
        for state in ("closed", "killed"):
            disk = folder / state
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "chaos", str(disk)], check=True)
            try:
                shutil.copytree(one.config.parent, disk, dirs_exist_ok=True)
                if state == "killed":
                    leave_open(disk / "run" / "run.db")
                subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
                broken = list(looked(disk, folder / f"{state} out", state))
            finally:
                subprocess.run(["umount", "--lazy", str(disk)], check=True)
            found += broken
            tried += len(READING) + len(WRITING)
    return Outcome(tried=tried, held=tried - len(found), broken=tuple(found))


def looked(disk: Path, out: Path, state: str) -> Iterator[str]:
    """Yield what did not hold of the commands on a read-only disk."""
    every = commands(disk / "run", release_of(disk), out)
    env = {"COREEVAL_HOME": str(disk / ".coreeval")}
    for name in READING:
        allowed = (0,) if state == "closed" or "release" in name or name == "verify" else (0, 1)
        if one := say(*every[name], folder=disk, env=env).defect(*allowed):
            yield f"{state}: {one}"
    for name in WRITING:
        said = say(*every[name], folder=disk, env=env)
        if one := said.defect(1, 2):
            yield f"{state}: {one}"


def leave_open(store: Path) -> None:
    """Leave a database as a killed process does, without what it has in memory."""
    kept = store.with_suffix(".kept")
    with closing(RunStore.open(store, now=utc_now)) as opened:
        opened.finish_stage("chaos", {})
        shutil.copytree(store.parent, kept)
    for name in ("run.db", "run.db-wal"):
        shutil.copyfile(kept / name, store.with_name(name))
    store.with_name("run.db-shm").unlink(missing_ok=True)
    shutil.rmtree(kept)


def other_user(folder: Path, _chance: Random) -> Outcome:
    """Let `nobody` open a run that it may read, and one that it may not."""
    user = ["setpriv", "--reuid", NOBODY, "--clear-groups", "--"]
    out = folder / "theirs"
    out.mkdir()
    shutil.chown(out, NOBODY)
    folder.chmod(0o755)
    found, tried = list[str](), 0
    with made(folder) as one:
        place = one.config.parent
        every = commands(one.run_dir, release_of(place), out)
        for may_read in (True, False):
            if not may_read:
                for path in (one.run_dir, place / ".coreeval"):
                    path.chmod(0o700)
            env = {"HOME": str(out), "COREEVAL_HOME": str(place / ".coreeval")}
            for name in (*READING, *WRITING):
                reads = may_read and name in READING
                said = say(*every[name], folder=out, env=env, user=user)
                found.append(said.defect(0) if reads else said.defect(1, 2))
                tried += 1
    broken = defects(*found)
    return Outcome(tried=tried, held=tried - len(broken), broken=broken)


def moved(folder: Path, _chance: Random) -> Outcome:
    """Move a half-done run with its workspace, without it, and back; nothing is paid twice."""
    with server(lab(folder / "any", "emotion", "http://127.0.0.1:9", 0).config, 0.0) as url:
        one = priced(lab(folder / "lab", "emotion", url, 1))
        place, elsewhere = one.config.parent, folder / "elsewhere"
        half = say(*one.refresh, "--limit", SAMPLES, "--budget", "0.05", folder=place)
        stored = one.stored
        began = get(f"{url}/counts")
        run, gone = elsewhere / "run", elsewhere / ".coreeval"
        place.rename(elsewhere)
        gone.rename(folder / "put away")
        alone = say("resume", run, folder=elsewhere)
        status = say("status", run, folder=elsewhere)
        named = {"COREEVAL_HOME": str(folder / "put away")}
        shown = say("trace", run, folder=elsewhere, env=named)
        (folder / "put away").rename(gone)
        resumed = say("resume", run, "--budget", "9", folder=elsewhere)
        told = get(f"{url}/counts")
        found = defects(
            half.defect(3, hinted=False),
            alone.defect(2),
            "" if "calls.db" in str(alone.error) else f"resume does not name calls.db: {alone.out}",
            status.defect(0),
            shown.defect(0),
            resumed.defect(0),
            "" if told["repeats"] == began["repeats"] else "an answered call was asked again",
            "" if stored else "nothing was answered before it was moved",
        )
    return Outcome(tried=8, held=8 - len(found), broken=found)


@contextmanager
def made(folder: Path) -> Iterator[Lab]:
    """Make a run and a release of it, with a server behind its roles, for the block."""
    with server(lab(folder / "any", "emotion", "http://127.0.0.1:9", 0).config, 0.0) as url:
        one = lab(folder / "lab", "emotion", url, 1)
        place = one.config.parent
        for given in (
            [*one.refresh, "--limit", SAMPLES],
            ["release", one.run_dir, "--version", "1"],
        ):
            said = say(*given, folder=place)
            assert not said.defect(0), said.defect(0)
        yield one


def release_of(place: Path) -> Path:
    """Return where the release is."""
    return place / ".coreeval" / "releases" / "demo-emotion" / "1"


def no_mount() -> str:
    """Return why no medium can be made read-only here."""
    return "" if not os.geteuid() and shutil.which("mount") else "only root can mount a medium"


def no_other_user() -> str:
    """Return why nobody else can be taken for here."""
    known = any(one.pw_name == NOBODY for one in pwd.getpwall())
    able = not os.geteuid() and shutil.which("setpriv") and known
    return "" if able else "only root can run a command as another user (setpriv, nobody)"


MACHINES = (
    Case(
        name="a run on a read-only medium, closed or killed",
        promise="status, trace, export, verify, diff and review work; whatever has to write says "
        "so and what to do",
        attempt=read_only,
        obstacle=no_mount,
    ),
    Case(
        name="a run opened by another user, with and without the right to read it",
        promise="the same; without the right one clear error",
        attempt=other_user,
        obstacle=no_other_user,
    ),
    Case(
        name="a run moved to another folder, with and without its workspace",
        promise="it goes on there; without its workspace it says what it needs, and pays nothing "
        "twice",
        attempt=moved,
    ),
)
