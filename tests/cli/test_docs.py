"""docs/config.md, docs/json.md, docs/run.md and docs/cost.md say what is so."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from benchmarks.cost_table import MODELS, SAMPLES, SECOND, describe_terms
from coreeval import meanings
from coreeval.cli.app import COMMANDS, build_app
from coreeval.config import Config, ItemConfig, SeriesConfig, parse_config
from coreeval.errors import CoreEvalError
from coreeval.graph import bundled
from tests.cli.kit import Shell

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
TEMPLATE = (ROOT / "coreeval" / "cli" / "coreeval.yaml").read_text("utf-8")
BLOCKS = [*re.findall(r"```yaml\n(.*?)```", DOCS["config.md"], re.DOTALL), TEMPLATE]


def models_of(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and all that occur in its fields."""
    yield model
    for field in model.model_fields.values():
        for part in parts_of(field.annotation):
            yield from models_of(part)


def parts_of(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models inside an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from parts_of(part)


def documented(command: str) -> set[str]:
    """Return the keys that docs/json.md lists for a command."""
    section = DOCS["json.md"].partition(f"## `{command}`\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


_IMPORT = re.compile(r"from (coreeval[\w.]*) import (\(?[\w,\s]+?\)?)$", re.MULTILINE)


def test_what_the_docs_import_is_there() -> None:
    found = [pair for text in DOCS.values() for pair in _IMPORT.findall(text)]
    assert len(found) > 5
    names = [(module, name) for module, names in found for name in re.findall(r"\w+", names)]
    missing = [pair for pair in names if not hasattr(importlib.import_module(pair[0]), pair[1])]
    assert not missing


@pytest.mark.parametrize("block", BLOCKS)
def test_every_config_that_is_shown_is_one(block: str) -> None:
    config = parse_config(yaml.safe_load(block), where="docs", base=ROOT)
    assert config.name


def test_every_key_is_described_and_none_besides() -> None:
    found = {*models_of(Config), *models_of(ItemConfig), *models_of(SeriesConfig)}
    assert len(found) == 37
    keys = {key for model in found for key in model.model_fields}
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", DOCS["config.md"], re.MULTILINE)
    described = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert described == keys


def test_the_template_shows_every_section() -> None:
    assert set(yaml.safe_load(TEMPLATE)) == set(Config.model_fields) - {"prompts"}


def test_the_keys_of_each_document(
    shell: Shell, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundled, "DATASETS", {"mrpc": bundled.DATASETS["mrpc"]})
    config, sample = shell.config(), "emotion/test/1"
    refreshed = shell("refresh", config, "--limit", "1", "--run-dir", "r", "--json").document
    assert set(refreshed) == documented("coreeval refresh")
    for command in ("resume", "retry"):
        assert set(shell(command, "r", "--json").document) == documented("coreeval refresh")
    demo = shell("demo", "--dir", "demo", "--json").document
    assert set(demo) == documented("coreeval demo")
    assert set(demo["runs"][0]) == documented("coreeval refresh")
    said = {
        "coreeval init": shell("init", "new", "--json"),
        "coreeval validate": shell("validate", config, "--json"),
        "coreeval status": shell("status", finished, "--json"),
        "coreeval trace": shell("trace", finished, "--json"),
        "coreeval trace SAMPLE": shell("trace", finished, sample, "--json"),
    }
    for command, each in said.items():
        assert set(each.document) == documented(command), command
        assert each.err == ""
    evaluated = shell("evaluate", "r", "--target", "offline:classifier", "--json").document
    assert set(evaluated) == documented("coreeval evaluate")
    estimated = shell("evaluate", "r", "--dry-run", "--json").document
    assert set(estimated) == documented("coreeval estimate")
    assert set(re.findall(r"^## `coreeval (\w+)", DOCS["json.md"], re.MULTILINE)) | {
        "resume",
        "retry",
    } == {
        *(
            str(command.callback.__name__)
            for command in build_app(COMMANDS).registered_commands
            if command.callback
        ),
        *(
            str(group.typer_instance.info.name)
            for group in build_app(COMMANDS).registered_groups
            if group.typer_instance
        ),
    }


def test_the_demo_ends_with_where_to_look(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "DATASETS", {"emotion": bundled.DATASETS["emotion"]})
    said = shell("demo", "--dir", "demo")
    assert said.code == 0
    tail = said.out.partition("Where to look:\n")[2]
    story = re.search(r"coreeval trace (\S+) (\S+)\n", tail)
    assert story
    assert shell("trace", story[1], story[2]).code == 0
    report = re.search(r"emotion +(\S+report\.html)\n", tail)
    assert report
    assert (shell.folder / report[1]).exists()
    assert "Rules played every role" in said.out
    assert "SYNTHETIC" in said.out
    memory = dict(re.findall(r"^(offline:\w+) .* … [+-][\d.]+ +(.+)$", said.out, re.MULTILINE))
    assert memory.pop("offline:clean") in {"inconclusive", "comparable"}
    assert memory == {"offline:finetuned": "fine tuned", "offline:contaminated": "contaminated"}


def test_every_kind_of_error_is_listed() -> None:
    kinds, left = set[str](), [CoreEvalError]
    while left:
        error = left.pop()
        kinds.add(error.kind)
        left += error.__subclasses__()
    paragraph = re.search(r"^`kind` is .*?\n\n", DOCS["json.md"], re.MULTILINE | re.DOTALL)
    assert paragraph
    assert kinds <= set(re.findall(r"`(\w+)`", paragraph[0]))


def test_the_outcomes_and_commands_of_the_run_page() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", DOCS["run.md"], re.MULTILINE))
    assert set(meanings.OUTCOMES) <= set(rows)
    known = {
        command.callback.__name__
        for command in build_app(COMMANDS).registered_commands
        if command.callback
    }
    known |= {str(group.typer_instance.info.name) for group in build_app(COMMANDS).registered_groups
              if group.typer_instance}  # fmt: skip
    named = set(re.findall(r"coreeval (\w+) ", DOCS["run.md"]))
    assert named - {"import"} <= known


def test_the_cost_table_has_the_prices_of_today_and_its_own_share() -> None:
    page = DOCS["cost.md"]
    for line in describe_terms():
        assert line in page, "run python -m benchmarks.cost_table, and put its output there"
    rows = re.findall(r"^\| (\w+) \| ([\d,]+) \| (first|second) \| (.+) \|$", page, re.M)
    assert {row[0]: int(row[1].replace(",", "")) for row in rows} == SAMPLES
    costs = {(row[0], row[2]): list(map(float, re.findall(r"[\d.]+", row[3]))) for row in rows}
    for task in SAMPLES:
        first, second = costs[task, "first"], costs[task, "second"]
        assert len(first) == len(second) == 2 * len(MODELS)
        assert all(
            again == pytest.approx(once * SECOND, abs=0.011)
            for once, again in zip(first, second, strict=True)
        )


def test_the_pages_of_the_package_are_listed_and_shown(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = shell("docs", "--json").document
    assert {each["page"] for each in listed["pages"]} == {name.removesuffix(".md") for name in DOCS}
    assert all(each["title"] for each in listed["pages"])
    assert "models  " in shell("docs").out
    for name in ("models", "docs/models.md", "models.md#prices"):
        assert shell("docs", name).out == DOCS["models.md"]
    assert set(shell("docs", "models", "--json").document) == {"page", "title", "text"}
    monkeypatch.setattr("coreeval.cli.docs.on_terminal", lambda: True)
    shown = shell("docs", "cutoffs").out
    assert "Where the dates come from" in shown and "## Where" not in shown


def test_a_page_that_is_not_there_names_the_nearest(shell: Shell) -> None:
    said = shell("docs", "modles")
    assert said.code == 2
    assert "no page is called 'modles'" in said.err and "coreeval docs models" in said.err
    assert "`coreeval docs` lists the pages" in shell("docs", "zzz").err


def test_every_page_that_a_message_names_can_be_shown() -> None:
    package = ROOT / "coreeval"
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".yaml", ".html")]
    texts = {path: path.read_text("utf-8") for path in files}
    named = {
        page for text in texts.values() for page in re.findall(r"coreeval docs ([a-z]\w+)", text)
    }
    assert len(named) > 10
    assert named - {"has", "lists"} <= {name.removesuffix(".md") for name in DOCS}
    in_messages = {
        f"{path.name}: {found}"
        for path, text in texts.items()
        if path.suffix == ".py" and path.name != "docs.py"
        for found in re.findall(r"(?:hint|f?\")[^#\n]*docs/\w+\.md", _drop_docstrings(text))
    }
    assert not in_messages


def _drop_docstrings(source: str) -> str:
    return re.sub(r'""".*?"""', "", source, flags=re.DOTALL)
