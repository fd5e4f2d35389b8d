"""`coreeval detect numleak`: recorded answers in, verdicts with their reasons out."""

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from tests.cli.kit import Said, Shell
from tests.cli.test_docs import documented
from tests.evaluation.numleak.audits import guesses, knows, refuses, write
from tests.support.tides import tides

FEW = ("--draws", "100")


@pytest.fixture
def about(shell: Shell) -> Series:
    """A series as a YAML file in the current folder."""
    return tides(shell.folder)


@pytest.fixture
def answers(shell: Shell, about: Series) -> Path:
    """What three models said of it."""
    replies = [*knows("a\nknower", about), *guesses("b", about), *refuses("c", about)]
    return write(shell.folder / "said.jsonl", replies)


def detect(shell: Shell, *arguments: str | Path) -> Said:
    return shell("detect", "numleak", *FEW, *arguments)


def with_truth(replies: Sequence[Reply], about: Series) -> list[Reply]:
    """Return answers with the published value beside them."""
    by_date = {str(period): value for period, value in about.values.items()}
    return [reply.model_copy(update={"truth": by_date[reply.date]}) for reply in replies]


def test_the_documented_form(shell: Shell, answers: Path) -> None:
    said = detect(shell, "--responses", answers, "--series", "tides.yaml", "--json")
    assert said.code == 0 and said.err == ""
    found = said.document
    assert set(found) == documented("coreeval detect numleak")
    assert [one["verdict"] for one in found["series"]] == ["memorized", "fabricating", "refusing"]
    for one in found["series"]:
        assert set(one) == documented("series")
    assert found["settings"] == {"draws": 100, "seed": 0, "level": 0.95}
    assert (found["backtest"], found["bad_rows"], found["plots"], found["page"]) == (
        None, [], [], None,
    )  # fmt: skip


def test_words_say_the_verdict_and_why(shell: Shell, answers: Path) -> None:
    said = detect(shell, "--responses", answers, "--series", "tides.yaml")
    assert said.code == 0
    lines = said.out.splitlines()
    assert "-- a knower, tides -" in lines[0], "a name stays on its line"
    assert "the Halcyon tide index: 60 questions about values on 60 dates (60 parsed);" in said.out
    assert "\nmemorized: 100% (" in said.out
    assert "The correlation r with the published values is 1.00" in said.out
    assert "chance: r, answers shuffled among all dates" in said.out
    assert "refusing: The model refused 60 of 60 questions" in said.out
    table = [line.split()[-1] for line in lines if line.startswith(("a knower ", "b ", "c "))]
    assert table == ["memorized", "fabricating", "refusing"]
    assert " ".join(said.out.split()).endswith("100 permutations, with seed 0.")


def test_pictures_and_the_page(shell: Shell, answers: Path) -> None:
    asked = ("--responses", answers, "--series", "tides.yaml", "--plot", "p", "--page", "p/x.html")
    said = detect(shell, *asked)
    assert said.code == 0
    assert "picture: p/calibration.svg" in said.out and "page: p/x.html" in said.out
    there = {path.name for path in (shell.folder / "p").iterdir()}
    assert there == {"calibration.svg", "recall.svg", "gradient.svg", "x.html"}
    html = (shell.folder / "p" / "x.html").read_text("utf-8")
    assert "fabricating</span>" in html and "the Halcyon tide index" in html


def test_bad_lines_and_what_is_outside_are_shown(shell: Shell, answers: Path) -> None:
    strange = {"model": "c", "series": "tides", "date": "1850-01", "response": "4"}
    with answers.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(strange)}\nno json\n" + "{}\n" * 6)
    said = detect(shell, "--responses", answers, "--series", "tides.yaml")
    assert said.code == 0
    assert "7 bad lines are skipped\n" in said.out and "and 2 more; --json" in said.out
    assert "bad line 212 of said.jsonl: not JSON" in said.out
    assert "1 answers are excluded\n" in said.out
    assert "value, 1850-01: tides has no value for 1850-01 (its dates are 1970-01" in said.out


