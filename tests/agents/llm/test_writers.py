"""Rewriter and composer return every field, and see what they may see."""

import json

import pytest

from coreeval.agents.composer import LLMComposer
from coreeval.agents.rewriter import LLMRewriter
from coreeval.agents.roles import CompositionRequest
from coreeval.models import InvalidAnswer
from coreeval.schema import (
    Defect,
    Extraction,
    FieldTriple,
    Lock,
    Plan,
    Replacement,
    Sensitive,
    Statement,
    Triple,
)
from tests.agents.llm.conftest import Script
from tests.agents.llm.support import EMOTION, PAIR, PROMPTS, RTE, TWEET, news

NEW = {"text": "Acme opened in Paris and I am so happy!! \U0001f60a"}
FOUND = Extraction(
    triples=(FieldTriple(head="Acme", relation="opened in", tail="Paris", field="text"),),
    locked=(Lock(span="So happy", field="text", why="label_carrier"),),
)
PLAN = Plan(
    decision="use",
    statements=(
        Statement(
            text="Globex opens a store in Rome",
            evidence_ids=(news(2).id,),
            quote="Globex opens a store in Rome",
            modality="asserted",
        ),
    ),
    replacements=(
        Replacement(
            before=None,
            after=Triple(head="Globex", relation="opens a store in", tail="Rome"),
            mode="insert",
            field="text",
            statement_index=0,
            same_type=True,
        ),
    ),
)
WRONG = Defect(check="length", kind="form", message="20 words, at most 15", route="compose")
BRIEF = CompositionRequest(
    sample=TWEET,
    extraction=FOUND,
    plan=PLAN,
    evidence=(news(2),),
    substituted={"text": "So happy Globex opens in Rome"},
    reworded=None,
    feedback=(WRONG,),
    previous={"text": "too long"},
)


def rewrite(fields: dict[str, str], *, reworded: bool = True) -> dict[str, object]:
    return {"fields": fields, "reworded": reworded, "declined": False, "reason": ""}


def composition(*used: int, **fields: str) -> dict[str, object]:
    return {
        "moment": "m",
        "draft": "d",
        "stumble": "",
        "fields": fields,
        "used_replacements": used,
        "dropped": [],
    }


async def test_a_rewrite(script: Script) -> None:
    client = script(rewrite(NEW))
    said = await LLMRewriter(EMOTION, client, PROMPTS)(
        TWEET, FOUND, feedback=[WRONG], previous=TWEET.fields
    )
    assert (said.fields, said.reworded) == (NEW, True)
    item = client.block("item")
    assert isinstance(item, dict)
    assert item["locked"] == [{"span": "So happy", "field": "text", "why": "label_carrier"}]
    assert item["facts"][0]["head"] == "Acme"
    assert client.block("feedback") == {
        "previous": TWEET.fields,
        "defects": [{"check": "length", "message": "20 words, at most 15"}],
    }


async def test_the_rewriter_sees_what_could_harm_and_may_decline(script: Script) -> None:
    client = script(rewrite(NEW) | {"declined": True, "reason": "it accuses Jo Doe"})
    flagged = FOUND.model_copy(
        update={"sensitive": (Sensitive(flag="crime_or_accusation", span="Acme"),)}
    )
    said = await LLMRewriter(EMOTION, client, PROMPTS)(TWEET, flagged)
    assert (said.reworded, said.declined) == (False, True)
    item = client.block("item")
    assert isinstance(item, dict)
    assert item["sensitive"] == [{"flag": "crime_or_accusation", "span": "Acme"}]


async def test_the_rewriter_sees_no_news(script: Script) -> None:
    client = script(rewrite(NEW))
    await LLMRewriter(EMOTION, client, PROMPTS)(TWEET, FOUND)
    assert "news" not in client.asked[0][1]["content"]


@pytest.mark.parametrize(
    ("fields", "claimed"), [(TWEET.fields, True), (TWEET.fields, False), (NEW, False)]
)
async def test_what_came_back_as_it_was_is_not_reworded(
    script: Script, fields: dict[str, str], claimed: bool
) -> None:
    client = script(rewrite(fields, reworded=claimed))
    said = await LLMRewriter(EMOTION, client, PROMPTS)(TWEET, FOUND)
    assert said.reworded is False


async def test_the_shape_names_the_fields_of_the_task(script: Script) -> None:
    client = script(rewrite(PAIR.fields))
    await LLMRewriter(RTE, client, PROMPTS)(PAIR, Extraction())
    properties = client.schemas[0]["properties"]
    assert isinstance(properties, dict)
    assert properties["fields"]["required"] == ["premise", "hypothesis"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"premise": "p"}, "exactly the keys premise, hypothesis"),
        ({"premise": "p", "hypothesis": "  "}, "hypothesis is blank"),
    ],
)
async def test_both_fields_of_a_pair_must_be_there(
    script: Script, fields: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidAnswer, match=says):
        await LLMRewriter(RTE, script(rewrite(fields)), PROMPTS)(PAIR, Extraction())
    with pytest.raises(InvalidAnswer, match=says):
        await LLMComposer(RTE, script(composition(**fields)), PROMPTS)(BRIEF)


async def test_a_composition(script: Script) -> None:
    client = script(composition(0, 1, 2, text="So happy that Globex came to Rome!!"))
    said = await LLMComposer(EMOTION, client, PROMPTS)(BRIEF)
    assert said.fields == {"text": "So happy that Globex came to Rome!!"}
    assert said.used_replacements == (0,)


async def test_the_composer_sees_the_whole_brief(script: Script) -> None:
    client = script(composition(text="x"))
    await LLMComposer(EMOTION, client, PROMPTS)(BRIEF)
    item, plan = client.block("item"), client.block("plan")
    assert isinstance(item, dict) and isinstance(plan, dict)
    assert item["words"] == {"text": {"original": 9, "fewest": 5, "most": 13}}
    assert plan["replacements"][0]["number"] == 1
    assert plan["statements"][0]["quote"] == "Globex opens a store in Rome"
    assert news(2).id not in json.dumps(plan)
    assert client.block("reworded") is None
    assert client.block("feedback") == {
        "previous": {"text": "too long"},
        "defects": [{"check": "length", "message": "20 words, at most 15"}],
    }
