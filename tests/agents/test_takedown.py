"""Names and evidence that nothing published may rest on."""

from pathlib import Path

import pytest

from coreeval.agents.takedown import NOTHING, Takedown, load_takedown, takedown_of
from coreeval.errors import ConfigError

from .builders import news

LISTED = takedown_of(["José Núñez", "Acme Corp", "0123456789abcdef"])


@pytest.mark.parametrize(
    "text",
    [
        "José Núñez opens a shop",
        "JOSE NUNEZ opens a shop",
        "said Jose\u0301 Nu\u0301n\u0303ez.",
        "Jos\u00e9 Nu\u0301n\u0303ez\u2019s shop",
        "acme corp grows",
        "<b>Acme</b> Corp grows",
        "ACME\u00a0Corp. grows",
    ],
)
def test_a_name_is_found_however_it_is_written(text: str) -> None:
    assert len(list(LISTED.names_in(text))) == 1
    assert LISTED.forbids(news(text))


@pytest.mark.parametrize("text", ["José Ruiz opens a shop", "Acme Corporation grows", "Nunez"])
def test_other_names_are_left_alone(text: str) -> None:
    assert not LISTED.forbids(news(text))


def test_ids_snippets_and_entities_count() -> None:
    assert LISTED.forbids(news("All is well", key="0123456789abcdef"))
    assert LISTED.forbids(news("All is well", snippet="So says Acme Corp"))
    assert LISTED.forbids(news("All is well", people=("Jose Nunez",)))
    assert not NOTHING.forbids(news("José Núñez opens a shop"))


def test_an_address_counts() -> None:
    item = news("All is well").model_copy(update={"url": "https://a.test/jose-nunez-shop"})
    assert LISTED.forbids(item)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("李明", "昨日李明出席了會議"),
        ("村上春樹", "作家の村上春樹さんが"),
        ("สมชาย ใจดี", "นายสมชายใจดีกล่าว"),
    ],
)
def test_a_name_in_a_text_without_spaces(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "takedown.txt"
    path.write_text(f"{name}\n", encoding="utf-8")
    listed = load_takedown(path)
    assert listed.forbids(news(text))
    assert not listed.forbids(news("昨日王偉出席了會議"))


def test_a_list_is_read(tmp_path: Path) -> None:
    path = tmp_path / "takedown.txt"
    path.write_text("# people\n\nJosé  Núñez  # asked on 1 May\nAcme Corp\n0123456789abcdef\n")
    found = load_takedown(path)
    assert found == LISTED
    assert len(found) == 3
    assert found.fingerprint == LISTED.fingerprint != NOTHING.fingerprint == ""


def test_the_fingerprint_does_not_hang_on_the_order() -> None:
    assert takedown_of(["b b", "a a"]).fingerprint == takedown_of(["a a", "b b"]).fingerprint


@pytest.mark.parametrize(("line", "says"), [("Al", "'Al' is neither"), ("  --- ", "'---'")])
def test_a_line_that_is_no_entry(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "takedown.txt"
    path.write_text(f"Acme Corp\n{line}\n")
    with pytest.raises(ConfigError, match=says) as caught:
        load_takedown(path)
    assert caught.value.where == f"{path}, line 2"


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_a_list_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "takedown.txt"
    if content:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load_takedown(path)
    assert caught.value.where == str(path)


def test_an_empty_list_forbids_nothing() -> None:
    assert not Takedown().forbids(news("Anything at all"))
