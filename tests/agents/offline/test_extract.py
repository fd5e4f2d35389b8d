import asyncio
import time

import pytest

from coreeval.agents import checks
from coreeval.agents.offline import SpacyExtractor, pipeline_name
from coreeval.agents.offline.pipeline import EntityRecogniser
from coreeval.schema import Extraction, NamedEntity, Sample, Task
from tests.agents.offline.made import EMOTION, IRONY, MRPC, STANCE, pair, tweet

NAMES = (
    NamedEntity(name="Harbour Zoo", type="organisation"),
    NamedEntity(name="Microsoft", type="organisation"),
)


async def extract(task: Task, sample: Sample) -> Extraction:
    return await SpacyExtractor(task, NAMES)(sample)


def locked(found: Extraction, why: str) -> list[str]:
    return [lock.span for lock in found.locked if lock.why == why]


async def test_names_of_the_evidence_store_are_found_with_their_type() -> None:
    found = await extract(EMOTION, tweet("Off to the Harbour Zoo, I love it", "joy"))
    zoo = next(entity for entity in found.entities if entity.span == "Harbour Zoo")
    assert (zoo.kind, zoo.type) == ("named", "organisation")


async def test_unknown_capitalised_runs_are_names_but_the_first_word_is_not() -> None:
    found = await extract(EMOTION, tweet("Waiting for Blenkin Coaches again", "anger"))
    assert [e.span for e in found.entities if e.kind == "named"] == ["Blenkin Coaches"]


async def test_hashtags_are_split_and_topics_searched() -> None:
    found = await extract(EMOTION, tweet("so hot, I hate this #HeatWave", "anger"))
    assert "heat wave" in [e.query_name for e in found.entities]
    assert found.queries[0] in {"heatwave", "heat wave"}
    assert len(found.queries) <= 4


async def test_amounts_and_dates_are_entities() -> None:
    text = "Shell paid $ 4 billion for the plant in July 2015 ."
    found = await extract(MRPC, pair(text, text, "equivalent"))
    kinds = {entity.type for entity in found.entities}
    assert {"quantity", "date"} <= kinds


async def test_the_clause_that_carries_the_label_is_locked_and_leaves_room() -> None:
    text = "Two hours on the tarmac without any water at all. So angry right now #rage"
    found = await extract(EMOTION, tweet(text, "anger"))
    assert locked(found, "label_carrier") == ["So angry right now"]


async def test_a_text_is_never_locked_nearly_whole() -> None:
    found = await extract(EMOTION, tweet("I am so happy today", "joy"))
    spans = locked(found, "label_carrier")
    assert spans
    assert sum(len(span.split()) for span in spans) <= 3


async def test_mentions_markers_and_emoji_are_locked() -> None:
    found = await extract(
        IRONY, tweet("@user Oh great, rain. Lucky us \U0001f644 #sarcasm", "irony")
    )
    assert locked(found, "mention") == ["@user"]
    assert locked(found, "marker") == ["#sarcasm"]
    assert locked(found, "emoji") == ["\U0001f644"]


async def test_irony_without_a_cue_locks_its_last_clause() -> None:
    found = await extract(IRONY, tweet("Gold jumps once I sold. My timing is a gift", "irony"))
    assert locked(found, "label_carrier") == ["My timing is a gift"]


async def test_stance_words_come_from_the_target() -> None:
    found = await extract(STANCE, tweet("Cold again this June. What a hoax #SemST", "against"))
    assert locked(found, "label_carrier") == ["What a hoax"]


async def test_deixis_only() -> None:
    assert (await extract(EMOTION, tweet("why did they do that", "anger"))).deixis_only
    assert not (await extract(EMOTION, tweet("why does it rain", "anger"))).deixis_only


async def test_every_span_occurs_in_its_field() -> None:
    sample = tweet("Microsoft\u2019s update &amp; my exam, I am livid!! #GoAway @user", "anger")
    found = await extract(EMOTION, sample)
    for entity in found.entities:
        assert entity.span in sample.fields[entity.field]
    for lock in found.locked:
        assert lock.span in sample.fields[lock.field]
    assert set(found.locked) <= set(checks.clean_extraction(EMOTION, sample, found).locked)


def test_the_pipeline_says_its_name() -> None:
    assert pipeline_name() == "blank:en" or pipeline_name().startswith("en_core_web_sm-")


@pytest.mark.parametrize("mark", ["%", "#", "<", '"', "&#", "=", "\u20ac", "\U0001f600", ":)", "a"])
async def test_a_text_without_blanks_takes_no_time_and_no_turn(mark: str) -> None:
    """20,000 of them took minutes, in which no signal was heard."""
    text = f"Near the Harbour Zoo {mark * (20_000 // len(mark))} by Microsoft"
    began, late = time.monotonic(), 0.0
    reading = asyncio.create_task(extract(EMOTION, tweet(text, "joy")))
    while not reading.done():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        late = max(late, time.monotonic() - before)
    named = [one.span for one in (await reading).entities if one.kind == "named"]
    assert named == ["Harbour Zoo", "Microsoft"]
    assert time.monotonic() - began < 10
    assert late < 5


async def test_entities_of_a_text_without_blanks_are_spans_of_it() -> None:
    text = ("(Microsoft)(" + "x" * 180 + ")") * 20
    found = await extract(EMOTION, tweet(text, "joy"))
    assert "Microsoft" in [one.span for one in found.entities]
    assert all(one.span in text for one in found.entities)


async def test_a_name_written_with_other_blanks_is_not_that_name() -> None:
    names = [NamedEntity(name="Coca-Cola", type="organisation")]
    sample = tweet("we had Coca - Cola , not a Coca-Cola", "joy")
    found = await SpacyExtractor(EMOTION, names)(sample)
    types = {one.span: one.type for one in found.entities}
    assert types["Coca-Cola"] == "organisation" and "Coca - Cola" not in types


def test_a_text_longer_than_spacy_takes_is_read() -> None:
    found = EntityRecogniser(NAMES).find("at Microsoft " + "so " * 340_000)
    assert [one.text for one in found] == ["Microsoft"]


async def test_many_names_take_time_in_proportion() -> None:
    began = time.monotonic()
    found = await extract(EMOTION, tweet("Microsoft " * 20_000, "joy"))
    assert "Microsoft" in [one.span for one in found.entities]
    assert time.monotonic() - began < 20
