"""Reports of earlier versions lack what was added since; they are read all the same."""

import json
import re
from dataclasses import replace
from pathlib import Path

from coreeval.config.run import DetectConfig
from coreeval.evaluation.report.report_document import report_document
from coreeval.evaluation.report.report_file import read_report
from coreeval.tools.workspace import RunFiles
from tests.evaluation.report.kit import TARGET, found_in

DOCS = (Path(__file__).parents[3] / "docs" / "json.md").read_text("utf-8")


def test_every_key_is_documented(tmp_path: Path) -> None:
    section = DOCS.partition("## `report.json`")[2].partition("\n## ")[0]
    document = report_document(found_in(tmp_path))
    assert set(document) <= set(re.findall(r"`(\w+)`", section))
    json.dumps(document, allow_nan=False)


def test_what_was_made_how_is_told(tmp_path: Path) -> None:
    models = {
        "default": {"model": "openai:writer", "temperature": 0, "base_url": "http://10.0.0.7/v1"},
        "label_judge": "openai:judge",
        "targets": [{"model": TARGET, "cutoff": "2026-03"}, "offline:clean"],
    }
    dates = {"target": TARGET, "cutoff": {"date": "2026-03"}, "released": None}
    fresh = {"target": TARGET, "after": 2, "before": 1, "unknown": 0, "by_crawl": 0}
    known = {"cutoffs": [dates], "after_cutoff": [fresh]}
    document = report_document(found_in(tmp_path, models=models, manifest=known))
    roles = {role["role"]: role for role in document["roles"]}
    assert roles["composer"]["model"] == "openai:writer"
    assert roles["composer"]["parameters"] == ["temperature 0.0", "at most 2048 tokens"]
    assert roles["composer"]["prompt"] == "0123456789ab"
    assert roles["label_judge"]["model"] == "openai:judge"
    one, clean = document["targets"]
    assert (one["cutoff"], one["fresh"]) == ({"date": "2026-03"}, fresh)
    assert (clean["embedded"], clean["cutoff"], clean["fresh"]) == (True, None, None)
    assert document["benchmark"]["source"] == "bench"
    assert "10.0.0.7" not in json.dumps(document)


def test_judges_of_defences_are_named_as_roles_are(tmp_path: Path) -> None:
    scoring = {"model": "openai:judge", "max_tokens": 300}
    numleak = {"series": "cpi.yaml", "defences": {"judge": scoring, "second_judge": "offline"}}
    found = found_in(tmp_path, models={"default": "offline", "targets": [TARGET]})
    detect = DetectConfig.model_validate({"numleak": numleak})
    config = found.config.model_copy(update={"detect": detect})
    document = report_document(replace(found, config=config))
    first, second = (one for one in document["roles"] if one["role"] == "utility_judge")
    assert (first["model"], first["by_rules"]) == ("openai:judge", False)
    assert first["parameters"] == ["at most 300 tokens"] and len(first["prompt"]) == 12
    assert first["does"] == "scores how useful answers stay under a defence"
    assert (second["model"], second["by_rules"], second["prompt"]) == ("offline", True, None)


def test_the_parts_add_up(tmp_path: Path) -> None:
    document = report_document(found_in(tmp_path))
    counts = dict(document["counts"])
    assert counts.pop("total") == sum(counts.values()) == 6
    assert sum(each["samples"] for each in document["causes"]) == 6 - counts["accepted"]
    assert sum(document["attempts"].values()) == counts["accepted"]
    assert sum(each["samples"] for each in document["quality"]["rungs"]) == 6
    spans = document["evidence"]["spans"]
    assert sum(each["articles"] for each in spans) == document["evidence"]["articles"] == 2


def test_a_report_from_before_targets_were_ranked_has_no_order(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    files.report_json.write_text(json.dumps({"arms": {"targets": [], "draws": 9}}))
    assert read_report(files) == {
        "arms": {"targets": [], "draws": 9, "ranking": None},
        "pcr": None,
        "numleak": None,
        "decomposition": {"targets": []},
    }
