"""Choices, questions and summaries from the first row to the published arms."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from coreeval.agents import checks
from coreeval.cli import main
from coreeval.config import ROLES
from coreeval.errors import CassetteError, ReleaseError
from coreeval.graph import batch_rounds
from coreeval.graph.cassettes.record import record
from coreeval.graph.execute import RunHooks
from coreeval.graph.run import refresh
from coreeval.models.openai import OpenAIChat
from coreeval.releases.create import make_release
from coreeval.schema import Result
from tests.graph.kit import Lab, ended
from tests.support.batch_server import BatchServer
from tests.support.fake_batches import FakeBatches, FakeProvider
from tests.support.item_answers import NEWS, SCRIPTS, ItemAnswers, write_news

WINDOW = {"start": "2026-06-01", "end": "2026-07-01"}
MakeItems = Callable[..., tuple[Lab, ItemAnswers]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeItems]:
    """Return what makes a workspace with a benchmark of a kind."""
    server = BatchServer(lambda _: "{}")
    with server.in_thread():
        yield lambda kind, **run: make_item_lab(tmp_path, server, kind, **run)


def make_item_lab(
    folder: Path, server: BatchServer, kind: str, **run: object
) -> tuple[Lab, ItemAnswers]:
    """Write a benchmark of a kind, its news and its config into a folder."""
    answers = ItemAnswers(SCRIPTS[kind])
    server.answers = answers
    write_news(folder / "news")
    rows = "\n".join(json.dumps(row) for row in answers.script.rows)
    (folder / "data").mkdir()
    (folder / "data" / "test.jsonl").write_text(rows)
    (folder / "task.yaml").write_text(yaml.safe_dump(dict(answers.script.task)))
    lab = Lab(folder=folder, server=server, answers=answers)  # type: ignore[arg-type]
    lab.write(
        name=answers.script.task["name"],
        task="task.yaml",
        dataset={"format": "jsonl", "path": "data", "split": "test"},
        knowledge={"path": "news", "text": "description", "window": WINDOW, "reuse": None},
        run={"concurrency": 2} | run,
    )
    return lab, answers


@pytest.mark.parametrize("pipeline", ["full", "lean"])
@pytest.mark.parametrize("kind", SCRIPTS)
def test_items_of_each_kind_are_accepted_and_published(
    make: MakeItems, kind: str, pipeline: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, answers = make(kind, pipeline=pipeline)
    lab.refresh(limit=None)
    results = lab.results()
    assert [one.outcome for one in results.values()] == ["accepted"] * 3, _reasons(results)
    assert {one.semantic_status for one in results.values()} == {"reworded"}
    assert all(one.facts for one in results.values())
    script, arms = answers.script, lab.arms()
    for place, row in enumerate(arms["updated"]):
        old, new, again = script.rows[place], script.written[place], arms["semantic"][place]
        for name in set(new) & set(row) - {"answers"}:
            assert row[name] == new[name]
        if kind.startswith("choice"):
            assert row["answer"] == old["answer"] == again["answer"]
            assert row["choices"] == [new[letter] for letter in "ABCD"]
            assert row["answer_text"] == NEWS[place][0] and again["choices"] == old["choices"]
        elif kind.startswith("answer"):
            assert row["answers"] == [script.truth[new["question"]]]
            assert again["answers"] == old["answers"]
            assert row["tolerance"] == again["tolerance"] == old.get("tolerance")
            assert row["answer_type"] == old.get("answer_type", "text")
        else:
            reports = row["document"].split("\n\n")  # type: ignore[attr-defined]
            assert len(reports) == 2 and all(NEWS[place][0] in one for one in reports)
        assert {name: again[name] for name in script.reworded[place]} == script.reworded[place]
    names = {one.name for one in lab.steps(next(iter(results)))[-1].verdicts}
    beside = {
        "choice": {"new_to_judge", "options"},
        "choice with a context": {"needs_passage", "options"},
        "answer": {"new_to_judge"}, "answer with a context": {"needs_passage"},
    }.get(kind, set())  # fmt: skip
    assert names == {"facts_supported", "label_preserved", "fluency"} | beside
    assert ("label" not in answers.shapes) and ("plan" in answers.shapes) == (pipeline == "full")
    assert lab.files.report_html.exists()
    assert main(["trace", str(lab.files.root), next(iter(results))]) == 0
    assert NEWS[0][0] in capsys.readouterr().out


Spoil = Callable[[dict[str, str]], dict[str, str]]
DEFECTS: dict[str, tuple[str, list[tuple[str, Spoil]]]] = {
    "judges of options": ("choice", [
        ("second_right", lambda new: new | {"B": "Rival"}),
        ("weak_option", lambda new: new | {"C": "Joke"}),
        ("options", lambda new: new | {"B": f"the {new['A']}"}),
    ]),
    "codes of options": ("choice", [
        ("old_answer", lambda new: new | {"A": "Acme"}),
        ("negation", lambda new: new | {"question": f"Except one: {new['question']}"}),
        ("label", lambda new: new | {"question": f"{new['question'][:-1]} perhaps?"}),
    ]),
    "closed book": ("answer", [
        ("answer_words", lambda new: new | {"answers": "Globex"}),
        ("answer_type", lambda new: new | {"answers": "many"}),
        ("answer_told", lambda new: new | {"question": f"Is Tarsen one? {new['question']}"}),
    ]),
    "with a passage": ("answer with a context", [
        ("needs_no_passage", lambda new: new | {"question": f"{new['question'][:-1]} obviously?"}),
        ("answer_missing", lambda new: new | {"answers": "60"}),
        ("answers", lambda new: new | {"answers": "\n".join([new["answers"], *"abcdef"])}),
    ]),
    "summaries": ("summary", [
        ("label", lambda new: new | {"summary": f"{new['summary'][:-1]} maybe."}),
        ("summary_numbers", lambda new: {"summary": new["summary"].replace("17", "71")}),
        ("summary_length", lambda new: new | {"summary": " ".join([new["summary"]] * 3)}),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "spoilt"), DEFECTS.values(), ids=DEFECTS)
def test_each_defect_is_found_and_mended(
    make: MakeItems,
    kind: str,
    spoilt: list[tuple[str, Spoil]],
) -> None:
    lab, answers = make(kind)
    answers.spoil = lambda place, fields: spoilt[place][1](fields)
    lab.refresh(limit=None)
    results = lab.results()
    assert [one.outcome for one in results.values()] == ["accepted"] * 3, _reasons(results)
    assert {one.attempts for one in results.values()} == {2}
    for (name, _), sample_id in zip(spoilt, results, strict=True):
        said = [one.reason for step in lab.steps(sample_id) for one in step.verdicts]
        failed = [
            defect for step in lab.steps(sample_id) for one in step.verdicts if not one.passed
            for defect in [f"{one.name} {one.reason}"]
        ]  # fmt: skip
        told = {"label": "label_preserved", "needs_no_passage": "needs_passage"}.get(name, name)
        assert any(told in one for one in failed), said


def test_what_is_not_mended_is_rejected(make: MakeItems, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = _note_threads(monkeypatch)
    lab, answers = make("choice")
    answers.spoil = lambda place, fields: DEFECTS["judges of options"][1][place][1](fields)
    answers.always = True
    lab.refresh(limit=None)
    results = lab.results()
    assert [one.outcome for one in results.values()] == ["rejected_label"] * 3
    assert all(one.updated is None for one in results.values())
    reasons = _reasons(results)
    assert "option B is right as well" in reasons and "convinces nobody" in reasons
    # a document takes seconds to check, in which no other sample could go on
    assert all(threads.values()), threads
    assert threading.main_thread() not in set().union(*threads.values())


def _note_threads(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[threading.Thread]]:
    """Return the threads in which each check of code runs from now on, by its name."""
    noted = dict[str, set[threading.Thread]]()

    def watch(name: str) -> Callable[..., object]:
        check, seen = getattr(checks, name), noted.setdefault(name, set())

        def run(*args: object, **options: object) -> object:
            seen.add(threading.current_thread())
            return check(*args, **options)

        return run

    for name in ("clean_extraction", "check_rewrite", "check_plan", "check_composition"):
        monkeypatch.setattr(checks, name, watch(name))
    return noted


def test_without_enough_that_may_be_published_no_document_is_made(make: MakeItems) -> None:
    lab, answers = make("summary")
    rows = [
        row | {"document": f"{row['document']} " * 9, "summary": f"{row['summary']} " * 9}
        for row in answers.script.rows
    ]
    rows = [{name: str(text).strip() for name, text in row.items()} for row in rows]
    answers.script = replace(answers.script, rows=rows)
    (lab.folder / "data" / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lab.refresh(limit=None)
    results = lab.results()
    assert {one.outcome for one in results.values()} == {"no_knowledge"}
    assert "words of them may be published" in _reasons(results)
    assert "plan" not in answers.shapes, "no writer was paid"


def test_no_release_and_no_cassette_is_made_of_private_documents(make: MakeItems) -> None:
    lab, _ = make("summary")
    knowledge = lab.changes["knowledge"]
    assert isinstance(knowledge, dict)
    lab.write(knowledge=knowledge | {"documents": "private"})
    lab.refresh(limit=1)
    assert [one.outcome for one in lab.results().values()] == ["accepted"]
    with pytest.raises(
        ReleaseError, match="the run's documents contain publishers' texts"
    ) as caught:
        make_release(lab.files.root, version="1.0.0")
    assert "knowledge.documents: excerpts" in caught.value.hint
    with pytest.raises(CassetteError, match="stay private"):
        record(lab.files.root, lab.folder / "private.cassette")


@pytest.mark.parametrize("kind", ["choice", "answer with a context", "summary"])
def test_a_killed_run_goes_on_and_asks_nothing_twice(make: MakeItems, kind: str) -> None:
    lab, _ = make(kind)
    assert ended(lab.child("refresh", die="after:check:2")) == -signal.SIGKILL
    answered = lab.answered()
    assert answered
    lab.server.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    results = lab.results()
    assert [one.outcome for one in results.values()] == ["accepted"] * 3, _reasons(results)


@pytest.mark.parametrize("kind", ["choice", "answer", "summary"])
def test_batches_give_what_is_given_live(
    make: MakeItems, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, _ = make(kind, batch={"live_below": 0})
    provider = FakeProvider(lab.server.url)
    monkeypatch.setattr(OpenAIChat, "open_batches", lambda _chat: FakeBatches(provider))
    monkeypatch.setattr(batch_rounds, "LONGEST_LOOK_S", 0.01)
    around = RunHooks(waits=True, first_look_s=0.01)
    made = refresh(lab.config, run_dir=lab.files.root, around=around)
    assert made.manifest.status == "complete" and provider.sizes
    results = lab.results()
    assert [one.outcome for one in results.values()] == ["accepted"] * 3, _reasons(results)
    assert set(provider.paid.values()) == {1}


@pytest.mark.parametrize("kind", ["choice", "answer", "summary"])
def test_workers_give_what_one_process_gives(make: MakeItems, kind: str) -> None:
    lab, _ = make(kind, workers=2)
    lab.refresh(limit=None)
    results = lab.results()
    assert [one.outcome for one in results.values()] == ["accepted"] * 3, _reasons(results)


@pytest.mark.parametrize("kind", ["choice", "answer with a context", "summary"])
def test_costs_are_estimated_and_prompts_are_shown_and_tried(
    make: MakeItems, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, _ = make(kind)
    assert main(["estimate", str(lab.config), "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    lab.refresh(limit=None)
    sample_id, of_run = next(iter(lab.results())), ["--run", str(lab.files.root)]
    assert before
    for role in ROLES:
        shown = ["prompts", "show", role, *of_run, "--sample", sample_id]
        assert main(shown) == 0, role
        assert "the run sent exactly these messages" in " ".join(capsys.readouterr().out.split())
        tried = ["prompts", "try", str(lab.config), "--role", role, *of_run, "--limit", "2"]
        assert main([*tried, "--json"]) == 0, role
        (sums,) = json.loads(capsys.readouterr().out)["totals"]
        assert (sums["samples"], sums["valid"]) == (2, 2)


def _reasons(results: dict[str, Result]) -> str:
    return "\n".join(
        f"{one.outcome} {one.semantic_status}: {one.reason}" for one in results.values()
    )
