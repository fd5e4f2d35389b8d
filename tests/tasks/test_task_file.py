"""A task file of the user's own: what is accepted, and what is said when it is wrong."""

import re
from pathlib import Path
from string import Template

import pytest
import yaml

from coreeval.config import ROLES
from coreeval.errors import TaskError
from coreeval.schema import Label
from coreeval.tasks import (
    BUILT_IN,
    PAPER_TASKS,
    explain_task,
    find_label,
    hash_task,
    load_task,
    mentions_target,
)

Raw = dict[str, object]


def good() -> Raw:
    return {
        "name": "news",
        "description": "Which way a headline points.",
        "fields": ["headline"],
        "text_kind": "sentence",
        "labels": [
            {"id": 0, "name": "down", "meaning": "it fell"},
            {"id": 1, "name": "up", "meaning": "it rose", "aliases": ["not down"]},
        ],
        "question": "Which way?",
        "templates": ["$headline: $labels?"],
    }


def written(folder: Path, **changes: object) -> str:
    path = folder / "news.yaml"
    path.write_text(yaml.safe_dump(good() | changes), encoding="utf-8")
    return str(path)


def problems(path: str) -> list[str]:
    return [line for line in explain_task(path) if not line.startswith("note: ")]


def test_a_good_file_loads(tmp_path: Path) -> None:
    task = load_task(written(tmp_path))
    assert (task.name, task.fields) == ("news", ("headline",))
    assert set(task.lines) == set(ROLES)
    own = load_task(written(tmp_path, lines={"composer": "Short."}))
    assert own.lines == task.lines | {"composer": "Short."}


def test_notes_say_what_is_absent(tmp_path: Path) -> None:
    path = written(tmp_path, lines={"composer": "Short."}, templates=["$headline?"])
    notes = explain_task(path)
    assert not problems(path)
    (general,) = [note for note in notes if "lines is not set for" in note]
    assert [role for role in ROLES if role in general] == [
        role for role in ROLES if role != "composer"
    ]
    assert any("does not show $labels" in note for note in notes)


def test_the_documented_example_loads(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "tasks.md"
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "headlines.yaml"
    path.write_text(blocks[0], encoding="utf-8")
    assert load_task(str(path)).name == "headlines"
    assert explain_task(str(path)) == []


LABEL = {"id": 0, "name": "down", "meaning": "it fell"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"templats": []}, "unknown key 'templats' (did you mean 'templates'?)"),
        ({"labels": [LABEL | {"nmae": "x"}, good()["labels"]]}, "did you mean 'name'?"),
        ({"labels": [LABEL, LABEL | {"or soon": None}]}, "(quote a meaning that has a comma, as"),
        ({"labels": [LABEL, LABEL | {"name": "up"}]}, "the id 0 occurs twice"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": "DOWN"}]}, "is used for two labels"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": "0"}]}, "'0' is the id of 'down'"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": "0.0"}]}, "'0.0' is the id of 'down'"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": "+00"}]}, "'+00' is the id of 'down'"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": "Unclear"}]}, "'unclear' is what a judge"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": " "}]}, "has an empty name"),
        ({"labels": [LABEL, LABEL | {"id": 1, "name": True}]}, "put it in quotes"),
        ({"labels": [LABEL]}, "labels: "),
        ({"labels": [LABEL, LABEL | {"id": 2**63, "name": "up"}]}, "labels.1.id: "),
        ({"labels": [LABEL, LABEL | {"id": -(2**63) - 1, "name": "up"}]}, "labels.1.id: "),
        ({"markers": ["#a", " "]}, "markers: one of its words is blank"),
        ({"target_terms": [""]}, "target_terms: one of its words is blank"),
        ({"question": "For $target?", "target": " "}, "target: one of its words is blank"),
        (
            {"question": "$target?", "targets": {"a": {"name": "b", "terms": ["c", ""]}}},
            "targets.a: one of its words is blank",
        ),
        ({"templates": ["$headline", "$headlin"]}, "$headlin is not a field of the task (did you"),
        ({"templates": ["$labels"]}, "the 'headline' field is never shown"),
        ({"templates": ["$headline costs $5"]}, "a $ without a name (write $$ for a dollar sign)"),
        ({"question": "Is $headline good?"}, "is not a field"),
        ({"fields": ["headline", "headline"]}, "'headline' occurs twice"),
        ({"fields": ["label"], "templates": ["$label"]}, "'label' is a reserved name"),
        ({"fields": ["head line"]}, "'head line' cannot be a field's name"),
        ({"factual_fields": ["headlines"]}, "did you mean 'headline'?"),
        ({"symmetric": True}, "only a task with two fields"),
        ({"lines": {"writer": "x"}}, "lines.writer is not a role (did you mean 'rewriter'?)"),
        ({"name": "my/news"}, "cannot be part of an id"),
        ({"targets": {"a": {"name": "b", "terms": ["c"]}}}, "names $target"),
        ({"text_kind": "poem"}, "text_kind: "),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, changes: Raw, said: str) -> None:
    path = written(tmp_path, **changes)
    assert any(said in line for line in problems(path)), problems(path)
    assert all("\n" not in line for line in problems(path))
    with pytest.raises(TaskError) as caught:
        load_task(path)
    line = re.match(r"news\.yaml(, line \d+)?: ", problems(path)[0])
    assert line and caught.value.where == path + (line[1] or "")


