"""The command line on small data, behind a server of our own: begun, killed and given again."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.kills import Lab, outcome
from benchmarks.volume import answered
from coreeval.config import load_config
from coreeval.graph.bundled import write_configs
from coreeval.graph.pool import max_open_samples
from coreeval.tools.workspace import RunFiles, Workspace
from tests.graph.numleak.kit import answer as number_for
from tests.support import worker
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import Answers, LLMServer, Reply, Request

CONCURRENCY: Final = 4
MOST: Final = 2 * max_open_samples(CONCURRENCY)
"""Most calls that a kill may cost: a sample is reworded while its news is looked for."""
LATENCY_S: Final = 0.03
PATIENCE_S: Final = 300.0
LOOK_EVERY_S: Final = 0.002
LEFTOVERS: Final = (".tmp", ".draft", ".part", ".new")
"""Ends of the names of what is being written."""
WORK_FOLDERS: Final = ("downloads", ".work")
Json = dict[str, Any]
PRELOADED: Final = (
    "tests.support.worker",
    "coreeval.graph.run",
    "coreeval.graph.evaluate",
    "coreeval.models.openai",
    "coreeval.evaluation.report.report_document",
    "coreeval.evaluation.numleak.audit",
    "coreeval.releases.create",
    "coreeval.releases.exports.export",
    "coreeval.graph.cassettes.record",
    "coreeval.tools.gdelt.sync.sync",
    "coreeval.tools.gdelt.index.build",
    "pyarrow.parquet",
    "spacy",
)
"""What a process has imported before it is begun: it is killed at work and not at its imports."""
ENVIRONMENT: Final = {"OPENAI_API_KEY": "sk-none", "COREEVAL_HOME": ""}


@dataclass
class Answering:
    """Plays all models that the commands ask; each request body is remembered."""

    roles: Answers
    heard: list[str] = field(default_factory=list)
    before: int = 0
    """Answers that were kept when `heard` was empty."""
    refused: set[str] = field(default_factory=set)
    """Texts: requests that hold one are refused for good."""

    def __call__(self, request: Request) -> Any:  # noqa: ANN401 - text, reply, or one to come
        """Answer a request."""
        said = json.dumps(request, sort_keys=True, ensure_ascii=False)
        self.heard.append(said)
        if any(text in said for text in self.refused):
            return Reply(status=400, error={"message": "no"})
        match request["model"]:
            case "letters":
                return "ABCD"[len(said) % 4]
            case "numbers":
                return number_for(request)
            case _:
                return self.roles(request)


@dataclass(frozen=True)
class Place:
    """A folder that commands work in, and the copy from which it is begun anew."""

    root: Path
    server: LLMServer
    answers: Answering

    @property
    def lab(self) -> Lab:
        """The run in it, as the benchmark of kills has it."""
        return Lab(config=self.config, url=self.server.anthropic_url)

    @property
    def config(self) -> Path:
        """The config of the run."""
        return self.root / "run.yaml"

    @property
    def run(self) -> Path:
        """The run."""
        return self.root / "run"

    @property
    def out(self) -> Path:
        """What the last command said."""
        return self.root.with_name("out.txt")

    @property
    def stored(self) -> int:
        """How many answers are kept."""
        calls = Workspace(self.root / ".coreeval").calls
        try:
            return answered(calls) if calls.exists() else 0
        except sqlite3.OperationalError:  # killed before it had its tables
            return 0

    def keep(self, name: str = "kept") -> None:
        """Let `restore` come back to what is here now."""
        shutil.rmtree(self._copy(name), ignore_errors=True)
        shutil.copytree(self.root, self._copy(name))

    def restore(self, name: str = "kept") -> bool:
        """Begin anew; nothing has been asked yet. False where nothing of this name was kept."""
        if not self._copy(name).exists():
            return False
        shutil.rmtree(self.root)
        shutil.copytree(self._copy(name), self.root)
        self.answers.heard.clear()
        self.answers.before = self.stored
        return True

    def _copy(self, name: str) -> Path:
        return self.root.with_name(f"{self.root.name}.{name}")

    def model(self, name: str = "offline-roles", **more: object) -> Json:
        """Return a model on the server, as configs have it."""
        return {"model": f"openai:{name}", "base_url": self.server.url, **more}

    def write(self, file: str = "run.yaml", **changes: object) -> Path:
        """Write a config of the bundled benchmark, with these keys in place of the usual ones."""
        raw = yaml.safe_load(write_configs(self.root)[0].read_text("utf-8"))
        raw |= {"models": {"default": self.model()}, "run": {"concurrency": CONCURRENCY}}
        path = self.root / file
        path.write_text(yaml.safe_dump({**raw, **changes}), encoding="utf-8")
        return path


@contextmanager
def place(folder: Path, *, latency_s: float = LATENCY_S) -> Iterator[Place]:
    """Give a place with a config, and a server for its models while the block runs."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    root = folder / "place"
    root.mkdir(parents=True)
    config = write_configs(root)[0]
    roles = OfflineAnswers(load_config(config), folder / "answers")
    answers = Answering(roles)
    with LLMServer(answers, latency_s=latency_s).in_thread() as server:
        found = Place(root, server, answers)
        found.write()
        found.keep("fresh")
        yield found


