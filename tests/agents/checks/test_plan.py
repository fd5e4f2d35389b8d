from datetime import UTC, datetime

import pytest

from coreeval.agents.checks import check_plan
from coreeval.agents.checks.context import UNRESTRAINED, Restraint
from coreeval.agents.roles import PlanWithText
from coreeval.agents.safety import build_takedown
from coreeval.schema import (
    Composition,
    Defect,
    Deletion,
    Evidence,
    Extraction,
    Lock,
    Person,
    Plan,
    Replacement,
    Statement,
    Triple,
)

from ..builders import STANCE, TWEETS, WINDOW, news, replacement, sample, statement

ORIGINAL = sample("So Ford cut 900 jobs, poor Hillary #SemST")
TITLE = (
    "Chevron to cut 800 jobs: \u2018hard\u2019 year, says CEO of oil major as crude falls 1. 5 %"
)
TRUE = statement("Chevron cuts 800 jobs", quote="Chevron to cut 800 jobs")
CHANGE = replacement(("Ford", "cut", "900 jobs"), ("Chevron", "cuts", "800 jobs"))


def check(
    *,
    statements: tuple[Statement, ...] = (TRUE,),
    changes: tuple[Replacement, ...] = (CHANGE,),
    evidence: tuple[Evidence, ...] | None = None,
    extraction: Extraction | None = None,
    delete: tuple[Deletion, ...] = (),
    persons: tuple[Person, ...] = (),
    restraint: Restraint = UNRESTRAINED,
) -> list[Defect]:
    plan = Plan(
        decision="use",
        statements=statements,
        replacements=changes,
        delete=delete,
        persons=persons,
    )
    offered = (news(TITLE),) if evidence is None else evidence
    found = extraction or Extraction()
    return check_plan(TWEETS, ORIGINAL, found, plan, offered, WINDOW, restraint=restraint)


def names(defects: list[Defect]) -> list[str]:
    return [defect.check for defect in defects]


def test_a_supported_plan_passes() -> None:
    assert check() == []


def test_a_triple_names_a_listed_person_only_if_the_original_does() -> None:
    changes = (replacement(("Ford", "cut", "jobs of Chuck Ford"), ("Chevron", "cuts", "800 jobs")),)
    own = Restraint(takedown=build_takedown(["Ford", "Hillary"]))
    assert check(changes=changes, restraint=own) == []
    [defect] = check(changes=changes, restraint=Restraint(takedown=build_takedown(["Chuck Ford"])))
    assert (defect.check, defect.route) == ("takedown", "replace")


@pytest.mark.parametrize("decision", ["none_fits", "unsafe"])
def test_a_plan_that_uses_nothing_has_nothing_wrong(decision: str) -> None:
    plan = Plan.model_validate({"decision": decision})
    assert check_plan(STANCE, ORIGINAL, Extraction(), plan, [], WINDOW) == []


def test_news_is_used_in_statements_and_replacements() -> None:
    assert names(check(statements=(), changes=())) == ["plan_content"]


def test_evidence_must_have_been_offered() -> None:
    assert names(check(statements=(statement("x", evidence_ids=("e9",)),))) == ["evidence_id"]


def test_quotations_must_be_in_what_is_cited() -> None:
    wrong = statement("Chevron cuts 800 jobs", quote="Chevron has cut 800 jobs")
    assert names(check(statements=(wrong,))) == ["quote"]


@pytest.mark.parametrize(
    ("text", "check_name", "word"),
    [
        ("Chevron cuts 800 jobs in Texas", "statement_words", "texas"),
        ("Chevron cuts 850 jobs", "statement_numbers", "850"),
        ("Chevron secretly cuts jobs", "statement_words", "secretly"),
        ("They said Chevron cuts jobs", "statement_words", ""),
    ],
)
def test_statements_say_nothing_new(text: str, check_name: str, word: str) -> None:
    title = TITLE.replace("says ", "")
    statements = (statement(text, quote="800 jobs"),)
    (defect,) = check(statements=statements, evidence=(news(title),))
    assert (defect.check, defect.route, defect.kind) == (check_name, "replace", "facts")
    assert word in defect.message


@pytest.mark.parametrize(
    "text",
    [
        "Crude fell by 1.5 percent",
        "The chief executive officer says it is a hard year for the oil major",
        "Eight hundred jobs are to be cut",
    ],
)
def test_spelling_and_inflection_are_no_new_words(text: str) -> None:
    assert check(statements=(statement(text, quote="crude falls 1.5 %"),)) == []


@pytest.mark.parametrize("text", ["said it is a hard year", "calls it a hard year"])
def test_a_reporting_verb_belongs_to_an_attributed_statement(text: str) -> None:
    title = TITLE.replace("says ", "")
    said = statement(f"The CEO {text}", quote="hard", modality="attributed", speaker="CEO")
    assert check(statements=(said,), evidence=(news(title),)) == []


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (("Exxon", "cuts", "800 jobs"), ["triple_words"]),
        (("Chevron", "cuts", "80 jobs"), ["triple_numbers"]),
        (("my family", "has", "800 jobs"), []),
        (("Chevron", "was_accused of", "800 jobs"), ["relation"]),
        (("Chevron", "operates_in", "oil"), []),
    ],
)
def test_new_triples_come_from_the_evidence(after: tuple[str, str, str], found: list[str]) -> None:
    change = replacement(("Ford", "cut", "900 jobs"), after)
    assert names(check(changes=(change,))) == found


