import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from coreeval.config import ModelConfig
from coreeval.errors import ModelCallError, ModelUnusable, NoValidAnswer, PromptError
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.evaluation.targets import (
    GIVE_UP_AFTER,
    Answer,
    Message,
    TargetConnection,
    TargetQuestion,
    ask_target,
    hash_question,
    make_message,
    questions_about,
)
from coreeval.models import InvalidAnswer, OutputSchema, record_calls
from coreeval.schema import Label, Prediction, Sample, Task
from coreeval.tools.stores.call_store import open_calls
from tests.support.exchanges import exchange

TASK = Task(
    name="mood",
    description="The mood of a text.",
    fields=("text",),
    labels=(Label(id=0, name="good", meaning="glad"), Label(id=1, name="bad", meaning="sad")),
    question="Which mood?",
    text_kind="tweet",
    target="rain",
    templates=("$text about $target: $labels?", "second template $text"),
)


def _samples(*texts: str) -> list[Sample]:
    return [
        Sample(id=f"s{at}", split="test", fields={"text": text}, label=0, label_text="good")
        for at, text in enumerate(texts)
    ]


class ScriptedClient:
    """Answers by rule, and remembers what it was asked and how many questions were open at once."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule
        self.asked: list[str] = []
        self.open = self.most_open = 0

    async def ask(self, messages: Sequence[Message], shape: OutputSchema[Answer]) -> Answer:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            (message,) = messages
            self.asked.append(message["content"])
            await asyncio.sleep(0)
            return shape.parse(json.dumps({"label": self._rule(message["content"])}))
        finally:
            self.open -= 1


def _line() -> TargetConnection:
    return TargetConnection(lambda: False)


async def _ask(
    client: ScriptedClient,
    samples: Sequence[Sample],
    concurrency: int = 2,
    line: TargetConnection | None = None,
) -> tuple[Prediction, ...]:
    return await ask_target(
        "openai:x",
        [TargetQuestion(sample, 1) for sample in samples],
        source="updated",
        task=TASK,
        client=client,
        line=line or _line(),
        concurrency=concurrency,
    )


async def test_predictions_come_in_the_order_of_the_samples() -> None:
    client = ScriptedClient(lambda text: "bad" if text.startswith("wet") else "good")
    found = await _ask(client, _samples("wet", "dry", "wet"))
    assert [(each.sample_id, each.answer, each.kind) for each in found] == [
        ("s0", "bad", "answered"),
        ("s1", "good", "answered"),
        ("s2", "bad", "answered"),
    ]
    assert {(each.target, each.source) for each in found} == {("openai:x", "updated")}
    assert {each.version for each in found} == {hash_question(TASK)}


async def test_every_template_is_asked_about_every_sample() -> None:
    client, heard = ScriptedClient(lambda _: "good"), list[Prediction]()
    asked = list(questions_about(_samples("wet", "dry"), TASK))
    found = await ask_target(
        "openai:x",
        asked,
        source="original",
        task=TASK,
        client=client,
        line=_line(),
        concurrency=1,
        heard=heard.append,
    )
    end = '\n\nGive the label as a JSON object: {"label": "..."}'
    assert client.asked == [
        f"wet about rain: good, bad?{end}",
        f"second template wet{end}",
        f"dry about rain: good, bad?{end}",
        f"second template dry{end}",
    ]
    assert [(one.sample_id, one.template) for one in found] == [
        ("s0", 1),
        ("s0", 2),
        ("s1", 1),
        ("s1", 2),
    ]
    assert tuple(heard) == found


def test_other_words_round_a_text_make_another_version() -> None:
    def changed(**update: object) -> str:
        return hash_question(TASK.model_copy(update=update))

    assert hash_question(TASK) == changed(description="Other.")
    versions = [
        hash_question(TASK),
        changed(templates=TASK.templates[:1]),
        changed(target="snow"),
        changed(labels=TASK.labels[::-1]),
    ]
    assert len(set(versions)) == 4


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (3, 3), (50, 10)])
async def test_questions_open_at_once_are_bounded(concurrency: int, most: int) -> None:
    client = ScriptedClient(lambda _: "good")
    found = await _ask(client, _samples(*map(str, range(10))), concurrency)
    assert (client.most_open, len(found)) == (most, 10)


async def test_no_samples_ask_nothing() -> None:
    client = ScriptedClient(lambda _: "good")
    assert await _ask(client, []) == ()
    assert client.asked == []


async def test_a_bad_answer_is_a_prediction_of_its_kind_with_its_reason() -> None:
    def rule(text: str) -> str:
        if text.startswith("wet"):
            raise NoValidAnswer("it refused", kind="refused")
        if text.startswith("mild"):
            raise NoValidAnswer("no JSON")
        return "good"

    line = _line()
    found = await _ask(ScriptedClient(rule), _samples("wet", "mild", "dry"), line=line)
    assert [(one.answer, one.kind, one.reason) for one in found] == [
        ("", "refused", "it refused"),
        ("", "unparsed", "no JSON"),
        ("good", "answered", ""),
    ]
    assert line.is_open and not line.troubles


async def test_what_did_not_get_through_is_no_prediction() -> None:
    def rule(text: str) -> str:
        if text.startswith("wet"):
            raise ModelCallError("no connection")
        return "good"

    line = _line()
    texts = ["wet", "dry"] * 2 * GIVE_UP_AFTER
    found = await _ask(ScriptedClient(rule), _samples(*texts), 1, line)
    assert [each.sample_id for each in found] == [f"s{at}" for at in range(1, len(texts), 2)]
    assert line.troubles == ["no connection"] * 2 * GIVE_UP_AFTER
    assert line.is_open


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_target_that_is_down_is_given_up(concurrency: int) -> None:
    def rule(text: str) -> str:
        if int(text.split()[0]) >= 10:
            raise ModelCallError("no connection")
        return "good"

    client, line = ScriptedClient(rule), _line()
    found = await _ask(client, _samples(*map(str, range(100))), concurrency, line)
    assert [each.sample_id for each in found] == [f"s{at}" for at in range(10)]
    assert not line.is_open
    most = 10 + GIVE_UP_AFTER + concurrency - 1
    assert 10 + GIVE_UP_AFTER <= len(client.asked) <= most
    assert await _ask(client, _samples("1"), line=line) == ()
    assert len(client.asked) <= most


async def test_nothing_more_is_sent_once_told_to_stop_and_what_was_answered_is_kept() -> None:
    client = ScriptedClient(lambda _: "good")
    line = TargetConnection(lambda: len(client.asked) >= 7)
    found = await _ask(client, _samples(*map(str, range(100))), 3, line)
    assert [each.sample_id for each in found] == [f"s{at}" for at in range(7)]
    assert len(client.asked) == 7
    assert not line.troubles


async def test_an_unusable_target_stops_everything_as_itself() -> None:
    def rule(text: str) -> str:
        if text.startswith("2"):
            raise ModelUnusable("no such model")
        return "good"

    client = ScriptedClient(rule)
    with pytest.raises(ModelUnusable, match="no such model"):
        await _ask(client, _samples(*map(str, range(100))))
    assert len(client.asked) < 10
    assert client.open == 0


async def test_what_is_on_its_way_when_an_error_comes_is_waited_for() -> None:
    said = list[str]()

    def rule(text: str) -> str:
        if text.startswith("2"):
            raise ModelUnusable("no such model")
        said.append(text)
        return "good"

    client = ScriptedClient(rule)
    with pytest.raises(ModelUnusable):
        await _ask(client, _samples(*map(str, range(100))), concurrency=4)
    assert len(said) == len(client.asked) - 1


def test_an_answer_is_exactly_one_of_the_labels() -> None:
    shape = LabelShape(TASK)
    assert shape.schema["properties"] == {"label": {"type": "string", "enum": ["good", "bad"]}}
    assert shape.parse('{"label": "bad"}').label == "bad"
    assert shape.parse('{"label": "bad", "why": "x"}').label == "bad"
    for text in ('{"label": ""}', '{"label": "good or bad"}', "not bad", "good or bad", "böse"):
        with pytest.raises(InvalidAnswer):
            shape.parse(text)


@pytest.mark.parametrize(
    "said",
    [
        "not-sad",
        "Not_Sad.",
        '"NOT SAD"',
        "**not_sad**",
        '{"label": " Not sad"}',
        "```\nnot sad\n```",
    ],
)
def test_a_bare_label_is_an_answer_whatever_its_case(said: str) -> None:
    labels = (Label(id=0, name="not_sad", meaning="glad"), Label(id=1, name="sad", meaning="sad"))
    assert LabelShape(TASK.model_copy(update={"labels": labels})).parse(said).label == "not_sad"


def test_dollars_in_a_text_are_text() -> None:
    content = make_message(TASK, {"text": "costs $5, $labels"}, 1)["content"]
    assert content.startswith("costs $5, $labels about rain: good, bad?")


@pytest.mark.parametrize(
    ("template", "told"),
    [("$text and $topic", r"\$topic"), ("$text for $ 5", "Invalid placeholder")],
)
def test_a_template_that_cannot_be_filled_is_named(template: str, told: str) -> None:
    task = TASK.model_copy(update={"templates": ("$text", template)})
    with pytest.raises(PromptError, match=told) as caught:
        make_message(task, {"text": "x"}, 2)
    assert "template 2" in caught.value.message
    assert "$labels" in caught.value.hint


def _recorded(content: str, text: str, finish_reason: str = "stop") -> Mapping[str, object]:
    return {
        "messages": [make_message(TASK, {"text": text}, 1)],
        "schema": "LabelAnswer",
        "content": content,
        "finish_reason": finish_reason,
    }


async def test_targets_are_asked_through_the_call_store(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    lines = [
        _recorded('{"label": "bad"}', "wet"),
        _recorded('{"label": "good"}', "dry", "length"),
        _recorded("it feels good", "mild"),
        _recorded("I will not.", "cold", "refusal"),
        _recorded("", "hot"),
        _recorded('{"label": "хорошо"}', "foggy"),
    ]
    answers.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    store = open_calls(tmp_path / "calls.db")
    target = ModelConfig(model=f"replay:{answers}")
    texts = ("wet", "dry", "mild", "cold", "hot", "foggy")
    try:
        with record_calls() as calls:
            first, second = [
                await ask_target(
                    "replay:x",
                    [TargetQuestion(one, 1) for one in _samples(*texts)],
                    source="original",
                    task=TASK,
                    client=exchange(store).open_client(target, "target", max_draws=1, settle=True),
                    line=_line(),
                    concurrency=3,
                )
                for _ in range(2)
            ]
    finally:
        store.close()
    assert first == second
    assert [(each.answer, each.kind) for each in first] == [
        ("bad", "answered"),
        ("", "truncated"),
        ("", "unparsed"),
        ("", "refused"),
        ("", "unparsed"),
        ("", "unparsed"),
    ]
    assert "truncated" in first[1].reason
    assert [call.cached for call in calls] == [False] * 6 + [True] * 6