def test_names_the_line_of_a_key(tmp_path: Path) -> None:
    path = Path(written(tmp_path))
    text = path.read_text("utf-8").replace("meaning: it rose", "meening: it rose")
    path.write_text(text, "utf-8")
    number = text[: text.index("meening")].count("\n") + 1
    said = "unknown key 'labels.1.meening' (did you mean 'meaning'?)"
    assert problems(str(path)) == [f"news.yaml, line {number}: {said}"]


def test_a_misspelt_field_is_told_from_the_templates(tmp_path: Path) -> None:
    path = written(tmp_path, fields=["haedline"])
    (line,) = problems(path)
    assert line.endswith(
        "fields: no template shows 'haedline', but all show $headline "
        "(write the same name in both places)"
    )


def test_lists_every_problem_at_once(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("name: x\nquestions: y\n", encoding="utf-8")
    lines = problems(str(path))
    assert "empty.yaml: 'labels' is missing" in lines
    assert "empty.yaml: 'templates' is missing" in lines
    assert "empty.yaml, line 2: unknown key 'questions' (did you mean 'question'?)" in lines
    with pytest.raises(TaskError) as caught:
        load_task(str(path))
    assert "more: `coreeval validate` lists them" in caught.value.hint


def test_two_targets_by_one_name(tmp_path: Path) -> None:
    tesla = {"name": "Tesla", "terms": ["tesla"]}
    path = written(tmp_path, question="For $target?", targets={"tesla": tesla, "TESLA": tesla})
    assert any("is used for two targets" in line for line in problems(path))


def test_a_file_with_one_target_needs_no_config(tmp_path: Path) -> None:
    path = written(tmp_path, question="For $target?", target="Tesla", target_terms=["TSLA"])
    assert load_task(path).target_terms == ("TSLA",)
    assert load_task(path, "Ford").target_terms == ("Ford",)


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_target_is_none(tmp_path: Path, blank: str) -> None:
    path = written(tmp_path, question="For $target?")
    with pytest.raises(TaskError, match="needs a target"):
        load_task(path, blank)


@pytest.mark.parametrize("name", ["emotions", "foo"])
def test_an_unknown_name_lists_the_built_in_ones(name: str) -> None:
    with pytest.raises(TaskError, match="no built-in task") as caught:
        load_task(name)
    assert "emotion, irony, stance, mrpc, rte" in caught.value.hint


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    folder, broken, scalar = tmp_path / "d.yaml", tmp_path / "b.yaml", tmp_path / "s.yaml"
    folder.mkdir()
    broken.write_text("name: [", encoding="utf-8")
    scalar.write_text("just words", encoding="utf-8")
    for path, said in (
        (tmp_path / "none.yaml", "task file not found"),
        (folder, "cannot read"),
        (broken, "this is not YAML"),
        (scalar, "must be a mapping"),
    ):
        with pytest.raises(TaskError, match=said):
            load_task(str(path))
        assert said in explain_task(str(path))[0]


TARGET = {"stance": "climate"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_is_complete(name: str) -> None:
    task = load_task(name, TARGET.get(name))
    assert task.name == name
    assert set(task.lines) == set(ROLES)
    assert len(task.templates) == len(set(task.templates)) == 3
    assert [label.id for label in task.labels] == list(range(len(task.labels)))


@pytest.mark.parametrize("name", PAPER_TASKS)
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


@pytest.mark.parametrize(
    ("names", "value", "expected"),
    [
        (("1.0", "x"), "1.0", "1.0"),
        (("1e3", "x"), "1e3", "1e3"),
        (("1e3", "x"), 1000, "1e3"),
        (("1e3", "x"), "1", "x"),
        (("2.0", "3.0"), 2, "2.0"),
        (("2.0", "2"), "2.0", "2.0"),
        (("2.0", "2"), "2.00", None),
        (("1_0", "10"), "1_0", "1_0"),
        (("1_0", "10"), "10.0", "10"),
    ],
)
def test_a_label_whose_name_is_a_number_is_found_by_its_name(
    names: tuple[str, ...], value: object, expected: str | None
) -> None:
    labels = tuple(Label(id=at, name=name, meaning=name) for at, name in enumerate(names))
    found = find_label(load_task("emotion").model_copy(update={"labels": labels}), value)
    assert (found.name if found else None) == expected


def test_a_language_is_stated_by_the_file_or_the_config(tmp_path: Path) -> None:
    own = written(tmp_path, language="de")
    assert load_task(own).language == "de"
    assert load_task(own, language="es").language == "es"
    assert load_task("emotion").language == "en"
    assert hash_task(load_task("emotion", language="de")) != hash_task(load_task("emotion"))


def test_a_language_is_a_code(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="de is German"):
        load_task(written(tmp_path, language="german"))
