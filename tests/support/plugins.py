"""Packages with plugins, installed for a test without a package index or a build."""

import importlib.util
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from coreeval.evaluation.benchmarks.plugin_format import open_plugin_format
from coreeval.tools import plugins

TEMPLATE = Path(__file__).parents[2] / "examples" / "plugin"


def install(project: Path, site: Path, *, version: str = "") -> None:
    """Put the packages of a project into a folder with metadata, as an installer does.

    Args:
        project: A folder with a pyproject.toml and packages beside it.
        site: The folder, which has to be on the path.
        version: Another version than the project's.
    """
    said = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    packages = [each.parent for each in project.glob("*/__init__.py")]
    modules = list(project.glob("*.py"))
    for package in packages:
        shutil.copytree(package, site / package.name, dirs_exist_ok=True)
    for module in modules:
        shutil.copy(module, site)
    name, stated = said["name"], version or said["version"]
    for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"{name.replace('-', '_')}-{stated}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {stated}\n")
    tops = [each.stem for each in (*packages, *modules)]
    (info / "top_level.txt").write_text("".join(f"{each}\n" for each in tops))
    files = [path for each in packages for path in each.rglob("*.py")]
    own = (path.relative_to(project).as_posix() for path in (*files, *modules))
    (info / "RECORD").write_text("".join(f"{each},,\n" for each in own))
    lines = [
        line
        for group, points in said.get("entry-points", {}).items()
        for line in (f"[{group}]", *(f"{point} = {target}" for point, target in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def forget_plugins() -> None:
    """Forget which plugins were found, agreed to and imported."""
    plugins.find_origin.cache_clear()
    open_plugin_format.cache_clear()
    plugins._LOADED.clear()
    plugins._CONSENT.origins.clear()
    plugins.allow_named_plugins(False)


@dataclass(frozen=True)
class Site:
    """A folder on the path, for packages and modules."""

    folder: Path

    def write(self, module: str, code: str) -> None:
        """Write a module, in place of an earlier one of its name.

        The compiled file goes: Python takes it for current if size and second are the same.
        """
        path = self.folder / f"{module}.py"
        path.write_text(code)
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        self.forget()

    def install(self, project: Path, *, version: str = "") -> None:
        """Install a project; see `install`."""
        install(project, self.folder, version=version)
        self.forget()

    def forget(self) -> None:
        """Forget all plugins, as another process does."""
        self.unload()
        forget_plugins()

    def unload(self) -> None:
        """Forget the modules of the folder."""
        importlib.invalidate_caches()
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(self.folder)):
                del sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A folder on the path for packages, without plugins of other tests."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    found = Site(folder)
    found.forget()
    yield found
    found.forget()
