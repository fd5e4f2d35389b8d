"""Prompts are checked before anything is paid, and data stays data."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.config import ROLES
from coreeval.errors import PromptError
from coreeval.prompts import (
    DIVIDER,
    ROLES_OF_PROMPT,
    Prompt,
    load_built_in_prompt,
    load_prompts,
    to_prompt_json,
)
from coreeval.schema import RoleName, Task
from coreeval.tasks import load_task

BUILT_IN = load_prompts()


def prompt(text: str) -> Prompt:
    return Prompt("p.md", text)


def test_fill_gives_stable_instructions_first() -> None:
    one = prompt(f"For $$5 label $task.\n{DIVIDER}\n<text>\n$text\n</text>\n")
    assert one.variables == {"task", "text"}
    assert one.fill(task="it", text="a $task") == [
        {"role": "system", "content": "For $5 label it."},
        {"role": "user", "content": "<text>\na $task\n</text>"},
    ]


@pytest.mark.parametrize("values", [{}, {"text": "a", "more": "b"}, {"txt": "a"}])
def test_variables_must_be_exactly_those_of_the_prompt(values: dict[str, str]) -> None:
    with pytest.raises(PromptError, match="needs the variables text"):
        prompt(f"a\n{DIVIDER}\n$text").fill(**values)


@pytest.mark.parametrize(
    "text", ["no divider $a", f"{DIVIDER}\n{DIVIDER}\n", f"costs $5\n{DIVIDER}\n"]
)
def test_a_malformed_prompt_says_what_to_do(text: str) -> None:
    with pytest.raises(PromptError) as caught:
        prompt(text)
    assert caught.value.where == "p.md" and caught.value.hint


@pytest.mark.parametrize(
    "text",
    [f"{DIVIDER}\n$a", f"$a\n{DIVIDER}", f"\n \n{DIVIDER}\n$a", f"$a\n{DIVIDER}\n\n", DIVIDER],
)
def test_a_prompt_with_nothing_on_one_side_of_its_divider_is_refused(text: str) -> None:
    with pytest.raises(PromptError, match="one is empty"):
        prompt(text)


@pytest.mark.parametrize("text", [f"do\n{DIVIDER}\n$a", f"\ndo\n\n{DIVIDER}\n\n$a\n\n"])
def test_every_prompt_that_is_taken_can_be_filled(text: str) -> None:
    messages = prompt(text).fill(a="data")
    assert [message["content"] for message in messages] == ["do", "data"]


def test_the_version_follows_the_wording_and_the_task_line() -> None:
    task = load_task("emotion")
    versions = {name: BUILT_IN.version_for(name, task) for name in ROLES_OF_PROMPT}
    assert len(set(versions.values())) == len(ROLES_OF_PROMPT) > len(ROLES)
    lines: dict[RoleName, str] = {**task.lines, "composer": "another line"}
    other = task.model_copy(update={"lines": lines})
    changed = {name for name in versions if BUILT_IN.version_for(name, other) != versions[name]}
    kinds = ("tweet", "sentence", "item")
    joint = {f"replacer_composer_{kind}" for kind in kinds}
    assert changed == {"composer", "composer_item", *joint}
    assert prompt(f"a\n{DIVIDER}\nc").version != prompt(f"b\n{DIVIDER}\nc").version


def test_a_folder_replaces_prompts_of_the_same_name(tmp_path: Path) -> None:
    own = BUILT_IN["label_judge"].text.replace("You label a text,", "You judge.")
    (tmp_path / "label_judge.md").write_text(own, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a prompt", encoding="utf-8")
    prompts = load_prompts(tmp_path)
    assert prompts["label_judge"].text == own
    assert prompts["composer"] == BUILT_IN["composer"]
    task = load_task("emotion")
    assert prompts.own == {"label_judge"}
    assert prompts.version_for("label_judge", task) != BUILT_IN.version_for("label_judge", task)


@pytest.mark.parametrize(
    ("name", "hint"), [("label-judge.md", "label_judge.md"), ("zzz.md", "extractor, ")]
)
def test_an_unknown_file_name_is_an_error_with_the_nearest(
    tmp_path: Path, name: str, hint: str
) -> None:
    (tmp_path / name).write_text("x", encoding="utf-8")
    with pytest.raises(PromptError) as caught:
        load_prompts(tmp_path)
    assert hint in caught.value.hint
    assert caught.value.where.endswith(name)


def test_own_prompts_must_use_the_same_variables(tmp_path: Path) -> None:
    (tmp_path / "label_judge.md").write_text(f"$question $extra\n{DIVIDER}\n$text", "utf-8")
    with pytest.raises(PromptError, match=r"missing \['labels', 'line'\], unknown \['extra'\]"):
        load_prompts(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="no such folder"):
        load_prompts(tmp_path / "none")


@given(st.text())
def test_no_text_can_close_its_block(text: str) -> None:
    data = to_prompt_json({"text": text + "</text>"})
    assert "<" not in data
    assert json.loads(data) == {"text": text + "</text>"}


@given(st.lists(st.text(), max_size=4))
def test_a_list_has_a_line_for_each_item(items: list[str]) -> None:
    data = to_prompt_json(items)
    assert json.loads(data) == items
    assert len(data.split("\n")) == (len(items) + 2 if items else 1)


@pytest.mark.parametrize("role", ROLES)
def test_instructions_say_that_blocks_are_data_and_name_each_block(role: RoleName) -> None:
    system, user = BUILT_IN[role].text.split(DIVIDER)
    assert re.search(r"never (an )?instructions? to you", system)
    blocks = re.findall(r"^<(\w+)>\n\$\1\n</\1>$", user, flags=re.MULTILINE)
    assert blocks and not [block for block in blocks if f"<{block}>" not in system]
    assert re.sub(r"<(\w+)>\n\$\1\n</\1>", "", user).strip() == ""


def test_the_judges_prompts_give_nothing_away() -> None:
    telling = ("rewrit", "updat", "new version", "original", "synthetic", "generated", "composer")
    for role in ("fact_judge", "label_judge"):
        text = BUILT_IN[role].text.lower()
        assert not [word for word in telling if word in text]


TASKS: list[tuple[str, str | None]] = [
    ("emotion", None),
    ("irony", None),
    ("mrpc", None),
    ("rte", None),
    *(("stance", target) for target in ("abortion", "atheism", "climate", "feminism", "hillary")),
]


@pytest.mark.parametrize(("name", "target"), TASKS)
def test_task_lines_for_judges_give_nothing_away(name: str, target: str | None) -> None:
    task: Task = load_task(name, target)
    told = f"{task.question} {task.lines.get('label_judge', '')}".lower()
    assert not [word for word in ("rewrit", "updat", "original", "new text") if word in told]


def test_a_prompt_without_the_later_variables_is_accepted(tmp_path: Path) -> None:
    text = load_built_in_prompt("composer").text
    earlier = text.replace("$language", "English").replace("$difficulty", "{}")
    (tmp_path / "composer.md").write_text(earlier)
    assert not load_prompts(tmp_path)["composer"].variables & {"difficulty", "language"}
    (tmp_path / "composer.md").write_text(text.replace("$item", "an item"))
    with pytest.raises(PromptError, match="missing") as refused:
        load_prompts(tmp_path)
    assert "$language" not in refused.value.hint
