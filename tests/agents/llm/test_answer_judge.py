"""The judges of questions, options and summaries: what they are shown, and what they may answer."""

import json

import pytest

from coreeval.agents.answer_judge import LLMAnswerJudge, LLMOptionJudge, LLMSummaryJudge
from coreeval.agents.composer import LLMComposer
from coreeval.agents.fact_judge import LLMFactJudge
from coreeval.agents.replacer import LLMReplacerComposer
from coreeval.agents.team import llm_roles, prompt_names
from coreeval.config import RunConfig
from coreeval.models import InvalidAnswer
from coreeval.schema import Extraction, Pipeline, RoleName, Task
from coreeval.tasks import adapt_task
from tests.agents.builders import request
from tests.agents.kinds.items import CLOSED, OPEN, SUMMARIES, answer, choice, summary, task
from tests.agents.llm.conftest import Script
from tests.agents.llm.support import PROMPTS, news

READ = {"cue": "", "confidence": "high", "odd": "", "fluency": 3}
CHOSEN = choice(["Oslo", "Rome", "Bergen"], "C")
CHOICE = adapt_task(task("choice", "question"), CHOSEN.fields)
ANSWERED = answer("SECRET", "number", context="To Oslo.", unit="$", tolerance="7%")
SUMMARY = summary("A document.", "A summary.")


async def test_a_question_is_answered_without_its_gold(script: Script) -> None:
    client = script({"label": " 14 ships "} | READ)
    of = adapt_task(OPEN, ANSWERED.fields)
    verdict = await LLMAnswerJudge(of, client, PROMPTS)(ANSWERED.fields)
    assert verdict.label == "14 ships"
    assert client.block("item") == {"context": "To Oslo.", "question": "Who came?"}
    assert client.block("news") is None
    told = json.dumps(client.asked)
    assert "SECRET" not in told and "7%" not in told


async def test_a_question_without_a_context_may_come_with_news(script: Script) -> None:
    closed = answer("SECRET")
    client = script({"label": "x" * 900} | READ)
    of = adapt_task(CLOSED, closed.fields)
    verdict = await LLMAnswerJudge(of, client, PROMPTS)(closed.fields, [news(1)])
    assert len(verdict.label) == 500
    assert news(1).title in json.dumps(client.block("news"))
    assert "SECRET" not in json.dumps(client.asked)


async def test_a_choice_has_its_letters_and_unclear(script: Script) -> None:
    client = script({"label": "C"} | READ)
    assert (await LLMAnswerJudge(CHOICE, client, PROMPTS)(CHOSEN.fields)).label == "C"
    assert client.block("item") == CHOSEN.fields
    properties = client.schemas[0]["properties"]
    assert properties["label"]["enum"] == ["A", "B", "C", "unclear"]  # type: ignore[index]
    with pytest.raises(InvalidAnswer, match="allowed: A, B, C, unclear"):
        await LLMAnswerJudge(CHOICE, script({"label": "D"} | READ), PROMPTS)(CHOSEN.fields)


def option(letter: str, truth: str) -> dict[str, object]:
    return {"letter": letter, "why": "", "truth": truth, "same_type": True, "plausible": True}


async def test_every_option_is_judged_once_and_in_order(script: Script) -> None:
    said = [option("A", "wrong"), option("B", "open"), option("C", "right")]
    client = script({"options": said})
    verdicts = await LLMOptionJudge(CHOICE, client, PROMPTS)(CHOSEN.fields, [news(1)])
    assert [(one.letter, one.truth) for one in verdicts] == [
        ("A", "wrong"), ("B", "open"), ("C", "right"),
    ]  # fmt: skip
    for wrong in (said[:2], [*said, said[0]], said[::-1]):
        with pytest.raises(InvalidAnswer, match="one entry for each of A, B, C, in order"):
            await LLMOptionJudge(CHOICE, script({"options": wrong}), PROMPTS)(CHOSEN.fields, [])


async def test_a_summary_is_shown_with_its_document(script: Script) -> None:
    said = {"missing": "the date", "added": "Rome", "label": "unfaithful", "confidence": "high"}
    client = script(said | {"odd": "", "fluency": 2})
    of = adapt_task(SUMMARIES, SUMMARY.fields)
    verdict = await LLMSummaryJudge(of, client, PROMPTS)(SUMMARY.fields)
    assert (verdict.label, verdict.cue) == ("unfaithful", "Rome ... the date")
    assert client.block("item") == SUMMARY.fields


