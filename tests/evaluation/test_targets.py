import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from coreeval.config import ModelConfig
from coreeval.errors import CoreEvalError, ModelCallError, ModelUnusable, NoValidAnswer, PromptError
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.evaluation.targets import (
    Answer,
    Message,
    TargetQuestion,
    hash_question,
    make_message,
    make_predictor,
    questions_about,
)
from coreeval.models import InvalidAnswer, OutputSchema, record_calls
from coreeval.schema import Label, Prediction, Sample, Task
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.support.exchanges import exchange

Predict = Callable[[TargetQuestion], Awaitable[Prediction]]
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


class ScriptedAsker:
    """Answers by rule, and remembers what it was asked."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule
        self.asked: list[str] = []

    async def ask(self, messages: Sequence[Message], output_schema: OutputSchema[Answer]) -> Answer:
        (message,) = messages
        self.asked.append(message["content"])
        return output_schema.parse(json.dumps({"label": self._rule(message["content"])}))


async def _ask(client: ScriptedAsker, samples: Sequence[Sample]) -> list[Prediction]:
    predict = make_predictor("openai:x", client, source="updated", task=TASK)
    return [await predict(TargetQuestion(sample, 1)) for sample in samples]


async def test_a_prediction_says_who_was_asked_about_what() -> None:
    client = ScriptedAsker(lambda text: "bad" if text.startswith("wet") else "good")
    found = await _ask(client, _samples("wet", "dry", "wet"))
    assert [(each.sample_id, each.answer, each.kind) for each in found] == [
        ("s0", "bad", "answered"),
        ("s1", "good", "answered"),
        ("s2", "bad", "answered"),
    ]
    assert {(each.target, each.source) for each in found} == {("openai:x", "updated")}
    assert {each.version for each in found} == {hash_question(TASK)}


async def test_every_template_is_asked_about_every_sample() -> None:
    client = ScriptedAsker(lambda _: "good")
    predict = make_predictor("openai:x", client, source="original", task=TASK)
    found = [await predict(one) for one in questions_about(_samples("wet", "dry"), TASK)]
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


async def test_a_bad_answer_is_a_prediction_of_its_kind_with_its_reason() -> None:
    def rule(text: str) -> str:
        if text.startswith("wet"):
            raise NoValidAnswer("it refused", kind="refused")
        if text.startswith("mild"):
            raise NoValidAnswer("no JSON")
        return "good"

    found = await _ask(ScriptedAsker(rule), _samples("wet", "mild", "dry"))
    assert [(one.answer, one.kind, one.reason) for one in found] == [
        ("", "refused", "it refused"),
        ("", "unparsed", "no JSON"),
        ("good", "answered", ""),
    ]


@pytest.mark.parametrize("error", [ModelCallError("no connection"), ModelUnusable("no model")])
async def test_a_question_that_does_not_reach_the_target_raises(error: CoreEvalError) -> None:
    def rule(_: str) -> str:
        raise error

    with pytest.raises(type(error), match=str(error)):
        await _ask(ScriptedAsker(rule), _samples("wet"))


def test_an_answer_is_exactly_one_of_the_labels() -> None:
    output_schema = LabelShape(TASK)
    assert output_schema.schema["properties"] == {
        "label": {"type": "string", "enum": ["good", "bad"]}
    }
    assert output_schema.parse('{"label": "bad"}').label == "bad"
    assert output_schema.parse('{"label": "bad", "why": "x"}').label == "bad"
    for text in ('{"label": ""}', '{"label": "good or bad"}', "not bad", "good or bad", "böse"):
        with pytest.raises(InvalidAnswer):
            output_schema.parse(text)


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


def _shape_of(*names: str) -> LabelShape:
    labels = tuple(Label(id=at, name=name, meaning=name) for at, name in enumerate(names))
    return LabelShape(TASK.model_copy(update={"labels": labels}))


SIGNS = (
    ("C", "C++", "C#", "Java"),
    ("A", "A+", "AA", "AA+"),
    ("A", "A*"),
    ("5", "5+"),
    ("yes", "yes!", "no"),
    ("no", "no?"),
    (">50K", "<=50K"),
    ("+", "="),
    ("-1", "0", "+1"),
)


@pytest.mark.parametrize("names", SIGNS)
@pytest.mark.parametrize(
    "said",
    ['{{"label": "{}"}}', "{}", " {}\n", "**{}**", "`{}`", '"{}"', "({})", "```\n{}\n```", "- {}"],
)
def test_signs_that_distinguish_labels_are_read(names: tuple[str, ...], said: str) -> None:
    shape = _shape_of(*names)
    assert [shape.parse(said.format(name)).label for name in names] == [*names]


@pytest.mark.parametrize("names", [each for each in SIGNS if "no?" not in each])
@pytest.mark.parametrize("said", ["The label is {}.", "The label is **{}**.", "Answer: {}", "{}."])
def test_signs_that_distinguish_labels_are_read_in_sentences(
    names: tuple[str, ...], said: str
) -> None:
    shape = _shape_of(*names)
    assert [shape.parse(said.format(name)).label for name in names] == [*names]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (SIGNS[0], "C+"),
        (SIGNS[0], "The label is C+."),
        (SIGNS[0], "C++?"),
        (SIGNS[0], "C or C++"),
        (SIGNS[0], "Objective-C"),
        (SIGNS[1], "AAA+"),
        (SIGNS[1], "A++"),
        (SIGNS[1], "A+ or A"),
        (SIGNS[2], "A**"),
        (SIGNS[5], "Is it no?"),
        (SIGNS[6], "50K"),
        (SIGNS[3], "-5"),
        (("0", "1"), "-1"),
        (("0", "1"), "**-1**"),
        (("0", "1"), '{"label": "-1"}'),
        (("0", "1"), "The label is -1."),
        (("-1", "0"), "1"),
    ],
)
def test_a_label_with_other_signs_is_no_label(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidAnswer):
        _shape_of(*names).parse(said)


STOPS = (
    ("Windows 8", "Windows 8.1", "Windows 10"),
    ("comp.graphics", "comp.os.ms-windows.misc", "rec.autos"),
    ("-1", "-0.5", "0", "0.5", "1"),
    ("v1", "v1.5", "v2"),
    ("1.0", "2.0"),
    ("U.S.", "St. Louis", "Europe"),
    ("pants on fire!", "true"),
    ("N/A", "Sci/Tech", "don't know"),
)


@pytest.mark.parametrize("names", STOPS)
@pytest.mark.parametrize(
    "said",
    [
        "{}",
        "**{}**",
        "{}.",
        "- {}",
        "{} \u2705",
        "\\boxed{{{}}}",
        "Label: **{}**",
        "The label is {}.",
        "The label is {}, and no other one. It fits",
        "{}\n\nThe text says so.",
    ],
)
def test_stops_inside_labels_end_no_sentence(names: tuple[str, ...], said: str) -> None:
    shape = _shape_of(*names)
    assert [shape.parse(said.format(name)).label for name in names] == [*names]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("joy", "anger"), "anger: 0.05, joy: 0.9"),
        (("joy", "anger"), "Scores: anger 0.1, joy 0.9"),
        (STOPS[0], "The label is Windows 8.2."),
        (STOPS[0], "It is Windows 8 or Windows 8.1."),
        (STOPS[1], "It is neither comp.graphics nor rec.autos."),
        (STOPS[2], "Label: 1.5"),
        (("1", "2", "3"), "I'd say 2.5 stars"),
    ],
)
def test_numbers_beside_or_inside_labels_choose_none(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidAnswer):
        _shape_of(*names).parse(said)


@pytest.mark.parametrize(
    "said",
    [
        "The label is not\nentailment.",
        "Label: not\nentailment",
        "It isn't entailment, but not \nentailment.",
    ],
)
def test_a_line_break_does_not_part_a_negation_from_its_label(said: str) -> None:
    assert _shape_of("entailment", "not entailment").parse(said).label == "not entailment"


@pytest.mark.parametrize("said", ["Is it ham or not\nHam", "ham or not\nThe message is ham."])
def test_nothing_follows_or_not(said: str) -> None:
    assert _shape_of("ham", "spam").parse(said).label == "ham"


def test_a_whole_number_may_have_decimals() -> None:
    for said in ("3.0", "The label is 3.0.", "Rating: 3.0", "joy 0.9. Label: 3"):
        assert _shape_of("1", "2", "3").parse(said).label == "3"


@pytest.mark.parametrize(
    ("names", "said", "label"),
    [
        (("true", "false"), '{"label": true}', "true"),
        (("True", "False"), '{"label": false, "confidence": 1}', "False"),
        (("true", "false"), "{'label': True}", "true"),
        (("1", "2", "3", "4", "5"), '{"label": 4}', "4"),
        (("1", "2", "3", "4", "5"), '{"answer": 4.0}', "4"),
        (("0", "1"), '```json\n{"label": 0}\n```', "0"),
        (("0.5", "1.0"), '{"label": 0.5}', "0.5"),
        (("0.5", "1.0"), '{"label": 1.0}', "1.0"),
        (("-1", "0"), '{"label": -1}', "-1"),
        (("-1", "1"), "**\u22121**", "-1"),
        (("-1", "1"), "Label: \u20131", "-1"),
        (("-1", "1"), "\u20111", "-1"),
        (("-1", "1"), '{"label": "\\u22121"}', "-1"),
        (("(-1)", "(1)"), "(\u22121)", "(-1)"),
    ],
)
def test_labels_named_like_values_of_json_are_read(
    names: tuple[str, ...], said: str, label: str
) -> None:
    assert _shape_of(*names).parse(said).label == label


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("0", "1"), '{"label": -1}'),
        (("0", "1"), '{"label": true}'),
        (("0", "1"), '{"label": null}'),
        (("1", "2"), '{"label": 1.5}'),
        (("1", "2"), '{"label": 1e999}'),
        (("1", "2"), '{"confidence": 1}'),
        (("1", "1.0"), '{"label": 1.0}'),
        (("yes", "no"), '{"label": true}'),
        (("1", "2"), '{"label": 1} or {"label": 2}'),
    ],
)
def test_other_values_of_json_are_no_labels(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidAnswer):
        _shape_of(*names).parse(said)


def test_signs_of_other_labels_may_surround_a_label() -> None:
    assert _shape_of(*SIGNS[4]).parse("no!").label == "no"
    assert _shape_of(*SIGNS[0]).parse("# Java").label == "Java"
    assert _shape_of(*SIGNS[0]).parse("It is not C but C++.").label == "C++"


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


def _open_predictor(store: CallStore, target: ModelConfig) -> Predict:
    client = exchange(store).open_client(target, "target", max_draws=1, settle=True)
    return make_predictor("replay:x", client, source="original", task=TASK)


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
                [await predict(TargetQuestion(one, 1)) for one in _samples(*texts)]
                for predict in (_open_predictor(store, target), _open_predictor(store, target))
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
