"""The workflows: their commands are targets that there are, and the audit precedes a release."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def test_a_release_is_audited_first_and_carries_its_bill_of_materials() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    assert jobs["release"]["needs"] == "audit"
    ran = [step["run"] for step in jobs["release"]["steps"] if "run" in step]
    assert [line for line in ran if line.startswith("make")] == ["make dist", "make sbom"]
    assert ran[-1].endswith(" dist/*")
    assert jobs["audit"]["steps"][-1]["run"] == "make audit"
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("audit", "dist", "sbom"):
        assert re.search(rf"^{target}: .venv/tools/ready$", makefile, re.MULTILINE)
    assert "SBOM := dist/" in makefile


def test_every_supported_python_is_audited() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert jobs["audit"]["strategy"]["matrix"]["python"] == named


def test_every_supported_python_is_tested() -> None:
    workflow = yaml.safe_load(WORKFLOW.with_name("tests.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert matrix["python"] == named
    assert all(one["system"] != "ubuntu-latest" for one in matrix["exclude"])
