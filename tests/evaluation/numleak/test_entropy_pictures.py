"""Entropies on the page and in figures."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from coreeval.evaluation.numleak.audit import (
    Audit,
    audit_replies,
    audits_document,
    numleak_document,
)
from coreeval.evaluation.numleak.audit_page import write_page
from coreeval.evaluation.numleak.audit_tables import further_rows
from coreeval.evaluation.numleak.plots import draw_entropies
from coreeval.evaluation.numleak.sketches import strip_svg
from coreeval.evaluation.report.report_page import detection_part
from tests.evaluation.numleak.audits import CUTOFF, HOSTILE, SETTINGS, guesses, knows, series
from tests.evaluation.report.test_report_page import written
from tests.support.logprobs import FLAT, PEAKED, tokens


@pytest.fixture(scope="module")
def found() -> tuple[Audit, ...]:
    """One model that tells log-probabilities of a series and of invented names, and one without."""
    tides = series()
    said = [
        one.model_copy(update={
            "model": HOSTILE,
            "first_tokens": tokens(
                one.response or "", FLAT if one.variant == "fictitious" else PEAKED
            ),
        })
        for one in (*knows("a", tides), *guesses("a", tides)[60:])
    ]  # fmt: skip
    return audit_replies(
        [*said, *knows("plain", tides)], {"tides": tides}, SETTINGS, {HOSTILE: CUTOFF}
    )


def document(found: tuple[Audit, ...]) -> dict[str, Any]:
    return audits_document(found, SETTINGS)


def test_the_rows_of_an_audit(found: tuple[Audit, ...]) -> None:
    telling, plain = document(found)["series"]
    rows = {row.what: row for row in further_rows(telling)}
    low = rows["entropy of sign and first digits, bits"]
    high = rows["entropy for fictitious series, bits"]
    assert float(low.value) < 0.3 < float(high.value) and (low.n, high.n) == ("60", "30")
    assert float(rows["entropy for fictitious series minus that for this series"].value) > 1
    assert plain["entropy"] is None
    assert not any("entropy" in row.what for row in further_rows(plain))


def test_a_picture_where_there_are_entropies(tmp_path: Path, found: tuple[Audit, ...]) -> None:
    (drawn,) = draw_entropies(tmp_path / "entropy.svg", found)
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")
    (again,) = draw_entropies(tmp_path / "again.svg", found)
    assert drawn.read_bytes() == again.read_bytes()
    assert draw_entropies(tmp_path / "none.svg", found[1:]) == []


def test_a_strip_has_every_answer_inside_it(found: tuple[Audit, ...]) -> None:
    entropy = document(found)["series"][0]["entropy"]
    svg = ElementTree.fromstring(strip_svg(entropy))
    dots = [each for each in svg.iter() if each.tag.endswith("circle")]
    assert len(dots) == 90 and sum(dot.get("fill") == "none" for dot in dots) == 30
    for dot in dots:
        assert 92 <= float(dot.get("cx", "")) <= 296 and 0 < float(dot.get("cy", "")) < 94
    empty = {"bits": [], "median": {"estimate": None}}
    alone = strip_svg({**entropy, "fictitious": empty})
    assert "none measured" in alone and ElementTree.fromstring(alone) is not None


def test_the_page_shows_it_once_and_escapes_names(tmp_path: Path, found: tuple[Audit, ...]) -> None:
    rest: dict[str, Any] = {"backtest": None, "notes": [], "bad_rows": []}
    write_page(tmp_path / "page.html", found, document(found) | rest)
    html = (tmp_path / "page.html").read_text("utf-8")
    assert html.count("Certainty of the answers") == 1 and HOSTILE not in html
    assert re.search(r"for invented names minus that for the series: \d\.\d\d bits \(", html)
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(picture)


def test_the_report_shows_it_and_old_reports_have_none(
    tmp_path: Path, found: tuple[Audit, ...]
) -> None:
    numleak = document(found)
    html = written(tmp_path, parts={"pcr": None, "numleak": numleak})
    assert html.count("Certainty of the answers") == 1 and HOSTILE not in html
    assert html.count('<figure class="strip">') == 1 and "&lt; 0.001" not in html
    before = [{key: each for key, each in one.items() if key != "entropy"}
              for one in numleak["series"]]  # fmt: skip
    old: dict[str, Any] = {"pcr": None, "arms": {"targets": []}, "decomposition": {"targets": []},
           "numleak": {**numleak, "series": before}}  # fmt: skip
    assert "How peaked" not in detection_part(old)


def test_recorded_answers_give_what_asking_gave(found: tuple[Audit, ...]) -> None:
    tides = series()
    again = numleak_document(knows("plain", tides), {"tides": tides}, SETTINGS, {})
    assert again["series"][0]["entropy"] is None
    assert again["series"][0]["pearson_r"] == document(found)["series"][1]["pearson_r"]