def test_each_triple_is_held_against_its_own_statement() -> None:
    other = statement("Gold rises", evidence_ids=("e2",))
    change = CHANGE.model_copy(update={"statement_index": 1})
    found = check(
        statements=(TRUE, other),
        changes=(change,),
        evidence=(news(TITLE), news("Gold rises", key="e2")),
    )
    assert set(names(found)) == {"triple_words", "triple_numbers"}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"statement_index": 3}, ["statement_index"]),
        ({"field": "title"}, ["field"]),
        ({"before": None}, ["before"]),
        ({"before": {"head": "Exxon", "relation": "cut", "tail": "jobs"}}, ["before"]),
    ],
)
def test_a_replacement_points_at_what_exists(changes: dict[str, object], found: list[str]) -> None:
    change = Replacement.model_validate(CHANGE.model_dump() | changes)
    assert names(check(changes=(change,))) == found


def test_locked_spans_are_neither_replaced_nor_deleted() -> None:
    locks = tuple(Lock(span=span, field="text", why="target") for span in ("Ford", "poor Hillary"))
    gone = (Deletion(span="Hillary", field="text", why="old"),)
    found = check(extraction=Extraction(locked=locks), delete=gone)
    assert names(found) == ["lock", "lock"]
    assert all(defect.route == "replace" for defect in found)


def test_the_text_of_a_plan_shows_whether_a_locked_head_stayed() -> None:
    locked = Extraction(locked=(Lock(span="Ford", field="text", why="target"),))
    assert names(check(extraction=locked)) == ["lock"]
    plan = PlanWithText(
        decision="use",
        statements=(TRUE,),
        replacements=(CHANGE,),
        text=Composition(
            fields={"text": "Ford, look: Chevron cuts 800 jobs"}, used_replacements=(0,)
        ),
    )
    assert names(check_plan(TWEETS, ORIGINAL, locked, plan, (news(TITLE),), WINDOW)) == []


def test_whoever_is_addressed_may_be_the_head_of_an_old_fact() -> None:
    text = "@user wants a Ford"
    old = Triple(head="@user", relation="wants", tail="Ford")
    plan = Plan(
        decision="use",
        statements=(TRUE,),
        replacements=(CHANGE.model_copy(update={"before": old}),),
    )
    locked = Extraction(locked=(Lock(span="@user", field="text", why="mention"),))
    sample = ORIGINAL.model_copy(update={"fields": {"text": text}})
    assert names(check_plan(TWEETS, sample, locked, plan, (news(TITLE),), WINDOW)) == []


def test_what_is_deleted_must_be_there() -> None:
    assert names(check(delete=(Deletion(span="Texas", field="text", why="old"),))) == ["delete"]


@pytest.mark.parametrize(
    ("at", "found"),
    [
        (datetime(2025, 12, 31, 23, 59, tzinfo=UTC), ["window"]),
        (datetime(2026, 1, 1, tzinfo=UTC), []),
        (datetime(2026, 7, 1, tzinfo=UTC), ["window"]),
    ],
)
def test_the_window_has_its_start_and_not_its_end(at: datetime, found: list[str]) -> None:
    assert names(check(evidence=(news(TITLE, at=at),))) == found


def test_a_question_is_not_a_fact() -> None:
    asked = statement("Chevron cuts 800 jobs", quote="Chevron cut 800 jobs")
    title = "Did Chevron cut 800 jobs?"
    assert names(check(statements=(asked,), evidence=(news(title),))) == ["modality"]
    told = news(title, snippet="Chevron cut 800 jobs.")
    assert check(statements=(asked,), evidence=(told,)) == []
    question = asked.model_copy(update={"modality": "question"})
    assert check(statements=(question,), evidence=(news(title),)) == []


def test_a_hedge_is_kept() -> None:
    hedged = (news("Chevron could cut at least 800 jobs"),)
    bare = statement("Chevron cuts 800 jobs", quote="Chevron could cut at least 800 jobs")
    assert names(check(statements=(bare,), evidence=hedged)) == ["modality", "modality"]
    kept = bare.model_copy(update={"text": "Chevron could cut at least 800 jobs"})
    assert check(statements=(kept,), evidence=hedged) == []


def test_a_hedge_of_another_clause_binds_nobody() -> None:
    title = "Chevron nearly doubles sales, but cuts 800 jobs"
    told = statement("Chevron cuts 800 jobs", quote=title)
    assert check(statements=(told,), evidence=(news(title),)) == []
    dropped = statement("Chevron doubles sales and cuts 800 jobs", quote=title)
    assert names(check(statements=(dropped,), evidence=(news(title),))) == ["modality"]


@pytest.mark.parametrize(
    ("name", "polarity", "found"),
    [
        ("Mike Wirth", "negative", ["person"]),
        ("Mike Wirth", "neutral", []),
        ("Hillary Clinton", "negative", []),
    ],
)
def test_nothing_negative_about_somebody_new(name: str, polarity: str, found: list[str]) -> None:
    person = Person.model_validate({"name": name, "role": "subject", "polarity": polarity})
    defects = check(persons=(person,))
    assert names(defects) == found
    assert all(defect.route == "evidence" for defect in defects)
