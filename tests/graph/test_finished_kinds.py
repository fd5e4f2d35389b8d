"""What comes after a run of choices, answers or summaries: one finished run of each for all."""

import csv
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from coreeval.cli.app import main
from coreeval.errors import UsageError
from coreeval.evaluation.annotation.criteria import STUDIES
from coreeval.graph.cassettes.record import record
from coreeval.graph.cassettes.replay import replay
from coreeval.graph.finetune_plan import FinetuneRequest, plan_finetune
from coreeval.releases.annotation_scores import score_sheets
from coreeval.releases.annotation_sheets import SHEET_FOLDER, export_sheets
from coreeval.releases.create import make_release
from coreeval.releases.review.output import write_review_page, write_sheet
from coreeval.releases.review.review import Choice, load_review, record_choices
from coreeval.schema import TaskKind
from tests.graph.conftest import moved
from tests.graph.kit import Lab
from tests.graph.test_item_kinds import make_item_lab
from tests.support.batch_server import BatchServer
from tests.support.item_answers import NEWS, SCRIPTS, ItemAnswers, write_news
from tests.support.llm_server import Request
from tests.support.wire import Prompted

KINDS: tuple[TaskKind, ...] = ("choice", "answer", "summary")
OLD = {"start": "2025-12-01", "end": "2026-01-01"}
TARGET = "target"


@dataclass
class TargetAnswers:
    """Plays the roles, which take firms for persons, and a target that knows everything."""

    roles: ItemAnswers

    def __call__(self, request: Request) -> str:
        prompted = Prompted(request)
        if prompted.shape == "plan":
            planned = json.loads(self.roles(request))
            name = planned["replacements"][0]["after"]["head"]
            person = {"name": name, "role": "subject", "polarity": "neutral"}
            return json.dumps(planned | {"persons": [person]})
        if request["model"] != TARGET:
            return self.roles(request)
        asked = prompted.user
        known = (gold for question, gold in self.roles.script.truth.items() if question in asked)
        return json.dumps({"answer": next(known, "The tower has six rooms.")})


