"""Record every output of a checkout, and compare two records: the net under a restructuring.

    python -m benchmarks.outputs record CHECKOUT FOLDER
    python -m benchmarks.outputs record CHECKOUT FOLDER --cassettes OLDER
    python -m benchmarks.outputs compare BEFORE AFTER

A record holds what the commands print, as text and as JSON, and every file that they leave, in a
form that people can compare: databases and Parquet files as rows, compressed files as text. Nothing
of CoreEval is imported here, so that one script serves both checkouts.

Two records of one commit are equal if they were made on one day: dates are compared. What differs
between them has a word in its place (`Masks`): moments of the recording itself, measured durations,
and hashes of what has such a thing in it. A moment of another time stays, and so does the hash of
what stays.

The roles are served by the checkout that this script lies in, whichever checkout is recorded: so
both get the same answers to the same requests, and what differs is the checkout's doing. (The rules
of the recorded checkout are compared all the same, in the runs of the demo.) Hence make both
records with the same script. Requests are recorded in `served`, with what was answered.

With `--cassettes`, those of an older record are replayed too, where that record replayed them, and
`compare OLDER FOLDER` compares these replays, and the bytes of their datasets and of report.json.
"""

import argparse
import difflib
import fcntl
import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

WORK: Final = Path("/tmp/coreeval-outputs")
"""Where commands run: always the same folder, because some outputs name it."""
SCRIPT_CHECKOUT: Final = Path(__file__).resolve().parents[1]
"""Whose code serves the roles."""
SERVED, FAULTY, VIEWED = 18555, 18556, 18557
"""Ports, always the same, because configs name them."""
TASKS = ("emotion", "irony", "stance", "mrpc", "rte")
WAIT_S = 600.0
PARTS = ("coreeval", "examples", "benchmarks", "tests")
MODIFIED_AT: Final = 1_767_225_600
"""When each file of the checkout was modified, as it seems: news is known by it."""
NOT_RECORDED = (".venv", "__pycache__", "code", "home", "news-cache")
NOT_RECORDED_SUFFIXES = ("-shm", "-wal")
UNORDERED = ("answers.jsonl",)
"""Files whose lines are in the order of time, and some calls are made at one time."""
SKIPPED_COLUMNS = re.compile(
    r"(^|_)(at|seconds|s|ms|started|ended|time|first_sent|pid|beat|rowid|version)$"
    r"|^(checksum|pulse)$"
)
"""Columns of databases that hold times, hashes of rows that hold times, and progress."""
OLDER, BYTES, ABOUT = "older_replays", "replayed.sha256", "record.json"
"""Of a record: replays of an older record's cassettes; hashes of what replays made, with the moment
at which they started taken out; what is masked."""


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("checkout", type=Path)
    recording.add_argument("folder", type=Path)
    recording.add_argument("--cassettes", type=Path, help="replay those of this record too")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--lines", type=int, default=6, help="of each difference")
    chosen = parser.parse_args()
    if chosen.command == "record":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped
        older = chosen.cassettes.resolve() if chosen.cassettes else None
        with hold_lock():
            record(chosen.checkout.resolve(), chosen.folder.resolve(), older)
    else:
        sys.exit(compare(chosen.before, chosen.after, chosen.lines))


@contextmanager
def hold_lock() -> Iterator[None]:
    """Refuse to make a record while another is being made, or what it started still runs."""
    with WORK.with_suffix(".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another record is being made")
        for port in (SERVED, FAULTY, VIEWED):
            if is_open(port):
                sys.exit(f"something listens on port {port}: a server that an older record left?")
        yield


# -- what may differ --------------------------------------------------------------------------

