"""A plugin's detector: what it says of itself, what it returns, and its document without it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coreeval.config.plugins import PluginUse
from coreeval.errors import PluginError, PluginFailed, RunCorrupt, RunStateError
from coreeval.evaluation.agreement import compare_detectors
from coreeval.evaluation.detectors import find_detector, list_target_detectors
from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    SampleTexts,
    TextAnswer,
)
from coreeval.evaluation.detectors.documents import (
    read_document,
    read_documents,
    write_document,
)
from coreeval.runs.folder import _OwnFiles
from coreeval.runs.quality import TargetFindings, read_findings
from coreeval.schema import Sample
from coreeval.tasks import load_task
from coreeval.tools.files import write_json
from coreeval.tools.plugins import allow_plugin
from coreeval.tools.workspace import RunFiles
from tests.support.plugins import Site, site

__all__ = ["site"]
NAME = "detector_of:Detector"
FINDING = {"verdict": "known", "reason": "it said so", "n": 2}


def _texts() -> Iterator[SampleTexts]:
    for number in ("1", "2"):
        fields = {"text": f"Text {number}."}
        sample = Sample(id=number, split="test", fields=fields, label=1, label_text="joy")
        yield SampleTexts(sample, {"original": fields})


INPUTS = DetectorInputs(task=load_task("emotion", None, None), seed=7, texts=_texts, fields=_texts)


def _open(
    site: Site, more: str = "", ask: str = "DetectorQuestion(sample.id, 'Known?')",
    score: str = repr(FINDING),
) -> Detector:  # fmt: skip
    """Return the detector of a plugin, with other members, questions or findings."""
    site.write(
        "detector_of",
        "from coreeval.plugins import DetectorQuestion\nclass Detector:\n    plugin_api = 1\n"
        "    name = 'knows'\n    question = 'Does it know the texts?'\n"
        "    verdicts = {'known': 'remembered', 'unknown': 'not_shown'}\n"
        f"    {more}\n"
        "    def questions(self, inputs):\n        for sample, arms in inputs.texts():\n"
        f"            yield {ask}\n"
        f"    def score(self, inputs, answers):\n        return {score}\n",
    )
    allow_plugin(PluginUse("detectors", NAME))
    found = find_detector(NAME)
    assert found
    return found


def _ask(detector: Detector) -> list[DetectorQuestion]:
    assert detector.questions
    return list(detector.questions(INPUTS))


def _score(detector: Detector) -> Json:
    assert detector.score
    return detector.score(INPUTS, {"a": TextAnswer("answered", "yes")})


def test_it_is_a_detector_like_others(site: Site) -> None:
    found = _open(site, "limits = 'It guesses.'; access = 'log_probabilities'")
    assert (found.name, found.title, found.access) == ("plugin-knows", "knows", "log_probabilities")
    assert found.command == f"coreeval detect plugin:{NAME} RUN"
    assert found.statement == (
        "Does it know the texts? The detector reads log-probabilities. It guesses."
    )
    assert _ask(found) == [DetectorQuestion("1", "Known?"), DetectorQuestion("2", "Known?")]
    assert _score(found) == FINDING


def test_what_it_says_of_itself_is_shown_on_a_line(site: Site) -> None:
    found = _open(site, "title = 'two\\nlines\\x1b[2J'")
    assert found.title == "two lines\N{REPLACEMENT CHARACTER}[2J"


def test_a_name_that_is_no_plugin() -> None:
    assert find_detector("recitations") is None
    recitation = find_detector("recitation")
    assert recitation and recitation.plugin is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("name = 'Two Words'", "name: "),
        ("question = ''", "question: "),
        ("verdicts = {}", "verdicts: "),
        ("verdicts = {'known': 'remebered'}", "verdicts.known: 'remebered' is not one of"),
        ("verdicts = 3", "verdicts must be a mapping of words to findings"),
        ("access = 'weight'", "access: 'weight' is not one of"),
        ("title = 3", "title must be a text, not 3"),
    ],
)
def test_what_it_says_of_itself_is_checked(site: Site, more: str, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        _open(site, more)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        ("('key', 'Known?')", r"must yield DetectorQuestion\(key, text\) from questions"),
        ("DetectorQuestion('one', 'Known?')", "has two questions with the key 'one'"),
        ("1 / 0", "failed in questions: ZeroDivisionError"),
    ],
)
def test_questions_that_are_none(site: Site, ask: str, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        _ask(_open(site, ask=ask))


@pytest.mark.parametrize(
    ("score", "told"),
    [
        ("1 / 0", "failed in score: ZeroDivisionError"),
        ("None", "must return a mapping of JSON values"),
        ("{'verdict': 'known', 'reason': '', 'x': object()}", "a mapping of JSON values"),
        ("{'verdict': 'known', 'reason': 'r', 'x': float('nan')}", "without NaN or infinity"),
        ("{'verdict': 'known', 'reason': '\\ud800'}", "a mapping of JSON values"),
        ("{'verdict': 'known', 'reason': 'r', 'x': 'y' * 8_000_000}", "more than 8,000,000 bytes"),
        ("{'verdict': 'known', 'reason': ' '}", "gave no reason for its verdict"),
        ("{'verdict': 'famous', 'reason': ''}", "gave the verdict 'famous', but its verdicts are"),
        ("{'verdict': 'known'}", "gave no reason for its verdict"),
        (
            "{'verdict': 'known', 'reason': 'r', 'target': 'x'}",
            "gave 'target', a key that CoreEval",
        ),
    ],
)
def test_findings_that_are_none(site: Site, score: str, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        _score(_open(site, score=score))


def test_its_document_is_read_where_it_is_not_installed(site: Site, tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    write_document(files, _open(site), {"openai:m": FINDING})
    (site.folder / "detector_of.py").unlink()
    site.forget()
    documents = read_documents(files)
    assert list(documents) == ["plugin-knows"]
    report = {"detectors": documents}
    (restored,) = (each for each in list_target_detectors(report) if each.plugin)
    assert restored.plugin and restored.plugin == documents["plugin-knows"]["plugin"]
    assert restored.plugin["origin"]["target"] == NAME
    assert restored.questions is None
    (finding,) = restored.find(report)
    assert (finding.target, finding.memory, finding.verdict) == ("openai:m", "remembered", "known")
    assert "detectors/plugin-knows.json" in _OwnFiles.of(None)


NO_TARGETS: dict[str, Any] = {
    "targets": [],
    "arms": {"targets": [], "ranking": None},
    "pcr": None,
    "numleak": None,
    "decomposition": {"targets": []},
}


def test_its_verdict_joins_the_agreement_and_a_release(site: Site, tmp_path: Path) -> None:
    titled = _open(site, "title = 'Knows it'")
    document = write_document(RunFiles(tmp_path), titled, {"openai:m": FINDING})
    report = {**NO_TARGETS, "detectors": {"plugin-knows": document}}
    agreed = compare_detectors(["openai:m"], report)
    assert agreed.titles == {"plugin-knows": "Knows it"}
    assert agreed.asks["plugin-knows"] == "Does it know the texts?"
    assert agreed.rows[0].cells["plugin-knows"].said == "remembered"
    (target,) = read_findings(report, where=tmp_path).targets
    assert target == TargetFindings(target="openai:m", others={"plugin-knows": {"": "known"}})


@pytest.mark.parametrize(
    "changes",
    [
        {"plugin": None},
        {"plugin": {"name": "knows"}},
        {"targets": [{"target": "x", "verdict": "famous", "reason": ""}]},
        {"targets": 3},
    ],
)
def test_a_damaged_document_is_one_error(
    site: Site, tmp_path: Path, changes: dict[str, object]
) -> None:
    files = RunFiles(tmp_path)
    document = write_document(files, _open(site), {"openai:m": FINDING})
    write_json(files.detector_document("plugin-knows"), document | changes)
    with pytest.raises(RunCorrupt):
        read_documents(files)
    write_json(files.detector_document("plugin-other"), document)
    files.detector_document("plugin-knows").unlink()
    with pytest.raises(RunCorrupt, match="it is a finding of plugin-knows"):
        read_documents(files)


def test_findings_of_another_plugin_or_version_are_not_called_damaged(
    site: Site, tmp_path: Path
) -> None:
    files = RunFiles(tmp_path)
    detector = _open(site)
    document = write_document(files, detector, {"openai:a": FINDING})
    changes: list[tuple[Json, str, str]] = [
        ({"verdicts": {"known": "remembered", "new": "not_shown"}}, "another version of plugin:",
         "run the detector again"),
        ({"verdicts": {"known": "not_shown", "unknown": "remembered"}}, "verdicts known, unknown",
         "run the detector again"),
        ({"origin": {**document["plugin"]["origin"], "target": "other:Detector"}},
         "another plugin that is also named knows: plugin:detector_of:Detector", "another `name`"),
    ]  # fmt: skip
    for change, told, to_do in changes:
        assert detector.plugin
        other = replace(detector, plugin={**detector.plugin, **change})
        for work in (read_document, partial(write_document, found={})):
            with pytest.raises(RunStateError, match=told) as error:
                work(files, other)
            assert "damaged" not in error.value.message and to_do in error.value.hint
            assert error.value.where == str(files.detector_document("plugin-knows"))
    newer = {**document["plugin"]["origin"], "digest": "f00d"}
    same = replace(detector, plugin={**document["plugin"], "origin": newer})
    assert read_document(files, same) == document, "a version with the same verdicts goes on"


def test_a_report_without_what_a_plugin_said_shows_nothing_of_it() -> None:
    for document in ({}, {"plugin": None}, {"plugin": {"name": "knows"}}):
        found = list_target_detectors({"detectors": {"plugin-knows": document}})
        assert found and not any(each.plugin for each in found)