@pytest.fixture(scope="module", params=KINDS)
def ended(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """Return a run with a control arm and a target that has ended."""
    server = BatchServer(lambda _: "{}")
    with server.in_thread():
        folder = tmp_path_factory.mktemp(str(request.param))
        lab, answers = make_item_lab(folder, server, request.param, control_window=OLD)
        write_news(folder / "news", "2025-12")
        lab.answers = TargetAnswers(answers)  # type: ignore[assignment]
        server.answers = lab.answers
        models = {
            "default": {"model": "openai:scripted", "base_url": server.url},
            "targets": [{"model": f"openai:{TARGET}", "base_url": server.url, "cutoff": "2026-02"}],
        }
        lab.write(models=models)
        lab.refresh(limit=None)
        yield lab


@pytest.fixture
def lab(ended: Lab, tmp_path: Path) -> Iterator[Lab]:
    """Return a copy of it."""
    yield from moved(ended, tmp_path)


def kind_of_run(lab: Lab) -> TaskKind:
    """Return the kind of the run's task."""
    kinds: dict[str, TaskKind] = {"quiz": "choice", "trivia": "answer", "reports": "summary"}
    return kinds[lab.manifest.name]


def test_the_control_arm_and_targets(ended: Lab) -> None:
    manifest, arms = ended.manifest, ended.arms()
    assert manifest.status == "complete" and manifest.control
    assert manifest.control.counts["accepted"] == 3 == len(arms["control"])
    for new, control in zip(arms["updated"], arms["control"], strict=True):
        assert new.keys() == control.keys()
    report = json.loads(ended.files.report_json.read_text())
    (target,) = report["arms"]["targets"]
    scored = target["all_samples"]["arms"]
    shares = {arm["arm"]: arm["accuracy"]["estimate"] for arm in scored}
    assert shares.keys() == {"original", "semantic", "updated", "control"}
    if kind_of_run(ended) != "summary":
        assert set(shares.values()) == {1.0}
    parts = {each["part"] for each in report["comparability"]["measures"]}
    assert not parts & {"answers", "summary"}, "the gold is no text that a target reads"


def test_a_contamination_test_needs_labels(lab: Lab) -> None:
    with pytest.raises(UsageError, match="detect finetune needs a task with labels"):
        plan_finetune(FinetuneRequest(run_dir=lab.files.root, model="hf:weights"))


def test_masked_options_are_asked_for(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["detect", "recitation", str(lab.files.root), "--probe", "options", "--json"]
    assert main(command) == 0
    (target,) = json.loads(capsys.readouterr().out)["targets"]
    asked = 3 if kind_of_run(lab) == "choice" else 0
    assert (target["verdict"], target["asked"], target["items"]) == ("too_few", asked, asked)
    assert len(lab.server.requests) == 2 * asked
    assert "masked options" in lab.files.report_html.read_text()


def test_a_cassette_gives_the_same_files(lab: Lab) -> None:
    record(lab.files.root, lab.folder / "a.cassette", texts=True)
    done = replay(lab.folder / "a.cassette", lab.folder / "again")
    assert done.same and not done.changed and not done.missing
    assert {file.name.partition("/")[0] for file in done.files} >= {"control", "updated"}
    assert lab.server.requests == []


def test_texts_are_reviewed_and_what_is_rejected_stays_out(lab: Lab) -> None:
    review = load_review(lab.files.root)
    first, *others = lab.results()
    assert {each.sample for each in review.samples} == {first, *others}
    named = {mention.name for each in review.samples for mention in each.names}
    assert named == {"Norvik", "Tarsen"} | ({"Velmar"} if kind_of_run(lab) != "answer" else set())
    write_review_page(lab.folder / "review.html", review, review.samples)
    write_sheet(lab.folder / "review.csv", review.samples)
    page, sheet = (lab.folder / f"review.{form}" for form in ("html", "csv"))
    gold = {"choice": "(right)", "answer": "accepted answers (number, tolerance 1%)"}
    for text in (page.read_text(), sheet.read_text()):
        assert gold.get(kind_of_run(lab), "summary") in text
    choices = [Choice(sample=first, verdict="rejected")]
    choices += [Choice(sample=each, verdict="approved") for each in others]
    record_choices(lab.files.root, choices, by="Ada")
    release = make_release(lab.files.root, version="1.0.0")
    assert [each.id for each in release.arm("updated")] == others


def test_people_rate_texts(lab: Lab) -> None:
    """Of three samples each shows another arm, and every rater answers as the benchmark does."""
    kind = kind_of_run(lab)
    made = export_sheets(lab.files.root, lab.folder / "sheets", raters=2)
    rated, arms = STUDIES[kind].criteria[-1].name, lab.arms()
    arms["original"] = [*SCRIPTS[kind].rows]
    gold = {each.item: _gold(arms[each.arm], each.sample) for each in made.key.items}
    for path in sorted((made.out / SHEET_FOLDER).glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        if kind != "summary":
            assert not any(row["label"] for row in rows)
        for row in rows:
            row |= {each.name: str(each.values[-1]) for each in STUDIES[kind].criteria}
            row |= {rated: gold[row["item"]]} if kind != "summary" else {}
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    found = score_sheets(lab.files.root, [made.out]).annotation
    result = found.criteria[-1]
    best = result.values[-1]
    assert found.items >= 2 and not found.problems and not found.disagreements
    assert {score.estimate for score in result.arms.values()} == {best}
    card = (make_release(lab.files.root, version="1.0.0").path / "README.md").read_text()
    assert f"| {rated}, {result.values[0]} to {best} |" in card


def _gold(rows: list[dict[str, object]], sample: str) -> str:
    row = next(row for row in rows if str(row["id"]) in sample)
    if "choices" in row:
        return "ABCD"[int(str(row["answer"]))]
    answers = row.get("answers")
    return str(answers[0]) if isinstance(answers, list) else ""


def test_whoever_is_taken_down_is_named_nowhere(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    name = NEWS[0][0]
    shutil.rmtree(lab.folder / "news")  # files of the user's own: they are only reported
    before = [path for path in _files(lab.folder) if name.encode() in path.read_bytes()]
    assert before
    given = [str(lab.files.root), "--workspace", str(lab.workspace.root), "--yes", "--json"]
    assert main(["takedown", name, *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found
    left = [path for path in _files(lab.folder) if name.encode() in path.read_bytes()]
    assert [path.name for path in left] == ["takedown.txt"]
    results = lab.results()
    assert len(results) < 3 or any(one.updated is None for one in results.values())


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
