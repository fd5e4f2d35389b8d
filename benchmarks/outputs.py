"""Record every output of a checkout, and compare two records: the net under a restructuring.

    python -m benchmarks.outputs record CHECKOUT FOLDER
    python -m benchmarks.outputs compare BEFORE AFTER

A record holds what the commands print, as text and as JSON, and every file that they leave, in a
form that people can compare: databases and Parquet files as rows, compressed files as text. Nothing
of CoreEval is imported here, so that one script serves both checkouts. What may differ is in
`VARYING`: times, and the names of folders that carry one.
"""

import argparse
import difflib
import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
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
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

WORK: Final = Path("/tmp/coreeval-outputs")
"""Where commands run: always the same folder, because some outputs name it."""
SERVED, FAULTY, VIEWED = 18555, 18556, 18557
"""Ports, always the same, because configs name them."""
TASKS = ("emotion", "irony", "stance", "mrpc", "rte")
WAIT_S = 600.0
PARTS = ("coreeval", "examples", "benchmarks", "tests")
TODAY: Final = r"20\d\d-\d\d-\d\d"
VARYING: Final[Sequence[tuple[str, str]]] = (
    (rf"{TODAY}[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z| UTC)?", "TIME"),
    (r"\b20\d{6}-?T?\d{6}(-[0-9a-f]{2,12})?(?!\d)", "STAMP"),
    (r"\b1[78]\d{8}(\.\d+)?\b", "EPOCH"),
    (r"\b\d+(\.\d+)? ?(ms|s|seconds|minutes|min)\b", "SPAN"),
    (r"\b\d+\.\d+/min\b", "SPEED"),
    (r'("(?:[a-z_]*seconds|[a-z_]*_s|[a-z_]*_ms|elapsed|duration|wall|pid|rate|rss|mtime)": )'
     r"[-0-9.e+]+", r"\1SPAN"),
    (r"\bpid \d+", "pid N"),
)  # fmt: skip
"""What may differ between two records: times and durations, and what is named by them."""
NOT_RECORDED = (".venv", "__pycache__", "code", "home", "news-cache")
SKIPPED_COLUMNS = re.compile(
    r"(^|_)(at|seconds|s|ms|started|ended|time|first_sent|pid|beat|rowid|version)$"
)


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
        record(chosen.checkout.resolve(), chosen.folder.resolve(), chosen.cassettes)
    else:
        sys.exit(compare(chosen.before, chosen.after, chosen.lines))


# -- recording --------------------------------------------------------------------------------


class Recorder:
    """Runs commands of one checkout and keeps what they print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def __call__(self, *arguments: str | Path) -> str:
        """Run a command to its end; return what it printed."""
        words = [str(each) for each in arguments]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "coreeval", *words],
            cwd=WORK, env=environment(), capture_output=True, text=True,
            timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.number += 1
        name = re.sub(r"[^a-z0-9]+", "_", " ".join(words).lower()).strip("_")[:90]
        said = f"$ {' '.join(words)}\nexit {done.returncode}\n{done.stdout}\n--\n{done.stderr}"
        write(self.folder / "printed" / f"{self.number:03}_{name}.txt", said)
        print(f"{time.perf_counter() - began:6.1f} s  {done.returncode}  {' '.join(words)}")
        return done.stdout

    def twice(self, *arguments: str | Path) -> str:
        """Run a command that changes nothing, for people and for programs."""
        self(*arguments)
        return self(*arguments, "--json")


def environment() -> dict[str, str]:
    """Return what commands find in their environment: nothing of this machine's settings."""
    home = WORK / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(WORK / "code"),
        "OPENAI_API_KEY": "sk-not-a-key",
        "COLUMNS": "120",
        "PYTHONHASHSEED": "0",
    }


def record(checkout: Path, folder: Path, cassettes: Path | None) -> None:
    """Run every scenario with a checkout and write its record into a folder."""
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    (WORK / "code").mkdir(parents=True)
    for part in PARTS:
        shutil.copytree(checkout / part, WORK / "code" / part, ignore=ignore_caches)
    run = Recorder(folder)
    look_around(run)
    run_demo(run)
    for task in TASKS:
        refresh_over_http(run, task)
    publish(run)
    detect(run)
    view(folder)
    if cassettes:
        for file in sorted(cassettes.glob("*.cassette")):
            run("cassette", "replay", file, "--out", f"old-{file.stem}", "--json")
    keep_files(folder)
    for file in WORK.glob("*.cassette"):
        shutil.copy(file, folder)


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
    config |= {"name": f"served-{task}", "run": {"concurrency": 4, "budget_usd": 5.0}}
    if task == "emotion":
        config["models"]["targets"] = [{"model": "offline:classifier", "cutoff": "2026-02"}]
        config["knowledge"]["window"] = {"start": "2026-03-01", "end": "2026-10-01"}
        config["run"]["control_window"] = {"start": "2025-08-01", "end": "2026-03-01"}
    (WORK / f"{task}.yaml").write_text(yaml.safe_dump(config), "utf-8")
    with serve_roles(offline), serve_faults():
        run("refresh", f"{task}.yaml", "--run-dir", f"served/{task}", "--json")
        run("resume", f"served/{task}", "--json")
        run("retry", f"served/{task}")
    run.twice("status", f"served/{task}")
    run("trace", f"served/{task}", "--jsonl", f"{task}-stories.jsonl")
    run("cassette", "export", f"served/{task}", "--out", f"{task}.cassette", "--texts", "--json")
    run.twice("cassette", "show", f"{task}.cassette")
    run("cassette", "replay", f"{task}.cassette", "--out", f"replayed/{task}")
    run("evaluate", f"served/{task}", "--target", "offline:reference-1", "--json")


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
            links = re.findall(r'href="(/[^"#]*)"', page)
            left += [link for link in dict.fromkeys(links) if link not in seen and link not in left]
    finally:
        server.terminate()
        server.wait()