def test_the_truth_beside_the_answers_is_enough(shell: Shell, about: Series) -> None:
    path = write(shell.folder / "said.jsonl", with_truth(knows("a", about), about))
    (one,) = detect(shell, "--responses", path, "--json").document["series"]
    assert one["n"] == 60 and one["pearson_r"]["estimate"] == pytest.approx(1)
    assert "tides has no definition: its frequency is assumed to be monthly" in one["notes"][0]
    bare = write(shell.folder / "bare.jsonl", knows("a", about))
    said = detect(shell, "--responses", bare, "--json")
    assert said.code == 2 and "the series 'tides' is unknown" in said.error["message"]
    assert "mkt_rf" in said.error["hint"] and said.error["where"] == str(bare)


def test_a_cutoff_divides_the_dates(shell: Shell, answers: Path) -> None:
    given = ("--responses", answers, "--series", "tides.yaml", "--json")
    stated = ("--cutoff", "1980-06", "--cutoff", "b=1975-01-15")
    found = detect(shell, *given, *stated).document["series"]
    assert [one["cutoff"] for one in found] == ["1980-06-30", "1975-01-15", "1980-06-30"]
    assert set(found[0]["strata"]) == {"pre", "near", "post"}
    assert detect(shell, *given).document["series"][0]["cutoff"] is None


def test_a_file_may_hold_the_values(shell: Shell, answers: Path) -> None:
    rows = "\n".join(f"{year}-{month:02d},1.5" for year in (1970, 1971) for month in range(1, 13))
    other = shell.write("other.csv", f"date,value\n{rows}\n1972-01,2.5\n")
    said = detect(
        shell, "--responses", answers, "--series", f"tides.yaml={other.name}", "--json"
    ).document
    assert said["series"][0]["n"] == 7, "only so many dates are in that file"


@pytest.mark.parametrize(
    ("message", "arguments"),
    {
        "there is nothing to audit": (),
        "the file": ("--responses", "nowhere.jsonl"),
        "the file of answers is empty": ("--responses", "empty.jsonl"),
        "CONFIG and --responses cannot": ("x.yaml", "--responses", "said.jsonl"),
        "--model can be used with --backtest, not with --responses": (
            "--responses", "said.jsonl", "--model", "offline:memorizing",
        ),
        "--dry-run can be used with CONFIG or --backtest": (
            "--responses", "said.jsonl", "--dry-run",
        ),
        "--series can be used with --responses or --backtest": ("x.yaml", "--series", "tides.yaml"),
        "'=x' is not of the form NAME=FILE": ("--responses", "said.jsonl", "--series", "=x"),
        "there is no built-in series 'tidse'": ("--responses", "said.jsonl", "--series", "tidse"),
        "'soon' is not a date": ("--responses", "said.jsonl", "--cutoff", "soon"),
        "contain no answers of 'z'": ("--responses", "said.jsonl", "--cutoff", "z=2020-01"),
        "'2015' is not of the form START:END": ("--backtest", "2015"),
        "--series is missing": ("--backtest", "2015:2016", "--model", "offline:memorizing"),
        "--model is missing": ("--backtest", "2015:2016", "--series", "tides.yaml"),
        "it starts": (
            "--backtest", "2016:2015", "--model", "offline:memorizing", "--series", "tides.yaml",
        ),
    }.items(),
)  # fmt: skip
def test_wrong_commands(
    shell: Shell, answers: Path, message: str, arguments: tuple[str, ...]
) -> None:
    shell.write("empty.jsonl", "")
    said = detect(shell, *arguments, "--json")
    assert said.code == 2 and message in said.error["message"]


# -- a back-test ----------------------------------------------------------------------------------


