"""A remote news source is asked once for all samples."""

import json
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest
from starlette.testclient import TestClient

from coreeval.cli import main
from coreeval.cli.refresh import exit_code
from coreeval.config import Config
from coreeval.errors import ConfigError, CredentialError, RunCorrupt
from coreeval.graph import inputs
from coreeval.graph.bundled import demo_data
from coreeval.graph.cassettes.record import record
from coreeval.graph.cassettes.replay import replay
from coreeval.graph.execute import RunHooks, RunSummary
from coreeval.graph.inputs import NewsSources, open_news
from coreeval.graph.monitor import Progress
from coreeval.graph.run import refresh
from coreeval.graph.run_context import merge_call_totals
from coreeval.graph.setup import Setup
from coreeval.graph.window import find_control_window
from coreeval.schema import Coverage, EntityQuery, NamedEntity, Retrieval, Window
from coreeval.tools.clock import utc_now
from coreeval.tools.cutoffs import load_target_dates
from coreeval.tools.gdelt.sources import SourceCache
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores import batch_writer
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import Workspace
from coreeval.viewer.app import create_app
from tests.graph.conftest import MakeLab
from tests.graph.kit import SAMPLES, Lab, Undisturbed, assert_whole, config_of, ended
from tests.support.llm_server import Reply, Request, refused
from tests.support.odd_rows import odd_row
from tests.support.wire import Prompted
from tests.viewer.test_run_pages import HERE


class Far:
    """The local news as if they were far away."""

    name, remote = "doc", True

    def __init__(self, local: KnowledgeSource, requests: list[int], down: bool) -> None:
        self._local, self._requests, self._down = local, requests, down

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        self._requests.append(len(queries))
        if self._down:
            nothing = {query.id: () for query in queries}
            return Retrieval(by_query=nothing, reasons=dict.fromkeys(nothing, "throttled"))
        return await self._local.fetch(queries, window, k)

    def coverage(self, window: Window) -> Coverage:
        return self._local.coverage(window)

    def names(self, window: Window) -> list[NamedEntity]:
        return self._local.names(window)

    def close(self) -> None:
        self._local.close()


Remote = Callable[..., list[int]]


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Remote:
    """Put the news far away, and return the sizes of the requests as they come."""
    requests: list[int] = []

    def put(*, down: bool = False) -> list[int]:
        def opened(setup: Setup, workspace: Workspace, *_: object) -> NewsSources:
            far = Far(open_news(setup, workspace), requests, down)
            return NewsSources([SourceCache(far, JsonCache(tmp_path / "cache"))], None)

        monkeypatch.setattr(inputs, "open_news", opened)
        return requests

    return put


def test_one_request_carries_what_all_samples_ask(
    lab: Lab, undisturbed: Undisturbed, remote: Remote
) -> None:
    requests = remote()
    lab.refresh()
    assert_whole(lab, undisturbed)
    assert len(requests) == 1 and requests[0] >= SAMPLES


def test_a_run_that_is_stopped_goes_on_from_where_it_gathered(
    lab: Lab, undisturbed: Undisturbed, remote: Remote
) -> None:
    requests = remote()
    lab.trap("plan", 3, lambda: Reply(status=401, error={"message": "no"}))
    with pytest.raises(CredentialError):
        lab.refresh()
    assert len(requests) == 1
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert len(requests) == 1, "what was gathered is kept on disk"
    assert_whole(lab, undisturbed)


def test_a_source_that_is_down_ends_no_run_and_is_not_asked_by_each_sample(
    lab: Lab, undisturbed: Undisturbed, remote: Remote
) -> None:
    requests = remote(down=True)
    counts = lab.refresh().manifest.counts
    assert len(requests) == 1
    assert counts["no_knowledge"] > 0 == counts["accepted"]
    reasons = [
        result.reason for result in lab.results().values() if result.outcome == "no_knowledge"
    ]
    assert all("throttled" in reason for reason in reasons)


def test_a_run_whose_news_was_gathered_is_repeated_from_a_cassette(
    lab: Lab, remote: Remote
) -> None:
    requests = remote()
    lab.refresh(limit=4)
    record(lab.files.root, lab.folder / "a", texts=True)
    asked = len(requests)
    assert replay(lab.folder / "a", lab.folder / "again").equal
    assert len(requests) == asked == 1


NEW = {"start": "2026-03-01", "end": "2026-10-01"}
OLD = {"start": "2025-08-01", "end": "2026-03-01"}
TARGET = "openai:target"
PLAN = "plan"
"""Shape of the replacer's answers, which is asked anew in the second pass."""


