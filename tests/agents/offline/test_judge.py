import pytest

from coreeval.agents import reflect
from coreeval.agents.kinds import FactQuestion
from coreeval.agents.offline.judge import (
    FEWEST_TRAIN_SAMPLES,
    OfflineFactJudge,
    build_label_judge,
    fit_bayes,
    score_pair,
)
from coreeval.schema import Plan, Sample
from tests.agents.offline.made import EMOTION, HEAT, IRONY, MRPC, RTE, STANCE, ZOO, tweet


async def facts(text: str) -> list[tuple[str, str, str]]:
    verdict = await OfflineFactJudge(EMOTION)({"text": text}, (HEAT, ZOO))
    return [(said.kind, said.supported, said.defect) for said in verdict.statements]


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("a heatwave has closed schools in northern Spain", [("fact", "yes", "none")]),
        ("Just read that a heatwave closed schools in Spain", [("fact", "yes", "none")]),
        ("A heatwave closed 40 schools in northern Spain", [("fact", "no", "number")]),
        ("A heatwave closed schools in northern Portugal", [("fact", "no", "identity")]),
        ("The ferry company has sold its last boats abroad", [("fact", "no", "unsupported")]),
        ("I am so happy about my book", [("personal", "not_needed", "none")]),
        ("Absolutely fuming", [("opinion", "not_needed", "none")]),
        ("Will they open on time?", [("question", "not_needed", "none")]),
        ("stop blaming the teachers for everything", [("opinion", "not_needed", "none")]),
    ],
)
async def test_facts_are_judged_clause_by_clause(
    text: str, verdicts: list[tuple[str, str, str]]
) -> None:
    assert await facts(text) == verdicts


async def test_an_unsupported_clause_is_found_beside_a_supported_one() -> None:
    text = "A heatwave has closed schools in northern Spain, while the ferry company sold its boats"
    assert [supported for _, supported, _ in await facts(text)] == ["yes", "no"]


async def test_a_fact_must_stand_in_one_item() -> None:
    mixed = "A heatwave brings rare penguin chicks to schools in northern Spain"
    assert (await facts(mixed))[0][1] == "no"


async def test_a_quotation_occurs_in_the_evidence() -> None:
    fields = {"text": "a heatwave has closed schools in northern Spain"}
    verdict = await OfflineFactJudge(EMOTION)(fields, (HEAT, ZOO))
    said = verdict.statements[0]
    assert said.evidence_id == HEAT.id
    assert said.quote in f"{HEAT.title} {HEAT.snippet}"
    asked = FactQuestion(fields=fields, evidence=(HEAT, ZOO))
    assert reflect.find_fact_defects(asked, fields, verdict, Plan(decision="use")) == []


async def test_news_sentences_have_no_opinions() -> None:
    fields = {"premise": "The lovely ferry is the best of all boats.", "hypothesis": "x"}
    verdict = await OfflineFactJudge(RTE)(fields, (HEAT,))
    assert verdict.statements[0].kind == "fact"
    assert verdict.statements[0].supported == "no"


async def test_a_text_of_marks_alone_has_a_statement_too() -> None:
    assert len(await facts("#heat @user \U0001f600")) == 1


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I am so angry and I hate this", "anger"),
        ("haha this made me laugh \U0001f602", "joy"),
        ("never give up, better days ahead", "optimism"),
        ("heartbroken, I miss you so much", "sadness"),
        ("the table stands near the wall", "unclear"),
    ],
)
async def test_emotion_by_word_lists(text: str, label: str) -> None:
    assert (await build_label_judge(EMOTION, (), 7)({"text": text})).label == label


async def test_irony_and_stance_have_a_label_that_needs_no_cue() -> None:
    irony, stance = build_label_judge(IRONY, (), 7), build_label_judge(STANCE, (), 7)
    assert (await irony({"text": "Lucky us, what a surprise #sarcasm"})).label == "irony"
    plain = await irony({"text": "The bus leaves at nine"})
    assert (plain.label, plain.confidence) == ("non_irony", "low")
    assert (await stance({"text": "What a hoax, such a scam"})).label == "against"
    assert (await stance({"text": "The bus leaves at nine"})).label == "none"


@pytest.mark.parametrize(
    ("first", "second", "label"),
    [
        ("The ferry was sold in May .", "In May the ferry was sold .", "equivalent"),
        ("The ferry was sold in May .", "The zoo has a new garden .", "not_equivalent"),
        (
            "The ferry was sold for 5 million .",
            "The ferry was sold for 9 million .",
            "not_equivalent",
        ),
        ("The ferry was sold in May .", "The ferry was not sold in May .", "unclear"),
    ],
)
async def test_pairs_by_shared_words(first: str, second: str, label: str) -> None:
    said = await build_label_judge(MRPC, (), 7)({"sentence1": first, "sentence2": second})
    assert said.label == label
    assert "shared" in said.cue


async def test_entailment_looks_at_the_hypothesis_alone() -> None:
    judge = build_label_judge(RTE, (), 7)
    premise = "The old ferry across the harbour was sold to a museum in the north."
    assert (
        await judge({"premise": premise, "hypothesis": "The ferry was sold."})
    ).label == "entailment"
    other = await judge({"premise": premise, "hypothesis": "The bridge needs new cables."})
    assert other.label == "not_entailment"
    assert score_pair(premise, "The ferry was sold.", symmetric=True) < 0.6


def test_a_word_overlap_is_never_a_definite_yes() -> None:
    assert score_pair("", "", symmetric=True) == 0.0


def _train(count: int) -> list[Sample]:
    texts = {"anger": "the queue was awful, grr number", "joy": "sunny picnic by the lake number"}
    return [
        tweet(f"{texts[label]} {number}", label).model_copy(update={"id": f"{label}{number}"})
        for number in range(count)
        for label in texts
    ]


async def test_bayes_is_fitted_on_enough_train_samples_only() -> None:
    assert fit_bayes(_train(FEWEST_TRAIN_SAMPLES // 2 - 1), 7) is None
    assert (
        fit_bayes(
            [sample for sample in _train(FEWEST_TRAIN_SAMPLES) if sample.label_text == "joy"], 7
        )
        is None
    )
    train = _train(FEWEST_TRAIN_SAMPLES)
    judge = build_label_judge(EMOTION, train, 7)
    said = await judge({"text": "a picnic by the lake"})
    assert said.label == "joy"
    assert (
        await build_label_judge(EMOTION, train[::-1], 7)({"text": "a picnic by the lake"}) == said
    )
