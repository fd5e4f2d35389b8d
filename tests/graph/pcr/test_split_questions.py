"""PCR in a run: train items are reworded and asked about, once, whatever befalls the run."""

import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from coreeval import cli
from coreeval.config import load_config
from coreeval.errors import BudgetSpent, CredentialError, DatasetError
from coreeval.graph.bundled import MEMORY, demo_data
from coreeval.graph.estimate.evaluation_estimate import REWORDING_NOTE, estimate_evaluation
from coreeval.graph.estimate.preview import preview
from coreeval.graph.estimate.run_estimate import estimate
from coreeval.graph.evaluate import evaluate
from coreeval.graph.run import resume, retry
from coreeval.graph.state import REWORDING_NODES
from coreeval.schema import TrainStatus
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import Workspace
from tests.graph.conftest import moved
from tests.graph.kit import OPEN, SAMPLES, Lab, config_of, ended
from tests.support.answers import OfflineAnswers
from tests.support.batch_server import BatchServer
from tests.support.careless import Careless
from tests.support.llm_server import Reply, Request, refused
from tests.support.odd_rows import odd_row
from tests.support.wire import Prompted

DRAWN = 10
TEMPLATES = 3
IN_TRAIN = SAMPLES + 5
"""The request of this number for an extraction is about a train item."""
ASKED_IN_TRAIN = 2 * TEMPLATES * SAMPLES + 10
"""The question of this number to a target is about one."""
MakeLab = Callable[[Path], Lab]


@pytest.fixture(scope="module")
def make_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLab]:
    """Serve the roles and a target on generated items; return what makes a workspace."""
    folder = tmp_path_factory.mktemp("generated")
    for split in ("train", "test"):
        lines = (demo_data() / MEMORY / f"{split}.jsonl").read_text().splitlines(keepends=True)
        (folder / f"{split}.jsonl").write_text("".join(lines[:SAMPLES]))
    changes = {"dataset": {"format": "jsonl", "path": str(folder)}}
    config = folder / "any.yaml"
    config.write_text(yaml.safe_dump(config_of("http://127.0.0.1:9/v1") | changes))
    answers = OfflineAnswers(load_config(config), folder)
    server = BatchServer(answers)

    def make(where: Path) -> Lab:
        shutil.copytree(Workspace(folder).gdelt, Workspace(where / ".coreeval").gdelt)
        made = Lab(where, server, Careless(answers), changes | {"detect": detect()})
        made.write(models=models(server.url))
        made.forget()
        return made

    with server.in_thread():
        yield make
    answers.close()


@pytest.fixture
def lab(make_lab: MakeLab, tmp_path: Path) -> Lab:
    return make_lab(tmp_path)


class Whole(NamedTuple):
    """A run that nothing happens to, only to look at, and what the server was asked."""

    lab: Lab
    asked: Sequence[str]


