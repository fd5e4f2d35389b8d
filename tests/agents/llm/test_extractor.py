"""The extractor keeps what stands in the text, and never loses a warning."""

import pytest

from coreeval.agents.extractor import LLMExtractor, LLMExtractorRewriter
from coreeval.agents.roles import ExtractionWithRewrite
from coreeval.models import InvalidAnswer
from coreeval.schema import Sensitive
from tests.agents.llm.conftest import Script
from tests.agents.llm.support import EMOTION, PAIR, PROMPTS, RTE, TWEET


def entity(span: str, field: str = "text", **more: object) -> dict[str, object]:
    told = {"kind": "named", "type": "organisation", "query_name": span, "aliases": []}
    return {"span": span, "field": field, **told, **more}


def lock(span: str, field: str = "text") -> dict[str, object]:
    return {"span": span, "field": field, "why": "label_carrier"}


def answer(**parts: object) -> dict[str, object]:
    empty: dict[str, object] = {
        "entities": [],
        "triples": [],
        "locked": [],
        "sensitive": [],
        "queries": [],
        "siblings": [],
        "structures": [],
        "need": "",
        "deixis_only": False,
    }
    return empty | parts


async def test_spans_that_do_not_stand_in_the_text_are_dropped(script: Script) -> None:
    client = script(
        answer(
            entities=[entity("Acme", aliases=list("abcdef")), entity("Globex"), entity("& me")],
            locked=[lock("So happy"), lock("so happy")],
        )
    )
    found = await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)
    assert [one.span for one in found.entities] == ["Acme", "& me"]
    assert found.entities[0].aliases == ("a", "b", "c", "d")
    assert [one.span for one in found.locked] == ["So happy"]


def both(**parts: object) -> dict[str, object]:
    rest = {"declined": False, "reworded": True, "reason": "", "fields": {"text": "Glad am I"}}
    return answer() | rest | parts


async def test_an_extraction_and_a_rewording_in_one_answer(script: Script) -> None:
    client = script(both(locked=[lock("So happy")]))
    found = await LLMExtractorRewriter(EMOTION, client, PROMPTS)(TWEET)
    assert isinstance(found, ExtractionWithRewrite)
    assert [one.span for one in found.locked] == ["So happy"]
    assert (found.rewrite.fields, found.rewrite.reworded) == ({"text": "Glad am I"}, True)
    item = client.block("item")
    assert isinstance(item, dict)
    assert {"@user", "\U0001f60a"} <= {one["span"] for one in item["fixed"]}


async def test_a_rewording_that_is_declined_leaves_the_text_as_it_is(script: Script) -> None:
    found = await LLMExtractorRewriter(EMOTION, script(both(declined=True)), PROMPTS)(TWEET)
    assert isinstance(found, ExtractionWithRewrite)
    assert found.rewrite.fields == TWEET.fields
    assert (found.rewrite.declined, found.rewrite.reworded) == (True, False)


async def test_a_blank_rewording_is_asked_for_again(script: Script) -> None:
    client = script(both(fields={"text": " "}))
    with pytest.raises(InvalidAnswer, match="text is blank"):
        await LLMExtractorRewriter(EMOTION, client, PROMPTS)(TWEET)


async def test_a_span_is_moved_to_the_field_that_has_it(script: Script) -> None:
    client = script(answer(entities=[entity("closed", "hypothesis"), entity("Acme", "hypothesis")]))
    found = await LLMExtractor(RTE, client, PROMPTS)(PAIR)
    assert [one.field for one in found.entities] == ["premise", "hypothesis"]


async def test_an_answer_about_another_text_is_asked_for_again(script: Script) -> None:
    client = script(answer(entities=[entity("Globex")], locked=[lock("sad")]))
    with pytest.raises(InvalidAnswer, match="'Globex'"):
        await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)


@pytest.mark.parametrize("name", ["entities", "locked"])
async def test_an_answer_with_too_many_spans_is_asked_for_again(script: Script, name: str) -> None:
    one = entity if name == "entities" else lock
    client = script(answer(**{name: [one("Acme")] * 201}))
    with pytest.raises(InvalidAnswer, match=f"{name} has more than 200"):
        await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)


async def test_a_sensitive_flag_is_never_dropped(script: Script) -> None:
    client = script(answer(sensitive=[{"flag": "self_harm", "span": "not in the text"}]))
    found = await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)
    assert found.sensitive == (Sensitive(flag="self_harm", span="not in the text"),)


async def test_queries_are_four_at_most(script: Script) -> None:
    more = [["x", "y", "x", "z", "w"], ["p", "q", "r"]]
    given = answer(queries=["a b", " a b ", "", "c", "d", "e", "f"])
    client = script(given | {"siblings": more[0], "structures": more[1]})
    found = await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)
    assert found.queries == ("a b", "c", "d", "e")
    assert (found.siblings, found.structures) == (("x", "y", "z"), ("p", "q"))


async def test_a_field_that_the_task_has_not_is_no_answer(script: Script) -> None:
    client = script(answer(entities=[entity("Acme", "body")]))
    with pytest.raises(InvalidAnswer, match="allowed: text"):
        await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)


async def test_an_empty_object_is_no_extraction(script: Script) -> None:
    with pytest.raises(InvalidAnswer, match="missing"):
        await LLMExtractor(EMOTION, script({}), PROMPTS)(TWEET)


async def test_it_is_told_the_text_and_its_label(script: Script) -> None:
    client = script(answer())
    await LLMExtractor(EMOTION, client, PROMPTS)(TWEET)
    item = client.block("item")
    assert isinstance(item, dict)
    assert item["fields"] == TWEET.fields and item["label"] == "joy"
    assert EMOTION.lines["extractor"] in client.system