MOMENT = re.compile(
    r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)[T _-]?([0-2]\d):?([0-5]\d)"
    r"(?::?([0-5]\d)(?:\.\d+)?)?(?!\d)(?:\+00:00|Z| UTC)?",
    re.IGNORECASE,
)
EPOCH = re.compile(r"(?<![\d.])(1[78]\d{8})(?:\.\d+|\d{3}|\d{6}|\d{9})?(?!\d)")
SLACK_S = 120.0
SPAN: Final = r"\d+(?:\.\d+)? (?:ms|s|min|minutes|h|hours|days)"
STAGE: Final = (
    r"(?:\w+: )?(?:plan|refresh|control|reword|assemble|evaluate|pcr|numleak|report|sync|compact)"
)
FIGURE: Final = (
    rf"(?:(?:: |; |, )(?:[\d.]+/min|{SPAN} left|\d+ in flight|slowest: \w+ [\d.e-]+ s"
    r"|[\d.e-]+(?: of [\d.]+)? USD|\d+ answers of unknown price))"
)
MEASURED: Final[Sequence[tuple[str, str]]] = (
    # progress: lines that came because time had passed, and figures of that moment
    (rf"(?m)^{STAGE} (?!0/)(\d+)/(?!\1\b)\d+: .*\n", ""),
    (rf"(?m)^({STAGE}\b.*?){FIGURE}+$", r"\1"),
    (rf"\bafter {SPAN}, took {SPAN}", "after SPAN, took SPAN"),
    (rf"\bin {SPAN}\b", "in SPAN"),
    (rf"(?<=· ){SPAN}(?= ·)|(?<=>){SPAN}(?=<)|(?<=\(){SPAN}(?=\))", "SPAN"),
    (r'("(?:seconds|elapsed|duration|pid|per_minute|idle_s|left_s|age_s)": ?)[-0-9.e+]+',
     r"\1MEASURED"),
    (r"\bpid \d+", "pid N"),
    # bars of the viewer that are as long as a step took
    (r'(<rect class="\w*" )x="[\d.]+%" width="[\d.]+%" y="1"', r"\1"),
    (r'(>SPAN</td><td class="share"><svg[^>]*><rect class="\w*" )width="[\d.]+%"', r"\1"),
    (r"\b[\w/.]+\.py:\d+", "SOURCE"),
)  # fmt: skip
"""What is measured or names the process, and where code lies."""
SUM: Final = re.compile(r'(?<=usd": )\d+\.\d{12,}')
"""A sum of prices, whose last digit depends on the order."""
SLOWEST_FIRST: Final = re.compile(r"(?m)(?:^ +<tr><td title=.*>SPAN<.*\n)+")
"""Rows of a table of the viewer that are sorted by what was measured."""


class Masks:
    """Puts a word in place of what may differ between two records of one commit.

    Args:
        spans: From when to when records were made, as seconds since 1970: moments in them go.
        known: Words for values that are known to differ: hashes of code, of times, and the like.
    """

    def __init__(self, spans: Sequence[Sequence[float]], known: Mapping[str, str]) -> None:
        self.spans = [tuple(span) for span in spans]
        self.known = dict(known)
        listed = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
        self._known = re.compile(rf"(?<![0-9a-f])(?:{listed})(?![0-9a-f])") if known else None

    def __call__(self, text: str) -> str:
        """Return a text without what may differ."""
        if self._known:
            text = self._known.sub(lambda found: self.known[found[0]], text)
        text = MOMENT.sub(self._mask_moment, text)
        text = EPOCH.sub(self._mask_epoch, text)
        for pattern, word in MEASURED:
            text = re.sub(pattern, word, text)
        text = SUM.sub(lambda found: f"{float(found[0]):.10g}", text)
        return SLOWEST_FIRST.sub(lambda found: "".join(sorted(found[0].splitlines(True))), text)

    def _mask_moment(self, found: re.Match[str]) -> str:
        parts = [int(part or 0) for part in found.groups()]
        try:
            moment = datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]
        except ValueError:
            return found[0]
        return "TIME" if self._covers(moment.timestamp()) else found[0]

    def _mask_epoch(self, found: re.Match[str]) -> str:
        return "EPOCH" if self._covers(float(found[1])) else found[0]

    def _covers(self, moment: float) -> bool:
        return any(first - SLACK_S <= moment <= last + SLACK_S for first, last in self.spans)


