"""`coreeval detect numleak --rankings`: candidates in, how often the true value is first out."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.kit import Shell
from tests.cli.test_docs import documented


@pytest.fixture
def scored(shell: Shell) -> Path:
    """Two models on eight dates: one finds the true value, one its neighbour; and a bad line."""
    lines: list[object] = [
        {"model": model, "date": f"200{n}", "candidate": name, "mean_logprob": score}
        for model, first in (("sure", "true"), ("off\x1b[31m", "adjacent"))
        for n in range(8)
        for name, score in (("true", -1), ("adjacent", -2), ("decoy", -3))
        for score in (score if first == "true" else {-1: -2, -2: -1}.get(score, score),)
    ]
    lines += [{"type": "summary"}, {"model": "sure"}, {"model": "sure", "date": "1999",
              "candidate": "decoy", "mean_logprob": -1}]  # fmt: skip
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    return shell.write("scored.jsonl", text)


def test_the_documented_form(shell: Shell, scored: Path) -> None:
    said = shell("detect", "numleak", "--rankings", scored, "--json", "--plot", "plots")
    assert said.code == 0 and said.err == ""
    found = said.document
    assert set(found) == documented("coreeval detect numleak --rankings")
    sure, off = found["rankings"]
    assert set(sure) == documented("rankings")
    assert (sure["n"], sure["top1"]["estimate"], sure["lost_to"]) == (8, 1.0, {})
    assert sure["left_out"] == [{"date": "1999", "reason": "no candidate is called 'true'"}]
    assert off["top1"]["estimate"] == 0 and off["lost_to"]["adjacent"]["estimate"] == 1
    assert (len(found["bad_rows"]), found["other_lines"]) == (1, 1)
    (plot,) = found["plots"]
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")


def test_words_say_what_is_shown_and_no_more(shell: Shell, scored: Path) -> None:
    out = shell("detect", "numleak", "--rankings", scored).out
    out = " ".join(out.split())
    assert "most probable of 3 on 8 of 8 dates, more often than by chance (0.33; p < 0.001)" in out
    assert "on 0 of 8 dates, not shown to be more often than by chance (0.33; p 1.000)" in out
    assert "where it is not first: adjacent is 1.000" in out
    assert "1 dates or candidates are left out" in out and "1999: no candidate is called" in out
    assert "1 bad lines are left out" in out and "1 lines of another type are passed over" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("option", [("--page", "a.html"), ("--budget", "1"), ("--dates", "3")])
def test_options_of_other_ways_are_refused(
    shell: Shell, scored: Path, option: tuple[str, str]
) -> None:
    said = shell("detect", "numleak", "--rankings", scored, *option)
    assert said.code == 2 and f"{option[0]} goes with" in said.err
    both = shell("detect", "numleak", "--rankings", scored, "--responses", scored)
    assert both.code == 2 and "exclude each other" in both.err
