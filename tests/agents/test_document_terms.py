"""What of a report's text a document may hold."""

import pytest

from coreeval.agents.document_terms import SNIPPET_CHARS, cut_to_terms, may_be_passed_on
from coreeval.agents.kinds import item_kind
from coreeval.tasks import adapt_task
from tests.agents.builders import news
from tests.agents.kinds.items import SUMMARIES, summary

LONG = "Fourteen ships sail to Oslo each week. " * 12
REPORT = news("Norvik opens a line", snippet=LONG)


@pytest.mark.parametrize(
    ("licence", "open_"),
    [
        ("CC BY-SA 4.0", True),
        ("CC BY 4.0", True),
        ("cc0", True),
        ("Public Domain", True),
        ("Apache-2.0", True),
        ("https://creativecommons.org/licenses/by-sa/4.0/", True),
        ("https://creativecommons.org/licenses/by/4.0/", True),
        ("https://creativecommons.org/licenses/by-nc/4.0/", False),
        ("CC BY-NC 4.0", False),
        ("CC-BY-NC-SA 4.0", False),
        ("CC BY-ND 4.0", False),
        ("All rights reserved", False),
        ("", False),
    ],
)
def test_only_open_licences_let_a_text_be_passed_on(licence: str, open_: bool) -> None:
    item = REPORT.model_copy(update={"licence": licence})
    assert may_be_passed_on(item) == open_
    (cut,) = cut_to_terms([item], "excerpts")
    assert (cut.snippet == LONG) == open_
    assert cut_to_terms([item], "private") == [item]


def test_an_excerpt_ends_with_a_whole_word() -> None:
    (cut,) = cut_to_terms([REPORT], "excerpts")
    assert len(cut.snippet) <= SNIPPET_CHARS
    assert LONG.startswith(f"{cut.snippet} ") and cut.title == REPORT.title
    (unspaced,) = cut_to_terms([REPORT.model_copy(update={"snippet": "x" * 900})], "excerpts")
    assert unspaced.snippet == "x" * SNIPPET_CHARS


def test_without_material_for_a_document_there_is_no_item() -> None:
    original = summary("Long. " * 90, "word " * 60)
    task = adapt_task(SUMMARIES, original.fields)
    explain = item_kind(task).explain_no_material
    excerpts = cut_to_terms([REPORT], "excerpts")
    assert "90 are needed, and more than one sentence" in explain(task, original, excerpts)
    assert (
        explain(task, original, [REPORT, news("Norvik opens a line", key="e2", snippet=LONG)]) == ""
    )
    assert "at most 0 words" in explain(task, original, [])
