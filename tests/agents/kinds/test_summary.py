"""Checks of a summary: each bites, and lets through what is right."""

import pytest

from coreeval.agents.kinds import item_kind
from coreeval.agents.kinds.summary import check_summary
from tests.agents.builders import news
from tests.agents.kinds.items import NEWS, SUMMARIES, found, summary, written

DOCUMENT = (
    "Norvik opened a ferry line on Monday. It goes from Bergen to Oslo with 14 ships. The firm "
    "said that the line cost 5.2 million kroner. More ships are to come. Trains are slower."
)
OLD = summary("Acme closed a plant. " * 9, "The firm Acme closed a plant in Rome.")


@pytest.mark.parametrize(
    ("text", "defects"),
    [
        ("The firm Norvik sails 14 ships to Oslo.", []),
        ("The firm Norvik sails 15 ships to Oslo.", ["summary_numbers"]),
        ("The firm Globex sails 14 ships to Oslo.", ["summary_names"]),
        ("Ships sail.", ["summary_length"]),
    ],
)
def test_a_summary_rests_on_its_document(text: str, defects: list[str]) -> None:
    item = written(SUMMARIES, OLD, {"document": DOCUMENT, "summary": text})
    assert found(check_summary, item) == defects


def test_a_document_is_longer_than_its_summary() -> None:
    item = written(
        SUMMARIES, OLD, {"document": "Norvik opens.", "summary": "Norvik opens a line to a port."}
    )
    defects = list(check_summary(item))
    assert {one.check for one in defects} == {"document_length"}
    assert {one.route for one in defects} == {"replace"}


def test_a_document_in_a_script_without_spaces_has_a_length() -> None:
    old = summary("公司在北京成立了一家新的工厂。" * 9, "公司在北京建厂。")
    new = {
        "document": "航运公司在上海开通了新的航线。今年的船比去年多。" * 3,
        "summary": "公司开通新航线。",
    }
    assert found(check_summary, written(SUMMARIES, old, new)) == []


def test_the_document_is_the_news_that_the_plan_cites() -> None:
    item = written(SUMMARIES, OLD, {})
    kind = item_kind(item.task)
    fields = kind.finish(item.task, OLD, {"summary": "New."}, [NEWS])
    assert fields == {"document": f"{NEWS.title}\n{NEWS.snippet}", "summary": "New."}
    assert kind.is_gold(item.task, OLD, fields, "faithful")
    assert not kind.is_gold(item.task, OLD, fields, "incomplete")
    assert kind.ask_facts(item).fields == {"summary": OLD.fields["summary"]}


def test_an_event_without_sentences_besides_its_titles_has_no_material() -> None:
    has_material = item_kind(SUMMARIES).has_material
    title = "Norvik opens a ferry line to Oslo, the longest one in the north of Europe. It sails."
    alone = news(title, key="e2", snippet="")
    one = news(title, key="e3", snippet="Norvik sails 14 ships from Bergen.")
    assert not has_material(SUMMARIES, OLD, [alone, alone])
    assert not has_material(SUMMARIES, OLD, [one])
    assert has_material(SUMMARIES, OLD, [one, one])
    assert has_material(SUMMARIES, OLD, [NEWS])
    assert not has_material(SUMMARIES, summary("Long. " * 90, "word " * 60), [NEWS])
