"""A package that is missing is one error with its pip line, and every import is declared."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from coreeval.cli import main
from coreeval.errors import ConfigError, UsageError
from coreeval.tools.extras import check_extra, require_extra

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "coreeval" / "releases" / "exports" / "harness"
"""Copied into exports, where the package that runs them is installed."""


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with (
        pytest.raises(ConfigError) as caught,
        require_extra("sheets", "an XLSX sheet", otherwise="write CSV", error=ConfigError),
    ):
        import openpyxl  # noqa: F401
    assert (
        caught.value.message == "an XLSX sheet needs the openpyxl package, which is not installed"
    )
    assert caught.value.hint == "pip install 'coreeval[sheets]', or write CSV"


def test_a_module_of_our_own_that_is_missing_stays_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError), require_extra("sheets", "an XLSX sheet"):
        import_module("coreeval.absent")


def test_a_package_is_looked_for_without_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    check_extra("demo", "sklearn", "offline:classifier")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(UsageError, match="needs the sklearn package") as caught:
        check_extra("demo", "sklearn", "offline:classifier")
    assert caught.value.hint == "pip install 'coreeval[demo]'"


@pytest.mark.parametrize("package", ["spacy", "sklearn"])
def test_the_demo_without_its_packages_ends_before_a_run(
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["demo"]) == 2
    assert "pip install 'coreeval[demo]'" in capsys.readouterr().err
    assert not list(tmp_path.rglob("run.db"))


@pytest.mark.parametrize("package", ["trafilatura", "fastwarc", "protego", "py3langid"])
def test_texts_of_articles_without_their_packages_end_before_a_file_is_read(
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["gdelt", "text", "https://a.example/x", "--from", "absent.jsonl"]) == 2
    said = capsys.readouterr().err
    assert f"needs the {package} package" in said
    assert "pip install 'coreeval[articles]'" in said


def test_every_import_is_declared() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = document["optional-dependencies"]
    runtime = [line for name, lines in extras.items() if name != "dev" for line in lines]
    declared = {_name(line) for line in [*document["dependencies"], *runtime]}
    found = packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in (ROOT / "coreeval").rglob("*.py")
        if HARNESS not in path.parents
        for module in _imports(path)
        if not declared & {_name(each) for each in found.get(module, (module,))}
    }
    assert not undeclared


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def _imports(path: Path) -> Iterator[str]:
    """Yield the packages of others that a module imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            top = name.partition(".")[0]
            if top != "coreeval" and top not in sys.stdlib_module_names:
                yield top
