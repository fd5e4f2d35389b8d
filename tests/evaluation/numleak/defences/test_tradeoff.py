"""Pictures of blocked attacks against usefulness."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from coreeval.cli.numleak_output import defence_lines
from coreeval.evaluation.numleak.audit import audits_document
from coreeval.evaluation.numleak.audit_page import write_page
from coreeval.evaluation.numleak.defences.effects import Document, defence_replies_document
from coreeval.evaluation.numleak.defences.tradeoff import (
    defence_tables,
    draw_defences,
    spread_marks,
    tradeoff_sketches,
)
from tests.evaluation.numleak.audits import HOSTILE, SETTINGS, audits
from tests.evaluation.numleak.defences.kit import SERIES, attacked, judged, truthful

DEFENCES = ("none", "soft", "strong")


def document_of(*, scored: bool = True, model: str = "m") -> Document:
    replies = [
        *attacked(model, "none", usual=None),
        *attacked(model, "soft", {("public", 3): truthful(3)}),
        *attacked(model, "strong"),
    ]
    utility = [
        one
        for number, defence in enumerate(DEFENCES)
        for one in judged(model, defence, {"history": [4, 4 - number // 2]})
    ]
    found = defence_replies_document(replies, utility if scored else [], SERIES, {})
    assert found is not None
    return found


@pytest.fixture(scope="module")
def document() -> Document:
    return document_of()


def test_rows_have_what_table_17_has(document: Document) -> None:
    (group,) = defence_tables(document)
    control, soft, strong = group.rows
    assert control[:4] == ("none (control)", "40/40", "40/40", "0/240")
    assert soft[:4] == ("soft", "0/40", "1/40", "239/240") and soft.near == "1"
    assert (control.r, strong.r) == ("1.00", "-")
    assert (soft.useful, strong.useful) == ("4.00", "3.50")
    assert strong.categories == ("-", "3.50", "-")
    assert dict(group.endings)["public"] == ["40/40", "1/40", "0/40"]


def test_marks_at_one_place_are_set_apart_and_others_stay(document: Document) -> None:
    (picture,) = tradeoff_sketches(document)
    assert [one["defence"] for one in picture["marks"]] == list(DEFENCES)
    assert spread_marks(document["cells"]) == [0, 0, 0]
    assert spread_marks([document["cells"][1]] * 3) == [-1, 0, 1]
    soft, strong = picture["marks"][1:]
    assert soft["y"] < strong["y"], "a better score is higher up"
    assert soft["left"] < soft["x"] <= soft["right"] <= 288
    assert tradeoff_sketches(document_of(scored=False)) == []


@pytest.mark.parametrize("scored", [True, False])
def test_a_picture_with_or_without_scores(tmp_path: Path, scored: bool) -> None:
    (path,) = draw_defences(tmp_path, document_of(scored=scored))
    assert path.name == "defences.svg"
    text = path.read_text("utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert ("ordinary questions" in text) is scored
    assert draw_defences(tmp_path, None) == []


def test_the_page_shows_them_and_escapes_what_is_not_ours(tmp_path: Path) -> None:
    found = audits()[:1]
    rest: Document = {"backtest": None, "bad_rows": [], "defences": document_of(model=HOSTILE)}
    write_page(tmp_path / "a.html", found, audits_document(found, SETTINGS) | rest)
    html = (tmp_path / "a.html").read_text("utf-8")
    assert HOSTILE not in html and "&lt;script&gt;" in html
    assert "What defences prevent" in html and "blocked 239 of 240 attacks" in html
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(picture)
    none = audits_document(found, SETTINGS) | rest | {"defences": None}
    write_page(tmp_path / "b.html", found, none)
    assert "What defences prevent" not in (tmp_path / "b.html").read_text("utf-8")


def test_words_keep_to_their_lines(document: Document) -> None:
    lines = list(defence_lines(document_of(model="a\nb")))
    assert lines[0].startswith("-- defences: a b, tides -")
    assert not any("\n" in line or len(line) > 102 for line in lines)
    assert list(defence_lines(None)) == []
    assert any("do not prove" in line for line in defence_lines(document))