def controlled(lab: Lab) -> Lab:
    """Give a workspace's config a control window, and a target whose cutoff allows it."""
    url, news = lab.server.url, str(demo_data() / "news")
    lab.write(
        models={
            "default": {"model": "openai:scripted", "base_url": url},
            "targets": [{"model": TARGET, "base_url": url, "cutoff": "2026-02"}],
        },
        knowledge={"path": news, "window": NEW, "min_precision": "crawl"},
        run={"concurrency": 4, "control_window": OLD},
    )
    return lab


def test_a_second_pass_that_is_killed_goes_on_and_nothing_is_paid_twice(
    lab: Lab, make_lab: MakeLab, tmp_path: Path
) -> None:
    whole = controlled(make_lab(tmp_path / "whole"))
    whole.refresh()
    assert odd_row(whole.files.root) == ""
    shapes = whole.asked_shapes()
    first = _planned(whole.files.store)
    assert shapes.count(PLAN) > first + 2, "the second pass asks the replacer too"

    def kill() -> None:
        os.kill(child.pid or 0, signal.SIGKILL)

    controlled(lab).trap(PLAN, first + 2, kill)
    child = lab.child("refresh")
    assert ended(child) == -signal.SIGKILL
    lab.server.answers = lab.answers
    with closing(RunStore.open(lab.files.control.store, now=utc_now)) as store:
        assert store.total() == SAMPLES and store.pending()
    lab.resume()
    found, expected = lab.manifest, whole.manifest
    assert found.status == "complete" and found.control and expected.control
    assert found.control.counts == expected.control.counts
    assert found.control.counts["total"] == SAMPLES and not found.control.counts["pending"]
    assert found.cost == expected.cost
    assert found.cost.billed_calls == len(lab.answered()) == len(whole.answered())
    assert lab.arms() == whole.arms()
    assert found.arms["control"] == found.control.counts["accepted"] > 0
    _answered_about_control(lab)
    _costs_by_role_hold_both_passes(lab)
    assert "config_name: control" in (lab.files.dataset / "README.md").read_text()


def _costs_by_role_hold_both_passes(lab: Lab) -> None:
    rows = json.loads(lab.files.report_json.read_text())["calls"]
    cost = lab.manifest.cost
    for cached, calls in ((False, cost.billed_calls), (True, cost.cached_calls)):
        assert sum(row["calls"] for row in rows if row["cached"] == cached) == calls
    billed = [row for row in rows if not row["cached"]]
    assert sum(row["prompt_tokens"] for row in billed) == cost.prompt_tokens
    assert len({(row["role"], row["model"]) for row in billed}) == len(billed)
    key = f"{lab.files.root.parent.name}.{lab.files.root.name}"
    page = TestClient(create_app([lab.files.root]), base_url=HERE).get(f"/run/{key}").text
    (total,) = re.findall(r'<th scope="row">All</th>.*data-title="billed calls">(\d+)<', page)
    assert int(total) == cost.billed_calls


def _planned(path: Path) -> int:
    """Return how often the replacer was asked in a pass."""
    with closing(RunStore.open(path, now=utc_now)) as store:
        steps = [
            step for one in store.sample_results() for step in store.history.steps(one.sample.id)
        ]
        return len({call.key for step in steps for call in step.calls if call.role == "replacer"})


def _answered_about_control(lab: Lab) -> None:
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        about = {sample for _, _, sample, *_ in store.answers(TARGET, ["control"])}
    assert about == {str(row["id"]) for row in lab.arms()["control"]}


def _refused_once_in_the_second_pass(lab: Lab) -> RunSummary:
    """Run with a replacer that is refused the first time that the second pass asks it."""
    stages = list[str]()

    def answer(request: Request) -> str | Reply | Awaitable[str | Reply]:
        if stages and stages[-1] == "control" and Prompted(request).shape == PLAN:
            stages.append("refused")
            return refused(400, "not to our taste")
        return lab.answers(request)

    def watch(progress: Progress) -> None:
        if not stages and progress.stage == "control":
            stages.append("control")

    lab.server.answers = answer
    around = RunHooks(watch=watch)
    return refresh(lab.config, limit=SAMPLES, run_dir=lab.files.root, around=around)


