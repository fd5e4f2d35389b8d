"""The generated reference pages are what the code says."""

import re
from pathlib import Path

import pytest
import typer

import coreeval
from coreeval.cli.app import COMMANDS, build_app
from scripts.reference import commands, config, documents
from scripts.reference.__main__ import DOCS, build_pages
from scripts.reference.source import format_signature, read_field_docs


@pytest.mark.parametrize("page", [path.name for path in build_pages()])
def test_a_page_is_up_to_date(page: str) -> None:
    text = build_pages()[DOCS / page]
    assert (DOCS / page).read_text("utf-8") == text, "run python -m scripts.reference"


def test_every_command_and_option_is_listed() -> None:
    page = commands.build_page()
    tree = typer.main.get_command(build_app(COMMANDS))
    found = dict(commands.walk_commands(tree))
    assert {path.partition(" ")[2].partition(" ")[0] for path in found} == set(COMMANDS)
    for path, command in found.items():
        section = page.partition(f"## `{path}`\n")[2].partition("\n## ")[0]
        names = {each for one in command.params for each in one.opts if each.startswith("--")}
        listed = set(re.findall(r"--[\w-]+", section))
        assert names - {"--help", "--json", "--debug"} <= listed, path


def test_every_key_of_a_config_is_explained_by_its_model() -> None:
    for name, model in config.find_models().items():
        docs = read_field_docs(model)
        missing = [key for key in model.model_fields if not docs.get(key)]
        assert not missing, name
        assert f"<!-- keys: {name} -->" in (DOCS / "config.md").read_text("utf-8")


def test_defaults_values_and_bounds_are_those_of_the_model() -> None:
    rows = config.list_keys("RunConfig")
    assert (
        "| `max_attempts` | `3` | The maximum number of times that the updated text of a sample is "
        "composed. From 1 to 10. |"
    ) in rows
    assert re.search(r"\| `store` \| `sqlite` \| .* Values: `sqlite` or `postgresql`\. \|", rows)
    assert "| `arms` | `[semantic, updated]` |" in rows
    assert "| `minor` | `neutral_only` | A particular child. |" in config.list_keys("SafetyConfig")


def test_a_table_of_an_unknown_model_is_an_error() -> None:
    with pytest.raises(KeyError, match="Nothing"):
        config.fill_page("<!-- keys: Nothing -->\n<!-- end -->")


def test_a_key_without_a_meaning_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "documents.yaml"
    monkeypatch.setattr(documents, "SOURCE", file)
    file.write_text("[{title: A, level: 1, parts: [{keys: {run: ''}}]}]", "utf-8")
    with pytest.raises(ValueError, match="run have no meaning"):
        documents.build_page()


def test_every_name_of_the_package_has_a_section_and_a_docstring() -> None:
    page = (DOCS / "reference_python.md").read_text("utf-8")
    for name in coreeval.__all__:
        section = page.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        assert len(section.split()) > 5, name


def test_a_signature_is_shown_as_it_is_written() -> None:
    def find(
        name: str, /, *more: int, deep: bool = False, kind: str = "a b", **rest: object
    ) -> "list[str] | None":
        raise NotImplementedError(name, more, deep, kind, rest)

    assert format_signature("find", find, width=200) == (
        'find(name: str, /, *more: int, deep: bool = False, kind: str = "a b", **rest: object)'
        ' -> "list[str] | None"'
    )
    lines = format_signature("find", find, width=40).splitlines()
    assert lines[0] == "find(" and lines[2] == "    /,"