async def test_a_blank_answer_need_not_be_judged(script: Script) -> None:
    statement = {
        "text": "A ferry came.", "field": "question", "words": "came", "kind": "fact",
        "supported": "no", "evidence": None, "quote": "", "defect": "none",
    }  # fmt: skip
    client = script({"statements": [statement]}, {"statements": [statement]})
    judge = LLMFactJudge(CHOICE, client, PROMPTS)
    fields = {"question": "Who did not come?", "answer": ""}
    assert len((await judge(fields, [news(1)])).statements) == 1
    with pytest.raises(InvalidAnswer, match="no statement of answer"):
        await judge(fields | {"answer": "Rome"}, [news(1)])


async def test_a_question_about_a_context_may_claim_nothing(script: Script) -> None:
    def told(field: str) -> dict[str, object]:
        return {
            "text": "A ferry came.", "field": field, "words": "came", "kind": "fact",
            "supported": "no", "evidence": None, "quote": "", "defect": "none",
        }  # fmt: skip

    found = {"statements": [told("context"), told("answer")]}
    judge = LLMFactJudge(adapt_task(OPEN, ANSWERED.fields), script(found), PROMPTS)
    fields = {"context": "A ferry came.", "question": "Did one come?", "answer": "yes"}
    assert len((await judge(fields, [news(1)])).statements) == 2
    closed = LLMFactJudge(CHOICE, script({"statements": [told("answer")]}), PROMPTS)
    with pytest.raises(InvalidAnswer, match="no statement of question"):
        await closed({"question": "Who came?", "answer": "Rome"}, [news(1)])


async def test_a_composer_writes_all_but_what_is_carried(script: Script) -> None:
    of = adapt_task(OPEN, ANSWERED.fields)
    new = {"context": "New.", "question": "How many?", "answers": "14\n\n14"}
    said = {"moment": "", "draft": "", "stumble": "", "fields": new, "used_replacements": []}
    client = script(said | {"dropped": []})
    made = await LLMComposer(of, client, PROMPTS)(request(ANSWERED, evidence=(news(1),)))
    assert made.fields == new | {"answers": "14", "unit": "$", "tolerance": "7%"}
    fields = client.schemas[0]["properties"]["fields"]  # type: ignore[index]
    assert sorted(fields["properties"]) == ["answers", "context", "question"]


async def test_a_document_is_made_of_the_cited_news(script: Script) -> None:
    of = adapt_task(SUMMARIES, SUMMARY.fields)
    triple = {"head": "Globex", "relation": "opens", "tail": "a store"}
    statement = {
        "text": "Globex opens a store.", "evidence": [2], "quote": "opens a store",
        "translation": "", "modality": "asserted", "speaker": "",
    }  # fmt: skip
    change = {"before": None, "after": triple, "field": "summary", "statement": 1}
    said = {
        "reason": "", "decision": "use", "statements": [statement], "replacements": [change],
        "replaces_all": True, "delete": [], "persons": [], "fields": {"summary": "New."},
    }  # fmt: skip
    client = script(said)
    plan = await LLMReplacerComposer(of, client, PROMPTS)(
        SUMMARY, Extraction(), [news(1, "Other"), news(2)]
    )
    assert plan.text.fields == {"document": news(2).title, "summary": "New."}  # type: ignore[attr-defined]


@pytest.mark.parametrize("pipeline", ["full", "lean"])
@pytest.mark.parametrize("of", [CHOICE, OPEN, SUMMARIES], ids=["choice", "answer", "summary"])
def test_each_kind_has_its_judge_and_its_prompts(of: Task, pipeline: Pipeline) -> None:
    run = RunConfig(pipeline=pipeline)
    names = prompt_names(run, PROMPTS, of)
    judge = {"choice": "answer_judge", "answer": "answer_judge", "summary": "summary_judge"}
    assert names["label_judge"][0] == judge[of.kind]
    assert ("option_judge" in names["label_judge"]) == (of.kind == "choice")
    assert "label_judge_batch" not in names["label_judge"]
    writer: RoleName = "composer" if pipeline == "full" else "replacer"
    assert names[writer][0].endswith("composer_item")
    assert set(llm_roles(run, of)) == set(names)


async def test_the_habits_of_options_and_answers_are_not_told(script: Script) -> None:
    plan = {"moment": "", "draft": "", "stumble": "", "used_replacements": [], "dropped": []}
    for of, one, habitual in (
        (CHOICE, CHOSEN, {"question"}),
        (adapt_task(OPEN, ANSWERED.fields), ANSWERED, {"context", "question"}),
        (adapt_task(SUMMARIES, SUMMARY.fields), SUMMARY, {"summary"}),
    ):
        written = {name: "x" for name in one.fields if name not in of.carried_fields}
        fields = {"summary": "x"} if one is SUMMARY else written
        client = script(plan | {"fields": fields})
        await LLMComposer(of, client, PROMPTS)(request(one, extraction=Extraction()))
        item = client.block("item")
        assert isinstance(item, dict)
        assert set(item["habits"]) == habitual
        assert set(item["words"]) == set(fields)
