"""A small benchmark, its news and six roles behind a local server, to be disturbed by tests."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from coreeval.graph.bundled import WINDOW, demo_data
from coreeval.graph.execute import RunSummary
from coreeval.graph.pool import max_open_samples
from coreeval.graph.run import IfChanged, refresh, resume
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.schema import Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_records import canonical_json
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.workspace import RunFiles, Workspace
from tests.support import worker
from tests.support.batch_server import BatchServer
from tests.support.careless import Careless
from tests.support.llm_server import Reply, Request
from tests.support.scoring_server import ScoringServer
from tests.support.wire import Prompted

SAMPLES = 14
"""The fewest of the demo's benchmark of which some are accepted at the first, second and third try,
and others unsafe, without news, or rejected."""
CONCURRENCY = 4
OPEN = max_open_samples(CONCURRENCY)
"""Most calls that a kill may cost: those in flight and one whose answer is being written."""
MOMENT = "after:check:3"
"""When the killed run died that tests start from."""
PATIENCE_S = 60
"""Longest wait for a process; it is only reached where something hangs."""
KEY = "sk-never-write-this-down-4711"
Arms = dict[str, list[dict[str, object]]]


class Trap:
    """Springs once, when the server gets a role's n-th request; all requests are answered."""

    def __init__(
        self, answers: Careless, shape: str, count: int, spring: Callable[[], Reply | None]
    ) -> None:
        self.sprung = threading.Event()
        self._answers, self._shape, self._left = answers, shape, count
        self._spring = spring

    async def __call__(self, request: Request) -> str | Reply:
        self._left -= self._shape in ("", Prompted(request).shape)
        reply = None
        if self._left <= 0 and not self.sprung.is_set():
            self.sprung.set()
            reply = self._spring()
        return reply or await self._answers(request)


@dataclass
class Lab:
    """One workspace with one config, and what can be done to its run."""

    folder: Path
    server: BatchServer
    answers: Careless
    changes: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.write()

    @property
    def config(self) -> Path:
        return self.folder / "emotion.yaml"

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.folder / "run")

    @property
    def target(self) -> str:
        """A target on the server, as the command line has it."""
        return f"{{model: 'openai:target', base_url: '{self.server.url}'}}"

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.folder / ".coreeval")

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.files.manifest)

    def write(self, **changes: object) -> None:
        """Write the config with these top-level keys in place of the usual ones."""
        self.changes |= changes
        self.config.write_text(yaml.safe_dump(config_of(self.server.url) | self.changes))

    def refresh(
        self,
        run: str = "run",
        limit: int | None = SAMPLES,
        overrides: Sequence[str] = (),
        parent: Path | None = None,
        stale_after: str | None = None,
    ) -> RunSummary:
        """Run in this process."""
        return refresh(
            self.config,
            limit=limit,
            run_dir=self.folder / run,
            overrides=overrides,
            parent=parent,
            stale_after=stale_after,
        )

    def resume(self, if_changed: IfChanged = "refuse") -> RunSummary:
        """Resume in this process."""
        return resume(self.files.root, if_changed=if_changed)

    def child(
        self, command: str, *, die: str = "", full: str = "", slow: str = "", key: str = ""
    ) -> BaseProcess:
        """Start `refresh`, `resume` or `evaluate` of `target` as a process."""
        given = {
            "refresh": [
                str(self.config),
                "--limit",
                str(SAMPLES),
                "--run-dir",
                str(self.files.root),
            ],
            "resume": [str(self.files.root)],
            "evaluate": [str(self.files.root), "--target", self.target],
        }
        return worker.start(
            [command, *given[command], "--json"],
            out=self.out,
            environment={"OPENAI_API_KEY": key} if key else {},
            die=die,
            full=full,
            slow=slow,
        )

    @property
    def out(self) -> Path:
        """What the last child said."""
        return self.folder / "out.txt"

    def trap(self, shape: str, count: int, spring: Callable[[], Reply | None]) -> Trap:
        """Let the server spring at the n-th request with this schema name ("" is any)."""
        trap = Trap(self.answers, shape, count, spring)
        self.server.answers = trap
        return trap

    # -- what is left behind --------------------------------------------------------------------

    def answered(self) -> set[str]:
        """Return what calls.db has, as `asked` writes it."""
        store = open_calls(self.workspace.calls)
        try:
            requests = [json.loads(record.request) for record in store.records()]
        finally:
            store.close()
        return {canonical_json({"m": one["messages"], "s": one["schema"]}) for one in requests}

    def asked(self) -> list[str]:
        """Return what the server was asked since the test began or `forget` was called.

        What a process sent just before it was killed may still have to be read: it comes first.
        """
        with urlopen(f"{self.server.anthropic_url}/counts"):
            pass
        return [_question(request) for request in list(self.server.requests)]

    def asked_shapes(self) -> list[str]:
        """Return the schema name of each request."""
        return [Prompted(request).shape for request in list(self.server.requests)]

    def forget(self) -> None:
        """Count requests anew, and answer well again."""
        self.server.forget()
        self.server.answers = self.answers
        self.server.scoring = ScoringServer("chat only")

    def results(self, run: str = "run") -> dict[str, Result]:
        """Return how each sample ended, with its facts."""
        store = RunStore.open(self.folder / run / "run.db", now=utc_now)
        try:
            ended = [one.result for one in store.sample_results()]
            return {
                one.sample_id: one.model_copy(update={"facts": tuple(store.facts(one.sample_id))})
                for one in ended
            }
        finally:
            store.close()

    def steps(self, sample_id: str, run: str = "run") -> list[StepRecord]:
        """Return the recorded steps of a sample."""
        store = RunStore.open(self.folder / run / "run.db", now=utc_now)
        try:
            return store.history.steps(sample_id)
        finally:
            store.close()

    def arms(self, run: str = "run") -> Arms:
        """Return the rows of each published file."""
        folder = RunFiles(self.folder / run).dataset
        files = folder.rglob("*.parquet")
        return {file.parent.name: pq.read_table(file).to_pylist() for file in files}


