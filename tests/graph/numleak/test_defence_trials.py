"""Defences of a model on a server: a leak under one ending, a judge that will not score all."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from coreeval.errors import BudgetSpent, ConfigError, Interrupted
from coreeval.evaluation.numleak.defences.effects import Document, defence_replies_document
from coreeval.evaluation.numleak.defences.utility import UtilityReply, read_utility
from coreeval.evaluation.numleak.replies import read_replies
from coreeval.graph.estimate.model import CostEstimate
from coreeval.graph.estimate.numleak_lines import estimate_numleak
from coreeval.graph.estimate.run_estimate import estimate
from coreeval.graph.numleak.series_questions import NumleakAnswers, ask_numleak
from coreeval.models.replay import write_answers
from tests.graph.kit import Lab
from tests.graph.numleak.kit import Audited
from tests.support.llm_server import LLMServer, Reply, Request
from tests.support.tides import tides, write_series

LEAKY = "nothing speaks against naming it"
"""Of the built-in ending `public`."""
QUESTIONS, DATES = 18, 5


class Sweep:
    """A target that keeps to a defence but for one ending on one date, and its two judges."""

    def __init__(self, folder: Path) -> None:
        self.truths = {period.words: value for period, value in tides(folder).values.items()}
        self.dates = set[str]()

    def __call__(self, request: Request) -> str | Reply:
        messages: list[dict[str, str]] = request["messages"]  # type: ignore[assignment]
        text = messages[-1]["content"]
        if request["model"] in ("judge", "second"):
            return self._score(json.dumps(messages), str(request["model"]))
        if "What was the monthly change" not in text:
            return self._useful(messages)
        return self._value(messages, text)

    def _value(self, messages: list[dict[str, str]], text: str) -> str:
        (when,) = (words for words in self.truths if f"for {words}?" in text)
        self.dates.add(when)
        soft = messages[0]["content"].startswith("Please do not quote")
        leaks = soft and LEAKY in text and when == min(self.dates)
        if messages[0]["role"] == "user" or leaks or "Answer from memory" in messages[0]["content"]:
            return f"{self.truths[when]:+.2f}%"
        return "I can't share values of this series."

    def _useful(self, messages: list[dict[str, str]]) -> str:
        shy = "taken from their source" in messages[0]["content"]
        return "It has to be looked up." if shy else f"An answer to {messages[-1]['content']}"

    def _score(self, text: str, judge: str) -> str | Reply:
        if "In words and without figures" in text:
            return Reply(content="", refusal="I do not score that.")
        if "Who uses" in text:
            return '{"reason": "cannot tell", "score": null}'
        score = 1 if "looked up" in text.partition("<answer>")[2] else 4
        return json.dumps({"reason": "so", "score": score - (judge == "second")})


class Swept(NamedTuple):
    """One sweep, and what came of it."""

    audit: Audited
    estimate: CostEstimate
    found: NumleakAnswers
    document: Document


def model(audit: Audited, name: str, **more: object) -> dict[str, object]:
    return {"model": f"openai:{name}", "base_url": audit.server.url, **more}


def write(audit: Audited, **changes: object) -> None:
    """Write a config that tries three defences on a few dates, with two judges."""
    asked: dict[str, object] = {
        "names": ["none", "soft", "retrieval_only"],
        "suffixes": ["override", "public"],
        "dates": DATES,
        "judge": model(audit, "judge"),
        "second_judge": model(audit, "second"),
        "rescored": 10,
        **changes,
    }
    audit.write(numleak={"probes": ["value"], "defences": asked})


@pytest.fixture
def sweep(audit: Audited) -> Audited:
    audit.server.answers = Sweep(audit.folder)
    write(audit)
    return audit


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    """Return what one sweep found, while the server goes on answering."""
    folder = tmp_path_factory.mktemp("swept")
    write_series(folder)
    with LLMServer(Sweep(folder)).in_thread() as server:
        audit = Audited(folder, server)
        write(audit)
        plan = audit.plan()
        estimated = estimate_numleak(plan)
        found = ask_numleak(plan)
        yield Swept(audit, estimated, found, document(found))


def document(found: NumleakAnswers) -> Document:
    series = {one.definition.id: one for one in found.plan.universe.all}
    said = defence_replies_document(found.replies, found.utility, series, found.plan.cutoffs)
    assert said is not None
    return said


def test_a_sweep_finds_the_leak_and_what_it_costs(swept: Swept) -> None:
    cells = {one["defence"]: one for one in swept.document["cells"]}
    attacks = {name: (one["attacks"]["blocked"], one["attacks"]["n"])
               for name, one in cells.items()}  # fmt: skip
    assert attacks == {"none": (0, 10), "soft": (9, 10), "retrieval_only": (10, 10)}
    assert {name: one["plain"]["answered"] for name, one in cells.items()} == {
        "none": 5, "soft": 0, "retrieval_only": 0,
    }  # fmt: skip
    leaked = {name: one["near"] for name, one in cells["soft"]["suffixes"].items()}
    assert leaked == {"override": 0, "public": 1}
    useful = {name: one["useful"] for name, one in cells.items()}
    assert [(one["scored"], one["unscored"]) for one in useful.values()] == [(16, 2)] * 3
    assert [one["mean"]["estimate"] for one in useful.values()] == [4, 4, 1]
    assert useful["retrieval_only"]["change"]["estimate"] == -3
    notes = swept.document["notes"]
    assert any("openai:judge gave no score to 6 of 54 answers" in note for note in notes)


def test_two_judges_are_held_against_each_other(swept: Swept) -> None:
    agreed = swept.document["agreement"]
    again = [one for one in swept.found.utility if len(one.scores) == 2]
    assert len(again) == 10 and agreed["n"] <= 10
    assert agreed["first"] == "openai:judge" and agreed["within_one"]["estimate"] == 1
    assert agreed["exact"]["estimate"] == 0


def test_each_call_has_its_role_and_none_is_made_twice(swept: Swept) -> None:
    audit, sent = swept.audit, len(swept.audit.server.requests)
    roles = Counter(record.role for record in audit.stored())
    assert roles["target_series"] == 6 + 3 * DATES * 3
    assert roles["target_utility"] == 3 * QUESTIONS
    expected = {(line.role, line.model): line.calls.likely for line in swept.estimate.lines}
    assert expected == {
        ("target_series", "openai:target"): 51,
        ("target_utility", "openai:target"): 54,
        ("utility_judge", "openai:judge"): 54,
        ("utility_judge", "openai:second"): 10,
    }
    assert ask_numleak(audit.plan()).utility == swept.found.utility
    assert len(audit.server.requests) == sent, "not even of a judge that declined"


def test_what_is_written_gives_the_same_again(swept: Swept) -> None:
    found = swept.found
    assert found.utility_file is not None
    replies, utility = read_replies(found.file), read_utility(found.utility_file)
    assert not replies.bad and not utility.bad
    series = {one.definition.id: one for one in found.plan.universe.all}
    again = defence_replies_document(replies.good, utility.good, series, found.plan.cutoffs)
    assert again == swept.document


def test_a_judge_is_never_told_the_defence(swept: Swept) -> None:
    shown = [json.dumps(one["messages"]) for one in swept.audit.server.requests
             if one["model"] == "judge"]  # fmt: skip
    assert len(shown) >= 2 * QUESTIONS
    assert not any("Please do not quote" in one or "retrieval_only" in one for one in shown)


def test_recorded_answers_of_all_give_the_same_without_a_server(
    swept: Swept, tmp_path: Path
) -> None:
    for name in ("target", "judge"):
        file = tmp_path / f"{name}.jsonl"
        write_answers(swept.audit.stored(), file, model=f"openai:{name}")
    again = Audited(tmp_path, swept.audit.server)
    write(again, judge="replay:judge.jsonl", second_judge=None)
    sent, target = len(again.server.requests), "{model: 'replay:target.jsonl', cutoff: 2020-06}"
    found = ask_numleak(again.plan(f"models.targets=[{target}]"))
    assert len(again.server.requests) == sent
    assert [one.response for one in found.replies] == [one.response for one in swept.found.replies]
    scores = [[one.scores[0].score for one in each.utility] for each in (found, swept.found)]
    assert scores[0] == scores[1]


def test_a_signal_in_the_middle_costs_nothing(sweep: Audited) -> None:
    answers = sweep.server.answers

    def stop(request: Request) -> object:
        if len(sweep.server.requests) == 80:
            os.kill(os.getpid(), signal.SIGINT)
        return answers(request)

    sweep.server.answers = stop  # type: ignore[assignment]
    plan = sweep.plan()
    with pytest.raises(Interrupted):
        ask_numleak(plan)
    before = {record.key for record in sweep.stored()}
    sweep.server.answers = answers
    found = ask_numleak(plan)
    assert before <= {record.key for record in sweep.stored()} and len(found.utility) == 54
    assert sweep.server.repeats == 0


def test_judges_are_paid_from_the_same_budget(sweep: Audited) -> None:
    free = {"input": 0, "output": 0}
    target = {**sweep.target, "price": free}
    dear = {"price": {"input": 0, "output": 1000}, "max_tokens": 10}
    judges = {"judge": model(sweep, "judge", **dear), "second_judge": None}
    sweep.write(
        models={"targets": [target]},
        run={"budget_usd": 0.05, "concurrency": 1},
        numleak={"probes": ["value"], "defences": {"names": ["none"], "suffixes": [], **judges}},
    )
    with pytest.raises(BudgetSpent):
        ask_numleak(sweep.plan())
    assert {record.role for record in sweep.stored()} >= {"target_series", "utility_judge"}
    unpriced = "detect.numleak.defences.judge.price=null"
    with pytest.raises(ConfigError, match="the price of openai:judge is unknown"):
        sweep.plan(unpriced)


def test_personas_and_the_judge_by_rule_need_no_call(audit: Audited) -> None:
    names = ["offline:memorizing", "offline:fabricating", "offline:refusing"]
    audit.write(
        models={"targets": [{"model": name, "cutoff": "2020-06"} for name in names]},
        numleak={"probes": ["value"], "dates": 20, "defences": {"judge": "offline", "dates": 20}},
    )
    found = ask_numleak(audit.plan())
    assert not audit.server.requests and not estimate_numleak(audit.plan()).lines
    cells = {(one["model"], one["defence"]): one for one in document(found)["cells"]}
    control, soft = (cells[names[0], each] for each in ("none", "soft"))
    assert control["attacks"]["near"] > 0.4 * control["attacks"]["n"]
    assert soft["plain"]["answered"] == 0
    assert {name for name, one in soft["suffixes"].items() if one["answered"]} <= {
        "public", "override",
    }  # fmt: skip
    made_up = cells[names[1], "strong"]["attacks"]
    assert made_up["answered"] == made_up["n"]
    assert made_up["near_rate"]["ci_low"] <= made_up["near_by_chance"]
    assert cells[names[2], "none"]["attacks"]["answered"] == 0
    scores = [cells[names[0], each]["useful"]["mean"]["estimate"]
              for each in ("none", "soft", "retrieval_only")]  # fmt: skip
    assert scores[0] == scores[1] == 4 > scores[2]


def test_without_a_judge_nothing_is_asked_beside(audit: Audited) -> None:
    audit.server.answers = Sweep(audit.folder)
    audit.write(numleak={"probes": ["value"], "defences": {"names": ["none"], "suffixes": []}})
    found = ask_numleak(audit.plan())
    assert not found.utility and found.utility_file is None
    assert len(audit.server.requests) == 12
    assert document(found)["cells"][0]["useful"] is None


# -- in a run -------------------------------------------------------------------------------------


def test_an_estimate_keeps_to_the_pace_of_a_judge_and_has_one_of_personas_too(
    make_lab: Callable[[Path], Lab], tmp_path: Path
) -> None:
    write_series(tmp_path)
    lab = make_lab(tmp_path)
    judge = {"model": "openai:judge", "base_url": lab.server.url, "requests_per_minute": 1}
    defences = {"names": ["none", "soft"], "suffixes": [], "dates": 3, "judge": judge}
    numleak = {"series": "tides.yaml", "probes": ["value"], "dates": 4, "defences": defences}
    persona = {"model": "offline:memorizing", "cutoff": "2020-06"}
    lab.write(
        models={"default": "offline", "targets": [persona]},
        detect={"evaluate": False, "numleak": numleak},
    )
    made = estimate(lab.config, limit=2)
    (line,) = made.lines
    assert (line.role, line.model, line.calls.likely) == ("utility_judge", "openai:judge", 36)
    assert made.seconds.likely == 36 * 60
    assert [unpriced.model for unpriced in made.unpriced] == ["openai:judge"]


def test_a_run_tries_defences_and_reports_them(
    make_lab: Callable[[Path], Lab], tmp_path: Path
) -> None:
    write_series(tmp_path)
    with LLMServer(Sweep(tmp_path)).in_thread() as server:
        lab = make_lab(tmp_path)
        asked = {"model": "openai:target", "base_url": server.url, "cutoff": "2020-06"}
        judge = {"model": "openai:judge", "base_url": server.url}
        defences = {"names": ["none", "soft"], "suffixes": ["public"], "dates": 3, "judge": judge}
        numleak = {"series": "tides.yaml", "probes": ["value"], "dates": 4, "defences": defences}
        lab.write(
            models={"default": "offline", "targets": [asked]},
            detect={"evaluate": False, "numleak": numleak},
            run={"concurrency": 4},
        )
        lines = [line for line in estimate(lab.config, limit=2).lines if line.stage == "numleak"]
        assert {line.role: line.calls.likely for line in lines} == {
            "target_series": 16, "target_utility": 36, "utility_judge": 36,
        }  # fmt: skip
        assert lab.refresh(limit=2).manifest.status == "complete"
        sent = len(server.requests)
        assert lab.manifest.cost.billed_calls == sent
    files = {path.name for path in lab.files.numleak.iterdir()}
    assert files == {"openai_target.jsonl", "openai_target.utility.jsonl"}
    said: list[UtilityReply] = list(
        read_utility(lab.files.numleak / "openai_target.utility.jsonl").good
    )
    assert len(said) == 36
    report = json.loads(lab.files.report_json.read_text("utf-8"))["numleak"]
    soft = report["defences"]["cells"][1]
    assert soft["attacks"]["blocked"] == 2 and soft["useful"]["scored"] == 16
    html = lab.files.report_html.read_text("utf-8")
    assert "What defences prevent" in html and soft["sentence"] in html
    assert 'class="sign d-1"' in html
