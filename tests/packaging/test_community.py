"""Pages for contributors: their links lead somewhere, and the forms are ones that GitHub shows."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from coreeval.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
PAGES = [
    *(ROOT / name for name in ("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md",
    *(ROOT / "docs" / name for name in ("comparison.md", "container.md", "stability.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", page.read_text("utf-8"))
    missing = [link for link in links if not (page.parent / unquote(link)).exists()]
    assert missing == []


def test_there_are_forms_for_bugs_and_ideas() -> None:
    assert [form.stem for form in FORMS] == ["bug", "idea"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_has_what_github_asks_for(form: Path) -> None:
    loaded = yaml.safe_load(form.read_text("utf-8"))
    assert loaded["name"] and loaded["description"]
    fields = [one for one in loaded["body"] if one["type"] != "markdown"]
    ids = [one["id"] for one in fields]
    assert len(set(ids)) == len(ids)
    assert all(one["attributes"]["label"] for one in fields)
    assert any(one.get("validations", {}).get("required") for one in fields)
    kinds = {one["type"] for one in loaded["body"]}
    assert kinds <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_names_commands_that_exist(form: Path) -> None:
    named = re.findall(r"`coreeval ([a-z]+)\b", form.read_text("utf-8"))
    assert {*named} <= {*COMMANDS}
