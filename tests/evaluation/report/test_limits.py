from pathlib import Path
from typing import Any

import pytest

from coreeval.evaluation.report.limits import list_limits
from coreeval.evaluation.report.report_document import report_document
from tests.evaluation.report.kit import TARGET, found_in, says

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
    assert "not a random part of it" in limits(plain)
    assert "no proof of memory" not in limits(plain)
    said = [says(1, "original", "anger"), says(1, "updated", "anger")]
    asked = report_document(found_in(tmp_path, said=said, models=MODELS | {"targets": [TARGET]}))
    assert "no proof of memory" in "\n".join(asked["limits"])
    assert f"Neither cutoff nor release of {TARGET} is known" in "\n".join(asked["limits"])


@pytest.mark.parametrize(
    ("part", "changes", "sentence"),
    [
        ("counts", {"failed": 1}, "1 sample failed"),
        ("counts", {"pending": 2}, "2 samples were unfinished"),
        ("benchmark", {"limit": 20}, "Only the first 20 samples were taken"),
        ("quality", {"balance_shift": 0.31}, "(shift 0.31)"),
        ("quality", {"label_noise": {"bound": None}}, "There is no bound on wrong labels"),
        ("cost", {"billed_usd": None}, "what the run cost is not known"),
        ("cost", {"unknown_usd": 0.4}, "0.40 USD of requests that were cut off"),
        ("evidence", {"precision": {"crawl": 1}}, "For 1 of the 2 articles cited"),
    ],
)
def test_what_weakens_this_run_is_said(
    plain: dict[str, Any], part: str, changes: dict[str, Any], sentence: str
) -> None:
    assert sentence not in limits(plain)
    assert sentence in limits(plain, **{part: plain[part] | changes})


def test_few_samples_and_rules_are_said(plain: dict[str, Any]) -> None:
    assert "3 samples were accepted, which are few" in limits(plain)
    many = plain["counts"] | {"accepted": 100}
    assert "which are few" not in limits(plain, counts=many)
    assert "Rules played these roles: label judge." in limits(plain, offline_roles=["label_judge"])


def test_a_judge_of_its_own_texts_is_named(plain: dict[str, Any]) -> None:
    assert "may pass its own mistakes" not in limits(plain)
    roles = [role | {"model": "openai:writer"} for role in plain["roles"]]
    assert "The same model, openai:writer, wrote the texts" in limits(plain, roles=roles)


def test_refusals_are_counted_over_the_arms(plain: dict[str, Any]) -> None:
    arm = {"answers": {"answered": 6, "refused": 2, "truncated": 0, "unparsed": 2}}
    target = {"target": TARGET, "all_samples": {"arms": [arm, arm]}}
    found = limits(plain, arms={"targets": [target]})
    assert f"{TARGET} refused 4 of 20 questions" in found
