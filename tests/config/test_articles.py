"""The part of a config that says where texts of articles come from."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from coreeval.config import load_config
from coreeval.config.knowledge import ArticlesConfig, KnowledgeConfig
from coreeval.errors import ConfigError
from tests.cli.kit import config_text


def test_by_default_only_headlines_are_read_and_nothing_is_fetched() -> None:
    config = KnowledgeConfig()
    assert config.text == "headline"
    assert not config.articles.has_source


@pytest.mark.parametrize(
    "contact", ["https://example.org/about", "http://a.example", "me@a.example"]
)
def test_a_contact_is_a_web_or_mail_address(contact: str) -> None:
    assert ArticlesConfig(fetch=True, contact=contact).has_source


@pytest.mark.parametrize(
    "contact", ["", "me", "https://", "a@b c", "me@a.example\r\nX: y", "(x)@y", "x" * 201 + "@a.b"]
)
def test_what_is_no_contact_is_refused(contact: str) -> None:
    with pytest.raises(ValidationError, match="your contact address"):
        ArticlesConfig(fetch=True, contact=contact)


def test_pages_are_not_fetched_without_a_contact_or_in_haste() -> None:
    with pytest.raises(ValidationError, match="fetch: true needs contact"):
        ArticlesConfig(fetch=True)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        ArticlesConfig(delay_s=0.5)


def test_texts_need_a_source_and_paths_are_relative_to_the_config(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(config_text({"knowledge.text": "article"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="text: article needs a source of texts"):
        load_config(path)
    sources = {"files": ["texts.jsonl"], "ccnews": ["/warc"]}
    changes = {"knowledge.text": "article", "knowledge.articles": sources}
    path.write_text(config_text(changes), encoding="utf-8")
    articles = load_config(path).knowledge.articles
    assert articles.files == (str(tmp_path / "texts.jsonl"),)
    assert articles.ccnews == ("/warc",)
