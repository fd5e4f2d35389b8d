"""The commands that do work: what each is given, and what it should come to."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.chaos.commands import (
    CONCURRENCY,
    Json,
    Place,
    begin,
    finish,
    kill,
    run,
    run_came_to,
)
from coreeval.tools.clock import utc_now
from coreeval.tools.gdelt.index.news_index import is_whole
from coreeval.tools.gdelt.index.store_catalog import list_parts, open_catalog, part_folder
from coreeval.tools.workspace import RunFiles
from tests.graph.numleak.kit import ASKED
from tests.support import doomed_sync, worker
from tests.support.mirror_server import MirrorServer
from tests.support.tides import write_series
from tests.tools.gdelt.sync.kit import data_files, fill, quarters, urls_of

SAMPLES: Final = 6
ITEMS: Final = 16
BATCHES: Final = 24
CHANGING: Final = frozenset(
    {
        *("cost", "calls", "cached", "known_files", "files", "rows", "articles"),
        *("created_at", "made_at", "began_at", "ended_at", "at", "seconds", "digest"),
        *("run_dir", "report", "release"),
    }
)
"""Keys of documents that say when, how long and by which process; what counts is compared apart."""
DATED: Final = ("release.json", "release.sha256", "README.md", "CHANGELOG.md")
"""Files that say when they were made."""
TO_REFUSE: Final = {"Got the new Pixel", "Two hours stuck on the tarmac"}
"""Of two samples of the bundled benchmark."""
FEEDS: Final = ("gkg", "gal")
Begin = Callable[[Path], BaseProcess]


@dataclass(frozen=True, kw_only=True)
class Work:
    """One command on prepared data."""

    name: str
    begin: Begin
    """Starts it."""
    again: Begin
    """Starts what is documented to go on with it."""
    came_to: Callable[[Json], object]
    """Returns all that it should have come to, given the document of the last command."""
    kills: int
    """How often it is killed of a hundred times."""


def command(*arguments: str | Path) -> Begin:
    """Return what starts a command."""
    return lambda out: begin(out, *arguments)


def unless(there: Path, first: Begin, else_: Begin) -> Begin:
    """Return what starts a command that is not given again where its work is done."""
    return lambda out: (else_ if there.exists() else first)(out)


def stable(said: Any) -> Any:  # noqa: ANN401 - of any JSON
    """Return a document without what differs from one run to the next."""
    if isinstance(said, dict):
        return {key: stable(value) for key, value in said.items() if key not in CHANGING}
    return [stable(each) for each in said] if isinstance(said, list) else said


def digests(folder: Path, *, but: Sequence[str] = ()) -> dict[str, str]:
    """Return what each file in a folder holds, in short."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


# -- runs -----------------------------------------------------------------------------------------


def refreshing(at: Place) -> Work:
    """Return a run from its beginning, the news being made ready included."""
    given = ("refresh", at.config, "--run-dir", at.run, "--limit", str(SAMPLES))

    def again(out: Path) -> BaseProcess:
        there = RunFiles(at.run).manifest.exists()
        return begin(out, *(("resume", at.run) if there else given))

    return Work(
        name="refresh",
        begin=command(*given),
        again=again,
        came_to=lambda _: run_came_to(at),
        kills=14,
    )


def resuming(at: Place) -> Work:
    """Return a resume of a run that was killed at half of its calls."""
    refresh, before = refreshing(at), len(at.answers.heard)
    process = refresh.begin(at.out)
    while len(at.answers.heard) < before + 2 * SAMPLES and process.is_alive():
        process.join(0.002)
    kill(process)
    given = command("resume", at.run)
    return replace(refresh, name="resume", begin=given, again=given, kills=10)


def retrying(at: Place) -> Work:
    """Return a retry of samples that failed, since their requests were refused."""
    refresh = refreshing(at)
    at.answers.refused |= TO_REFUSE
    finish(refresh.begin(at.out), at.out, well=(1,))
    at.answers.refused.clear()
    given = command("retry", at.run)
    return replace(refresh, name="retry", begin=given, again=given, kills=8)


# -- what is made of a run ------------------------------------------------------------------------


