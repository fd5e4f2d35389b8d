"""The plugins page and the template package do what they say, from the command line."""

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml

from coreeval.config import DatasetConfig
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.evaluation.detectors import find_detector
from coreeval.plugins import (
    PROTOCOLS,
    DetectorInputs,
    Sample,
    SampleTexts,
    TextAnswer,
    allow,
    check,
)
from coreeval.tasks import load_task
from coreeval.tools.plugins import PLUGIN_API, list_installed
from tests.cli.kit import DEMO, Shell
from tests.cli.test_docs import DOCS, documented
from tests.support.plugins import TEMPLATE, Site, install, site

__all__ = ["site"]
PAGE = DOCS["plugins.md"]
RUN = "run"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def _write_data(folder: Path, ending: str, form: str, between: str) -> None:
    """Write the demo's benchmark in another format."""
    folder.mkdir()
    for split in ("train", "test"):
        config = DatasetConfig(format="tweeteval", path=str(DEMO / "emotion"), split=split)
        found = load_benchmark(config, load_task("emotion", None, None)).samples
        rows = [form.format(label=each.label_text, text=each.fields["text"]) for each in found]
        (folder / f"{split}.{ending}").write_text(between.join(rows))


def _write_news(path: Path, key: str) -> None:
    lines = (DEMO / "news" / "20260611000000.gal.json").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    path.write_text(
        "".join(
            json.dumps({"url": row["url"], "title": row["title"], key: row["date"]}) + "\n"
            for row in rows
        )
    )


@pytest.fixture
def project(shell: Shell, site: Site) -> Path:
    """Do what the page says: two files in a folder, installed; and a config with its data."""
    folder = shell.folder / "project"
    folder.mkdir()
    modules = [block for block in _blocks("python") if "def test_" not in block]
    (folder / "my_plugins.py").write_text("\n\n".join(modules))
    (toml,) = _blocks("toml")
    (folder / "pyproject.toml").write_text(toml)
    site.install(folder)
    (config,) = _blocks("yaml")
    shell.write("with-plugins.yaml", config)
    _write_data(shell.folder / "data", "txt", "{label}\t{text}", "\n")
    _write_news(shell.folder / "news.jsonl", "time")
    return folder


def _commands() -> list[list[str]]:
    """Return the commands on the page, without the one that installs."""
    lines = [line for block in _blocks("bash") for line in block.splitlines()]
    installs, *others = lines
    assert installs == "pip install -e ."
    assert all(line.startswith("coreeval ") for line in others)
    return [shlex.split(line.replace("RUN", RUN))[1:] for line in others]


def test_the_page_from_top_to_bottom(shell: Shell, site: Site, project: Path) -> None:
    refused = shell("validate", "with-plugins.yaml")
    assert refused.code == 2 and "my_plugins:Pairs, my-plugins 0.1.0" in refused.out
    assert shell("refresh", "with-plugins.yaml", "--json").error["kind"] == "unallowed_plugin"
    assert not (shell.folder / ".coreeval" / "runs").exists()

    validate = ["validate", "with-plugins.yaml", "--allow-plugins"]
    assert _commands()[-1] == validate
    assert shell(*validate).code == 0
    site.forget()
    done = shell("refresh", "with-plugins.yaml", "--run-dir", RUN)
    assert done.code == 0, done.err
    manifest = json.loads((shell.folder / RUN / "manifest.json").read_text())
    assert [(each["group"], each["name"], each["version"]) for each in manifest["plugins"]] == [
        ("formats", "my_plugins:Pairs", "0.1.0"),
        ("knowledge", "my_plugins:Wire", "0.1.0"),
        ("roles", "my_plugins:Prefixer", "0.1.0"),
        ("targets", "my_plugins:Agreeing", "0.1.0"),
    ]
    assert manifest["counts"]["accepted"] > 0

    said = {" ".join(each): shell(*each) for each in _commands()}
    assert [each.code for each in said.values()] == [0] * len(said), said
    assert "familiar  my-plugins 0.1.0  my_plugins:Familiar  fits" in said["plugins --check"].out
    dry = said[f"detect plugin:familiar {RUN} --dry-run"].out
    assert "nothing was spent" in dry and f"coreeval detect plugin:familiar {RUN}" in dry
    assert "plugin:my_plugins:Agreeing  " in said[f"detect plugin:familiar {RUN}"].out

    document = json.loads((shell.folder / RUN / "detectors" / "plugin-familiar.json").read_text())
    report = json.loads((shell.folder / RUN / "report.json").read_text())
    assert report["detectors"] == {"plugin-familiar": document}
    manifest = json.loads((shell.folder / RUN / "manifest.json").read_text())
    assert manifest["plugins"][-1]["group"] == "detectors" and len(manifest["plugins"]) == 5
    page = (shell.folder / RUN / "report.html").read_text()
    assert '<h2 id="plugin-familiar">Familiar</h2>' in page
    assert "<th>familiar</th>" in page and "plugin familiar" not in page
    lines = (shell.folder / "lines" / "updated.txt").read_text().splitlines()
    assert len(lines) == manifest["arms"]["updated"]
    semantic = [each for each in report["roles"] if each["role"] == "rewriter"]
    assert semantic[0]["model"] == "plugin:my_plugins:Prefixer"

    released = shell("release", RUN, "--version", "1", "--json").document
    assert shell("verify", released["release"]).code == 0