@contextmanager
def serve_roles(config: Path) -> Iterator[None]:
    """Serve the offline roles over OpenAI's protocol."""
    command = [sys.executable, "-m", "tests.support.offline_server", "--config", str(config),
               "--port", str(SERVED), "--cache", str(WORK / "news-cache")]  # fmt: skip
    server = subprocess.Popen(command, cwd=WORK / "code", env=environment(), stdout=subprocess.PIPE)
    try:
        assert server.stdout
        server.stdout.readline()
        yield
    finally:
        server.kill()
        server.wait()


@contextmanager
def serve_faults() -> Iterator[None]:
    """Stand before that server and fail some first requests, always the same: by their bodies."""
    asked = set[str]()

    class Faulty(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            digest = hashlib.sha256(body).hexdigest()
            fault = int(digest[:8], 16) % 12 if digest not in asked else 99
            asked.add(digest)
            if fault == 0:
                self.answer(429, b'{"error": {"message": "slow down"}}', {"Retry-After": "0"})
            elif fault == 1:
                self.answer(500, b'{"error": {"message": "oops"}}', {})
            else:
                self.answer(*forward(self.path, body, broken=fault == 2))

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
        yield
    finally:
        server.shutdown()
        server.server_close()


def forward(path: str, body: bytes, *, broken: bool) -> tuple[int, bytes, dict[str, str]]:
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
    return status, said, {}


def wait_for(port: int) -> None:
    """Wait until something listens on a port."""
    for _ in range(600):
        with closing(socket.socket()) as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def fetch(url: str) -> str:
    """Return a page, or the status and page of an error."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


# -- files as text ----------------------------------------------------------------------------


def keep_files(folder: Path) -> None:
    """Write every file that the commands left into a record, as text."""
    for path in sorted(WORK.rglob("*")):
        parts = path.relative_to(WORK).parts
        if path.is_file() and not set(parts) & set(NOT_RECORDED):
            target = folder / "files" / vary("/".join(parts))
            write(target.with_name(target.name + ".txt"), as_text(path))


def write(path: Path, text: str) -> None:
    """Write a text with what varies taken out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vary(text), "utf-8")


def vary(text: str) -> str:
    """Return a text with a word in place of each thing that may differ between two records."""
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return text


def as_text(path: Path) -> str:
    """Return a file in a form that people can compare."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        rows = sorted(json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())
        return f"{table.schema.to_string()}\n" + "\n".join(rows)
    if path.suffix in (".db", ".sqlite"):
        return "\n".join(tables(path))
    raw = path.read_bytes()
    if raw[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(path) as archive:
            parts = [(one, archive.read(one)) for one in sorted(archive.namelist())]
        return "\n".join(f"== {name}\n{decode(part)}" for name, part in parts)
    if raw[:2] == b"\x1f\x8b" and tarfile.is_tarfile(path):
        return "a tar archive"
    if raw[:2] == b"\x1f\x8b":
        return decode(gzip.decompress(raw))
    return decode(raw)


def decode(raw: bytes) -> str:
    """Return bytes as text, or their number and digest where they are none."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()}"


def tables(path: Path) -> Iterator[str]:
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
            yield from sorted(" | ".join(cell(row[n]) for n in kept) for row in rows)


def cell(value: object) -> str:
    """Return a value of a database as text."""
    if isinstance(value, bytes):
        return decode(gzip.decompress(value)) if value[:2] == b"\x1f\x8b" else decode(value)
    return repr(value)


# -- comparing --------------------------------------------------------------------------------


def compare(before: Path, after: Path, most: int) -> int:
    """Print how two records differ; return 1 where they do."""
    first, second = texts(before), texts(after)
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
    return int(differing > 0)


def texts(folder: Path) -> dict[str, Path]:
    """Return the texts of a record by their names."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".cassette")
    return {str(path.relative_to(folder)): path for path in found}


if __name__ == "__main__":
    main()