def ended(at: Place) -> None:
    """Bring the run to its end, once for all that is made of it."""
    if at.restore("ended"):
        return
    finish(refreshing(at).begin(at.out), at.out)
    at.keep("ended")


def evaluating(at: Place) -> Work:
    """Return the questions to one more target about a run's arms."""
    ended(at)
    given = command("evaluate", at.run, "--target", json.dumps(at.model("target")))
    return Work(
        name="evaluate",
        begin=given,
        again=given,
        came_to=lambda said: (stable(said["arms"]), run_came_to(at)),
        kills=8,
    )


def releasing(at: Place) -> Work:
    """Return a release; a kill after its end finds it there, and the second is refused."""
    ended(at)
    place = at.root / ".coreeval" / "releases" / "demo-emotion"
    given = command("release", at.run, "--version", "1")

    def came_to(_: Json) -> object:
        assert run(at.out, "verify", place / "1")["problems"] == []
        names = [path.name for path in sorted(place.iterdir()) if path.name != ".release.lock"]
        return names, digests(place / "1", but=DATED)

    return Work(
        name="release",
        begin=given,
        again=unless(place / "1", given, command("verify", place / "1")),
        came_to=came_to,
        kills=8,
    )


def exporting(at: Place, form: str, kills: int) -> Work:
    """Return an export of a run."""
    ended(at)
    target = at.root / f"out-{form}"
    given = command("export", at.run, "--to", form, "--out", target)
    return Work(
        name=f"export --to {form}",
        begin=given,
        again=unless(target, given, command("status", at.run)),
        came_to=lambda _: digests(target),
        kills=kills,
    )


def recording(at: Place) -> Work:
    """Return the export of a run as a cassette."""
    ended(at)
    file = at.root / "run.cassette"
    given = command("cassette", "export", at.run, "--out", file, "--texts")
    return Work(
        name="cassette export",
        begin=given,
        again=unless(file, given, command("cassette", "show", file)),
        came_to=lambda _: stable(run(at.out, "cassette", "show", file)),
        kills=5,
    )


def replaying(at: Place) -> Work:
    """Return a cassette that is repeated; what a kill leaves is removed by the user."""
    ended(at)
    file, target = at.root / "run.cassette", at.root / "repeated"
    run(at.out, "cassette", "export", at.run, "--out", file, "--texts")
    given = command("cassette", "replay", file, "--out", target)

    def again(out: Path) -> BaseProcess:
        shutil.rmtree(target, ignore_errors=True)
        return given(out)

    return Work(
        name="cassette replay",
        begin=given,
        again=again,
        came_to=lambda said: (stable(said), digests(target / "dataset", but=DATED)),
        kills=5,
    )


def annotating(at: Place) -> Work:
    """Return sheets for people who rate."""
    ended(at)
    target = at.root / "sheets"
    given = command("annotate", "export", at.run, "--out", target, "--samples", "4")
    return Work(
        name="annotate export",
        begin=given,
        again=unless(target, given, command("status", at.run)),
        came_to=lambda _: digests(target, but=("key.json",)),
        kills=4,
    )


def reviewing(at: Place) -> Work:
    """Return the decisions of a person about all that is listed."""
    ended(at)
    given = command("review", at.run, "--all", "approve", "--by", "Ann Lee")

    def came_to(_: Json) -> object:
        said = run(at.out, "review", at.run, "--decided")
        return stable(said)

    return Work(
        name="review",
        begin=given,
        again=given,
        came_to=came_to,
        kills=4,
    )


def scheduled(at: Place) -> Work:
    """Return what is due: a run and its release, once."""
    config = at.write("due.yaml", name="weekly", schedule="0 3 * * MON")
    place = at.root / ".coreeval"

    def came_to(_: Json) -> object:
        [release] = sorted((place / "releases" / "weekly").glob("*/release.json"))
        assert run(at.out, "verify", release.parent)["problems"] == []
        again = run(at.out, "schedule", "due", config)
        runs = list((place / "runs" / "weekly").glob("*/manifest.json"))
        return stable(again), len(runs), digests(release.parent, but=DATED)

    given = command("schedule", "due", config, "--trust-endpoints")
    return Work(name="schedule due", begin=given, again=given, came_to=came_to, kills=6)