def test_a_back_test_is_audited_without_a_config(shell: Shell, about: Series) -> None:
    asked = ("--series", "tides.yaml", "--model", "offline:memorizing", "--page", "page.html")
    said = detect(shell, "--backtest", "1990-01:1994-12", *asked, "--json")
    assert said.code == 0
    found = said.document
    (one,) = found["series"]
    assert (one["n"], one["verdict"]) == (60, "memorized"), "all months of the period"
    assert one["fictitious"]["n"] > 0 and one["forced_ranks"]["asked"] > 0
    assert found["backtest"] == {
        "start": "1990-01",
        "end": "1994-12",
        "models": [
            {
                "model": "offline:memorizing",
                "answer": "no",
                "sentence": "No: a back-test of offline:memorizing from 1990-01 to 1994-12 "
                "cannot be trusted, "
                "because the model remembers the published values of the Halcyon tide index "
                "(memorized). It may trade on information that was not available at the time.",
            }
        ],
    }
    html = (shell.folder / "page.html").read_text("utf-8")
    assert '<p class="lead no">No: a back-test of offline:memorizing' in html
    lines = Path(found["responses"][0]).read_text("utf-8").splitlines()
    asked_of = [Reply.model_validate_json(line).date for line in lines]
    assert min(asked_of) >= "1990-01" and max(asked_of) <= "1994-12"


def test_the_answers_give_the_same_again(shell: Shell, about: Series) -> None:
    asked = ("--series", "tides.yaml", "--model", "offline:fabricating", "--cutoff", "2001-03",
             "--dates", "30", "--backtest", "1990:2003")  # fmt: skip
    first = detect(shell, *asked, "--json").document
    assert first["series"][0]["n"] == 30 and first["series"][0]["cutoff"] == "2001-03-31"
    words = detect(shell, *asked).out
    again = next(line for line in words.splitlines() if line.startswith("again: coreeval "))
    later = shell(*again.removeprefix("again: coreeval ").split(), *FEW, "--json").document
    assert later["series"] == first["series"] and later["settings"] == first["settings"]
    assert first["backtest"]["models"][0]["answer"] in words or "No recall found" in words


def test_a_dry_run_asks_nothing(shell: Shell, about: Series) -> None:
    asked = ("--series", "tides.yaml", "--model", "offline:fabricating")
    said = detect(shell, "--backtest", "1990:1993", *asked, "--budget", "2", "--dry-run")
    assert said.code == 0 and "nothing was spent" in said.out
    assert "--backtest 1990:1993 --series tides.yaml --model offline:fabricating" in said.out
    assert not list(shell.folder.rglob("responses.jsonl"))


# -- a config -------------------------------------------------------------------------------------


def test_a_config_asks_its_targets(shell: Shell, about: Series) -> None:
    config = {
        "name": "audit",
        "models": {"targets": ["offline:memorizing", {"model": "offline:fluent"}]},
        "detect": {"numleak": {"series": "tides.yaml", "dates": 30, "fictitious": 10}},
    }
    path = shell.write("audit.yaml", json.dumps(config))
    said = detect(shell, path, "--set", "detect.numleak.dates=40", "--json")
    assert said.code == 0
    knowing, fluent = said.document["series"]
    assert (knowing["n"], knowing["verdict"]) == (52, "memorized"), "dates, and recent ones"
    assert fluent["verdict"] != "memorized" and knowing["blind"]["n"] > 0
    assert said.document["backtest"] is None
    assert said.document["responses"][0].endswith(".coreeval/numleak/audit/responses.jsonl")
    dry = detect(shell, path, "--budget", "2", "--dry-run")
    assert dry.code == 0
    assert dry.out.splitlines()[-1] == "next: coreeval detect numleak audit.yaml --budget 2"


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


def test_the_documented_form_of_rankings(shell: Shell, scored: Path) -> None:
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
    assert (
        "most probable of 3 candidates on 8 of 8 dates, more often than expected by chance "
        "(0.33; p < 0.001)"
    ) in out
    assert "the true value is the most probable of" in out
    assert "share of the other dates on which" in out
    assert "1 dates or candidates are excluded" in out and "1999: no candidate is called" in out
    assert "1 bad lines are skipped" in out and "skipped lines of another type: 1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("option", [("--page", "a.html"), ("--budget", "1"), ("--dates", "3")])
def test_options_of_other_ways_are_refused(
    shell: Shell, scored: Path, option: tuple[str, str]
) -> None:
    said = shell("detect", "numleak", "--rankings", scored, *option)
    assert said.code == 2 and f"{option[0]} can be used with" in said.err
    both = shell("detect", "numleak", "--rankings", scored, "--responses", scored)
    assert both.code == 2 and "cannot be used together" in both.err
