from pathlib import Path

import pytest

from coreeval.errors import RunStateError
from coreeval.releases.manifest import full_counts, read_manifest


def test_counts_name_every_outcome_and_add_up() -> None:
    counts = full_counts(10, {"accepted": 3, "unsafe": 1})
    assert counts == {
        "total": 10,
        "accepted": 3,
        "rejected_facts": 0,
        "rejected_label": 0,
        "rejected_form": 0,
        "label_unrecoverable": 0,
        "unsafe": 1,
        "no_knowledge": 0,
        "failed": 0,
        "pending": 6,
    }
    assert sum(number for name, number in counts.items() if name != "total") == counts["total"]


def test_a_folder_without_a_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match="no run directory"):
        read_manifest(tmp_path / "manifest.json")


def test_a_damaged_manifest_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"version": 1', encoding="utf-8")
    with pytest.raises(RunStateError, match="manifest is damaged"):
        read_manifest(tmp_path / "manifest.json")
