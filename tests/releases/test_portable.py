"""What is published tells nothing of the machine's folders."""

from pathlib import Path

import pytest

from coreeval.releases.portable import portable

BASE = Path("/srv/bench")


@pytest.mark.parametrize(
    ("recorded", "published"),
    [
        ("/srv/bench/data/emotion", "data/emotion"),
        ("/data/customers/emotion", ".../emotion"),
        ("/data/with a space/emotion set", ".../emotion set"),
        ("/data", ".../data"),
        ("replay:/data/customers/answers.jsonl", "replay:.../answers.jsonl"),
        ("dataset.path=/data/customers/emotion", "dataset.path=.../emotion"),
        ("could not read '/data/customers/x.csv': gone", "could not read '.../x.csv': gone"),
        ("https://models.example/v1/chat", "https://models.example/v1/chat"),
        ("openai:/models/llama", "openai:/models/llama"),
        ("org/name and/or 3/4 of it", "org/name and/or 3/4 of it"),
        ("data/emotion", "data/emotion"),
    ],
)
def test_no_absolute_path_is_left(recorded: str, published: str) -> None:
    assert portable({"a": [{"b": recorded}]}, BASE) == {"a": [{"b": published}]}


def test_a_home_is_a_tilde() -> None:
    assert portable({"a": f"{Path.home()}/x/y"}, BASE) == {"a": "~/x/y"}
