"""Reports of earlier versions lack what was added since; they are read all the same."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coreeval.config.run import DetectConfig
from coreeval.evaluation.report.report_document import list_limits, report_document
from coreeval.evaluation.report.report_file import read_report
from coreeval.evaluation.report.report_page import report_page
from coreeval.evaluation.scores import NO_SCORE, score_proportion
from coreeval.tools.workspace import RunFiles
from tests.evaluation.report.kit import TARGET, found_in, says

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
    assert first["does"] == "scores how useful answers remain under a defence"
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
        "comparability": None,
        "decomposition": {"targets": []},
    }


MODELS = {"default": "openai:writer", "label_judge": "openai:judge"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a report of a run that models made, and that no target was asked about."""
    return dict(report_document(found_in(tmp_path_factory.mktemp("run"), models=MODELS)))


def limits(document: dict[str, Any], **changes: object) -> str:
    return "\n".join(list_limits(document | changes))


def test_what_always_holds_is_said_and_of_a_drop_only_where_there_is_one(
    plain: dict[str, Any], tmp_path: Path
) -> None:
    assert "not a random part of the benchmark" in limits(plain)
    assert "not proof of memory" not in limits(plain)
    said = [says(1, "original", "anger"), says(1, "updated", "anger")]
    asked = report_document(found_in(tmp_path, said=said, models=MODELS | {"targets": [TARGET]}))
    assert "not proof of memory" in "\n".join(asked["limits"])
    assert f"Neither the cutoff nor the release date of {TARGET} is known" in "\n".join(
        asked["limits"]
    )


@pytest.mark.parametrize(
    ("part", "changes", "sentence"),
    [
        ("counts", {"failed": 1}, "1 sample failed"),
        ("counts", {"pending": 2}, "2 samples were unfinished"),
        ("benchmark", {"limit": 20}, "samples were used (--limit); they may differ from the other"),
        ("quality", {"balance_shift": 0.31}, "The shift of 0.31 affects "),
        (
            "quality",
            {"label_noise": {"bound": None}},
            "There is no upper bound on the share of wrong labels",
        ),
        (
            "cost",
            {"billed_usd": None},
            "Some calls have no known price",
        ),
        ("cost", {"unknown_usd": 0.4}, "0.40 USD, is treated as spent"),
        ("evidence", {"precision": {"crawl": 1}}, "cited articles"),
    ],
)
def test_what_weakens_this_run_is_said(
    plain: dict[str, Any], part: str, changes: dict[str, Any], sentence: str
) -> None:
    assert sentence not in limits(plain)
    assert sentence in limits(plain, **{part: plain[part] | changes})


def test_a_missing_bound_on_labels_is_explained(plain: dict[str, Any]) -> None:
    noise = {
        "bound": None,
        "original": score_proportion(0, 20).model_dump(),
        "updated": NO_SCORE.model_dump(),
    }
    quality = plain["quality"] | {"label_noise": noise}
    assert "no new text was judged blind in this run" in report_page(plain | {"quality": quality})
    counts = plain["counts"] | {"accepted": 0}
    html = report_page(plain | {"quality": quality, "counts": counts})
    assert (
        "no upper bound on the share of wrong labels, because there are no updated texts." in html
    )


def test_few_samples_and_rules_are_said(plain: dict[str, Any]) -> None:
    assert "Only 3 samples were accepted: rely on the intervals, not on the estimates" in limits(
        plain
    )
    many = plain["counts"] | {"accepted": 100}
    assert "rely on the intervals" not in limits(plain, counts=many)
    assert "Rules played these roles: label judge." in limits(plain, offline_roles=["label_judge"])


def test_a_judge_of_its_own_texts_is_named(plain: dict[str, Any]) -> None:
    assert "wrote the texts and judged their labels" not in limits(plain)
    roles = [role | {"model": "openai:writer"} for role in plain["roles"]]
    assert "The same model, openai:writer, wrote the texts" in limits(plain, roles=roles)


def test_refusals_are_counted_over_the_arms(plain: dict[str, Any]) -> None:
    arm = {"answers": {"answered": 6, "refused": 2, "truncated": 0, "unparsed": 2}}
    target = {"target": TARGET, "all_samples": {"arms": [arm, arm]}}
    found = limits(plain, arms={"targets": [target]})
    assert f"{TARGET} refused 4 of 20 questions" in found


def test_a_target_with_fewer_answers_than_others_is_named(tmp_path: Path) -> None:
    said = [says(number, "original", "anger") for number in (1, 2)]
    other = said[0].model_copy(update={"target": "openai:other"})
    models = MODELS | {"targets": [TARGET, "openai:other"]}
    document = report_document(found_in(tmp_path, said=[*said, other], models=models))
    told = "\n".join(document["limits"])
    assert "openai:other was asked 1 of 2 questions on the arms" in told
    assert f"{TARGET} was asked" not in told