@pytest.fixture(scope="module")
def whole_run(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Return a run that nothing happens to."""
    made = make_lab(tmp_path_factory.mktemp("whole"))
    made.refresh()
    return Whole(made, made.asked())


@pytest.fixture
def finished(whole_run: Whole, tmp_path: Path) -> Iterator[Lab]:
    """Return a copy of it that may be changed."""
    yield from moved(whole_run.lab, tmp_path)


@pytest.fixture(scope="module")
def whole(whole_run: Whole) -> dict[str, Any]:
    """Return what its report says."""
    return report(whole_run.lab)


def detect(**more: object) -> dict[str, object]:
    return {"pcr": {"samples": DRAWN}} | more


def models(url: str) -> dict[str, Any]:
    one = {"base_url": url}
    target = {"model": "openai:target", **one}
    return {"default": {"model": "openai:scripted", **one}, "targets": [target]}


def forget_calls(lab: Lab) -> None:
    """Forget what was answered, so that another run has to ask it."""
    for file in lab.workspace.root.glob("calls.db*"):
        file.unlink()


def report(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.files.report_json.read_text())["pcr"]
    return found


def statuses(lab: Lab) -> Counter[str]:
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        return Counter(store.train.counts())


def test_train_items_are_reworded_asked_about_and_compared(
    whole_run: Whole, whole: dict[str, Any]
) -> None:
    lab = whole_run.lab
    train, test = whole["items"]["train"], whole["items"]["test"]
    assert train["drawn"] == DRAWN == sum(statuses(lab).values())
    assert train["reworded"] == statuses(lab)["reworded"] >= 6
    assert (train["split"], test["split"], test["samples"]) == ("train", "test", SAMPLES)
    (target,) = whole["targets"]
    counted = {split: each["n"] for split, each in target["splits"].items()}
    assert counted == {"train": train["reworded"], "test": test["reworded"]}
    assert (
        target["verdict"] == "inconclusive" and "; a verdict needs at least 20" in target["reason"]
    )
    assert "inconclusive" in lab.files.report_html.read_text()

    assert lab.manifest.counts["total"] == SAMPLES, "train items are no samples"
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        said = list(store.answers("openai:target", ["train", "train_semantic"]))
        one = next(item for item in store.train.rewordings())
        assert {step.node for step in store.history.steps(one.sample.id)} == set(REWORDING_NODES)
    assert len(said) == 2 * TEMPLATES * train["reworded"]
    assert all(sample.startswith("train:") for _, _, sample, *_ in said)
    assert max(Counter(whole_run.asked).values()) == 1, "something was asked twice"
    assert odd_row(lab.files.root) == ""


def test_without_the_arms_only_what_is_compared_is_asked(lab: Lab, whole: dict[str, Any]) -> None:
    """Answers of one word are as alike in their words as in their letters."""
    measured = {"samples": DRAWN, "consistency": "jaccard"}
    lab.write(detect=detect(evaluate=False, pcr=measured))
    lab.refresh()
    found = report(lab)
    assert found["settings"] == whole["settings"] | {"consistency": "jaccard"}
    assert found == whole | {"settings": found["settings"]}
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        sources = ["original", "semantic", "updated"]
        asked = Counter(source for source, *_ in store.answers("openai:target", sources))
    compared = TEMPLATES * whole["items"]["test"]["reworded"]
    assert asked == {"original": compared, "semantic": compared}


@pytest.mark.parametrize(
    ("shape", "count"), [("extraction", IN_TRAIN), ("LabelAnswer", ASKED_IN_TRAIN)]
)
def test_killed_it_goes_on_and_asks_nothing_again(
    lab: Lab, whole: dict[str, Any], shape: str, count: int
) -> None:
    lab.trap(shape, count, lambda: os.kill(child.pid or 0, signal.SIGKILL))
    child = lab.child("refresh")
    assert ended(child) == -signal.SIGKILL
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert (lab.manifest.status, report(lab)) == ("complete", whole)


def test_ctrl_c_leaves_items_open_and_resume_ends_them(lab: Lab, whole: dict[str, Any]) -> None:
    lab.trap("extraction", IN_TRAIN, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = lab.child("refresh")
    assert ended(child) == 130
    assert lab.manifest.status == "interrupted"
    assert statuses(lab)["open"] >= DRAWN - 5 - OPEN
    answered = lab.answered()
    assert len(answered) == len(lab.asked()), "what was in flight was waited for"
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert report(lab) == whole


def test_a_refused_key_stops_the_run_and_no_item_fails(lab: Lab, whole: dict[str, Any]) -> None:
    lab.trap("extraction", IN_TRAIN, lambda: refused(401, "bad key"))
    with pytest.raises(CredentialError):
        lab.refresh()
    assert lab.manifest.status == "stopped"
    assert not statuses(lab)["failed"] and statuses(lab)["open"]
    lab.forget()
    lab.resume()
    assert report(lab) == whole


def test_the_budget_holds_for_train_items_too(lab: Lab, whole: dict[str, Any]) -> None:
    given = models(lab.server.url)
    for one, usd in ((given["default"], 1000), (given["targets"][0], 0)):
        one |= {"price": {"input": 0, "output": usd}, "max_tokens": 100}
    lab.write(models=given, run={"concurrency": 1})
    cost = lab.refresh("measured").manifest.cost.billed_usd
    assert cost
    forget_calls(lab)
    lab.write(run={"concurrency": 1, "budget_usd": 0.8 * cost})
    with pytest.raises(BudgetSpent):
        lab.refresh()
    assert statuses(lab)["open"] and sum(statuses(lab).values()) == DRAWN
    assert (lab.manifest.cost.billed_usd or 0) <= 0.8 * cost
    resume(lab.files.root, budget_usd=2 * cost)
    assert report(lab) == whole


class Choking:
    """Answers well but for a text, about which it is in trouble."""

    def __init__(self, lab: Lab, about: str) -> None:
        self._answers, self._about = lab.answers, about

    async def __call__(self, request: Request) -> str | Reply:
        prompted = Prompted(request)
        if self._about in prompted.user and prompted.shape == "extraction":
            return refused(400, "not this one")
        return await self._answers(request)


def test_an_item_that_fails_is_told_and_can_be_retried(
    lab: Lab, whole_run: Whole, whole: dict[str, Any]
) -> None:
    with closing(RunStore.open(whole_run.lab.files.store, now=utc_now)) as store:
        doomed = next(store.train.rewordings()).sample
    lab.server.answers = Choking(lab, doomed.fields["text"])
    lab.refresh()
    assert report(lab)["items"]["train"]["failed"] == 1
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        end = store.train.item(doomed.id).end
    assert (end.status, "not this one" in end.reason) == ("failed", True)
    lab.forget()
    retry(lab.files.root)
    assert report(lab) == whole


def test_a_run_without_it_draws_nothing(lab: Lab) -> None:
    lab.write(detect={"evaluate": True})
    lab.refresh(limit=2)
    assert report(lab) is None
    assert statuses(lab) == Counter()
    assert "Is the score due to memory?" not in lab.files.report_html.read_text()


def test_without_a_target_nothing_is_reworded_until_one_is_asked(
    lab: Lab, whole: dict[str, Any]
) -> None:
    target = yaml.safe_dump({"model": "openai:target", "base_url": lab.server.url})
    lab.write(models={"default": {"model": "openai:scripted", "base_url": lab.server.url}})
    lab.refresh()
    assert (statuses(lab), report(lab)["targets"]) == (Counter(), [])
    assert REWORDING_NOTE in estimate_evaluation(lab.files.root, targets=[target]).notes
    evaluate(lab.files.root, targets=[target])
    assert report(lab) == whole
    left = estimate_evaluation(lab.files.root, targets=[target])
    assert (left.totals.calls.high, REWORDING_NOTE in left.notes) == (0, False)


def test_a_target_that_is_added_is_asked_about_train_items(finished: Lab) -> None:
    lab = finished
    evaluate(lab.files.root, targets=["offline:classifier"])
    assert lab.asked() == []
    assert [one["name"] for one in report(lab)["targets"]] == [
        "openai:target",
        "offline:classifier",
    ]
    both = [one["splits"]["train"]["n"] for one in report(lab)["targets"]]
    assert both[0] == both[1] > 0


def calls_about_train(lab: Lab) -> Counter[str]:
    """Return by role how many calls there were to reword train items."""
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        steps = [step for item in store.train.ids() for step in store.history.steps(item)]
    return Counter(call.role for step in steps for call in step.calls)


def test_an_estimate_holds_what_it_costs(lab: Lab) -> None:
    asked = models(lab.server.url)  # by rules, all but who rewords: estimating is quicker then
    roles = dict.fromkeys(("extractor", "rewriter", "label_judge"), asked.pop("default"))
    lab.write(models={"default": "offline", **roles, **asked}, detect=detect(evaluate=False))
    made = estimate(lab.config, limit=SAMPLES)
    alone = estimate(lab.config, limit=SAMPLES, overrides=["detect.pcr=null"])
    assert {line.stage for line in alone.lines} == {"run"}
    assert alone.seconds.likely < made.seconds.likely
    assert lab.asked() == []
    found = lab.refresh().manifest
    assert made.totals.calls.low <= found.cost.billed_calls <= made.totals.calls.high
    counted = calls_about_train(lab) + Counter(target=2 * TEMPLATES * statuses(lab)["reworded"])
    counted["target"] += 2 * TEMPLATES * report(lab)["items"]["test"]["reworded"]
    lines = {line.role: line for line in made.lines if line.stage == "pcr"}
    assert set(lines) == set(counted) == {"extractor", "rewriter", "label_judge", "target"}
    for role, line in lines.items():
        assert line.calls.low <= counted[role] <= line.calls.high


def test_a_preview_is_reused_and_foretells_the_rest(lab: Lab) -> None:
    made = preview(lab.config, 8)
    assert made.preview and made.preview.billed_calls == len(lab.asked())
    before, batches = set(lab.asked()), lab.asked_shapes().count("labels")
    lab.forget()
    done = lab.refresh(limit=None)
    assert before.isdisjoint(lab.asked())
    assert done.manifest.cost.cached_calls == len(before) - batches, "it has other batches"
    assert len(lab.asked()) == pytest.approx(made.totals.calls.likely, rel=0.15)


@pytest.mark.parametrize(("split", "problem"), [("test", "with itself"), ("nowhere", "no split")])
def test_a_split_that_cannot_be_compared_is_refused_at_once(
    lab: Lab, split: str, problem: str
) -> None:
    lab.write(detect={"pcr": {"train_split": split}})
    with pytest.raises(DatasetError, match=problem):
        lab.refresh()
    assert lab.asked() == []
    assert not lab.files.root.exists()


def test_every_status_is_in_the_report(whole: dict[str, Any]) -> None:
    known = set(TrainStatus.__args__) - {"open"}  # type: ignore[attr-defined]
    assert set(whole["items"]["train"]) == known | {"split", "drawn"}


def test_the_story_of_a_train_item_and_the_verdict_are_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.refresh(limit=6)
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        item = next(store.train.rewordings())
    assert cli.main(["trace", str(lab.files.root), item.sample.id]) == 0
    said = capsys.readouterr().out
    assert "item of the train split, reworded" in said
    assert "judge_semantic" in said and "no outcome" not in said
    assert cli.main(["evaluate", str(lab.files.root)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"openai:target +[+-]\S+ +\S+ … \S+ +inconclusive\n", said)
    assert re.search(r"  openai:target: train has \d", said)
    assert cli.main(["evaluate", str(lab.files.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pcr"] == report(lab)