def test_the_test_on_the_page(project: Path) -> None:
    (test,) = (block for block in _blocks("python") if "def test_" in block)
    names: dict[str, object] = {}
    exec(test, names)
    run = names["test_the_detector_fits_its_protocol"]
    assert callable(run)
    run()


def test_every_group_is_on_the_page_and_fits(project: Path) -> None:
    classes = {
        "detectors": "Familiar",
        "formats": "Pairs",
        "knowledge": "Wire",
        "roles": "Prefixer",
        "targets": "Agreeing",
        "exports": "Lines",
    }
    assert list(classes) == list(PROTOCOLS) == list(PLUGIN_API)
    for group in PROTOCOLS:
        assert f"| `{group}` |" in PAGE
        assert check(group, f"my_plugins:{classes[group]}").version == "0.1.0"
    assert len(PAGE.split()) <= 1600


def test_a_resumed_run_refuses_another_version(shell: Shell, site: Site, project: Path) -> None:
    arguments = ["with-plugins.yaml", "--run-dir", RUN, "--limit", "1", "--allow-plugins"]
    assert shell("refresh", *arguments).code == 0
    site.install(project, version="0.2.0")
    assert shell("resume", RUN, "--json").error["kind"] == "unallowed_plugin"
    changed = shell("resume", RUN, "--allow-plugins", "--json").error
    assert changed["kind"] == "run_state" and "my-plugins==0.2.0" in changed["message"]
    assert shell("resume", RUN, "--keep").code == 0


def test_a_target_that_a_person_adds_needs_no_option(
    shell: Shell, site: Site, project: Path
) -> None:
    assert shell("refresh", shell.config(), "--run-dir", RUN, "--limit", "3").code == 0
    adding = shell("evaluate", RUN, "--target", "plugin:my_plugins:Agreeing")
    assert adding.code == 0, adding.err
    manifest = json.loads((shell.folder / RUN / "manifest.json").read_text())
    assert [each["name"] for each in manifest["plugins"]] == ["my_plugins:Agreeing"]
    site.forget()
    assert "too_few" in shell("detect", "plugin:familiar", RUN).out
    site.forget()
    assert shell("resume", RUN).code == 0
    manifest = json.loads((shell.folder / RUN / "manifest.json").read_text())
    assert [each["group"] for each in manifest["plugins"]] == ["targets", "detectors"]


def test_a_target_named_again_needs_no_option_after_a_change(shell: Shell, site: Site) -> None:
    code = """
from coreeval.plugins import TargetAnswer
class Word:
    plugin_api = 1
    async def answer(self, request): return TargetAnswer("joy")
"""
    site.write("word_of", code)
    assert shell("refresh", shell.config(), "--run-dir", RUN, "--limit", "3").code == 0
    named = ("--target", "plugin:word_of:Word")
    assert shell("evaluate", RUN, *named).code == 0
    for number, line in enumerate((("evaluate", RUN), ("detect", "recitation", RUN))):
        site.write("word_of", f"{code}VERSION = {number}\n")
        assert shell(*line, "--dry-run", "--json").error["kind"] == "unallowed_plugin"
        for arguments in ((*named, "--dry-run"), named):
            done = shell(*line, *arguments)
            assert done.code == 0, done.err
    assert shell("evaluate", RUN).code == 0, "the consent is remembered"


def test_the_template_package(shell: Shell, site: Site) -> None:
    site.install(TEMPLATE)
    _write_data(shell.folder / "data", "blocks", "{label}\n{text}", "\n\n")
    _write_news(shell.folder / "news.jsonl", "published")
    config = {
        "name": "template",
        "task": "emotion",
        "dataset": {"format": "plugin:blocks", "path": "data"},
        "knowledge": {
            "backends": ["plugin:news_file"],
            "path": "news.jsonl",
            "window": {"start": "2025-08-01", "end": "2026-10-01"},
        },
        "models": {"default": "offline", "targets": ["offline:classifier"]},
    }
    shell.write("template.yaml", yaml.safe_dump(config))
    listed = shell("plugins", "--check", "--json").document
    assert set(listed) == documented("coreeval plugins")
    own = [each for each in listed["plugins"] if each["distribution"] == "coreeval-example-plugin"]
    assert [(each["group"], each["allowed"], each["error"]) for each in own] == [
        ("detectors", False, None),
        ("formats", False, None),
        ("knowledge", False, None),
    ]
    done = shell("refresh", "template.yaml", "--run-dir", RUN, "--allow-plugins")
    assert done.code == 0, done.err
    allowed = [each["name"] for each in shell("plugins", "--json").document["plugins"]
               if each["allowed"]]  # fmt: skip
    assert allowed == ["blocks", "news_file"]
    estimated = shell("detect", "plugin:last_word", RUN, "--dry-run", "--json").error
    assert "the run has no target that answers in text" in estimated["message"]
    manifest = json.loads((shell.folder / RUN / "manifest.json").read_text())
    assert manifest["counts"]["accepted"] > 0
    assert manifest["knowledge"]["backend"] == "plugin:news_file"


