from typing import Literal

import pytest

from coreeval.agents.kinds import WrittenItem, item_kind
from coreeval.agents.reflect import (
    NextAttempt,
    choose_outcome,
    decide_next,
    find_ease_defects,
    find_fact_defects,
    find_fluency_defects,
    find_label_defects,
    is_contrary,
    share_defect,
)
from coreeval.schema import (
    Certainty,
    Confidence,
    Defect,
    DefectKind,
    Evidence,
    FactVerdict,
    JudgedStatement,
    LabelVerdict,
    Outcome,
    Plan,
    Route,
    Task,
)
from coreeval.tasks import load_task

from .builders import PREMISES, TWEETS, news, sample, statement

TITLE = "Gold tops $4, 500 an ounce"
GOOD = {
    "text": "Gold topped $4,500.",
    "field": "text",
    "kind": "fact",
    "supported": "yes",
    "evidence_id": "e1",
    "quote": "Gold tops $4,500",
}


PLAN = Plan(decision="use", statements=(statement("Gold topped $4,500 an ounce"),))


def defects(**changes: object) -> list[Defect]:
    judged = JudgedStatement.model_validate(GOOD | changes)
    verdict = FactVerdict(statements=(judged,))
    return find_facts(TWEETS, {"text": "Gold topped $4,500. Yay"}, verdict, [news(TITLE)])


def find_facts(
    task: Task, fields: dict[str, str], verdict: FactVerdict, evidence: list[Evidence]
) -> list[Defect]:
    item = WrittenItem(task=task, sample=sample("x"), fields=fields, evidence=evidence)
    return find_fact_defects(item_kind(task).ask_facts(item), fields, verdict, PLAN)


def test_a_yes_with_a_quotation_that_occurs_is_enough() -> None:
    assert defects() == []


@pytest.mark.parametrize(
    ("changes", "route"),
    [
        ({"evidence_id": "e9"}, "replace"),
        ({"quote": "Gold tops $4,600"}, "replace"),
        ({"quote": ""}, "replace"),
        ({"supported": "no"}, "replace"),
        ({"supported": "not_needed"}, "replace"),
        ({"supported": "no", "defect": "identity"}, "replace"),
        ({"supported": "no", "defect": "relation"}, "compose"),
        ({"supported": "no", "defect": "memory"}, "replace"),
        ({"supported": "no", "defect": "person"}, "evidence"),
        ({"supported": "no", "defect": "number"}, "compose"),
        ({"supported": "no", "defect": "stale"}, "compose"),
        ({"defect": "modality"}, "compose"),
        ({"kind": "attributed", "supported": "no"}, "replace"),
        ({"kind": "opinion", "supported": "not_needed", "defect": "person"}, "evidence"),
        ({"field": "elsewhere", "supported": "no"}, "replace"),
    ],
)
def test_what_is_not_supported_goes_back_to_who_can_mend_it(
    changes: dict[str, object], route: Route
) -> None:
    (defect,) = defects(**changes)
    assert (defect.kind, defect.route) == ("facts", route)
    assert "Gold topped $4,500." in defect.message


@pytest.mark.parametrize(
    ("changes", "route"),
    [
        ({"defect": "unsupported"}, "compose"),
        ({"defect": "memory"}, "compose"),
        ({"defect": "person"}, "evidence"),
        ({"defect": "relation"}, "compose"),
    ],
)
def test_what_the_plan_does_not_say_either_was_added_by_the_composer(
    changes: dict[str, object], route: Route
) -> None:
    claim = {"text": "Miners celebrated the record.", "words": "miners party", "supported": "no"}
    (defect,) = defects(**claim, **changes)
    assert defect.route == route
    assert "'miners party'" in defect.message


def test_what_a_judge_finds_again_goes_back_to_the_plan() -> None:
    def route(check: str, before: str) -> object:
        first = Defect(check=before, kind="facts", message="in the first text", route="compose")
        second = Defect(check=check, kind="facts", message="in the second", route="compose")
        return decide_next([second], previous=[first], attempt=2, max_attempts=3)

    assert route("facts_relation", "facts_number") == NextAttempt(route="compose")
    assert route("facts_relation", "facts_relation") == NextAttempt(route="replace")
    assert route("fluency", "fluency") == NextAttempt(route="replace")
    assert route("length", "length") == NextAttempt(route="compose")


@pytest.mark.parametrize("kind", ["opinion", "hypothetical", "personal", "question"])
def test_other_classes_need_no_evidence(kind: str) -> None:
    assert defects(kind=kind, supported="not_needed", evidence_id="", quote="") == []


def test_a_text_without_judged_statements_is_not_supported() -> None:
    (defect,) = find_facts(TWEETS, {"text": "Gold!"}, FactVerdict(statements=()), [])
    assert defect.check == "facts_unjudged"


