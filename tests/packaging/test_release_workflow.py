"""The workflows: their commands are targets that exist, and nothing is published unchecked."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    """Return the jobs of the workflow that makes a release."""
    loaded = yaml.safe_load((WORKFLOWS / "release.yml").read_text("utf-8"))
    assert loaded["permissions"] == {"contents": "read"}
    return dict(loaded["jobs"])


def commands(job: dict[str, Any]) -> list[str]:
    """Return what a job runs."""
    return [step["run"] for step in job["steps"] if "run" in step]


def action(job: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the one step of a job that uses an action."""
    (step,) = (step for step in job["steps"] if step.get("uses", "").split("@")[0] == name)
    return dict(step)


def test_a_release_is_audited_built_published_and_announced_in_this_order(
    jobs: dict[str, Any],
) -> None:
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "audit": None,
        "build": "audit",
        "pypi": "build",
        "github": ["build", "pypi"],
    }
    assert commands(jobs["audit"]) == ["make audit"]
    assert [line for line in commands(jobs["build"]) if line.startswith("make")] == [
        "make dist",
        "make sbom",
    ]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("audit", "dist", "sbom"):
        assert re.search(rf"^{target}: .venv/tools/ready$", makefile, re.MULTILINE)
    assert "SBOM := dist/coreeval.cdx.json" in makefile
    assert "twine check --strict dist/*.whl dist/*.tar.gz" in makefile


def test_pypi_trusts_the_workflow_and_no_job_holds_a_secret(jobs: dict[str, Any]) -> None:
    assert jobs["pypi"]["environment"] == {"name": "pypi"}
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    publish = action(jobs["pypi"], "pypa/gh-action-pypi-publish")
    assert "with" not in publish  # no password, and attestations as by default
    assert commands(jobs["pypi"]) == []
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text("utf-8")
    may_write = {
        name: {key for key, value in job.get("permissions", {}).items() if value == "write"}
        for name, job in jobs.items()
    }
    assert may_write == {
        "audit": set(),
        "build": {"id-token", "attestations"},
        "pypi": {"id-token"},
        "github": {"contents"},
    }


def test_origin_and_contents_are_attested_and_the_same_files_published(
    jobs: dict[str, Any],
) -> None:
    build = jobs["build"]
    assert action(build, "actions/attest-build-provenance")["with"] == {"subject-path": "dist/*"}
    contents = action(build, "actions/attest")["with"]
    assert contents == {"subject-path": "dist/*.whl", "sbom-path": "dist/coreeval.cdx.json"}
    names = [step.get("uses", step.get("name", "")).split("@")[0] for step in build["steps"]]
    assert names.index("List what it is made of") < names.index("actions/attest")
    kept = {
        step["with"]["name"]: step["with"]["path"].split()
        for step in build["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact")
    }
    assert kept == {
        "packages": ["dist/*.whl", "dist/*.tar.gz"],
        "papers": ["dist/coreeval.cdx.json", "notes.md"],
    }
    fetched = action(jobs["pypi"], "actions/download-artifact")["with"]
    assert fetched == {"name": "packages", "path": "dist"}
    (announce,) = commands(jobs["github"])
    assert announce.endswith("dist/*.whl dist/*.tar.gz dist/*.cdx.json")


CHANGELOG = """# Changelog

## Unreleased

- later

## {heading}

### Added

- new

## 0.0.9 (2026-01-02)

- old
"""


@pytest.mark.parametrize(
    ("tag", "heading", "fails"),
    [
        ("v1.2.0", "1.2.0 (2026-11-28)", []),
        ("v1.2.0", "1.2.0", [1]),
        ("v1.2.0", "1.2.0 (soon)", [1]),
        ("v1.2.1", "1.2.0 (2026-11-28)", [0, 1]),
    ],
)
def test_a_tag_needs_its_version_and_a_dated_heading(
    jobs: dict[str, Any], tmp_path: Path, tag: str, heading: str, fails: list[int]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.format(heading=heading))
    steps = [line for line in commands(jobs["build"]) if "GITHUB_REF_NAME" in line]
    codes = [
        subprocess.run(
            ["bash", "-e", "-c", line],
            cwd=tmp_path,
            env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"},
            check=False,
        ).returncode
        for line in steps
    ]
    assert [n for n, code in enumerate(codes) if code] == fails
    if not fails:
        expected = f"## {heading}\n\n### Added\n\n- new\n\n"
        assert (tmp_path / "notes.md").read_text() == expected


def test_every_supported_python_is_audited(jobs: dict[str, Any]) -> None:
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert jobs["audit"]["strategy"]["matrix"]["python"] == named


def test_every_supported_python_is_tested() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "tests.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert matrix["python"] == named
    assert all(one["system"] != "ubuntu-latest" for one in matrix["exclude"])


def test_wheel_and_image_are_shown_at_work_outside_the_checkout() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "tests.yml").read_text("utf-8"))
    ran = commands(workflow["jobs"]["package"])
    assert ran[0] == "make dist"
    assert ran[2] == "make image BUILDER=docker"
    assert "cd ../empty" in ran[1]
    assert "pipx run --spec" in ran[1]
    assert ran[3].startswith("docker run --rm coreeval ")
