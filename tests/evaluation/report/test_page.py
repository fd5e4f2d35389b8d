"""The report's page on PCR and series: what is not defined, and names from outside."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coreeval.evaluation.arms import compare_arms
from coreeval.evaluation.numleak.document import numleak_document
from coreeval.evaluation.pcr import Settings, study
from coreeval.evaluation.pcr.asked import compare_asked, pairs_of
from coreeval.evaluation.pcr.document import comparison_document, settings_document
from coreeval.evaluation.report import write_report
from tests.evaluation.numleak.audits import SETTINGS as AUDITING
from tests.evaluation.numleak.audits import knows, refuses, series
from tests.evaluation.pcr.kit import two_splits

SETTINGS = Settings(metric="accuracy", consistency="exact", draws=200, seed=7)
HOSTILE = 'replay:<script>alert("1")</script>'
DRAWN = {"drawn": 60, "reworded": 40, "unchanged": 8, "label_changed": 6, "policy": 4, "failed": 2}
MANIFEST: dict[str, Any] = {
    "run": "a/b",
    "task": "emotion",
    "window": {"start": "2026-01-01", "end": "2026-02-01"},
    "window_start": None,
    "after_cutoff": [],
    "counts": {"total": 1, "accepted": 1},
    "bad_rows": 0,
    "cost": {
        "billed_calls": 0,
        "cached_calls": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "billed_usd": 0.0,
    },
    "knowledge": {"backend": "local", "requests": 0, "coverage": {"articles": 1, "days": 1}},
}


def pcr(*names: str) -> dict[str, Any]:
    """Return what a run would report of targets of which the last has answered nothing."""
    found = study(
        {name: two_splits((40, 38, 22), (40, 20, 32)) for name in names[:-1]}, SETTINGS
    ) | compare_asked({names[-1]: pairs_of([], {"train": {}, "test": {}}, [1])}, SETTINGS)
    return {
        "targets": [{"name": name, **comparison_document(one)} for name, one in found.items()],
        "items": {
            "train": {"split": "train", **DRAWN},
            "test": {"split": "validation", "samples": 50, "reworded": 40},
        },
        "settings": settings_document(SETTINGS, None),
    }


def page(folder: Path, found: dict[str, Any] | None, audits: dict[str, Any] | None = None) -> str:
    """Return the page, and look that the document beside it has the same."""
    write_report(
        json_path=folder / "report.json",
        html_path=folder / "report.html",
        manifest=MANIFEST,
        ruled=[],
        arms=compare_arms([], gold={}, labels=["joy"]),
        pcr=found,
        numleak=audits,
    )
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["pcr"] == found
    return (folder / "report.html").read_text(encoding="utf-8")


def test_each_target_has_its_numbers_its_verdict_and_the_reason(tmp_path: Path) -> None:
    found = pcr("openai:one", "openai:silent")
    html = page(tmp_path, found)
    first, silent = found["targets"]
    assert first["verdict"] == "fine_tuned"
    assert "<strong>fine tuned</strong>" in html and "<strong>inconclusive</strong>" in html
    for number in (first["splits"]["train"]["pcr"], first["splits"]["test"]["pcr"]):
        assert f"{number:.3f}" in html
    assert f"{first['difference']['estimate']:+.3f}" in html
    assert first["reason"].split(":")[0] in html
    assert silent["difference"]["estimate"] is None and "n/a" in html
    assert re.search(r"60 items drawn, 40 reworded\s+\(8 unchanged, 6 with another label", html)


def test_the_picture_has_a_mark_for_each_target_that_has_a_number(tmp_path: Path) -> None:
    html = page(tmp_path, pcr("openai:one", "openai:two", "openai:silent"))
    picture = re.search(r"<svg.*?PCR of the train split.*?</svg>", html, re.DOTALL)
    assert picture
    assert picture[0].count("<circle") == 2
    places = [float(x) for x in re.findall(r' (?:c?x|x1|x2)="([\d.-]+)"', picture[0])]
    assert all(0 <= x <= 640 for x in places)


@pytest.mark.parametrize("names", [(HOSTILE, "openai:silent"), ("openai:one", HOSTILE)])
def test_names_are_escaped(tmp_path: Path, names: tuple[str, str]) -> None:
    html = page(tmp_path, pcr(*names))
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_without_it_or_without_a_target_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert "Is the score memory?" not in page(tmp_path, None)
    none = pcr("openai:silent") | {"targets": []}
    assert "No target was asked" in page(tmp_path, none)


# -- dated series ---------------------------------------------------------------------------------


def test_audits_have_their_figures_their_verdicts_and_their_reasons(tmp_path: Path) -> None:
    tides = series()
    said = [*knows(HOSTILE, tides), *refuses("openai:mute", tides)]
    found = numleak_document(said, {"tides": tides}, AUDITING, {})
    html = page(tmp_path, None, found)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["numleak"] == found
    assert "Are dated values remembered?" in html
    assert "<strong>memorized</strong>" in html and "<strong>refusing</strong>" in html
    assert found["series"][0]["reasons"][0] in html
    assert "Within 0.25 percentage points." in html
    assert "<script" not in html and "&lt;script&gt;" in html


def test_without_audits_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert "Are dated values remembered?" not in page(tmp_path, None)
    none = numleak_document([], {}, AUDITING, {})
    assert "No target with words for numbers was asked" in page(tmp_path, None, none)