def test_a_hypothesis_needs_no_evidence_but_does_no_harm() -> None:
    fields = {"sentence1": "Gold topped $4,500.", "sentence2": "Silver fell."}
    premise = JudgedStatement.model_validate(GOOD | {"field": "sentence1"})
    other = JudgedStatement.model_validate(GOOD | {"field": "sentence2", "supported": "no"})
    harm = other.model_copy(update={"defect": "person"})
    verdict = FactVerdict(statements=(premise, other))
    assert find_facts(PREMISES, fields, verdict, [news(TITLE)]) == []
    verdict = FactVerdict(statements=(premise, harm))
    assert [d.route for d in find_facts(PREMISES, fields, verdict, [news(TITLE)])] == ["evidence"]


@pytest.mark.parametrize(
    ("label", "passes"),
    [("joy", True), ("Happy", True), ("sadness", False), ("unclear", False), ("rage", False)],
)
def test_the_label_must_be_the_samples(label: str, passes: bool) -> None:
    item = WrittenItem(task=TWEETS, sample=sample("x"), fields={"text": "x"})
    found = find_label_defects(item, LabelVerdict(label=label, cue="so blue"))
    assert (found == []) is passes
    assert all("so blue" in d.message and d.route == "compose" for d in found)


@pytest.mark.parametrize(
    ("verdict", "contrary"),
    [
        (LabelVerdict(label="sadness"), True),
        (LabelVerdict(label="sadness", confidence="high"), True),
        (LabelVerdict(label="sadness", confidence="low"), False),
        (LabelVerdict(label="unclear", confidence="high"), False),
        (LabelVerdict(label="Joy", confidence="high"), False),
        (LabelVerdict(label=""), False),
    ],
)
def test_only_a_definite_other_label_is_contrary(verdict: LabelVerdict, contrary: bool) -> None:
    assert is_contrary(TWEETS, sample("x"), verdict) is contrary


def defect(kind: DefectKind, message: str = "m") -> Defect:
    return Defect(check="c", kind=kind, message=message, route="compose")


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        ([], "accepted"),
        (["form"], "rejected_form"),
        (["form", "label"], "rejected_label"),
        (["form", "label", "facts"], "rejected_facts"),
        (["facts", "unsafe"], "unsafe"),
    ],
)
def test_the_gravest_kind_decides(kinds: list[DefectKind], outcome: Outcome) -> None:
    assert choose_outcome([defect(kind) for kind in kinds]) == outcome


def test_the_same_defect_twice() -> None:
    one, other = defect("form", "a"), defect("form", "b")
    assert share_defect([one, other], [one])
    assert not share_defect([one], [other])
    assert not share_defect([], [])


@pytest.mark.parametrize(
    ("original", "new", "route"),
    [
        (3, 3, None),
        (3, 2, "compose"),
        (3, 1, "evidence"),
        (2, 2, None),
        (2, 1, "evidence"),
        (1, 1, None),
    ],
)
def test_a_text_reads_no_worse_than_its_original(
    original: int, new: Literal[1, 2, 3], route: str | None
) -> None:
    verdict = LabelVerdict(label="joy", fluency=new, odd="the turtles")
    found = find_fluency_defects(verdict, original)
    assert [(defect.kind, defect.route) for defect in found] == ([("form", route)] if route else [])
    assert all("the turtles" in defect.message for defect in found)


@pytest.mark.parametrize(
    ("original", "text", "found"),
    [
        ("low", "high", True),
        ("medium", "high", True),
        ("medium", "medium", False),
        ("high", "high", False),
        ("unclear", "high", False),
    ],
)
def test_a_text_whose_label_is_plainer_is_returned(
    original: Certainty, text: Confidence, found: bool
) -> None:
    item = WrittenItem(task=TWEETS, sample=sample("x"), fields={"text": "Yay"}, evidence=[])
    verdict = LabelVerdict(label="joy", cue="Yay", confidence=text)
    plainer = find_ease_defects(item, verdict, original)
    assert [(one.check, one.route) for one in plainer] == ([("ease", "compose")] if found else [])


def test_the_words_of_the_original_are_not_plainer() -> None:
    item = WrittenItem(task=TWEETS, sample=sample("So glad"), fields={"text": "glad"}, evidence=[])
    assert not find_ease_defects(
        item, LabelVerdict(label="joy", cue="glad", confidence="high"), "low"
    )


def test_a_question_is_not_returned_for_an_easy_answer() -> None:
    task = load_task("question_answering")
    item = WrittenItem(task=task, sample=sample("x"), fields={}, evidence=[])
    assert not find_ease_defects(item, LabelVerdict(label="Rome", confidence="high"), "low")
