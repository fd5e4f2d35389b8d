"""What the tests of the command line share: a config on the demo data, and a way to call it."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from coreeval.cli import main

DEMO = Path(__file__).parents[2] / "examples" / "demo"
CONFIG: dict[str, Any] = {
    "name": "trial",
    "task": "emotion",
    "dataset": {"format": "tweeteval", "path": str(DEMO / "emotion")},
    "knowledge": {
        "path": str(DEMO / "news"),
        "window": {"start": "2025-08-01", "end": "2026-10-01"},
        "min_precision": "crawl",
    },
    "models": {"default": "offline"},
}


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The only thing on stdout: one JSON document."""
        parsed = json.loads(self.out)
        assert isinstance(parsed, dict)
        return parsed

    @property
    def error(self) -> dict[str, str]:
        """The error in the document."""
        assert set(self.document) == {"error"}
        told: dict[str, str] = self.document["error"]
        assert set(told) == {"kind", "message", "where", "hint"}
        return told


@dataclass(frozen=True)
class Shell:
    """Calls commands in this process, in a folder of its own."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path) -> Said:
        """Run one command."""
        self.capture.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self.capture.readouterr()
        return Said(code, captured.out, captured.err)

    def config(self, changes: Mapping[str, object] | None = None) -> Path:
        """Write a config that differs from the usual one in some key paths; None removes a key."""
        return self.write("trial.yaml", config_text(changes or {}))

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


def config_text(changes: Mapping[str, object]) -> str:
    """Return the usual config with other values at some key paths; None removes a key."""
    settings = copy.deepcopy(CONFIG)
    for key, value in changes.items():
        *parents, last = key.split(".")
        place = settings
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        if value is None:
            del place[last]
    return yaml.safe_dump(settings)