def test_what_failed_in_the_second_pass_alone_is_told_and_retried(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    done = _refused_once_in_the_second_pass(controlled(lab))
    assert done.manifest.control
    assert (done.manifest.counts["failed"], done.manifest.control.counts["failed"]) == (0, 1)
    assert exit_code(done) == 1 and main(["resume", str(lab.files.root)]) == 1
    said = capsys.readouterr().out
    assert "control arm: 14 of 14 samples have ended\n" in said and "coreeval retry" in said
    assert main(["status", str(lab.files.root), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (failed,) = told["control"]["failed"]
    assert told["control"]["counts"] == done.manifest.control.counts
    assert told["failed"] == [] and "not to our taste" in failed["reason"]
    assert main(["status", str(lab.files.root)]) == 0
    said = capsys.readouterr().out
    assert f"  failed, control arm: {failed['sample']}: " in said and "again:   coreeval" in said
    assert main(["retry", str(lab.files.root), "--json"]) == 0
    caught = capsys.readouterr()
    assert json.loads(caught.out)["control"]["counts"]["failed"] == 0
    assert "no samples of the run had failed" not in caught.err


def test_calls_are_flushed_before_what_either_pass_says_of_them(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed, last, flush = set[tuple[str, str]](), dict[int, str](), os.fsync

    def noted(file: IO[bytes] | int) -> None:
        flush(file)
        name, thread = str(getattr(file, "name", "")), threading.get_ident()
        flushed.add((last.get(thread, ""), name))
        last[thread] = name

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(batch_writer, "FLUSH_S", 0.0)
    controlled(lab).refresh(limit=1)
    first, second = lab.files.store, lab.files.control.store
    assert {(f"{lab.workspace.calls}-wal", f"{store}-wal") for store in (first, second)} <= flushed


def test_a_lost_store_of_the_second_pass_is_told_and_not_begun_anew(lab: Lab) -> None:
    controlled(lab).refresh(limit=1)
    lab.files.control.store.unlink()
    with pytest.raises(RunCorrupt, match="missing") as caught:
        lab.resume()
    assert str(lab.files.control.store) in caught.value.where


def _config(cutoff: str | None, control: dict[str, str]) -> Config:
    dated = {"cutoff": cutoff} if cutoff else {}
    raw = config_of("http://127.0.0.1:9/v1") | {"run": {"control_window": control}}
    models = {"default": "offline", "targets": [{"model": "openai:unheard-of", **dated}]}
    return Config.model_validate(raw | {"models": models})


@pytest.mark.parametrize(
    ("cutoff", "control", "said"),
    [
        ("2026-01", {"start": "2025-08-01", "end": "2026-02-02"}, "after the cutoff of openai"),
        (None, {"start": "2025-08-01", "end": "2025-09-01"}, "no cutoff for 'openai:unheard-of'"),
        ("2026-06", {"start": "2025-08-01", "end": "2026-05-01"}, "the updated arm.s window"),
        ("2026-06", {"start": "2025-08-01", "end": "2025-08-01"}, "starts on 2025-08-01 and ends"),
    ],
)
def test_a_window_that_is_no_control_is_refused(
    cutoff: str | None, control: dict[str, str], said: str
) -> None:
    config = _config(cutoff, control)
    window = Window(start=datetime(2026, 3, 1, tzinfo=UTC), end=datetime(2026, 10, 1, tzinfo=UTC))
    with pytest.raises(ConfigError, match=said) as caught:
        find_control_window(config, load_target_dates(config), window)
    assert caught.value.where.startswith("run.control_window") and caught.value.hint


def test_a_month_of_a_cutoff_is_over_before_anything_is_new() -> None:
    config = _config("2026-01", {"start": "2025-08-01", "end": "2026-02-01"})
    window = Window(start=datetime(2026, 3, 1, tzinfo=UTC), end=datetime(2026, 10, 1, tzinfo=UTC))
    found = find_control_window(config, load_target_dates(config), window)
    assert found == Window(
        start=datetime(2025, 8, 1, tzinfo=UTC), end=datetime(2026, 2, 1, tzinfo=UTC)
    )


def test_what_two_passes_used_is_added_up_by_model_and_an_unknown_price_stays_unknown() -> None:
    row = {"model": "m", "cached": False, "calls": 2, "prompt_tokens": 10, "cached_tokens": 1,
           "completion_tokens": 3, "usd": 0.5, "priced": 2}  # fmt: skip
    free = row | {"usd": None, "priced": 0}
    (both,) = merge_call_totals([row, free])
    assert (both["calls"], both["usd"], both["priced"]) == (4, 0.5, 2)
    (unknown,) = merge_call_totals([free, free])
    assert unknown["usd"] is None
    assert len(merge_call_totals([row, row | {"cached": True}])) == 2


def test_a_stage_is_named_before_its_first_sample_has_ended(lab: Lab) -> None:
    told = list[Progress]()
    refresh(lab.config, limit=2, run_dir=lab.files.root, around=RunHooks(watch=told.append))
    first = next(one for one in told if one.stage == "extract")
    assert (first.done, first.total) == (0, 2)


def test_the_report_and_the_card_of_a_run_compare_the_arms(undisturbed: Undisturbed) -> None:
    files = undisturbed.lab.files
    found = json.loads(files.report_json.read_text())["comparability"]
    accepted = [each for each in undisturbed.results.values() if each.outcome == "accepted"]
    assert found["samples"] == found["compared"] == len(accepted)
    assert found["verdict"] in {"not_comparable", "cannot_tell"}
    card = (files.dataset / "README.md").read_text()
    assert card.index("Is the updated arm comparable with the original?") < card.index("## Labels")
    assert card.count("# How it was made") == 1
