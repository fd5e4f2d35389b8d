"""Folders of this machine are hidden in what is shared, and texts stay as they are."""

import json

import pytest
from markupsafe import escape

from coreeval.tools.private_folders import hide_private_folders, list_private_folders


def hide(text: str, *named: str) -> str:
    """Return a text without the folders of files that a config names, and of its project."""
    settings = {"dataset": {"path": "/home/jane/project/data"}, "models": [*named], "seed": 7}
    return hide_private_folders(text, list_private_folders(settings, ["/home/jane/project", "/"]))


@pytest.mark.parametrize("named", ["replay:/disk/jane/a.jsonl", "/disk/jane/a.jsonl"])
def test_the_folder_of_a_file_outside_the_project_is_hidden(named: str) -> None:
    assert hide("cannot read replay:/disk/jane/a.jsonl", named) == "cannot read replay:…/a.jsonl"
    assert hide("/home/jane/project/data/test.csv", named) == "…/data/test.csv"


@pytest.mark.parametrize(
    "text",
    ["https://example.org/disk/jane/a.jsonl", "ask and/or answer", "openai:gpt-5", "/a.jsonl"],
)
def test_urls_and_other_texts_stay(text: str) -> None:
    assert hide(text, "hf:/disk/jane/a.jsonl", "openai:/x/y", "/a.jsonl", "hf:org/model") == text


def test_files_of_one_name_are_told_apart() -> None:
    named = [f"hf:{folder}/last" for folder in ("/disk/1", "/disk/2", "/home/jane/project")]
    said = [hide(each, *named) for each in named]
    assert said == ["hf:…/1/last", "hf:…/2/last", "hf:…/last"]
    assert "/a/" not in hide("/a/last and /b/last", "/a/last", "/b/last")


def test_a_path_of_a_stranger_that_no_file_can_have_takes_no_time() -> None:
    assert hide("/a/b", "/a" * 2_000_000) == "/a/b"


def test_a_folder_is_hidden_in_pages_and_documents() -> None:
    path = "/disk/O'Neill & Söhne/a.jsonl"
    for said in (str(escape(path)), json.dumps(path), json.dumps(path, ensure_ascii=False)):
        assert hide(said, path).strip('"') == "…/a.jsonl"
