"""What is published tells nothing of the machine's folders."""

from pathlib import Path

import pytest

from coreeval.errors import RunStateError
from coreeval.runs.manifest import full_counts, read_manifest
from coreeval.tools.local_paths import strip_paths


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
    with pytest.raises(RunStateError, match="not a run directory"):
        read_manifest(tmp_path / "manifest.json")


def test_a_damaged_manifest_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"version": 1', encoding="utf-8")
    with pytest.raises(RunStateError, match="manifest is damaged"):
        read_manifest(tmp_path / "manifest.json")


BASE = Path("/srv/bench")


@pytest.mark.parametrize(
    ("recorded", "published"),
    [
        ("/srv/bench/data/emotion", "data/emotion"),
        ("/data/customers/emotion", ".../emotion"),
        ("/data/with a space/emotion set", ".../emotion set"),
        ("/data", ".../data"),
        ("replay:/data/customers/answers.jsonl", "replay:.../611d95/answers.jsonl"),
        ("replay:/home/ada lovelace/a.jsonl", "replay:.../40d93f/a.jsonl"),
        ("replay:.../a.jsonl", "replay:.../a.jsonl"),
        ("hf:~/runs/a/final", "hf:~/runs/a/final"),
        ("dataset.path=/data/customers/emotion", "dataset.path=.../emotion"),
        ("could not read '/data/customers/x.csv': gone", "could not read '.../x.csv': gone"),
        ("https://models.example/v1/chat", "https://models.example/v1/chat"),
        ("https://models.example/srv/bench/l.html", "https://models.example/srv/bench/l.html"),
        ("http://gateway:8000/srv/bench/v1", "http://gateway:8000/srv/bench/v1"),
        ("file:///srv/bench/x.csv", "file://x.csv"),
        ("hf:/srv/bench/weights", "hf:weights"),
        ("openai:/models/llama", "openai:/models/llama"),
        ("org/name and/or 3/4 of it", "org/name and/or 3/4 of it"),
        ("data/emotion", "data/emotion"),
    ],
)
def test_no_absolute_path_is_left(recorded: str, published: str) -> None:
    assert strip_paths({"a": [{"b": recorded}]}, BASE) == {"a": [{"b": published}]}


def test_a_home_is_a_tilde() -> None:
    assert strip_paths({"a": f"{Path.home()}/x/y"}, BASE) == {"a": "~/x/y"}