# -- detection ------------------------------------------------------------------------------------


def comparing(at: Place) -> Work:
    """Return PCR: a target is asked about items of two splits."""
    config = write_items(at, ITEMS, CONCURRENCY)
    given = command("detect", "pcr", config, "--draws", "100", "--out", at.root / "pairs")
    return Work(
        name="detect pcr",
        begin=given,
        again=given,
        came_to=lambda said: (stable(said), digests(at.root / "pairs")),
        kills=8,
    )


def write_items(at: Place, number: int, concurrency: int) -> Path:
    """Write two splits of so many items, and a config that asks a target about them."""
    bench = at.root / "bench"
    bench.mkdir()
    for split, first in (("train", 0), ("test", 10 * number)):
        lines = [json.dumps(item(each)) for each in range(first, first + number)]
        (bench / f"{split}.jsonl").write_text("\n".join(lines), "utf-8")
    asked = {
        "metric": "exact_match",
        "consistency": "option",
        "modification": "option_shuffle",
        "answer": "letter",
        "exchangeable_splits": True,
    }
    settings = {
        "name": "items",
        "dataset": {"format": "jsonl", "path": str(bench)},
        "models": {"targets": [at.model("letters")]},
        "run": {"concurrency": concurrency},
        "detect": {"pcr": asked},
    }
    config = at.root / "items.yaml"
    config.write_text(yaml.safe_dump(settings), "utf-8")
    return config


def item(number: int) -> Json:
    """Return a question with four answers."""
    options = ["tin", "gold", "iron", "lead"]
    right = "ABCD"[number % 4]
    return {"id": f"m{number}", "input": f"Metal {number}?", "output": right, "options": options}


def auditing(at: Place) -> Work:
    """Return NumLeak: a target is asked for the values of a series."""
    write_series(at.root)
    target = at.model("numbers", cutoff="2020-06")
    settings = {
        "name": "audit",
        "models": {"targets": [target]},
        "run": {"concurrency": CONCURRENCY},
        "detect": {"numleak": {"series": "tides.yaml", **ASKED}},
    }
    config = at.root / "audit.yaml"
    config.write_text(yaml.safe_dump(settings), "utf-8")
    page = at.root / "audit.html"
    given = command("detect", "numleak", config, "--draws", "100", "--page", page)
    return Work(
        name="detect numleak",
        begin=given,
        again=given,
        came_to=lambda said: (stable(said), page.read_text("utf-8").endswith("</html>\n")),
        kills=8,
    )


# -- news -----------------------------------------------------------------------------------------


def syncing(at: Place, mirror: MirrorServer) -> Work:
    """Return a sync from a mirror in many commits, and the making of its parts."""
    day = utc_now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
    fill(mirror, quarters(day, BATCHES), FEEDS)
    store = at.root / "news"
    given = sync(at, mirror, store)
    return Work(
        name="gdelt sync", begin=given, again=given, came_to=lambda _: held_in(store), kills=12
    )


def sync(at: Place, mirror: MirrorServer, store: Path) -> Begin:
    """Return what starts a sync of what `syncing` put on the mirror, a commit every 4 files."""
    day = utc_now() - timedelta(days=2)
    arguments = ["--files", "4", "gdelt", "sync", "--since", f"{day:%Y-%m-%d}", "--until",
                 f"{day + timedelta(days=1):%Y-%m-%d}", "--feeds", ",".join(FEEDS), "--mirror",
                 mirror.url, "--store", str(store), "--json"]  # fmt: skip
    return lambda out: worker.heard(doomed_sync.run, arguments, out=out)


def held_in(store: Path) -> object:
    """Return the articles of a store, and whether each file and part is whole and listed."""
    urls = urls_of(store)
    with open_catalog(store) as database:
        listed = list_parts(database)
        files = {path for (path,) in database.execute("SELECT path FROM segments")}
        batches = database.execute("SELECT feed, batch, state FROM batches ORDER BY 1, 2")
        return (
            urls,
            data_files(store) == files,
            [(part.first, part.last, part.rows, part.articles) for part in listed],
            all(is_whole(part_folder(store, part.id)) for part in listed),
            [tuple(row) for row in batches],
        )
