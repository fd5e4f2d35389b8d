"""Paths that begin with a tilde."""

from pathlib import Path

import pytest

from coreeval.paths import expand_home
from coreeval.tools.workspace import workspace_for


def test_a_tilde_without_such_a_user_is_part_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert expand_home("~/data.csv") == Path("/home/ada/data.csv")
    for name in ("~.csv", "~nobody-of-this-name/data.csv", "data~.csv"):
        assert expand_home(name) == Path(name)
    monkeypatch.setenv("COREEVAL_HOME", "~nobody-of-this-name")
    assert workspace_for(Path("base")).root == Path("~nobody-of-this-name")