def test_a_plugin_that_does_not_fit_is_told(shell: Shell, site: Site, tmp_path: Path) -> None:
    project = tmp_path / "old"
    install(TEMPLATE, project)
    (project / "pyproject.toml").write_text((TEMPLATE / "pyproject.toml").read_text())
    detector = project / "example_plugin" / "detector.py"
    detector.write_text(detector.read_text().replace("plugin_api: int = 1", "plugin_api: int = 9"))
    site.install(project)
    said = shell("plugins", "--check")
    assert said.code == 2
    assert "implements version 9 of the protocol for detectors" in said.out
    assert "plugin:blocks  coreeval-example-plugin 0.1.0  example_plugin.blocks:Blocks  fits" in (
        said.out
    )
    told = shell("detect", "plugin:last_word", "nowhere", "--json").error
    assert told["kind"] == "plugin" and "version 9" in told["message"]
    missing = shell("detect", "plugin:nobody", "nowhere", "--json").error
    assert "no installed package offers a plugin named 'nobody'" in missing["message"]
    assert "No such command" in shell("detect", "nobody", "nowhere").err


def test_an_export_that_is_none(shell: Shell, site: Site, finished: Path) -> None:
    site.write(
        "exports_of",
        "class None_:\n    plugin_api = 1\n    def write(self, material, out): return {}\n"
        "class Fails:\n    plugin_api = 1\n    def write(self, material, out): 1 / 0\n"
        "class Exits:\n    plugin_api = 1\n    def write(self, material, out): exit(0)\n",
    )
    said = {"None_": "wrote no file", "Fails": "in write: ZeroDiv", "Exits": "in write: SystemExit"}
    for name, told in said.items():
        done = shell("export", finished, "--to", f"exports_of:{name}", "--out", "x", "--json")
        assert done.error["kind"] == "plugin_failed" and told in done.error["message"]
        assert not (shell.folder / "x").exists()
    known = shell("export", finished, "--to", "parquet", "--out", "x", "--json").error
    assert "plugin:NAME, or module:Class" in known["hint"]


def test_nothing_is_looked_for_without_a_plugin(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    assert shell("validate", shell.config()).code == 0
    with pytest.raises(AssertionError):
        list_installed()


@pytest.mark.parametrize(
    ("samples", "knows", "verdict"),
    [(20, True, "completes"), (20, False, "does_not"), (5, True, "too_few")],
)
def test_the_detector_of_the_template(site: Site, samples: int, knows: bool, verdict: str) -> None:
    site.install(TEMPLATE)
    allow("detectors", "last_word")
    detector = find_detector("plugin:last_word")
    assert detector and detector.questions and detector.score

    def read() -> Iterator[SampleTexts]:
        for number in range(samples):
            first = {"text": f"This is the text number {number} of all, word{number}."}
            second = {"text": f"Of all texts here is number {number}: other{number}!"}
            sample = Sample(id=str(number), split="test", fields=first, label=1, label_text="joy")
            yield SampleTexts(sample, {"original": first, "semantic": second})

    task = load_task("emotion", None, None)
    inputs = DetectorInputs(task=task, seed=7, texts=read, fields=read)
    asked = list(detector.questions(inputs))
    assert len(asked) == 2 * samples
    assert asked[0].text.endswith("number 0 of all,")
    answers = {
        each.key: TextAnswer("answered", f"Word{each.key.partition(':')[2]}" if knows else "no")
        for each in asked
    }
    found = detector.score(inputs, answers)
    assert (found["verdict"], found["pairs"]) == (verdict, samples)
    assert (found["p_value"] < 0.05) == knows


def test_other_processes_run_what_was_agreed_to_here(
    shell: Shell, site: Site, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [str(site.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))
    config = shell.config(
        {
            "dataset.format": "my_plugins:Pairs",
            "dataset.path": "data",
            "models.rewriter": "plugin:my_plugins:Prefixer",
            "run.workers": 2,
        }
    )
    done = shell("refresh", config, "--run-dir", RUN, "--limit", "12", "--allow-plugins")
    assert done.code == 0, done.err
    rows = pq.read_table(next((shell.folder / RUN / "dataset" / "semantic").glob("*.parquet")))
    assert rows.num_rows and all(text.startswith("Well, ") for text in rows["text"].to_pylist())
    tape = shell("cassette", "export", RUN, "--out", "tape", "--json").error
    assert tape["where"] == "models.rewriter"
    assert "cannot contain the answers of plugin:my_plugins:Prefixer" in tape["message"]
