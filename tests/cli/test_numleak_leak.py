"""`coreeval detect numleak`: sentiment and signals, asked, recorded and of one's own."""

import json
from pathlib import Path

import pytest

from coreeval.evaluation.numleak.series import Series
from tests.cli.kit import Said, Shell
from tests.cli.test_docs import documented
from tests.support.tides import tides

CONFIG = {
    "name": "audit",
    "models": {"targets": ["offline:half-remembering"]},
    "detect": {
        "numleak": {
            "series": "tides.yaml",
            "dates": 60,
            "probes": ["value", "sentiment"],
            "leak": {"until": 1975},
            "signals": {"honest": "honest.csv"},
        }
    },
}


@pytest.fixture
def about(shell: Shell) -> Series:
    """The series, and a signal that follows it."""
    series = tides(shell.folder)
    rows = [f"{at},{value / 4:.3f}" for at, value in series.values.items()]
    (shell.folder / "honest.csv").write_text("\n".join(["date,value", *rows, "May,1"]))
    return series


def detect(shell: Shell, *arguments: str | Path) -> Said:
    return shell("detect", "numleak", "--draws", "100", *arguments)


def test_asked_and_recorded_answers_give_the_same(shell: Shell, about: Series) -> None:
    path = shell.write("audit.yaml", json.dumps(CONFIG))
    said = detect(shell, path, "--page", "page.html", "--json")
    assert said.code == 0, said.err
    (one,) = said.document["series"]
    assert set(one["leak"]) | set(one["leak"]["signals"][0]) == documented("leak") - {"leak"}
    own, honest = one["leak"]["signals"]
    assert (own["signal"], own["dates"], honest["signal"], honest["dates"]) == (
        "sentiment", 60, "honest", 60,
    )  # fmt: skip
    assert honest["truth_beyond"]["estimate"] > 0.99 and honest["route"] == "not_through_recall"
    assert one["leak"]["placebo"]["early"]["dates"] >= 30 and one["n"] == 60
    assert one["leak"]["scramble"]["shown_r"]["n"] == 30
    assert [row["reason"][:19] for row in said.document["bad_rows"]] == ["'May' is not a date"]
    assert "not through recall" in (shell.folder / "page.html").read_text("utf-8")
    words = detect(shell, path).out
    assert "signal honest, 60 dates: not through recall" in words
    again = next(line for line in words.splitlines() if line.startswith("again: coreeval "))
    assert "--signal honest=honest.csv" in again
    later = shell(
        *again.removeprefix("again: coreeval ").split(), "--draws", "100", "--json"
    ).document
    assert later["series"] == said.document["series"]


def test_a_signal_of_other_dates_is_told_before_anything_is_asked(
    shell: Shell, about: Series
) -> None:
    shell.write("strange.csv", "date,value\n1950-01,1\n")
    path = shell.write("audit.yaml", json.dumps(CONFIG))
    said = detect(shell, path, "--signal", "strange.csv", "--json")
    assert said.code == 2
    assert "the signal strange has one date (1950-01), but no" in said.error["message"]
    assert not list(shell.folder.rglob("responses.jsonl"))
    for wrong, message in (
        ("none.csv", "cannot read"),
        ("=x.csv", "is not of the form NAME=FILE"),
    ):
        said = detect(shell, path, "--signal", wrong, "--dry-run", "--json")
        assert said.code == 2 and message in said.error["message"]


def test_a_back_test_takes_a_signal(shell: Shell, about: Series) -> None:
    asked = ("--series", "tides.yaml", "--model", "offline:half-remembering")
    said = detect(shell, "--backtest", "1990:1994", *asked, "--signal", "tone=honest.csv", "--json")
    assert said.code == 0, said.err
    (one,) = said.document["series"]
    assert [each["signal"] for each in one["leak"]["signals"]] == ["tone"]
    assert one["leak"]["placebo"] is None and one["leak"]["notes"]
