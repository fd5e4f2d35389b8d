import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from coreeval.agents import checks, reflect, safety
from coreeval.agents.edits import substitute
from coreeval.agents.kinds import WrittenItem, item_kind
from coreeval.agents.offline import offline_role, offline_team
from coreeval.agents.roles import CompositionRequest, Fields, Team
from coreeval.agents.safety import DEFAULT_POLICY
from coreeval.config import ROLES, DatasetConfig
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.schema import Evidence, Sample, Task
from tests.agents.offline.made import (
    BRIDGE,
    EMOTION,
    FERRY,
    HEAT,
    IRONY,
    MRPC,
    RTE,
    STANCE,
    WINDOW,
    ZOO,
    pair,
    tweet,
)

SHARED = Path(__file__).parents[3].parent / "shared"
NEWS = (HEAT, ZOO, BRIDGE, FERRY)
SAMPLES: list[tuple[Task, Sample]] = [
    (EMOTION, tweet("We spent the whole day at the zoo with the kids. So happy right now", "joy")),
    (
        EMOTION,
        tweet("@user the heat in my flat is awful again tonight. So angry right now", "anger"),
    ),
    (IRONY, tweet("The heat is on and the fan broke at noon. Lucky us #sarcasm", "irony")),
    (
        STANCE,
        tweet("The heat is on and they shout at all of us again. What a hoax #SemST", "against"),
    ),
    (
        MRPC,
        pair(
            "The bridge in the harbour was closed to lorries after an inspection .",
            "After an inspection the bridge in the harbour was shut for lorries .",
            "equivalent",
        ),
    ),
    (
        RTE,
        pair(
            "The ferry in the harbour, which has forty seats, was painted in two colours.",
            "The ferry has forty seats.",
            "entailment",
            task="rte",
        ),
    ),
]


async def refresh(
    task: Task, team: Team, sample: Sample, news: tuple[Evidence, ...]
) -> Fields | None:
    """Return the composed text of one attempt, if a plan was made and everything passed."""
    extraction = checks.clean_extraction(task, sample, await team.extractor(sample))
    if safety.screen_sample(sample, extraction, DEFAULT_POLICY).policy in ("skip", "semantic_only"):
        return None
    plan = await team.replacer(sample, extraction, news)
    if plan.decision != "use" or checks.check_plan(task, sample, extraction, plan, news, WINDOW):
        return None
    named = {key for statement in plan.statements for key in statement.evidence_ids}
    request = CompositionRequest(
        sample=sample,
        extraction=extraction,
        plan=plan,
        evidence=tuple(one for one in news if one.id in named),
        substituted=substitute(sample, plan),
        reworded=None,
    )
    written = await team.composer(request)
    fields = {name: checks.restore_spacing(task, text) for name, text in written.fields.items()}
    item = WrittenItem(task=task, sample=sample, fields=fields, evidence=request.evidence)
    asked = item_kind(task).ask_facts(item)
    defects = [
        *checks.check_composition(task, request, fields, WINDOW),
        *reflect.find_fact_defects(
            asked, fields, await team.fact_judge(asked.fields, asked.evidence), request.plan
        ),
        *reflect.find_label_defects(item, await team.label_judge(fields)),
    ]
    return None if defects else fields


@pytest.mark.parametrize(("task", "sample"), SAMPLES, ids=lambda one: getattr(one, "name", ""))
async def test_a_sample_of_each_task_is_refreshed(task: Task, sample: Sample) -> None:
    team = offline_team(task, names=(), seed=7)
    fields = await refresh(task, team, sample, NEWS)
    assert fields is not None
    assert fields != sample.fields


async def test_the_same_seed_writes_the_same_text() -> None:
    task, sample = SAMPLES[0]
    texts = {
        str(await refresh(task, offline_team(task, names=(), seed=seed), sample, NEWS))
        for seed in (7, 7, 7)
    }
    assert len(texts) == 1


async def test_roles_can_be_asked_for_one_by_one() -> None:
    task, sample = SAMPLES[0]
    team = offline_team(task, names=(), seed=7)
    for role in ROLES:
        player = offline_role(role, task, names=(), seed=7)
        assert type(player) is type(getattr(team, role))
    assert await team.extractor(sample) == await team.extractor(sample)


async def test_without_words_for_a_plan_nothing_half_made_comes_back() -> None:
    task, sample = SAMPLES[0]
    team = offline_team(task, names=(), seed=7)
    extraction = await team.extractor(sample)
    plan = await team.replacer(sample, extraction, NEWS)
    mute = plan.statements[0].model_copy(update={"text": "Ten quiet walks along the coast"})
    request = CompositionRequest(
        sample=sample,
        extraction=extraction,
        plan=plan.model_copy(update={"statements": (mute,)}),
        evidence=(ZOO.model_copy(update={"title": mute.text, "id": mute.evidence_ids[0]}),),
        substituted={"text": "half made"},
        reworded=None,
    )
    written = await team.composer(request)
    assert written.fields == sample.fields
    assert written.dropped == (mute.text,)


async def test_a_plan_for_one_side_of_a_pair_leaves_the_pair_as_it_is() -> None:
    task, sample = SAMPLES[4]
    team = offline_team(task, names=(), seed=7)
    extraction = await team.extractor(sample)
    plan = await team.replacer(sample, extraction, NEWS)
    one_side = tuple(one for one in plan.replacements if one.field == "sentence1")
    assert 0 < len(one_side) < len(plan.replacements)
    request = CompositionRequest(
        sample=sample,
        extraction=extraction,
        plan=plan.model_copy(update={"replacements": one_side}),
        evidence=NEWS,
        substituted={},
        reworded=None,
    )
    written = await team.composer(request)
    assert written.fields == sample.fields
    assert written.dropped == tuple(one.text for one in plan.statements)


@pytest.mark.parametrize("name", ["emotion", "irony"])
async def test_the_label_judge_beats_the_majority_on_real_tweets(name: str) -> None:
    folder = SHARED / "data" / "tweeteval" / name
    if not folder.is_dir():
        pytest.skip("the real TweetEval files are not beside this checkout")
    task = EMOTION if name == "emotion" else IRONY
    config = DatasetConfig(format="tweeteval", path=str(folder))
    train = load_benchmark(config, task, split="train").samples
    test = random.Random(1).sample(load_benchmark(config, task, split="test").samples, 200)
    judge = offline_team(task, names=(), seed=7, train=train).label_judge
    said = await asyncio.gather(*(judge(sample.fields) for sample in test))
    answered = [(s, v) for s, v in zip(test, said, strict=True) if v.label != "unclear"]
    right = sum(sample.label_text == verdict.label for sample, verdict in answered)
    majority = Counter(sample.label_text for sample in test).most_common(1)[0][1] / len(test)
    assert len(answered) > 0.6 * len(test)
    assert right / len(answered) > majority


async def test_no_role_breaks_on_real_tweets() -> None:
    folder = SHARED / "data" / "tweeteval" / "emotion"
    if not folder.is_dir():
        pytest.skip("the real TweetEval files are not beside this checkout")
    config = DatasetConfig(format="tweeteval", path=str(folder))
    samples = load_benchmark(config, EMOTION, split="test").samples[:300]
    team = offline_team(EMOTION, names=(), seed=7)
    for sample in samples:
        extraction = await team.extractor(sample)
        assert all(lock.span in sample.fields[lock.field] for lock in extraction.locked)
        await team.rewriter(sample, extraction)
        fields = await refresh(EMOTION, team, sample, NEWS)
        assert fields != sample.fields
