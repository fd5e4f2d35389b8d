import pytest

from coreeval.agents import checks
from coreeval.agents.offline import SpacyExtractor
from coreeval.agents.offline.news import read_statements
from coreeval.agents.offline.replace import OfflineReplacer
from coreeval.schema import Defect, Evidence, NamedEntity, Plan, Sample, Task
from tests.agents.offline.made import (
    BRIDGE,
    EMOTION,
    FERRY,
    HEAT,
    IRONY,
    MRPC,
    STANCE,
    WINDOW,
    ZOO,
    item,
    pair,
    tweet,
)

SAD = tweet("The zoo by the harbour lost its old bear last night. I am heartbroken", "sadness")
JOY = tweet("We spent the whole day at the zoo with the kids. So happy right now", "joy")


async def plan(
    task: Task, sample: Sample, *news: Evidence, feedback: tuple[Defect, ...] = ()
) -> Plan:
    extraction = checks.clean_extraction(task, sample, await SpacyExtractor(task)(sample))
    made = await OfflineReplacer(task=task)(sample, extraction, news, feedback=feedback)
    assert checks.check_plan(task, sample, extraction, made, news, WINDOW) == []
    return made


async def test_a_plan_quotes_its_evidence() -> None:
    made = await plan(EMOTION, JOY, ZOO)
    assert made.decision == "use"
    statement = made.statements[0]
    assert statement.evidence_ids == (ZOO.id,)
    assert statement.quote in f"{ZOO.title} {ZOO.snippet}"
    assert "zoo with the kids" in made.delete[0].span


async def test_good_news_is_not_set_beside_grief() -> None:
    assert (await plan(EMOTION, SAD, ZOO)).decision == "none_fits"


async def test_news_off_the_topic_does_not_fit() -> None:
    assert (await plan(EMOTION, JOY, HEAT)).decision == "none_fits"


async def test_no_news_and_unpublishable_news_do_not_fit() -> None:
    assert (await plan(EMOTION, JOY)).decision == "none_fits"
    bad = item("Zoo keeper arrested after fatal shooting")
    made = await plan(EMOTION, JOY, bad)
    assert made.decision == "none_fits"
    assert "published" in made.reason


async def test_a_text_whose_label_no_list_explains_is_left_alone() -> None:
    sample = tweet("We spent the whole day at the zoo with the kids", "joy")
    assert (await plan(EMOTION, sample, ZOO)).decision == "none_fits"


async def test_feedback_leads_to_other_news() -> None:
    other = item("Riverside zoo opens new garden for the bears")
    first = await plan(EMOTION, JOY, ZOO, other)
    said = Defect(check="facts", kind="facts", message="not supported", route="replace")
    again = await plan(EMOTION, JOY, ZOO, other, feedback=(said,))
    assert again.statements[0].text != first.statements[0].text
    assert again == await plan(EMOTION, JOY, ZOO, other, feedback=(said,))


async def test_a_name_in_an_opinion_gives_way_to_one_of_its_type() -> None:
    known = (NamedEntity(name="Riverside Zoo", type="organisation"),)
    news = item("Riverside Zoo welcomes rare penguin chicks", known=known)
    sample = tweet("So happy for the Harbour Zoo. We went there with kids in the rain", "joy")
    names = (NamedEntity(name="Harbour Zoo", type="organisation"),)
    extraction = await SpacyExtractor(EMOTION, names)(sample)
    free = extraction.model_copy(
        update={"locked": (extraction.locked[0].model_copy(update={"span": "So happy"}),)}
    )
    made = await OfflineReplacer(task=EMOTION)(sample, free, (news,))
    swapped = [change for change in made.replacements if change.same_type]
    assert [change.after.head for change in swapped] == ["Riverside Zoo"]


async def test_a_factual_claim_is_never_moved_to_a_new_name() -> None:
    known = (NamedEntity(name="Riverside Zoo", type="organisation"),)
    news = item("Riverside Zoo welcomes rare penguin chicks", known=known)
    sample = tweet("Harbour Zoo lost its licence over the winter. So happy right now", "joy")
    names = (NamedEntity(name="Harbour Zoo", type="organisation"),)
    extraction = await SpacyExtractor(EMOTION, names)(sample)
    made = await OfflineReplacer(task=EMOTION)(sample, extraction, (news,))
    assert not any(change.same_type for change in made.replacements)


async def test_irony_takes_no_good_news_and_stance_brings_in_no_target() -> None:
    ironic = tweet("We went to the zoo in the rain today. Lucky us #sarcasm", "irony")
    assert (await plan(IRONY, ironic, ZOO)).decision == "none_fits"
    against = tweet("The heat is on and they shout again. What a hoax #SemST", "against")
    named = item("Heat record shows climate change in Spain")
    assert (await plan(STANCE, against, named)).decision == "none_fits"


@pytest.mark.parametrize("label", ["equivalent", "not_equivalent"])
async def test_a_pair_plan_follows_the_label(label: str) -> None:
    sample = pair(
        "The bridge in the harbour was closed to lorries after an inspection .",
        "After an inspection the bridge in the harbour was shut for lorries .",
        label,
    )
    made = await plan(MRPC, sample, BRIDGE, FERRY)
    assert made.decision == "use"
    told = {
        name: {change.statement_index for change in made.replacements if change.field == name}
        for name in MRPC.fields
    }
    same = told["sentence1"] == told["sentence2"]
    assert same is (label == "equivalent")


def test_modality_is_kept() -> None:
    news = [
        item("Is the harbour ferry too slow?"),
        item("x", "The ferry is too slow, a report says."),
        item("x", "The ferry could be sold within the year.", key="b"),
        item("x", "The ferry has been sold to a new owner.", key="c"),
    ]
    found = [one.modality for one in read_statements(news)]
    assert found == ["question", "attributed", "hedged", "asserted"]