@dataclass(frozen=True)
class Undisturbed:
    """What a run of the same benchmark gives when nobody disturbs it."""

    lab: Lab
    results: Mapping[str, Result]
    arms: Arms
    asked: frozenset[str]
    shapes: tuple[str, ...]


def config_of(url: str) -> dict[str, object]:
    """Return the usual config, its six roles played by the server."""
    data = demo_data()
    return {
        "name": "survival",
        "task": "emotion",
        "dataset": {"format": "tweeteval", "path": str(data / "emotion"), "split": "test"},
        "knowledge": {"path": str(data / "news"), "window": WINDOW, "min_precision": "crawl"},
        "models": {"default": {"model": "openai:scripted", "base_url": url}},
        "run": {"concurrency": CONCURRENCY},
    }


def ended(process: BaseProcess) -> int | None:
    """Wait for a process and return its exit code; minus nine for one that was killed."""
    process.join(PATIENCE_S)
    if process.is_alive():
        process.kill()
        raise AssertionError(f"the process did not end within {PATIENCE_S} s")
    return process.exitcode


def assert_whole(lab: Lab, undisturbed: Undisturbed) -> None:
    """Assert that a run ended as if nothing had happened: outcomes, counts, facts and files."""
    manifest, counts = lab.manifest, dict(lab.manifest.counts)
    assert manifest.status == "complete"
    assert counts.pop("total") == SAMPLES == sum(counts.values())
    assert (counts["pending"], counts["failed"]) == (0, 0)
    assert manifest.cost == undisturbed.lab.manifest.cost, "a call was counted twice, or not"
    assert lab.results() == undisturbed.results
    assert lab.arms() == undisturbed.arms
    assert lab.files.report_json.exists()


def _question(request: Request) -> str:
    shaped: object = request["response_format"]
    assert isinstance(shaped, dict)
    form: Mapping[str, object] = shaped["json_schema"]
    schema = {"name": form["name"], "schema": form["schema"]}
    messages: object = request["messages"]
    assert isinstance(messages, Sequence)
    return canonical_json({"m": messages, "s": schema})