def learn_masks(began: float) -> Masks:
    """Return the masks of the record that was made in the workspace.

    The hash of a file is masked where something in the file is, be it another file's hash.
    """
    masks = Masks([(began, time.time())], dict(find_hashes()))
    files = [(path, as_text(path)) for path in recorded_files() if not is_database(path)]
    texts = [(path, text, hashlib.sha256(path.read_bytes()).hexdigest()) for path, text in files]
    while True:
        found = {digest: f"SHA256({path.name})" for path, text, digest in texts
                 if digest not in masks.known and masks(text) != text}  # fmt: skip
        if not found:
            return masks
        masks = Masks(masks.spans, masks.known | found)


def find_hashes() -> Iterator[tuple[str, str]]:
    """Yield hashes of news, of `coreeval/tools/gdelt` too, and of cassettes, which hold times.

    How many bytes a cassette has depends on its times too, as it is compressed.
    """
    for path in WORK.glob("*.cassette"):
        yield f'"bytes": {path.stat().st_size}', '"bytes": SIZE'
    for path in WORK.rglob("gdelt/*/store.db"):
        yield path.parent.name, "NEWS-STORE"
    for path in WORK.rglob("store.db"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            for (fingerprint,) in connection.execute("SELECT fingerprint FROM parts"):
                yield fingerprint, "NEWS-PART"
    for path in WORK.rglob("manifest.json"):
        manifest = json.loads(path.read_bytes())
        if manifest.get("cassette"):
            yield manifest["cassette"], "CASSETTE"
        knowledge = manifest.get("fingerprints", {}).get("knowledge", "")
        if match := re.fullmatch(r"local:([0-9a-f]{16})", knowledge):
            yield match[1], "NEWS-INDEX"


# -- recording --------------------------------------------------------------------------------


class Recorder:
    """Runs commands of one checkout and keeps what they print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: Counter[str] = Counter()
        self.hollow = list[str]()
        """Runs that have nothing in them that is worth comparing."""

    def __call__(self, *arguments: str | Path) -> str:
        """Run a command to its end; return what it printed."""
        words = [str(each) for each in arguments]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "coreeval", *words],
            cwd=WORK, env=environment(), capture_output=True, text=True,
            timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        name = re.sub(r"[^a-z0-9]+", "_", " ".join(words).lower()).strip("_")[:150]
        self.names[name] += 1
        name += f"_{self.names[name]}" if self.names[name] > 1 else ""
        said = f"$ {' '.join(words)}\nexit {done.returncode}\n{done.stdout}\n--\n{done.stderr}"
        write(self.folder / "printed" / f"{name}.txt", said)
        print(f"{time.perf_counter() - began:6.1f} s  {done.returncode}  {' '.join(words)}")
        return done.stdout

    def twice(self, *arguments: str | Path) -> str:
        """Run a command that changes nothing, for people and for programs."""
        self(*arguments)
        return self(*arguments, "--json")


def environment(code: Path = WORK / "code") -> dict[str, str]:
    """Return what commands find in their environment: nothing of this machine's settings."""
    home = WORK / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(code),
        "OPENAI_API_KEY": "sk-not-a-key",
        "COLUMNS": "120",
        "PYTHONHASHSEED": "0",
    }


def record(checkout: Path, folder: Path, older: Path | None) -> None:
    """Run every scenario with a checkout and write its record into a folder."""
    began = time.time()
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    copy_checkout(checkout)
    run = Recorder(folder)
    look_around(run)
    run_demo(run)
    for task in TASKS:
        refresh_over_http(run, task)
    publish(run)
    detect(run)
    view(folder)
    masks = learn_masks(began)
    finish(folder, masks)
    for file in WORK.glob("*.cassette"):
        shutil.copy(file, folder)
    if older:
        replay_older(older, folder / OLDER, masks)
    if run.hollow:
        sys.exit("hollow: " + "; ".join(run.hollow))


def copy_checkout(checkout: Path) -> None:
    """Copy a checkout's code into the workspace, its files modified at one time."""
    for part in PARTS:
        shutil.copytree(checkout / part, WORK / "code" / part, ignore=ignore_caches)
    for path in (WORK / "code").rglob("*"):
        os.utime(path, (MODIFIED_AT, MODIFIED_AT))