def begin(out: Path, *arguments: str | Path) -> BaseProcess:
    """Start a command in a process that has imported most of the program; `out` gets its words."""
    return worker.start([*map(str, arguments), "--json"], out=out, environment=ENVIRONMENT)


def finish(process: BaseProcess, out: Path, *, well: Sequence[int] = (0,)) -> Json:
    """Wait for a command; return its document.

    Raises:
        RuntimeError: it ended otherwise than well; what it said.
    """
    process.join(PATIENCE_S)
    said = out.read_text("utf-8")
    if process.exitcode not in well:
        process.kill()
        raise RuntimeError(f"exit code {process.exitcode}: {' '.join(said[-900:].split())}")
    return document(said)


def document(said: str) -> Json:
    """Return the document among what a command said."""
    found: Json = json.loads(said[re.search(r"^\{", said, re.MULTILINE).start() :])  # type: ignore[union-attr]
    return found


def run(out: Path, *arguments: str | Path, well: Sequence[int] = (0,)) -> Json:
    """Run a command to its end; return its document."""
    return finish(begin(out, *arguments), out, well=well)


def start(
    out: Path,
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    files: int | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a command as a program of its own, for an environment that must be there before it.

    Args:
        out: Gets its words.
        arguments: Of the command.
        environment: What it finds besides the usual.
        files: Most files that it may have open.
    """
    limited = ["bash", "-c", f'ulimit -n {files}; exec "$@"', "bash"] if files else []
    command = [*limited, sys.executable, "-m", "coreeval", *map(str, arguments), "--json"]
    around = {**os.environ, **ENVIRONMENT, **(environment or {})}
    with out.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=around)


def end(process: "subprocess.Popen[bytes]", out: Path, *, well: Sequence[int] = (0,)) -> Json:
    """Wait for a program; return its document.

    Raises:
        RuntimeError: it ended otherwise than well; what it said.
    """
    code, said = process.wait(PATIENCE_S), out.read_text("utf-8")
    if code not in well:
        raise RuntimeError(f"exit code {code}: {' '.join(said[-900:].split())}")
    return document(said)


def kill(process: BaseProcess) -> bool:
    """Kill a process as the system does it; False where it had ended already."""
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def files_of(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of each file, by its place."""
    found = dict[str, tuple[int, int]]()
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                about = path.stat()
                found[path.relative_to(root).as_posix()] = about.st_size, about.st_mtime_ns
    return found


def leftovers(root: Path) -> list[str]:
    """Return what was being written when a process died, and is still there."""
    return sorted(
        name
        for name in files_of(root)
        if name.endswith(LEFTOVERS)
        or any(f"/{each}/" in f"/{name}" for each in WORK_FOLDERS)
        or ".draft/" in name
    )


def torn(root: Path) -> list[str]:
    """Return the databases that are not whole."""
    found = list[str]()
    for path in root.rglob("*.db"):
        with closing(sqlite3.connect(path)) as store:
            [(said,)] = store.execute("PRAGMA integrity_check").fetchall()[:1]
        if said != "ok":
            found.append(f"{path.relative_to(root)}: {said}")
    return found


def run_came_to(at: Place) -> object:
    """Return how each sample ended, the published rows, and whether the run is complete."""
    manifest = json.loads(RunFiles(at.run).manifest.read_text("utf-8"))
    report = json.loads(RunFiles(at.run).report_json.read_text("utf-8"))
    return outcome(at.lab), manifest["status"], manifest["counts"], report["attempts"]
