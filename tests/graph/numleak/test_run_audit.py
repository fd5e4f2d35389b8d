"""NumLeak in a run: targets with words are asked about series, once, whatever befalls the run."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import ConfigError, DatasetError, RunCorrupt, RunStateError
from coreeval.evaluation.numleak.replies import Reply as Said
from coreeval.graph.estimate.run_estimate import estimate
from coreeval.graph.evaluate import evaluate
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import Lab
from tests.graph.numleak.kit import ASKED, answer
from tests.graph.numleak.test_series_questions import telling
from tests.support.llm_server import LLMServer, Reply, Request
from tests.support.odd_rows import odd_row
from tests.support.tides import write_series

SHORT = (
    "all 2 targets, tides: seed 7: only 2 of the 3 requested dates before the cutoff are available"
)
PERSONA, CLASSIFIER = "offline:memorizing", "offline:classifier"
QUESTIONS = 40
"""To each target: six dates with all their probes, and three recent ones but for one in common."""


@pytest.fixture
def target() -> Iterator[LLMServer]:
    with LLMServer(answer).in_thread() as server:
        yield server


@pytest.fixture
def lab(make_lab: Callable[[Path], Lab], target: LLMServer, tmp_path: Path) -> Lab:
    """Return a workspace whose config asks a model, a persona and a classifier about the tides."""
    write_series(tmp_path)
    made = make_lab(tmp_path)
    asked = {"model": "openai:target", "base_url": target.url, "cutoff": "2020-06"}
    persona = {"model": PERSONA, "cutoff": "2020-06"}
    made.write(
        models={"default": "offline", "targets": [asked, persona, CLASSIFIER]},
        detect={"evaluate": True, "numleak": {"series": "tides.yaml", **ASKED}},
        run={"concurrency": 1},
    )
    return made


def without_arms(lab: Lab) -> None:
    """Ask about series and about nothing else."""
    lab.write(detect={"evaluate": False, "numleak": {"series": "tides.yaml", **ASKED}})


def said(lab: Lab) -> dict[str, list[Said]]:
    """Return what each target said, by the name of its file."""
    return {
        file.stem: [Said.model_validate_json(line) for line in file.read_text().splitlines()]
        for file in lab.files.numleak.iterdir()
    }


def stages(lab: Lab) -> tuple[object, object]:
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        return store.stage("numleak"), store.targets()


def test_targets_with_words_are_asked_once_and_the_others_about_the_arms_alone(
    lab: Lab, target: LLMServer
) -> None:
    without_arms(lab)

    def stop(request: Request) -> str | Reply:
        if len(target.requests) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return answer(request)

    target.answers = stop
    assert lab.refresh(limit=2).manifest.status == "interrupted"
    assert not lab.files.numleak.exists() and not lab.files.report_json.exists()
    assert lab.manifest.cost.billed_calls == len(target.requests) < QUESTIONS
    assert lab.resume().manifest.status == "complete"
    assert len(target.requests) == QUESTIONS == lab.manifest.cost.billed_calls
    found = said(lab)
    assert {name: len(replies) for name, replies in found.items()} == {
        "openai_target": QUESTIONS,
        "offline_memorizing": QUESTIONS,
    }
    done = {"targets": ["openai:target", PERSONA]}
    assert stages(lab) == (done, set())
    assert json.loads(lab.files.report_json.read_text())["numleak"]["notes"] == [SHORT]
    target.answers = lambda _request: '{"label": "joy"}'
    evaluate(lab.files.root, targets=[CLASSIFIER])
    assert json.loads(lab.files.report_json.read_text())["numleak"]["notes"] == [SHORT]
    evaluate(lab.files.root)
    assert stages(lab) == (done, {"openai:target", CLASSIFIER})
    assert all("response_format" in one for one in target.requests[QUESTIONS:])
    assert said(lab) == found, "what was said is kept"
    assert odd_row(lab.files.root) == ""


def test_an_estimate_counts_the_questions(lab: Lab) -> None:
    without_arms(lab)
    lines = estimate(lab.config, limit=2).lines
    (line,) = [line for line in lines if line.stage == "numleak"]
    assert line.calls.likely == QUESTIONS and line.model == "openai:target"


def test_a_series_that_cannot_be_read_is_told_before_anything_is_paid(lab: Lab) -> None:
    (lab.folder / "tides.csv").unlink()
    with pytest.raises(DatasetError):
        lab.refresh(limit=2)
    assert not lab.files.root.exists()


def test_a_persona_is_no_target_where_nothing_is_asked_about_series(lab: Lab) -> None:
    lab.write(detect={"evaluate": True})
    with pytest.raises(ConfigError, match="no embedded target 'offline:memorizing'"):
        lab.refresh(limit=2)


def test_a_read_out_is_in_the_report_and_who_tells_none_is_named(
    lab: Lab, target: LLMServer
) -> None:
    target.answers = telling
    asked = {"series": "tides.yaml", **ASKED, "probes": ["value", "fictitious", "entropy"]}
    lab.write(detect={"evaluate": False, "numleak": asked})
    lab.refresh(limit=1)
    report = json.loads(lab.files.report_json.read_text("utf-8"))["numleak"]
    told, persona = (one["entropy"] for one in report["series"])
    assert told["series"]["mean"]["estimate"] < told["fictitious"]["mean"]["estimate"]
    assert persona is None
    assert [note for note in report["notes"] if "read-out" in note] == [
        f"{PERSONA} has no read-out entropy, which needs log-probabilities: a persona has none"
    ]
    assert "Certainty of the answers" in lab.files.report_html.read_text("utf-8")


def test_sentiments_and_signals_are_in_the_report_of_a_run(lab: Lab) -> None:
    rows = "".join(f"{year}-{month:02d},{month % 5}\n" for year in range(1970, 2026)
                   for month in range(1, 13))  # fmt: skip
    (lab.folder / "tone.csv").write_text(f"date,value\n{rows}", encoding="utf-8")
    asked = {
        "series": "tides.yaml",
        "dates": 30,
        "probes": ["value", "sentiment"],
        "leak": {"early": 5, "scrambled": 5},
        "signals": {"tone": "tone.csv"},
    }
    lab.write(
        models={"default": "offline", "targets": [{"model": PERSONA, "cutoff": "2020-06"}]},
        detect={"evaluate": False, "numleak": asked},
    )
    assert lab.refresh(limit=2).manifest.status == "complete"
    found = json.loads(lab.files.report_json.read_text())["numleak"]["series"][0]["leak"]
    assert [one["signal"] for one in found["signals"]] == ["sentiment", "tone"]
    assert found["asked"] == 30 + 5 + 2 * 5 and found["scramble"] and found["placebo"]
    html = lab.files.report_html.read_text()
    assert "Signal tone, " in html and "over published values of tides" in html
    (lab.folder / "tone.csv").write_text("date,value\n1950-01,1\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="no question is about these dates"):
        lab.refresh("another", limit=2)


@pytest.fixture
def remembered(lab: Lab) -> Lab:
    """Return a finished run that asked a persona about series, and nothing else."""
    lab.write(
        models={"default": "offline", "targets": [{"model": PERSONA, "cutoff": "2020-06"}]},
        detect={"evaluate": False, "numleak": {"series": "tides.yaml", **ASKED}},
    )
    assert lab.refresh(limit=1).manifest.status == "complete"
    return lab


def audited(lab: Lab) -> dict[str, object]:
    """Return what does not depend on the other targets in the audit of each target."""
    report = json.loads(lab.files.report_json.read_text())["numleak"]
    kept = ("series", "unit", "n", "parsed", "verdict", "mae", "within_tolerance")
    return {one["model"]: [one[key] for key in kept] for one in report["series"]}


def noted(lab: Lab) -> list[str]:
    notes: list[str] = json.loads(lab.files.report_json.read_text())["numleak"]["notes"]
    return notes


def _rename(folder: Path) -> None:
    write_series(folder, id="waves").rename(folder / "tides.yaml")


def _change_unit(folder: Path) -> None:
    write_series(folder, unit="index_points", tolerances=[5.0])


def _delete(folder: Path) -> None:
    (folder / "tides.yaml").unlink()
    (folder / "tides.csv").unlink()


@pytest.mark.parametrize("change", [_rename, _change_unit, _delete])
def test_a_change_of_a_series_file_changes_no_audit_of_an_existing_run(
    remembered: Lab, change: Callable[[Path], None]
) -> None:
    first = audited(remembered)
    change(remembered.folder)
    evaluate(remembered.files.root, targets=["offline:guessing"])
    found = audited(remembered)
    assert found[PERSONA] == first[PERSONA] and len(found) == 2
    assert {reply.series for replies in said(remembered).values() for reply in replies} == {"tides"}
    write_series(remembered.folder)
    assert remembered.resume().manifest.status == "complete"


def test_a_run_without_a_copy_refuses_changed_series_before_it_asks(remembered: Lab) -> None:
    before = said(remembered)
    remembered.files.series.unlink()  # as in runs of older versions
    for change in (_rename, _shift_values, _date_daily):
        change(remembered.folder)
        with pytest.raises(RunStateError, match="the series have changed since targets were asked"):
            evaluate(remembered.files.root, targets=["offline:guessing"])
        assert said(remembered) == before
        write_series(remembered.folder)
    evaluate(remembered.files.root, targets=["offline:guessing"])
    assert said(remembered)["offline_memorizing"] == before["offline_memorizing"]


def _date_daily(folder: Path) -> None:
    write_series(folder, frequency="daily", notable={})
    file = folder / "tides.csv"
    head, *rows = file.read_text().split("\n")
    file.write_text("\n".join([head, *(row.replace(",", "-01,") for row in rows)]))


def _shift_values(folder: Path) -> None:
    file = folder / "tides.csv"
    head, *rows = file.read_text().split("\n")
    dates = [row.partition(",")[0] for row in rows]
    values = [row.partition(",")[2] for row in rows]
    shifted = [
        f"{date},{value}" for date, value in zip(dates, values[1:] + values[:1], strict=True)
    ]
    file.write_text("\n".join([head, *shifted]))


def test_answers_about_a_series_that_the_run_does_not_have_are_left_out(remembered: Lab) -> None:
    first = audited(remembered)
    [file] = remembered.files.numleak.iterdir()
    file.write_text(file.read_text() + file.read_text().replace('"tides"', '"waves"'))
    evaluate(remembered.files.root, targets=["offline:guessing"])
    assert audited(remembered)[PERSONA] == first[PERSONA]
    left_out = "answers about waves, which is not a series of the run, are left out"
    assert noted(remembered)[-1] == left_out


def test_notes_on_earlier_targets_stay(remembered: Lab) -> None:
    evaluate(remembered.files.root, targets=["offline:guessing"])
    assert noted(remembered)[0] == SHORT.replace("all 2 targets", PERSONA)


@pytest.mark.parametrize("text", ["{", '{"series": []}', "\udcff"])
def test_a_damaged_copy_of_the_series_is_named(remembered: Lab, text: str) -> None:
    remembered.files.series.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunCorrupt, match="the run's copy of its series is damaged"):
        evaluate(remembered.files.root, targets=["offline:guessing"])
    assert not (remembered.files.numleak / "offline_guessing.jsonl").exists()
