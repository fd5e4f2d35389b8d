"""Plugins run only after somebody has agreed, and only if they fit their protocol."""

import json
import py_compile
from importlib.util import cache_from_source
from pathlib import Path
from typing import Protocol
from zipfile import ZipFile

import pytest

from coreeval.config import parse_config
from coreeval.config.plugins import PluginUse, parse_plugin
from coreeval.errors import PluginError, PluginFailed, UnallowedPlugin
from coreeval.models.plugin_target import TargetPlugin
from coreeval.tools.plugins import (
    Plugin,
    allow_named_plugins,
    allow_plugin,
    find_origin,
    list_installed,
    list_plugins,
    load_plugin,
    permit_plugins,
)
from coreeval.tools.workspace import Workspace
from tests.config.test_load import BASE
from tests.support.plugins import TEMPLATE, Site, site

__all__ = ["site"]
ECHO = "class Echo:\n    plugin_api = 1\n    async def answer(self, request): return request\n"
USE = PluginUse("targets", "echo_module:Echo", "models.targets")
MARK = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


class Stated(Protocol):
    """A protocol with a version alone."""

    plugin_api: int


class Answers(Protocol):
    """A protocol with an attribute, a method and a coroutine."""

    plugin_api: int
    name: str

    def score(self, inputs: int, answers: int) -> int: ...
    async def find(self, query: str) -> str: ...


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("plugin:squad-lines", "squad-lines"),
        ("plugin:my_package.formats:Squad", "my_package.formats:Squad"),
        ("my_package.formats:Squad", "my_package.formats:Squad"),
        ("squad", None),
        ("plugin:", None),
        ("plugin:../x", None),
        ("my package:Squad", None),
        (f"plugin:{'x' * 300}", None),
    ],
)
def test_what_names_a_plugin(text: str, name: str | None) -> None:
    assert parse_plugin(text) == name


def test_a_config_names_its_plugins_with_their_keys(tmp_path: Path) -> None:
    config = parse_config(
        {
            **BASE,
            "dataset": {"format": "a:Format", "path": "."},
            "knowledge": {"backends": ["local", "plugin:wire"], "window": {"start": "2026-01-01"}},
            "models": {
                "default": "offline",
                "composer": "plugin:c:Composer",
                "targets": ["plugin:echo"],
            },
        },
        where="here",
        base=tmp_path,
    )
    assert list_plugins(config) == [
        ("formats", "a:Format", "dataset.format"),
        ("knowledge", "wire", "knowledge.backends"),
        ("roles", "c:Composer", "models.composer"),
        ("targets", "echo", "models.targets"),
    ]
    usual = {**BASE, "models": {"default": "plugin:all", "composer": "plugin:c:Composer"}}
    uses = list_plugins(parse_config(usual, where="here", base=tmp_path))
    assert {each.where for each in uses} == {"models.default", "models.composer"}
    assert "composer" in config.models.unasked_roles
    assert "composer" not in config.models.rule_based_roles


def test_installed_plugins_are_listed_and_not_imported(site: Site) -> None:
    site.install(TEMPLATE)
    package = site.folder / "example_plugin" / "__init__.py"
    package.write_text(MARK)
    found = [each for each in list_installed() if each.distribution == "coreeval-example-plugin"]
    assert [(each.group, each.name) for each in found] == [
        ("detectors", "last_word"),
        ("formats", "blocks"),
        ("knowledge", "news_file"),
    ]
    assert find_origin("formats", "blocks").identity == (
        "coreeval-example-plugin==0.1.0 example_plugin.blocks:Blocks"
    )
    assert not (package.parent / "imported").exists()


def test_an_entry_point_may_be_a_module_and_may_name_extras(site: Site, tmp_path: Path) -> None:
    site.install(TEMPLATE)
    points = next(site.folder.glob("*.dist-info")) / "entry_points.txt"
    points.write_text("[coreeval.targets]\nechoes = echo_module [more]\n")
    site.write("echo_module", "plugin_api = 1\nasync def answer(request): return request\n")
    use = PluginUse("targets", "echoes")
    assert allow_plugin(use).target == "echo_module:"
    assert load_plugin(use, TargetPlugin).origin.digest