def finish(folder: Path, masks: Masks) -> None:
    """Mask what was printed, and keep the files of the workspace."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text, target = path.read_text("utf-8"), path.with_name(masks(path.name))
        path.unlink()
        write(free_name(target), masks(text))
    keep_files(folder, masks)
    about = {"spans": masks.spans, "known": masks.known}
    (folder / ABOUT).write_text(json.dumps(about, indent=1), "utf-8")


def replay_older(older: Path, folder: Path, masks: Masks) -> None:
    """Replay an older record's cassettes where that record replayed them."""
    for path in WORK.iterdir():
        if path.name not in NOT_RECORDED:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    run, began = Recorder(folder), time.time()
    for task in TASKS:
        shutil.copy(older / f"{task}.cassette", WORK)
        replay_cassette(run, task)
        (WORK / f"{task}.cassette").unlink()
    about = json.loads((older / ABOUT).read_bytes())
    spans = [*about["spans"], (began, time.time())]
    finish(folder, Masks(spans, masks.known | about["known"]))


def ignore_caches(_folder: str, names: list[str]) -> list[str]:
    """Return what of a folder is not copied."""
    return [name for name in names if name == "__pycache__"]


def look_around(run: Recorder) -> None:
    """Record helps, prompts and what a new user types first."""
    listed = run("--help")
    for command in re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE):
        helped = run(command, "--help")
        _, _, below = helped.partition("Commands:")
        for inner in re.findall(r"^  ([a-z]+)  ", below, re.MULTILINE):
            run(command, inner, "--help")
    run.twice("prompts", "list")
    run("init", "new")
    run("validate", "new/coreeval.yaml")
    run("validate", "absent.yaml", "--json")
    run("gate", "--print-config")


def run_demo(run: Recorder) -> None:
    """Record the demo, what its runs say of themselves, and what can be made of one."""
    run("demo")
    run("demo", "--dir", "second", "--json")
    for config in sorted((WORK / "coreeval-demo").glob("*.yaml")):
        run.twice("validate", config.relative_to(WORK))
        run.twice("estimate", config.relative_to(WORK))
    for place in run_folders("coreeval-demo"):
        run.twice("status", place)
        run.twice("trace", place)
        for sample in samples(run, place)[:4]:
            run("trace", place, sample)
            run("trace", place, sample, "--calls", "--json")


def run_folders(*parents: str) -> list[Path]:
    """Return the folders of runs below some folders of the workspace, by time."""
    found = [path.parent.relative_to(WORK) for parent in parents
             for path in (WORK / parent).rglob("manifest.json")
             if (path.parent / "run.db").exists()]  # fmt: skip
    return sorted(found, key=str)


def samples(run: Recorder, place: Path) -> list[str]:
    """Return the ids of a run's samples, an outcome's first of each first."""
    listed = json.loads(run("trace", place, "--json"))["samples"]
    firsts = {one["outcome"]: one["sample"] for one in reversed(listed)}
    chosen = list(firsts.values())
    return chosen + [one["sample"] for one in listed if one["sample"] not in chosen]


