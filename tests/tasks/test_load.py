"""The five built-in tasks, and finding labels."""

from string import Template

import pytest

from coreeval.config import ROLES
from coreeval.errors import TaskError
from coreeval.tasks import BUILT_IN, find_label, load_task, mentions_target

TARGET = {"stance": "climate"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_is_complete(name: str) -> None:
    task = load_task(name, TARGET.get(name))
    assert task.name == name
    assert set(task.lines) == set(ROLES)
    assert len(task.templates) == len(set(task.templates)) == 3
    assert [label.id for label in task.labels] == list(range(len(task.labels)))


@pytest.mark.parametrize("name", BUILT_IN)
def test_templates_fill_with_fields_labels_and_target(name: str) -> None:
    task = load_task(name, TARGET.get(name))
    values = {field: f"<{field}>" for field in task.fields} | {"labels": "<labels>"}
    for template in task.templates:
        text = Template(template).substitute(values, target=task.target or "")
        assert all(value in text for value in values.values())
    assert mentions_target(task) is (task.target is not None)


@pytest.mark.parametrize(
    ("name", "fields", "labels"),
    [
        ("emotion", ("text",), ["anger", "joy", "optimism", "sadness"]),
        ("irony", ("text",), ["non_irony", "irony"]),
        ("stance", ("text",), ["none", "against", "favor"]),
        ("mrpc", ("sentence1", "sentence2"), ["not_equivalent", "equivalent"]),
        ("rte", ("premise", "hypothesis"), ["entailment", "not_entailment"]),
    ],
)
def test_fields_and_labels(name: str, fields: tuple[str, ...], labels: list[str]) -> None:
    task = load_task(name, TARGET.get(name))
    assert task.fields == fields
    assert [label.name for label in task.labels] == labels


def test_particulars() -> None:
    assert load_task("rte").factual_fields == ("premise",)
    mrpc = load_task("mrpc")
    assert mrpc.symmetric and mrpc.tokenised
    assert set(load_task("irony").markers) == {"#irony", "#sarcasm", "#sarcastic", "#not"}
    assert load_task("stance", "atheism").markers == ("#SemST",)


def test_stance_writes_its_target_out() -> None:
    task = load_task("stance", "climate")
    assert task.target == "climate change is a real concern"
    assert "global warming" in task.target_terms
    assert load_task("stance", "feminist") == load_task("stance", "feminism")
    assert load_task("stance", task.target) == task


def test_stance_takes_an_unlisted_target_as_it_is() -> None:
    task = load_task("stance", "nuclear power")
    assert (task.target, task.target_terms) == ("nuclear power", ("nuclear power",))


def test_stance_about_all_targets_has_none_of_its_own() -> None:
    task = load_task("stance", "all")
    assert (task.target, task.target_terms) == (None, ())


def test_stance_without_a_target_names_those_it_knows() -> None:
    with pytest.raises(TaskError, match="needs a target") as caught:
        load_task("stance")
    assert "abortion, atheism, climate, feminism, hillary" in caught.value.hint


def test_a_target_too_many() -> None:
    with pytest.raises(TaskError, match="takes no target"):
        load_task("emotion", "climate")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("irony", "not irony", 0),
        ("irony", "Non-Irony", 0),
        ("stance", "neutral", 0),
        ("stance", "FAVOUR", 2),
        ("mrpc", "not_equivalent", 0),
        ("mrpc", "Semantically  Equivalent", 1),
        ("rte", "not entailment", 1),
        ("emotion", 3, 3),
        ("emotion", " 3 ", 3),
        ("emotion", 3.0, 3),
        ("emotion", "-1", None),
        ("emotion", -1, None),
        ("emotion", 4, None),
        ("emotion", 1.5, None),
        ("emotion", "nan", None),
        ("emotion", True, None),
        ("emotion", None, None),
        ("emotion", "happiness", None),
    ],
)
def test_finds_a_label(name: str, value: object, expected: int | None) -> None:
    label = find_label(load_task(name, TARGET.get(name)), value)
    assert (label.id if label else None) == expected
