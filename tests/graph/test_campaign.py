import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from coreeval.errors import ModelCallError, ModelUnusable, RunError
from coreeval.graph.campaign import GIVE_UP_AFTER, Campaign, CampaignStopped, ModelConnection
from coreeval.graph.monitor import Progress, ignore_progress
from coreeval.graph.pool import Stop, max_open_samples
from coreeval.tools.stores.call_store import open_calls
from tests.support.exchanges import exchange

Rule = Callable[[int], str]


class ScriptedModel:
    """Answers numbers by rule, and remembers its questions and how many were open at once."""

    def __init__(self, rule: Rule = str) -> None:
        self._rule = rule
        self.asked: list[int] = []
        self.open = self.most_open = 0

    async def ask(self, number: int) -> str:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            self.asked.append(number)
            await asyncio.sleep(0.005)
            return self._rule(number)
        finally:
            self.open -= 1


@pytest.fixture
def make_campaign(tmp_path: Path) -> Callable[..., Campaign]:
    def make(concurrency: int = 2, stop: Stop | None = None) -> Campaign:
        calls = open_calls(tmp_path / "calls.db")
        calls.close()
        return Campaign(
            models=exchange(calls),
            concurrency=concurrency,
            watch=ignore_progress,
            stop=stop or Stop(),
        )

    return make


MakeCampaign = Callable[..., Campaign]


async def _ask(
    campaign: Campaign,
    model: ScriptedModel,
    questions: range,
    connection: ModelConnection | None = None,
) -> dict[int, str]:
    found = dict[int, str]()
    await campaign.ask_all(
        connection or ModelConnection("openai:x"), questions, model.ask, found.__setitem__
    )
    return found


@pytest.mark.parametrize(("concurrency", "questions"), [(1, 10), (3, 10), (50, 10), (2, 0)])
async def test_questions_open_at_once_are_bounded(
    make_campaign: MakeCampaign, concurrency: int, questions: int
) -> None:
    model = ScriptedModel()
    found = await _ask(make_campaign(concurrency), model, range(questions))
    assert found == {number: str(number) for number in range(questions)}
    assert model.most_open <= min(max_open_samples(concurrency), questions)


async def test_a_question_that_fails_has_no_answer_and_the_others_go_on(
    make_campaign: MakeCampaign,
) -> None:
    def rule(number: int) -> str:
        if number % 2:
            raise ModelCallError("no connection")
        return "good"

    connection = ModelConnection("openai:x")
    found = await _ask(make_campaign(1), ScriptedModel(rule), range(4 * GIVE_UP_AFTER), connection)
    assert list(found) == [*range(0, 4 * GIVE_UP_AFTER, 2)]
    assert connection.failures == ["no connection"] * 2 * GIVE_UP_AFTER
    assert connection.is_open


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_model_that_is_down_is_given_up(
    make_campaign: MakeCampaign, concurrency: int
) -> None:
    def rule(number: int) -> str:
        if number >= 10:
            raise ModelCallError("no connection")
        return "good"

    campaign, model = make_campaign(concurrency), ScriptedModel(rule)
    connection = ModelConnection("openai:x")
    found = await _ask(campaign, model, range(100), connection)
    assert sorted(found) == [*range(10)]
    assert not connection.is_open
    most = 10 + GIVE_UP_AFTER + max_open_samples(concurrency) - 1
    assert 10 + GIVE_UP_AFTER <= len(model.asked) <= most
    asked = len(model.asked)
    assert await _ask(campaign, model, range(1), connection) == {}
    assert len(model.asked) == asked


async def test_nothing_more_is_sent_once_told_to_stop_and_answers_are_kept(
    make_campaign: MakeCampaign,
) -> None:
    stop = Stop()

    def rule(number: int) -> str:
        if number == 6:
            stop.ask("told to")
        return "good"

    model, connection = ScriptedModel(rule), ModelConnection("openai:x")
    found = await _ask(make_campaign(1, stop), model, range(100), connection)
    assert list(found) == model.asked == [*range(7)]
    assert not connection.failures


async def test_a_model_that_cannot_be_used_ends_the_campaign_after_the_answers_in_flight(
    make_campaign: MakeCampaign,
) -> None:
    answered = list[int]()

    def rule(number: int) -> str:
        if number == 2:
            raise ModelUnusable("no such model")
        answered.append(number)
        return "good"

    model = ScriptedModel(rule)
    with pytest.raises(ModelUnusable, match="no such model"):
        await _ask(make_campaign(4), model, range(100))
    assert model.open == 0
    assert len(answered) == len(model.asked) - 1 < 10


async def test_gather_returns_all_answers_or_says_how_many_are_missing(
    make_campaign: MakeCampaign,
) -> None:
    shown = list[Progress]()
    campaign = Campaign(models=make_campaign().models, concurrency=1, watch=shown.append)
    found = await campaign.gather("m", "ask", [1, 2], ScriptedModel().ask, lambda said: said)
    assert found == {1: "1", 2: "2"}
    assert [(each.done, each.total, each.counts) for each in shown] == [
        (0, 0, {}),
        (1, 2, {"1": 1}),
        (2, 2, {"1": 1, "2": 1}),
    ]

    def rule(number: int) -> str:
        if number == 1:
            raise ModelCallError("no connection")
        return "good"

    with pytest.raises(RunError, match="m left 1 of 2 questions unanswered; the first: no"):
        await campaign.gather("m", "ask", [1, 2], ScriptedModel(rule).ask, str)
    campaign.stop.ask("told to")
    with pytest.raises(CampaignStopped):
        await campaign.gather("m", "ask", [1, 2], ScriptedModel().ask, str)
