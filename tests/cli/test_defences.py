"""Defences on the command line: words, files, and answers that are read again."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.kit import Said, Shell
from tests.cli.test_docs import documented
from tests.support.tides import write_series

CONFIG = {
    "name": "walls",
    "models": {"targets": ["offline:memorizing"]},
    "detect": {
        "numleak": {
            "series": "tides.yaml",
            "probes": ["value"],
            "dates": 8,
            "defences": {"judge": "offline", "names": ["none", "soft"], "dates": 8},
        }
    },
}


def write(shell: Shell, **changes: object) -> Path:
    write_series(shell.folder)
    config = json.loads(json.dumps(CONFIG))
    config["detect"]["numleak"]["defences"] |= changes
    return shell.write("walls.yaml", yaml.safe_dump(config))


def detect(shell: Shell, *arguments: str | Path) -> Said:
    return shell("detect", "numleak", "--draws", "100", *arguments)


def test_the_documented_form_and_the_same_from_its_files(shell: Shell) -> None:
    asked = detect(shell, write(shell), "--json").document
    assert set(asked["defences"]) == documented("defences")
    cell = asked["defences"]["cells"][0]
    assert set(cell) == documented("defence")
    total = asked["defences"]["totals"][0]
    assert set(total) == documented("defence") - {"model", "series"} | {"cells"}
    folder = shell.folder / ".coreeval" / "numleak" / "walls"
    given = ("--responses", folder / "responses.jsonl", "--series", "tides.yaml")
    again = detect(shell, *given, "--utility", folder / "utility.jsonl", "--json").document
    assert again["defences"] == asked["defences"] and again["series"] == asked["series"]
    plain = detect(shell, *given, "--json").document["defences"]
    assert plain["cells"][0]["useful"] is None and "was not measured" in plain["notes"][1]


def test_words_a_page_and_a_picture(shell: Shell) -> None:
    said = detect(shell, write(shell), "--page", "a.html", "--plot", "p")
    assert said.code == 0
    assert "-- defences: offline:memorizing, tides -" in said.out
    assert "\nsoft: blocked " in said.out and "do not prove" in said.out
    assert "picture: p/defences.svg" in said.out
    assert "--utility .coreeval/numleak/walls/utility.jsonl" in said.out
    assert "What defences prevent" in (shell.folder / "a.html").read_text("utf-8")


def test_a_defence_without_words_names_its_file(shell: Shell) -> None:
    shell.write("house.md", " \n")
    said = detect(shell, write(shell, names=[{"name": "house", "file": "house.md"}]), "--json")
    assert said.code == 2
    assert "the file of 'house' is empty" in said.error["message"]
    assert said.error["where"] == str(shell.folder / "house.md")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"names": ["sfot"]}, "no built-in 'sfot'"),
        ({"suffix": []}, "unknown key 'detect.numleak.defences.suffix'"),
        ({"judge": None, "utility": True}, "utility needs a judge"),
    ],
)
def test_mistakes_in_the_config(shell: Shell, changes: dict[str, object], said: str) -> None:
    found = detect(shell, write(shell, **changes), "--json")
    assert found.code == 2 and said in found.error["message"]


def test_judged_answers_go_with_recorded_ones(shell: Shell) -> None:
    said = detect(shell, write(shell), "--utility", "u.jsonl", "--json")
    assert said.code == 2 and "--utility can be used with --responses" in said.error["message"]
    nobody = shell.write("said.jsonl", '{"model": "m", "series": "tides", "date": "1980-01", '
                         '"variant": "defended", "response": "1"}\n')  # fmt: skip
    found = detect(shell, "--responses", nobody, "--series", "tides.yaml", "--json")
    assert found.code == 2 and "`defence` is missing" in found.error["message"]