def test_an_entry_point_whose_code_no_package_has_installed_is_known_by_its_code(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an editable install, or if another module of that name comes first on the path."""
    site.install(TEMPLATE)
    record = next(site.folder.glob("*.dist-info")) / "RECORD"
    record.write_text("__editable__.pth,,\n")
    before = find_origin("formats", "blocks")
    assert (before.distribution, before.version, len(before.digest)) == ("", "", 64)
    site.forget()
    with (site.folder / "example_plugin" / "blocks.py").open("a") as code:
        code.write("\n")
    assert find_origin("formats", "blocks").digest != before.digest


def test_a_module_without_a_package_is_known_by_its_code(site: Site) -> None:
    site.write("echo_module", MARK + ECHO)
    before = find_origin("targets", USE.name)
    assert (before.distribution, len(before.digest)) == ("", 64)
    site.write("echo_module", MARK + ECHO + "\n")
    assert find_origin("targets", USE.name).digest != before.digest
    assert not (site.folder / "imported").exists()
    package = site.folder / "echo_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").touch()
    one = find_origin("targets", "echo_package.inner:Echo").digest
    site.forget()
    (package / "inner" / "part.py").touch()
    assert find_origin("targets", "echo_package.inner:Echo").digest != one


@pytest.mark.parametrize("name", ["example_plugin.py", "example_plugin/__init__.py"])
def test_a_module_with_the_name_of_a_package_is_known_by_its_code(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    site.install(TEMPLATE)
    assert find_origin("targets", "example_plugin:Echo").version == "0.1.0"
    site.forget()
    mine = tmp_path / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text(MARK + ECHO)
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    before = find_origin("targets", "example_plugin:Echo")
    assert (before.distribution, len(before.digest)) == ("", 64)
    site.forget()
    mine.write_text(ECHO)
    assert find_origin("targets", "example_plugin:Echo").digest != before.digest


def test_a_package_without_an_init_file_is_known_by_its_version_unless_it_is_extended(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install(TEMPLATE)
    (site.folder / "example_plugin" / "__init__.py").unlink()
    assert find_origin("targets", "example_plugin.blocks:Blocks").version == "0.1.0"
    site.forget()
    (tmp_path / "mine" / "example_plugin").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    assert find_origin("targets", "example_plugin.blocks:Blocks").digest


@pytest.mark.parametrize("way", ["compiled", "library", "link", "hidden"])
def test_every_file_that_an_import_may_run_is_part_of_the_digest(site: Site, way: str) -> None:
    package, elsewhere = site.folder / "echo_package", site.folder / "elsewhere"
    package.mkdir()
    elsewhere.mkdir()
    (package / "__init__.py").touch()
    (package / "loop").symlink_to(package)
    places = {
        "compiled": package / "impl.pyc",
        "library": package / "impl.cpython-311-x86_64-linux-gnu.so",
        "link": elsewhere / "impl.py",
        "hidden": package / "__pycache__" / "impl.py",
    }
    (package / "linked").symlink_to(elsewhere)
    (package / "__pycache__").mkdir()
    before = find_origin("targets", "echo_package:Echo").digest
    site.forget()
    places[way].write_bytes(b"other code")
    assert find_origin("targets", "echo_package:Echo").digest != before


@pytest.mark.parametrize("module", ["echo_module", "echo_package", "echo_space.inner"])
def test_code_in_an_archive_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    archive = tmp_path / "code.zip"
    with ZipFile(archive, "w") as file:
        for name in ("echo_module.py", "echo_package/__init__.py", "echo_space/inner.py"):
            file.writestr(name, ECHO)
        file.writestr("echo_space/", "")  # some versions of Python need it to find the module
    (site.folder / "echo_space").mkdir()  # the rest of this module is in the archive
    monkeypatch.syspath_prepend(str(archive))
    with pytest.raises(PluginError, match="neither in a file nor in a folder") as told:
        allow_plugin(PluginUse("targets", f"{module}:Echo"))
    assert told.value.where.startswith(str(archive))
    assert "unpack it into a folder" in told.value.hint


def test_code_in_a_cache_is_never_run(site: Site) -> None:
    site.write("other_module", "1 / 0\n")
    site.write("echo_module", ECHO)
    cache = Path(cache_from_source(str(site.folder / "echo_module.py")))
    before = allow_plugin(USE).digest
    py_compile.compile(
        str(site.folder / "other_module.py"),
        cfile=str(cache),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    assert load_plugin(USE, Stated).origin.digest == before  # and not a division by zero


def test_a_plugin_that_is_not_there_or_twice_there(site: Site, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="no installed package offers a plugin named 'blocks'"):
        find_origin("formats", "blocks")
    with pytest.raises(PluginError, match="there is no module 'nowhere'"):
        find_origin("formats", "nowhere.at_all:Blocks")
    other = tmp_path / "other"
    other.mkdir()
    text = (TEMPLATE / "pyproject.toml").read_text()
    (other / "pyproject.toml").write_text(text.replace("coreeval-example-plugin", "another"))
    for project in (TEMPLATE, other):
        site.install(project)
    with pytest.raises(PluginError, match=r"another 0.1.0 and coreeval-example-plugin") as told:
        find_origin("formats", "blocks")
    assert "plugin:example_plugin.blocks:Blocks" in told.value.hint
    with pytest.raises(PluginError) as told:
        find_origin("formats", "block")
    assert "use one of: blocks" in told.value.hint


# -- consent --------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Workspace(tmp_path / "w")


CONFIG = parse_config(
    {**BASE, "models": {"default": "offline", "targets": [f"plugin:{USE.name}"]}},
    where="here",
    base=Path("/"),
)


def test_nothing_runs_before_somebody_agrees(site: Site, workspace: Workspace) -> None:
    site.write("echo_module", MARK + ECHO)
    for work in (
        lambda: permit_plugins(CONFIG, workspace),
        lambda: permit_plugins(CONFIG, None),
        lambda: load_plugin(USE, Answers),
    ):
        with pytest.raises(UnallowedPlugin) as told:
            work()
        assert (told.value.where, told.value.exit_code) == ("models.targets", 2)
        assert "echo_module:Echo" in told.value.message and "--allow-plugins" in told.value.hint
    assert not (site.folder / "imported").exists()
    assert not workspace.root.exists()


def test_what_was_agreed_to_is_remembered_for_this_code_alone(
    site: Site, workspace: Workspace
) -> None:
    site.write("echo_module", ECHO)
    allow_named_plugins()
    (origin,) = permit_plugins(CONFIG, workspace)
    site.forget()
    assert permit_plugins(CONFIG, workspace) == [origin]
    assert load_plugin(USE, Stated).origin == origin
    site.write("echo_module", ECHO + "\n# changed\n")
    with pytest.raises(UnallowedPlugin):
        permit_plugins(CONFIG, workspace)
    allow_named_plugins()
    permit_plugins(CONFIG, workspace)
    site.forget()
    permit_plugins(CONFIG, workspace)
    kept = json.loads(workspace.trust_file.read_text())["trusted"]
    assert [each["what"][:2] for each in kept] == [["targets", USE.name]]


def test_a_new_version_of_a_package_is_asked_about(site: Site, workspace: Workspace) -> None:
    config = parse_config(
        {**BASE, "dataset": {"format": "plugin:blocks", "path": "."}},
        where="here",
        base=Path("/"),
    )
    site.install(TEMPLATE)
    allow_named_plugins()
    permit_plugins(config, workspace)
    site.install(TEMPLATE)
    permit_plugins(config, workspace)
    site.install(TEMPLATE, version="0.2.0")
    with pytest.raises(UnallowedPlugin, match=r"coreeval-example-plugin 0\.2\.0"):
        permit_plugins(config, workspace)


def test_a_record_that_came_with_a_config_agrees_for_nobody(
    site: Site, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write("echo_module", ECHO)
    allow_named_plugins()
    permit_plugins(CONFIG, workspace)
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    site.forget()
    with pytest.raises(UnallowedPlugin):
        permit_plugins(CONFIG, workspace)


def test_a_script_agrees_to_one_plugin(site: Site, workspace: Workspace) -> None:
    site.write("echo_module", ECHO)
    origin = allow_plugin(USE)
    assert permit_plugins(CONFIG, workspace) == [origin]
    with pytest.raises(UnallowedPlugin):
        load_plugin(PluginUse("exports", USE.name), Stated)


# -- protocols ------------------------------------------------------------------------------------

FITS = """class Fits:
    plugin_api = 1
    name = "fits"
    def score(self, inputs, answers): return 1
    async def find(self, query): return query
"""


def _load(site: Site, code: str) -> Plugin:
    site.write("fitting", code)
    use = PluginUse("detectors", "fitting:Fits", "here")
    allow_plugin(use)
    return load_plugin(use, Answers)


@pytest.mark.parametrize(
    "code",
    [
        FITS,
        FITS.replace("(self, inputs, answers)", "(self, inputs, answers, more=1)"),
        FITS.replace("(self, inputs, answers)", "(self, *all)"),
        FITS.replace('    name = "fits"\n', "    def __init__(self): self.name = 'fits'\n"),
        f"{FITS}\nFits = Fits()\n",
    ],
)
def test_a_plugin_that_fits(site: Site, code: str) -> None:
    plugin = _load(site, code)
    assert plugin.origin.target == "fitting:Fits"
    assert plugin.read_text("name") == "fits"
    assert plugin.read_text("title", "none") == "none"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    plugin_api = 1\n", "", "does not set plugin_api; this CoreEval supports version 1"),
        ("plugin_api = 1", "plugin_api = 2", "implements version 2 of the protocol for detectors"),
        ("plugin_api = 1", "plugin_api = True", "implements version True"),
        ('    name = "fits"\n', "", "it lacks name"),
        ("def score", "def scores", "it lacks the method score"),
        ("def score(self, inputs, answers): return 1", "score = 1", "score is not a method"),
        ("(self, inputs, answers)", "(self, inputs)", r"score must take \(inputs, answers\)"),
        ("async def find", "def find", "find must be a coroutine: async def find"),
        ('    name = "fits"', "    def __init__(self, key): ...", "cannot be created without"),
        ("class Fits", "class Other", "the module fitting has no 'Fits'"),
        ("class Fits", "import not_there\nclass Fits", "it cannot be imported: No module named"),
        ("class Fits", "1 / 0\nclass Fits", "it cannot be imported: division by zero"),
        ("class Fits", "exit(0)\nclass Fits", r"cannot be imported: it called sys.exit\(0\)"),
        (
            '    name = "fits"',
            "    def __init__(self): exit(0)",
            r"arguments: it called sys.exit\(0\)",
        ),
    ],
)
def test_a_plugin_that_does_not_fit(site: Site, old: str, new: str, told: str) -> None:
    with pytest.raises(PluginError, match=told) as error:
        _load(site, FITS.replace(old, new))
    assert "fitting:Fits" in error.value.where and "coreeval docs plugins" in error.value.hint


def test_a_class_that_is_no_plugin_is_never_made(site: Site) -> None:
    site.write("fitting", f"class Fits:\n    def __init__(self): {MARK.splitlines()[1]}\n")
    with pytest.raises(PluginError, match="does not set plugin_api"):
        _load(site, f"{MARK.splitlines()[0]}\nclass Fits:\n    def __init__(self): 1 / 0\n")


def test_an_error_in_a_plugin_names_it(site: Site) -> None:
    plugin = _load(site, FITS)
    failed = r"fitting:Fits failed in score: ZeroDivisionError: never\ufffd mind"
    with pytest.raises(PluginFailed, match=failed), plugin.guard("score"):
        raise ZeroDivisionError("never\x1b mind")
    with pytest.raises(PluginFailed, match="failed in score: SystemExit: 0"), plugin.guard("score"):
        raise SystemExit(0)
    with pytest.raises(PluginError, match="as it is"), plugin.guard("score"):
        raise PluginError("as it is")
    with pytest.raises(OSError, match="passing"), plugin.guard("score", but=(OSError,)):
        raise OSError("passing")
    plugin.loaded.title = 3  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match="title must be a text, not 3"):
        plugin.read_text("title")
