"""What judges are asked about the gold of an item, and what follows from their answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from coreeval.agents import reflect
from coreeval.agents.gold_judging import GoldVerdict, judge_gold
from coreeval.agents.kinds import WrittenItem
from coreeval.agents.roles import Fields, Team
from coreeval.models.batch_dispatch import CallQueued
from coreeval.schema import Evidence, LabelVerdict, OptionVerdict, Sample, Task
from coreeval.tasks import adapt_task
from tests.agents.builders import TWEETS, sample
from tests.agents.kinds.items import (
    CLOSED,
    NEWS,
    OPEN,
    SUMMARIES,
    answer,
    choice,
    summary,
    task,
    written,
)

CHOICE = task("choice", "question")
READING = task("choice", "context", "question")
CHOSEN = choice(["Oslo", "Rome"], "A")
READ = CHOSEN.model_copy(update={"fields": {"context": "To Oslo."} | CHOSEN.fields})
OPEN_ANSWER = answer("Norvik", context="Norvik opened.")


class Asked:
    """A team of a label judge and a judge of options, which remembers what it was asked."""

    def __init__(self, said: str, blind: str = "unclear", confidence: str = "high") -> None:
        self.told: list[tuple[list[str], int]] = []
        self._said, self._blind, self._confidence = said, blind, confidence
        self.options = [option("A"), option("B", truth="wrong")]

    async def label_judge(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        self.told.append((sorted(fields), len(evidence)))
        helped = bool(evidence) or "context" in fields or "text" in fields or "document" in fields
        said = self._said if helped else self._blind
        return LabelVerdict.model_validate({"label": said, "confidence": self._confidence})

    async def option_judge(
        self, fields: Fields, evidence: Sequence[Evidence]
    ) -> list[OptionVerdict]:
        return self.options

    def team(self, *, options: bool = False) -> Team:
        judges = {"label_judge": self.label_judge}
        others = ("extractor", "replacer", "rewriter", "composer", "fact_judge")
        more = {"option_judge": self.option_judge} if options else {}
        return Team(**judges | dict.fromkeys(others, self.label_judge) | more)  # type: ignore[arg-type]


def option(letter: str, truth: str = "right", **more: object) -> OptionVerdict:
    said = {"letter": letter, "truth": truth, "same_type": True, "plausible": True, "why": "so"}
    return OptionVerdict.model_validate(said | more)


async def judged(item: WrittenItem, asked: Asked, *, options: bool = False) -> GoldVerdict:
    return await judge_gold(item, asked.team(options=options))


def checks(verdict: GoldVerdict) -> list[str]:
    return [one.check for one in verdict.defects]


async def test_a_label_is_asked_for_once_and_without_news() -> None:
    original = sample("So glad")
    item = WrittenItem(task=TWEETS, sample=original, fields=original.fields, evidence=(NEWS,))
    asked = Asked("joy")
    verdict = await judged(item, asked)
    assert asked.told == [(["text"], 0)] and checks(verdict) == [] == verdict.beside
    assert checks(await judged(item, Asked("sadness"))) == ["label"]


@pytest.mark.parametrize(
    ("of", "item"), [(CLOSED, answer("Norvik")), (CHOICE, choice(["Norvik", "Acme"], "A"))]
)
async def test_a_closed_book_question_is_answered_by_the_news_and_asked_without_it(
    of: Task, item: Sample
) -> None:
    gold = "A" if item.label_text == "A" else "Norvik"
    made = written(of, item, {})
    asked = Asked(gold, blind=gold)
    verdict = await judged(made, asked)
    assert sorted(count for _, count in asked.told) == [0, 1]
    assert checks(verdict) == [], "that a judge knows it is no defect"
    (beside,) = verdict.beside
    assert (beside.name, beside.passed) == ("new_to_judge", False)
    assert (await judged(made, Asked(gold))).beside[0].passed
    assert checks(await judged(made, Asked("unclear"))) == ["label"]


@pytest.mark.parametrize(
    ("of", "item", "gold"), [(OPEN, OPEN_ANSWER, "Norvik"), (READING, READ, "A")]
)
async def test_a_passage_is_needed(of: Task, item: Sample, gold: str) -> None:
    made = written(of, item, {})
    asked = Asked(gold)
    verdict = await judged(made, asked)
    assert [count for _, count in asked.told] == [0, 0], "news is not shown beside a passage"
    assert sum("context" in names for names, _ in asked.told) == 1
    assert checks(verdict) == [] and verdict.beside[0][:2] == ("needs_passage", True)
    guessed = await judged(made, Asked(gold, blind=gold))
    assert checks(guessed) == ["needs_no_passage"] and not guessed.beside[0].passed
    assert checks(await judged(made, Asked(gold, blind=gold, confidence="low"))) == []


async def test_a_question_that_waits_does_not_keep_others_from_being_asked() -> None:
    """In batches each question waits for an answer; all must be queued in one round."""
    asked = Asked("A")

    async def wait(fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        await asyncio.sleep(0)
        asked.told.append((sorted(fields), len(evidence)))
        raise CallQueued

    async def wait_longer(fields: Fields, evidence: Sequence[Evidence]) -> list[OptionVerdict]:
        for _ in range(9):
            await asyncio.sleep(0)
        asked.told.append((["options"], len(evidence)))
        raise CallQueued

    team = replace(asked.team(), label_judge=wait, option_judge=wait_longer)
    with pytest.raises(CallQueued):
        await judge_gold(written(CHOICE, CHOSEN, {}), team)
    assert len(asked.told) == 3, "none goes on after the round has been left"


async def test_a_summary_is_judged_by_its_document_alone() -> None:
    item = written(SUMMARIES, summary("Long. " * 9, "Short."), {})
    asked = Asked("faithful")
    verdict = await judged(item, asked)
    assert asked.told == [(["document", "summary"], 0)] and checks(verdict) == []
    wrong = await judged(item, Asked("unfaithful"))
    assert "must read as a summary that states what matters" in wrong.defects[0].message


@pytest.mark.parametrize(
    ("options", "defects"),
    [
        ([option("A"), option("B", "wrong")], []),
        ([option("A"), option("B", "open")], []),
        ([option("A", "open"), option("B", "wrong")], ["right_option"]),
        ([option("A", "wrong"), option("B", "right")], ["right_option", "second_right"]),
        ([option("A"), option("B", "wrong", plausible=False)], ["weak_option"]),
        ([option("A"), option("B", "wrong", same_type=False)], ["weak_option"]),
        ([option("A", plausible=False), option("B", "wrong")], []),
    ],
)
async def test_options_are_judged_one_by_one(
    options: list[OptionVerdict], defects: list[str]
) -> None:
    asked = Asked("A")
    asked.options = options
    verdict = await judged(written(CHOICE, CHOSEN, {}), asked, options=True)
    assert checks(verdict) == defects
    assert all(one.route == "compose" for one in verdict.defects)
    (_, side) = verdict.beside
    assert (side.name, side.passed) == ("options", not defects)


@pytest.mark.parametrize(
    ("of", "original", "said", "contrary"),
    [
        (CLOSED, answer("Norvik"), "Acme", False),
        (OPEN, OPEN_ANSWER, "Acme", True),
        (OPEN, OPEN_ANSWER, "Norvik", False),
        (OPEN, OPEN_ANSWER, "unclear", False),
        (CHOICE, CHOSEN, "B", False),
        (READING, READ, "B", True),
        (SUMMARIES, summary("Long.", "S."), "unfaithful", True),
        (SUMMARIES, summary("Long.", "S."), "faithful", False),
    ],
)
def test_only_an_original_with_all_it_needs_can_be_contrary(
    of: Task, original: Sample, said: str, contrary: bool
) -> None:
    adapted = adapt_task(of, original.fields)
    assert reflect.is_contrary(adapted, original, LabelVerdict(label=said)) == contrary
    unsure = LabelVerdict(label=said, confidence="low")
    assert not reflect.is_contrary(adapted, original, unsure)


@pytest.mark.parametrize(
    ("of", "original", "before", "said", "same"),
    [
        (CLOSED, answer("Norvik"), "Acme", "Globex", True),
        (CLOSED, answer("Norvik"), "Norvik", "Acme", False),
        (CLOSED, answer("Norvik"), "Norvik", "the Norvik", True),
        (OPEN, OPEN_ANSWER, "Acme", "Globex", False),
        (OPEN, OPEN_ANSWER, "Acme", "Acme", True),
        (OPEN, OPEN_ANSWER, "unclear", "Norvik", True),
        (CHOICE, CHOSEN, "A", "B", False),
        (CHOICE, CHOSEN, "B", "A", True),
        (READING, READ, "A", "unclear", False),
        (SUMMARIES, summary("Long.", "S."), "incomplete", "unfaithful", False),
    ],
)
def test_a_rewording_has_the_gold_of_its_original(
    of: Task, original: Sample, before: str, said: str, same: bool
) -> None:
    item = written(of, original, {})
    assert reflect.is_same_gold(item, LabelVerdict(label=said), before) == same
