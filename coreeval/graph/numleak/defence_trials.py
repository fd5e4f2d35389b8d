"""Asks ordinary questions under each defence, and has judges score the answers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import DefencesConfig, ModelConfig, NumleakConfig, TargetConfig
from coreeval.evaluation.detectors.base import TextAnswer
from coreeval.evaluation.numleak.defences.attacks import DefenceSet, add_attacks, open_defences
from coreeval.evaluation.numleak.defences.utility import (
    JudgeInput,
    OrdinaryQuestion,
    UtilityKey,
    UtilityQuestion,
    UtilityReply,
    UtilityScore,
    choose_second_scores,
    list_ordinary_questions,
    read_questions,
    score_answer,
    score_by_rule,
)
from coreeval.evaluation.numleak.probes import SeriesQuestionSet
from coreeval.evaluation.numleak.series import Series
from coreeval.graph.campaign import Campaign, ask_text

UTILITY_ROLE, JUDGE_ROLE = "target_utility", "utility_judge"
"""Roles under which the calls are recorded."""
JUDGE_STAGE = "judge"
JUDGE_DRAWS = 2
"""The most calls to a judge per score: one more if the first gave no valid score."""
SILENCE_SCORE = UtilityScore(judge="", score=0, reason="it gave no answer")


@dataclass(frozen=True, kw_only=True)
class UtilityPlan:
    """The ordinary questions for each target, and the judges that score the answers."""

    questions: tuple[OrdinaryQuestion, ...]
    judge: ModelConfig
    second_judge: ModelConfig | None
    again: frozenset[UtilityKey]
    """The number of answers per target that the second judge scores too."""


@dataclass(frozen=True, kw_only=True)
class DefenceTrial:
    """The prompts of the defences, and the ordinary questions that test them."""

    config: DefencesConfig
    armoury: DefenceSet
    own: tuple[UtilityQuestion, ...]
    seed: int

    def attacks(self, asked: SeriesQuestionSet, series: Series) -> SeriesQuestionSet:
        """Return the questions about a series, followed by the attacks on the defences."""
        return add_attacks(asked, series.definition, self.armoury, dates=self.config.dates)

    def plan_utility(
        self, series: Sequence[Series], targets: Sequence[TargetConfig]
    ) -> UtilityPlan | None:
        """Return the ordinary questions for targets; None if there is no judge."""
        judge, second = self.config.judge, self.config.second_judge
        if judge is None or not self.config.measures_utility:
            return None
        questions = tuple(
            question
            for one in series
            for question in list_ordinary_questions(one, self.armoury, self.own)
        )
        keys = (one.key(target.model) for target in targets for one in questions)
        count = self.config.rescored if second else 0
        again = choose_second_scores(keys, count=count, seed=self.seed)
        return UtilityPlan(questions=questions, judge=judge, second_judge=second, again=again)


def open_defence_trial(asked: NumleakConfig, *, seed: int) -> DefenceTrial | None:
    """Return the trials of a config's defences; None if it has none.

    Raises:
        ConfigError: the file of a defence, of an ending or of the questions cannot be used.
    """
    config = asked.defences
    if config is None:
        return None
    own = read_questions(Path(config.questions)) if config.questions else []
    return DefenceTrial(config=config, armoury=open_defences(config), own=tuple(own), seed=seed)


async def ask_utility(
    campaign: Campaign, target: TargetConfig, judged: UtilityPlan
) -> list[UtilityReply]:
    """Return a target's answers to ordinary questions, with the judges' scores.

    Args:
        campaign: Asks models; a persona is not asked through it.
        target: The target to ask.
        judged: The questions and the judges.

    Raises:
        CampaignStopped: a signal stopped the run.
        RunError: some questions failed.
        CoreEvalError: no more questions can be asked.
    """
    questions = judged.questions
    said = await _ask_questions(campaign, target, questions)
    found = {question: list[UtilityScore]() for question in questions}
    chosen = [question for question in questions if question.key(target.model) in judged.again]
    for judge, shown in ((judged.judge, questions), (judged.second_judge, chosen)):
        if judge is not None:
            for question, score in (await _score_answers(campaign, judge, shown, said)).items():
                found[question].append(score)
    return [
        one.reply(target.model, said[one].text or None, said[one].kind, found[one])
        for one in questions
    ]


async def _ask_questions(
    campaign: Campaign,
    target: TargetConfig,
    questions: Sequence[OrdinaryQuestion],
) -> dict[OrdinaryQuestion, TextAnswer]:
    """Ask through the call store; questions with the same wording are one call."""
    if target.is_embedded:
        return await asyncio.to_thread(_ask_persona, target.model, questions)
    client = campaign.models.open_client(target, UTILITY_ROLE, max_draws=1, settle=True)
    texts = list(dict.fromkeys(one.text for one in questions))
    first = {one.text: one for one in reversed(questions)}
    said = await campaign.gather(
        target.model,
        JUDGE_STAGE,
        texts,
        lambda text: ask_text(client, first[text].messages),
        lambda words: words.kind,
    )
    return {one: said[one.text] for one in questions}


def _ask_persona(
    model: str, questions: Sequence[OrdinaryQuestion]
) -> dict[OrdinaryQuestion, TextAnswer]:
    from coreeval.evaluation.numleak.personas.memory import answer_ordinary  # numpy

    return {
        one: TextAnswer("answered", answer_ordinary(model, one.defence, one.asked))
        for one in questions
    }


async def _score_answers(
    campaign: Campaign,
    judge: ModelConfig,
    questions: Sequence[OrdinaryQuestion],
    said: Mapping[OrdinaryQuestion, TextAnswer],
) -> dict[OrdinaryQuestion, UtilityScore]:
    """Have answers scored; truncated answers are skipped, and an empty answer is not helpful."""
    shown = {one: one.exhibit(said[one].text) for one in questions if said[one].kind != "truncated"}
    exhibits = [*dict.fromkeys(each for each in shown.values() if each.answer.strip())]
    if judge.is_rule_based:
        found = {each: score_by_rule(each) for each in exhibits}
    else:
        found = await _ask_judge(campaign, judge, exhibits)
    silent = SILENCE_SCORE.model_copy(update={"judge": judge.model})
    return {one: found.get(each, silent) for one, each in shown.items()}


async def _ask_judge(
    campaign: Campaign, judge: ModelConfig, exhibits: Sequence[JudgeInput]
) -> dict[JudgeInput, UtilityScore]:
    """Ask a judge, whose first answer is final: if it refuses to score, it is not asked again."""
    client = campaign.models.open_client(judge, JUDGE_ROLE, max_draws=JUDGE_DRAWS, settle=True)
    return await campaign.gather(
        judge.model,
        JUDGE_STAGE,
        exhibits,
        lambda exhibit: score_answer(client, exhibit, judge=judge.model),
        lambda score: "scored" if score.score is not None else "unscored",
    )
