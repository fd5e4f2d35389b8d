"""The image: `make image` finds a builder or says what is missing; nobody runs it as root."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CONTAINERFILE = (ROOT / "Containerfile").read_text("utf-8")


def run_make(tools: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `make image` where only the builders of a folder are found."""
    make = shutil.which("make")
    assert make
    return subprocess.run(
        [make, "--silent", "image", *arguments],
        cwd=ROOT,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )


def add_builder(tools: Path, name: str, *, works: bool = True) -> None:
    """Write a builder that keeps its arguments in a file, and whose `info` answers or not."""
    tool = tools / name
    tool.write_text(
        f'#!/bin/sh\n[ "$1" = info ] && exit {0 if works else 1}\n'
        f'printf "%s\\n" {name} "$@" > {tools}/called\n'
    )
    tool.chmod(0o755)


def test_without_a_builder_it_says_what_to_do(tmp_path: Path) -> None:
    add_builder(tmp_path, "docker", works=False)
    said = run_make(tmp_path)
    assert said.returncode == 2
    assert "needs podman, or docker and its daemon" in said.stderr
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("builder", ["podman", "docker"])
def test_the_builder_that_answers_is_used(tmp_path: Path, builder: str) -> None:
    for name in ("podman", "docker"):
        add_builder(tmp_path, name, works=name == builder)
    assert run_make(tmp_path, "EXTRAS=all").returncode == 0
    assert (tmp_path / "called").read_text().split() == [
        builder, "build", "--file", "Containerfile", "--build-arg", "EXTRAS=all",
        "--tag", "coreeval:latest", ".",
    ]  # fmt: skip


def test_a_builder_may_be_chosen(tmp_path: Path) -> None:
    for name in ("podman", "docker"):
        add_builder(tmp_path, name)
    assert run_make(tmp_path, "BUILDER=docker").returncode == 0
    assert (tmp_path / "called").read_text().startswith("docker\nbuild\n")


def test_it_runs_coreeval_as_an_ordinary_user_in_a_volume() -> None:
    final = _CONTAINERFILE.split("\nFROM ")[-1]
    assert re.findall(r"^USER (.+)$", final, re.MULTILINE) == ["1000"]
    assert re.search(r"^VOLUME /data$", final, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["coreeval"\]$', final, re.MULTILINE)
    assert "COPY . " not in final, "the source stays in the first stage"


def test_the_builder_sees_what_the_wheel_is_made_of_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    seen = {rule[1:] for rule in rules if rule.startswith("!")}
    assert all((ROOT / name).exists() for name in seen)
    assert {"coreeval", "docs", "examples", "README.md", "LICENSE", "hatch_build.py"} <= seen
    assert {"pyproject.toml", "constraints.txt"} <= seen
    assert not seen & {".git", ".env", ".venv", "tests", ".coreeval"}


def test_its_python_is_one_that_is_supported() -> None:
    (version,) = re.findall(r"^ARG PYTHON=(\S+)$", _CONTAINERFILE, re.MULTILINE)
    assert f"Python :: {version}" in (ROOT / "pyproject.toml").read_text("utf-8")
