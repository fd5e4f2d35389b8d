"""Items of 20,000 tokens: what is shown of them is bounded and said, and none is reworded."""

import json
from time import process_time

import pytest

from coreeval.agents import checks
from coreeval.agents.answer_judge import LLMAnswerJudge, LLMSummaryJudge
from coreeval.agents.edits import explain_no_rewording
from coreeval.agents.extractor import LLMExtractor, LLMExtractorRewriter
from coreeval.agents.llm_role import JUDGED, SHOWN, cut_text
from coreeval.agents.roles import ExtractionWithRewrite
from coreeval.agents.team import prompt_names
from coreeval.config import RunConfig
from coreeval.schema import Extraction, Plan
from coreeval.tasks import adapt_task
from tests.agents.builders import WINDOW, replacement, request, statement
from tests.agents.kinds.items import NEWS, OPEN, SUMMARIES, answer, summary
from tests.agents.llm.conftest import Script
from tests.agents.llm.support import PROMPTS

LONG = "word " * 15_000
TOO_LONG = "word " * 20_000
EXTRACTED = {
    "entities": [], "triples": [], "locked": [], "sensitive": [], "queries": ["ferry"],
    "siblings": [], "structures": [], "need": "", "deixis_only": False,
}  # fmt: skip
ASKED = answer("SECRET", context=LONG)
TASK = adapt_task(OPEN, ASKED.fields)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("word " * 1_400, ""),
        ("word " * 1_600, " [cut: 1,500 of 1,601 words]"),
        ("\u5b57" * 20_000, " [cut: 15,000 of 20,000 characters]"),
    ],
)
def test_a_text_is_cut_with_a_remark(text: str, says: str) -> None:
    shown = cut_text(text)
    assert shown.endswith(says) if says else shown == text
    assert len(shown) <= SHOWN.characters + 60


async def test_an_extractor_is_shown_the_beginning_and_told_so(script: Script) -> None:
    client = script(EXTRACTED)
    await LLMExtractor(TASK, client, PROMPTS)(ASKED)
    assert "[cut: 1,500 of 15,001 words]" in json.dumps(client.block("item"))


async def test_judges_are_shown_a_long_text_whole_and_a_longer_one_in_part(script: Script) -> None:
    said = {"cue": "", "label": "unclear", "confidence": "low", "odd": "", "fluency": 3}
    client = script(said, said)
    judge = LLMAnswerJudge(TASK, client, PROMPTS)
    await judge(ASKED.fields)
    assert "[cut:" not in client.asked[-1][1]["content"]
    await judge(ASKED.fields | {"context": TOO_LONG})
    assert "[cut: 16,000 of 20,001 words]" in client.asked[-1][1]["content"]
    assert "a remark that says so" in client.system
    verdict = {"missing": "", "added": "", "label": "faithful", "confidence": "low", "odd": ""}
    client = script(verdict | {"fluency": 3})
    report = summary("\u5b57" * 300_000, "S.")
    of = adapt_task(SUMMARIES, report.fields)
    await LLMSummaryJudge(of, client, PROMPTS)(report.fields)
    assert f"[cut: {JUDGED.characters:,} of 300,000 characters]" in client.asked[-1][1]["content"]
    assert len(client.asked[-1][1]["content"]) < JUDGED.characters + 1_000


@pytest.mark.parametrize("text", [LONG, "\u5b57" * 700])
async def test_a_long_item_is_not_reworded_nor_asked_to_be(script: Script, text: str) -> None:
    long = answer("SECRET", context=text)
    assert "at most 600 are reworded" in explain_no_rewording(TASK, long, Extraction())
    client = script(EXTRACTED)
    found = await LLMExtractorRewriter(TASK, client, PROMPTS)(long)
    assert not isinstance(found, ExtractionWithRewrite)
    assert "declined" not in json.dumps(client.schemas)
    names = prompt_names(RunConfig(pipeline="lean"), PROMPTS, TASK)
    assert names["extractor"] == ["extractor_rewriter", "extractor"]


def test_time_grows_no_faster_than_a_text() -> None:
    def measure(words: int) -> float:
        part = "Norvik sailed 14 km to Oslo on 5 May, said Ada Byron of Bergen. "
        text = "".join(f"{part}Name{number} {number} " for number in range(words))
        old = answer("SECRET", context=text)
        new = old.fields | {"context": text.replace("Oslo", "Rome").replace("Name", "Other")}
        plan = Plan(
            decision="use",
            statements=(statement("Norvik opens a ferry line to Oslo"),),
            replacements=(replacement(None, ("Norvik", "opens", "it"), field="context"),),
            replaces_all=True,
        )
        begun = process_time()
        found = checks.check_composition(
            TASK, request(old, plan=plan, evidence=(NEWS,)), new, WINDOW
        )
        assert found
        return process_time() - begun

    measure(10)
    short, long = measure(150), measure(1_500)
    assert long < 30 * short, "ten times the text may take thirty times the time, not a hundred"
