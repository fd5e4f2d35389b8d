"""What the checks take for facts of an item: its triples, its habits, and when it happened."""

from datetime import UTC, datetime

import pytest

from coreeval.agents.checks import check_composition, check_plan, clean_extraction
from coreeval.agents.text.support import name_month
from coreeval.agents.text.voice import find_machine_marks
from coreeval.schema import (
    Evidence,
    Extraction,
    FieldTriple,
    Plan,
    Replacement,
    Sample,
    Statement,
    Task,
    Triple,
)
from coreeval.tasks import adapt_task
from tests.agents.builders import PAIRS, WINDOW, news, request, sample
from tests.agents.kinds.items import CLOSED, SUMMARIES, answer, choice, task

TOLD = FieldTriple(head="Ajax", relation="won", tail="the cup", field="question")


def _triples(of: Task, one: Sample, triple: FieldTriple = TOLD) -> tuple[FieldTriple, ...]:
    adapted = adapt_task(of, one.fields)
    return clean_extraction(adapted, one, Extraction(triples=(triple,))).triples


def test_a_fact_of_an_item_may_begin_in_the_answer_and_end_in_the_question() -> None:
    closed = answer("Ajax", question="Who won the cup?")
    assert _triples(CLOSED, closed) == (TOLD,)
    assert _triples(task("choice", "question"), choice(["Porto", "Ajax"], "B")) == (TOLD,)
    assert _triples(CLOSED, answer("Porto", question="Who won the cup?")) == ()


def test_a_plan_may_replace_a_fact_that_begins_in_the_answer() -> None:
    closed, item = answer("Ajax", question="Who won the cup?"), news("Porto wins the league")
    said = Statement(
        text="Porto wins the league",
        evidence_ids=(item.id,),
        quote="Porto wins the league",
        modality="asserted",
    )
    change = Replacement(
        before=Triple(head="Ajax", relation="won", tail="the cup"),
        after=Triple(head="Porto", relation="wins", tail="the league"),
        mode="replace",
        field="question",
        statement_index=0,
        same_type=True,
    )
    plan = Plan(decision="use", statements=(said,), replacements=(change,), replaces_all=True)
    of = adapt_task(CLOSED, closed.fields)
    assert check_plan(of, closed, Extraction(), plan, (item,), WINDOW) == []
    other = closed.model_copy(update={"fields": closed.fields | {"answers": "Benfica"}})
    (defect,) = check_plan(of, other, Extraction(), plan, (item,), WINDOW)
    assert defect.message == "'Ajax' does not occur in question"


def test_a_fact_of_a_pair_stands_in_one_of_its_texts() -> None:
    pair = sample("Ajax played.", "Who won the cup?")
    assert _triples(PAIRS, pair, TOLD.model_copy(update={"field": "sentence2"})) == ()


def _defects(of: Task, original: Sample, changes: dict[str, str], item: Evidence) -> list[str]:
    adapted, plan = adapt_task(of, original.fields), Plan(decision="use", replaces_all=True)
    given = request(original, plan=plan, evidence=(item,), extraction=Extraction())
    found = check_composition(adapted, given, original.fields | changes, WINDOW)
    return [defect.check for defect in found if defect.check in ("dates", "numbers")]


SAID = news("Ajax wins the cup", at=datetime(2026, 3, 14, tzinfo=UTC))


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Who won the cup in March 2026?", []),
        ("Who won the cup in April 2026?", ["dates"]),
        ("Who won the cup on 14 March 2026?", ["numbers"]),
        ("Who won the cup in March 2025?", ["numbers"]),
    ],
)
def test_a_question_may_tell_the_month_of_its_news(question: str, found: list[str]) -> None:
    original = answer("Porto", question="Who won the cup in May 2012?")
    assert _defects(CLOSED, original, {"question": question, "answers": "Ajax"}, SAID) == found


def test_a_summary_tells_no_date_that_its_document_lacks() -> None:
    fields = {"document": "Porto won the cup. It had lost it.", "summary": "Porto won."}
    one = Sample(id="s", split="test", fields=fields, label=0, label_text="summary")
    assert "dates" in _defects(SUMMARIES, one, {"summary": "Ajax won in March."}, SAID)


@pytest.mark.parametrize(
    ("day", "source", "month"),
    [
        (datetime(2026, 3, 3, tzinfo=UTC), "gdelt", "March 2026"),
        (datetime(2026, 3, 2, tzinfo=UTC), "gdelt", "2026"),
        (datetime(2026, 1, 1, tzinfo=UTC), "gdelt", ""),
        (datetime(2026, 1, 1, tzinfo=UTC), "current_events", "January 2026"),
    ],
)
def test_news_of_the_first_days_may_be_of_the_month_before(
    day: datetime, source: str, month: str
) -> None:
    item = news("Ajax wins", at=day).model_copy(update={"source": source})
    assert name_month(item) == month


def test_a_score_is_no_dash_of_a_machine() -> None:
    assert find_machine_marks("won 6\u20134, 6\u20132") == []
    assert find_machine_marks("won \u2013 at last; in 2026\u2013") == ["\u2013", ";", "\u2013"]