def refresh_over_http(run: Recorder, task: str) -> None:
    """Refresh a task through a faulty server, with a control arm; make a cassette and replay it."""
    offline = WORK / "coreeval-demo" / f"{task}.yaml"
    config = yaml.safe_load(offline.read_text("utf-8"))
    model = {"model": "openai:offline-roles", "base_url": f"http://127.0.0.1:{FAULTY}/v1",
             "price": {"input": 1.0, "output": 2.0}}  # fmt: skip
    config["models"]["default"] = model
    config |= {"name": f"served-{task}", "run": {"concurrency": 1, "budget_usd": 5.0}}
    if task == "emotion":
        config["models"]["targets"] = [{"model": "offline:classifier", "cutoff": "2025-09"}]
        config["knowledge"]["window"] = {"start": "2025-10-01", "end": "2026-10-01"}
        config["run"]["control_window"] = {"start": "2025-08-01", "end": "2025-10-01"}
    (WORK / f"{task}.yaml").write_text(yaml.safe_dump(config), "utf-8")
    with serve_roles(task), serve_faults(run.folder / "served" / f"{task}.txt") as answered:
        run("refresh", f"{task}.yaml", "--run-dir", f"served/{task}", "--json")
        run("resume", f"served/{task}", "--json")
        run("retry", f"served/{task}")
    run.hollow += find_hollow(task, answered)
    run.twice("status", f"served/{task}")
    run("trace", f"served/{task}", "--jsonl", f"{task}-stories.jsonl")
    run("cassette", "export", f"served/{task}", "--out", f"{task}.cassette", "--texts", "--json")
    run.twice("cassette", "show", f"{task}.cassette")
    replay_cassette(run, task)
    run("evaluate", f"served/{task}", "--target", "offline:reference-1", "--json")


def replay_cassette(run: Recorder, task: str) -> None:
    """Record the replay of a task's cassette."""
    run("cassette", "replay", f"{task}.cassette", "--out", f"replayed/{task}")


