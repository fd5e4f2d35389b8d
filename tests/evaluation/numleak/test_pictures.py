"""Pictures and the page: whole, identical bytes each time, and safe with any name."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from coreeval.evaluation.numleak.audit import Audit, Document, audit_replies, audits_document
from coreeval.evaluation.numleak.audit_page import write_page
from coreeval.evaluation.numleak.plots import draw_audits, draw_recall, draw_variants
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.sketches import (
    LEAST_QUESTIONS,
    calibration_sketch,
    find_frame,
    gradient_sketch,
    place_dots,
    split_spans,
    step_sketch,
    ticks,
)
from tests.evaluation.numleak.audits import HOSTILE, SETTINGS, audits, knows, series

NO_BACKTEST: Document = {"backtest": None, "notes": [], "bad_rows": []}
BACKTEST: Document = {
    "backtest": {
        "start": "2000",
        "end": "2019",
        "models": [{"model": "m", "answer": "no", "sentence": "No: <b>never</b>."}],
    },
    "notes": ["<i>one</i>"],
    "bad_rows": [{}],
}


@pytest.fixture(scope="module")
def found() -> tuple[Audit, ...]:
    return audits()


def page(path: Path, found: tuple[Audit, ...], rest: Document) -> str:
    write_page(path, found, audits_document(found, SETTINGS) | rest)
    return path.read_text("utf-8")


def test_three_pictures_with_the_same_bytes_each_time(
    tmp_path: Path, found: tuple[Audit, ...]
) -> None:
    drawn = draw_audits(tmp_path / "a", found[1:])
    assert [path.name for path in drawn] == ["calibration.svg", "recall.svg", "gradient.svg"]
    assert all(ElementTree.parse(one).getroot().tag.endswith("svg") for one in drawn)
    again = draw_recall(tmp_path / "again.svg", found[1:])
    assert again.read_bytes() == drawn[1].read_bytes()
    assert draw_audits(tmp_path / "c", []) == [] and not (tmp_path / "c").exists()


def test_what_is_far_off_lies_on_the_edge_and_hides_nothing(found: tuple[Audit, ...]) -> None:
    guessing = found[1]
    low, high = find_frame(guessing.points)
    dots = place_dots(guessing.points, (low, high))
    truths = [dot.truth for dot in dots]
    assert len(dots) == 60 and low < min(truths) and max(truths) < high < 50
    far = [dot for dot in dots if dot.point.estimate == 40]
    assert [(dot.estimate, dot.beyond) for dot in far] == [(high, True)]
    sketch = calibration_sketch(guessing, clip="x")
    assert sketch["beyond"] == sum(dot.beyond for dot in dots) >= 1
    assert all(44 <= dot["x"] <= 292 and 8 <= dot["y"] <= 214 for dot in sketch["dots"])


def test_stretches_of_time_have_about_as_many_questions_each(found: tuple[Audit, ...]) -> None:
    spans = split_spans(found[0].points, 0.25)
    assert sum(span.n for span in spans) == 60 and min(span.n for span in spans) >= LEAST_QUESTIONS
    assert [span.within.estimate for span in spans] == [1.0] * 8
    assert all(one.last < two.first for one, two in pairwise(spans))
    assert [span.parsed for span in split_spans(found[2].points[:7], 0.25)] == [0]
    sketch = gradient_sketch(found[0])
    assert 44 < sketch["cutoff"] < 292 and sketch["outside"] == ""
    assert gradient_sketch(found[2])["outside"] == "The model's cutoff is not known."


@pytest.mark.parametrize(
    ("frame", "expected"),
    [((0, 1), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), ((-23.0, 17.0), [-20.0, -10.0, 0.0, 10.0])],
)
def test_ticks_are_round(frame: tuple[float, float], expected: list[float]) -> None:
    assert ticks(frame) == expected


def test_the_page_has_each_verdict_its_reasons_and_its_pictures(
    tmp_path: Path, found: tuple[Audit, ...]
) -> None:
    html = page(tmp_path / "page.html", found, NO_BACKTEST)
    for audit in found:
        assert f'v-{audit.verdict}">{audit.verdict}</span>' in html
    assert html.count("<article>") == 3 and html.count("<svg") == 4
    assert "nothing to plot" in html and "not asked" in html
    assert "180 questions about values, 2 models, 2 series." in html
    assert html == page(tmp_path / "again.html", found, NO_BACKTEST)


def test_the_page_needs_nothing_else_and_escapes_what_is_not_ours(
    tmp_path: Path, found: tuple[Audit, ...]
) -> None:
    html = page(tmp_path / "page.html", found, BACKTEST)
    assert HOSTILE not in html and "&lt;script&gt;" in html
    assert "Port &lt;b&gt;Arthur" in html and "&lt;b&gt;never" in html and "<i>one" not in html
    assert not re.search(r"(?:src|href)=|url\((?!#)|@import|<script|<link", html)
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(picture)
    assert '<p class="lead no">No: ' in html and "1 line skipped" in html
    assert "prefers-color-scheme: dark" in html and "width=device-width" in html


def test_the_fewer_of_models_and_series_are_columns(
    tmp_path: Path, found: tuple[Audit, ...]
) -> None:
    html = page(tmp_path / "page.html", found[:2], NO_BACKTEST)
    heads = re.search(r'<table class="heat">\s*<tr><th></th>(.*?)</tr>', html, re.DOTALL)
    assert heads and heads[1] == "<th>openai:&lt;one&gt; &amp; $two$</th>"


def thinks(model: str, about: Series) -> list[Reply]:
    """Return the plain answers of one who knows, and worse ones after thinking."""
    plain = knows(model, about)
    steps = [
        one.model_copy(update={"variant": "step_by_step", "response": f"{at - 30}.0%"})
        for at, one in enumerate(plain)
    ]
    told = [one.model_copy(update={"variant": "contradiction", "stated": 40.0}) for one in plain]
    return [*plain, *steps, *told]


def test_answers_after_thinking_have_a_picture_and_a_page(tmp_path: Path) -> None:
    tides = series()
    found = audit_replies(thinks(HOSTILE, tides), {"tides": tides}, SETTINGS, {})
    drawn = draw_variants(tmp_path, found)
    assert [path.name for path in drawn] == ["paired.svg"]
    assert ElementTree.parse(drawn[0]).getroot().tag.endswith("svg")
    sketch = step_sketch(found[0])
    assert sketch is not None and len(sketch["dots"]) == 60
    assert all(44 <= dot["x"] <= 292 and 8 <= dot["own"] <= 214 for dot in sketch["dots"])
    html = page(tmp_path / "p.html", found, NO_BACKTEST)
    assert (
        "Numbers for other ways of asking" in html
        and "given a wrong value: keeps its answer" in html
    )
    assert "<script" not in html


def test_without_answers_after_thinking_there_is_none(
    tmp_path: Path, found: tuple[Audit, ...]
) -> None:
    assert step_sketch(found[0]) is None
    assert draw_variants(tmp_path / "c", found) == [] and not (tmp_path / "c").exists()