def find_hollow(task: str, answered: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield why a served run has nothing in it that is worth comparing."""
    statuses = Counter(one["status"] for one in answered)
    manifest = json.loads((WORK / "served" / task / "manifest.json").read_bytes())
    if statuses[400]:
        yield f"{task}: the roles refused {statuses[400]} requests"
    if not (statuses[429] and statuses[500]):
        yield f"{task}: nothing was sent again"
    if not manifest["counts"]["accepted"]:
        yield f"{task}: nothing was accepted"
    if task == "emotion" and not manifest["arms"]["control"]:
        yield f"{task}: there is no control arm"


def publish(run: Recorder) -> None:
    """Record a release, its exports, and everything else that is made of a run."""
    place = "served/mrpc"
    run("release", place, "--version", "1", "--out", "r1", "--parent", "none")
    run("release", "served/mrpc", "--version", "2", "--out", "r2", "--parent", "r1", "--json")
    for release in ("r1", "r2"):
        run.twice("verify", release)
    run.twice("diff", "r1", "r2")
    run("diff", "served/mrpc", "served/mrpc", "--page", "diff.html")
    run.twice("gate", "r2")
    run("gate", "r2", "--junit", "gate.xml", "--summary", "gate.md")
    for to in ("hf", "lm-eval", "inspect", "junit", "csv", "spreadsheet", "jsonl"):
        run("export", "r1", "--to", to, "--out", f"exported/{to}", "--json")
    run.twice("review", place)
    run("review", place, "--csv", "review.csv", "--html", "review.html")
    run("annotate", "export", place, "--out", "sheets", "--samples", "6", "--json")
    run("annotate", "score", place, "sheets", "--json")
    run.twice("calls", "stats")
    run("calls", "export", "--model", "openai:offline-roles", "--out", "answers.jsonl", "--json")
    with serve_roles("mrpc"), serve_faults(run.folder / "served" / "followed.txt"):
        run("refresh", "mrpc.yaml", "--from", "r2", "--run-dir", "served/followed", "--json")
    news = WORK / "code" / "examples" / "demo" / "news"
    run("gdelt", "sync", "--from", news, "--store", "store", "--json")
    run.twice("gdelt", "coverage", "--store", "store")
    span = ("--start", "2025-08-01", "--end", "2026-10-01", "--store", "store")
    for name in ("Gold", "India", "nobody at all"):
        run.twice("gdelt", "query", name, *span)
    run("prompts", "show", "mrpc.yaml", "--role", "composer")
    run("prompts", "try", "coreeval-demo/mrpc.yaml", "--role", "extraction", "--json")
    scheduled = yaml.safe_load((WORK / "coreeval-demo" / "rte.yaml").read_text("utf-8"))
    scheduled["schedule"] = {"cron": "0 6 * * 1"}
    (WORK / "scheduled.yaml").write_text(yaml.safe_dump(scheduled), "utf-8")
    run("schedule", "due", "scheduled.yaml", "--explain")
    run("schedule", "due", "scheduled.yaml", "--json")


def detect(run: Recorder) -> None:
    """Record the detectors on recorded answers."""
    write_pairs()
    by = ("--metric", "exact_match", "--consistency", "exact", "--draws", "300")
    run.twice("detect", "pcr", "--pairs", "clean.jsonl", "--pairs", "tuned.jsonl", *by)
    references = [part for n in range(5) for part in ("--reference", f"reference-{n}.jsonl")]
    run.twice("detect", "pcr", "--pairs", "tuned.jsonl", *references, *by, "--ablation")
    said = sorted(WORK.rglob("responses.jsonl"), key=str) + sorted(WORK.rglob("numleak/*.jsonl"))
    numbers = WORK / "code" / "examples" / "demo" / "synthetic_numbers" / "series.yaml"
    for file in said[:2]:
        asked = ("--responses", file, "--series", numbers, "--draws", "200")
        run.twice("detect", "numleak", *asked)
        run("detect", "numleak", *asked, "--page", "numleak.html")
    run.twice("detect", "overlap", "coreeval-demo/mrpc.yaml")
    run("detect", "overlap", "coreeval-demo/emotion.yaml", "coreeval-demo/irony.yaml",
        "--csv", "overlap.csv", "--page", "overlap.html")  # fmt: skip


def write_pairs() -> None:
    """Write recorded pairs of answers: a clean model, a tuned one, and five references."""
    hits = {"clean": (40, 40), "tuned": (95, 40)}
    hits |= {f"reference-{n}": (36 + 4 * n, 35 + 4 * n) for n in range(5)}
    for name, shares in hits.items():
        with (WORK / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for split, right in zip(("train", "test"), shares, strict=True):
                for n in range(100):
                    gold, wrong = f"answer {n % 7}", f"other {n % 5}"
                    dealt = (n * 37 + 11) % 100
                    said = gold if dealt < right else wrong
                    again = said if (n * 53 + 29) % 100 < 85 else f"other {n % 3}"
                    row = {"id": f"{split}-{n}", "split": split, "reference": gold,
                           "original_output": said, "modified_output": again}  # fmt: skip
                    file.write(json.dumps(row) + "\n")


def view(folder: Path) -> None:
    """Record the pages of the viewer."""
    command = [sys.executable, "-m", "coreeval", "view", *map(str, run_folders("served")),
               "--port", str(VIEWED), "--no-browser"]  # fmt: skip
    server = subprocess.Popen(command, cwd=WORK, env=environment(), stdout=subprocess.DEVNULL)
    try:
        wait_for(VIEWED)
        seen, left = set[str](), ["/"]
        while left and len(seen) < 60:
            path = left.pop(0)
            seen.add(path)
            page = fetch(f"http://127.0.0.1:{VIEWED}{path}")
            write(folder / "pages" / (re.sub(r"\W+", "_", path).strip("_") + ".html"), page)
            found = re.findall(r'href="(/[^"#]*)"', page)
            links = [link for link in found if "sort=seconds" not in link]
            left += [link for link in dict.fromkeys(links) if link not in seen and link not in left]
    finally:
        server.terminate()
        server.wait()


@contextmanager
def serve_roles(task: str) -> Iterator[None]:
    """Serve a task's offline roles over OpenAI's protocol, from this script's own checkout.

    More news is looked at than a run is shown, so that what is shown for part of the time is known.
    """
    config = yaml.safe_load((WORK / "coreeval-demo" / f"{task}.yaml").read_text("utf-8"))
    config["knowledge"]["candidates"] = 100
    file, log = WORK / "home" / f"{task}-roles.yaml", WORK / f"{task}-roles.log"
    file.write_text(yaml.safe_dump(config), "utf-8")
    command = [sys.executable, "-m", "tests.support.offline_server", "--config", str(file),
               "--port", str(SERVED), "--cache", str(WORK / "news-cache")]  # fmt: skip
    with log.open("ab") as errors:
        server = subprocess.Popen(command, cwd=SCRIPT_CHECKOUT, env=environment(SCRIPT_CHECKOUT),
                                  stdout=subprocess.PIPE, stderr=errors)  # fmt: skip
    try:
        assert server.stdout
        if not server.stdout.readline():
            sys.exit(f"the roles of {task} are not served:\n{log.read_text('utf-8')}")
        yield
    finally:
        server.kill()
        server.wait()


@contextmanager
def serve_faults(file: Path) -> Iterator[list[dict[str, Any]]]:
    """Stand before that server and fail some first requests, always the same: by their messages.

    Yields what was asked and answered; at the end it is written into a file, sorted.
    """
    asked, answered = set[str](), list[dict[str, Any]]()

    class Faulty(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(body)
            said = json.dumps(request["messages"], sort_keys=True)
            digest = hashlib.sha256(said.encode()).hexdigest()
            fault = int(digest[:8], 16) % 12 if digest not in asked else 99
            asked.add(digest)
            if fault == 0:
                status, reply = 429, b'{"error": {"message": "slow down"}}'
            elif fault == 1:
                status, reply = 500, b'{"error": {"message": "oops"}}'
            else:
                status, reply = forward(self.path, body, broken=fault == 2)
            answer = json.loads(reply)
            answered.append({"status": status, "request": request, "answer": answer})
            self.answer(status, reply, {"Retry-After": "0"} if status == 429 else {})

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", FAULTY), Faulty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield answered
    finally:
        server.shutdown()
        server.server_close()
        write(file, "\n".join(sorted(json.dumps(one, sort_keys=True) for one in answered)))


def forward(path: str, body: bytes, *, broken: bool) -> tuple[int, bytes]:
    """Return what the offline roles answer; half of it where the answer is to be broken."""
    url = f"http://127.0.0.1:{SERVED}{path}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            status, said = response.status, response.read()
    except urllib.error.HTTPError as error:
        status, said = error.code, error.read()
    if broken and status == 200:
        document = json.loads(said)
        message = document["choices"][0]["message"]
        message["content"] = (message.get("content") or "")[:20]
        said = json.dumps(document).encode()
    return status, said


def wait_for(port: int) -> None:
    """Wait until something listens on a port."""
    for _ in range(600):
        if is_open(port):
            return
        time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def is_open(port: int) -> bool:
    """Does something listen on a port of this machine?"""
    with closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def fetch(url: str) -> str:
    """Return a page, or the status and page of an error."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


# -- files as text ----------------------------------------------------------------------------


def recorded_files() -> list[Path]:
    """Return the files of the workspace that are recorded."""
    return [path for path in sorted(WORK.rglob("*"))
            if path.is_file() and not path.name.endswith(NOT_RECORDED_SUFFIXES)
            and not set(path.relative_to(WORK).parts) & set(NOT_RECORDED)]  # fmt: skip


def keep_files(folder: Path, masks: Masks) -> None:
    """Write every file that the commands left into a record, as text."""
    digests = list[str]()
    for path in recorded_files():
        name = path.relative_to(WORK).as_posix()
        write(free_name(folder / "files" / f"{masks(name)}.txt"), masks(as_text(path, masks)))
        if found := re.fullmatch(r"(replayed/\w+)/(?:dataset/.*|report\.json)", name):
            manifest = json.loads((WORK / found[1] / "manifest.json").read_bytes())
            raw = path.read_bytes().replace(manifest["created_at"].encode(), b"STARTED")
            digests.append(f"{hashlib.sha256(raw).hexdigest()}  {name}\n")
    write(folder / BYTES, "".join(digests))


def free_name(path: Path) -> Path:
    """Return a path, with a number where it is taken: once masked, two names may be the same."""
    taken, number = path, 1
    while path.exists():
        number += 1
        path = taken.with_stem(f"{taken.stem}_{number}")
    return path


def write(path: Path, text: str) -> None:
    """Write a text, in a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def is_database(path: Path) -> bool:
    """Is a file a database of SQLite?"""
    return path.suffix in (".db", ".sqlite")


def as_text(path: Path, masks: Callable[[str], str] = str) -> str:
    """Return a file in a form that people can compare; rows are masked and sorted."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        rows = (json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())
        return f"{table.schema.to_string()}\n" + "\n".join(sorted(map(masks, rows)))
    if is_database(path):
        return "\n".join(tables(path, masks))
    raw = path.read_bytes()
    if raw[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(path) as archive:
            parts = [(one, archive.read(one)) for one in sorted(archive.namelist())]
        return "\n".join(f"== {name}\n{decode(part)}" for name, part in parts)
    if raw[:2] == b"\x1f\x8b" and tarfile.is_tarfile(path):
        return "a tar archive"
    if raw[:2] == b"\x1f\x8b":
        return decode(gzip.decompress(raw))
    if path.name in UNORDERED:
        return "\n".join(sorted(decode(raw).splitlines()))
    return decode(raw)


def decode(raw: bytes) -> str:
    """Return bytes as text, or their number and digest where they are none."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()}"


def tables(path: Path, masks: Callable[[str], str]) -> Iterator[str]:
    """Yield the schema and the rows of a database, sorted; columns of times are left out."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        named = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        for name, sql in named:
            yield f"-- {sql}"
            if not (sql or "").upper().startswith("CREATE TABLE"):
                continue
            rows = connection.execute(f'SELECT * FROM "{name}"')
            kept = [n for n, column in enumerate(rows.description)
                    if not SKIPPED_COLUMNS.search(column[0])]  # fmt: skip
            yield f"-- {name}: {', '.join(rows.description[n][0] for n in kept)}"
            yield from sorted(masks(" | ".join(cell(row[n]) for n in kept)) for row in rows)


def cell(value: object) -> str:
    """Return a value of a database as text."""
    if isinstance(value, bytes):
        with suppress(zlib.error):
            return decode(zlib.decompress(value, wbits=47))  # of zlib or gzip
        return decode(value.removeprefix(b"\0"))
    return repr(value)


# -- comparing --------------------------------------------------------------------------------


def compare(before: Path, after: Path, most: int) -> int:
    """Print how two records differ; return 1 where they do."""
    differing = compare_texts(texts(before), texts(after), most)
    if (after / OLDER).exists():
        print(f"\nreplays of the cassettes of {before}:")
        replays = texts(after / OLDER)
        recorded = {name: path for name, path in texts(before).items() if is_of_replay(name)}
        bytes_before, bytes_after = before / BYTES, after / OLDER / BYTES
        differing += compare_texts(
            recorded | {BYTES: bytes_before}, replays | {BYTES: bytes_after}, most
        )
    return int(differing > 0)


def is_of_replay(name: str) -> bool:
    """Is an output one of replaying a cassette?"""
    return bool(re.match(r"files/replayed/|printed/cassette_replay_\w+_cassette_", name))


def compare_texts(first: Mapping[str, Path], second: Mapping[str, Path], most: int) -> int:
    """Print how outputs differ; return how many do."""
    differing = 0
    for name in sorted({*first, *second}):
        if name not in first or name not in second:
            print(f"only {'after' if name not in first else 'before'}: {name}")
            differing += 1
        elif first[name].read_bytes() != second[name].read_bytes():
            differing += 1
            print(f"differs: {name}")
            lines = difflib.unified_diff(
                first[name].read_text("utf-8").splitlines(),
                second[name].read_text("utf-8").splitlines(),
                lineterm="", n=0,
            )  # fmt: skip
            for number, line in enumerate(lines):
                if number >= 3 + most:
                    break
                if number >= 2:
                    print(f"    {line[:300]}")
    print(f"{len(first)} and {len(second)} outputs, {differing} differ")
    return differing


def texts(folder: Path) -> dict[str, Path]:
    """Return the texts of a record by their names, without replays of an older record's."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    kept = {name: path for name, path in found.items() if path.suffix != ".cassette"}
    return {str(name): path for name, path in kept.items()
            if name.parts[0] not in (OLDER, BYTES, ABOUT)}  # fmt: skip


if __name__ == "__main__":
    main()
