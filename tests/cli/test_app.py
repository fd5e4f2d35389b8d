"""How the program starts: what a command imports, and what the garbage collector skips."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

from coreeval.cli import app as program
from coreeval.cli import main
from coreeval.cli.app import pause_garbage_collection
from tests.cli.kit import Shell

PAUSE = "from coreeval.cli.app import pause_garbage_collection as pause\nwith pause():\n"
UNUSED = {
    "coreeval.agents.offline",
    "duckdb",
    "jinja2",
    "openai",
    "opentelemetry.exporter.otlp.proto.http",
    "pyarrow",
    "scipy",
    "spacy",
    "sqlalchemy.dialects.postgresql",
}
"""For the end of a run, for roles played by rules, for models and databases of another kind, for
spans that nobody asked for."""


def printed(code: str) -> list[str]:
    """Return the words that a Python of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_what_is_loaded_is_not_looked_through_again() -> None:
    code = f"import gc; {PAUSE}"
    code += " print(gc.isenabled()); import coreeval.schema\n"
    code += "print(gc.isenabled(), gc.get_freeze_count() > len(vars(coreeval.schema)))"
    assert printed(code) == ["False", "True", "True"]


def test_what_is_loaded_is_taken_down_in_the_end() -> None:
    """What is not collected then, extension modules report as leaks."""
    code = f"{PAUSE} import duckdb"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_nothing_is_kept_for_good_where_nothing_was_loaded() -> None:
    before = gc.get_freeze_count()
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() == before


def test_garbage_is_looked_for_again_after_an_import_that_failed() -> None:
    with pytest.raises(ImportError), pause_garbage_collection():
        raise ImportError
    assert gc.isenabled()


def test_a_run_loads_only_what_it_begins_with() -> None:
    assert UNUSED.isdisjoint(printed("import sys, coreeval.graph.run; print(*sys.modules)"))


HEAVY = (
    "langgraph",
    "langchain_core",
    "sqlalchemy",
    "numpy",
    "aiohttp",
    "openai",
    "duckdb",
    "pyarrow",
)
COMMANDS = ("demo", "init", "validate", "refresh", "resume", "retry", "status", "trace", "view")


def test_help_imports_nothing_heavy() -> None:
    lines = [[], ["--help"], ["refresh", "--help"], ["trace", "--help"]]
    code = "import sys; from coreeval.cli import main\n"
    code += f"for line in {lines}: main(line)\n"
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: coreeval trace" in done.stdout
    loaded = done.stdout.splitlines()[-1].split()
    assert "coreeval.cli.output" in loaded
    assert set(HEAVY).isdisjoint(loaded)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(shell: Shell, command: str) -> None:
    said = shell(command, "--help")
    assert said.code == 0
    assert f"Usage: coreeval {command}" in said.out
    assert "--json" in said.out
    assert said.err == ""


def test_the_list_of_commands_is_not_cut_off(shell: Shell) -> None:
    said = shell("--help")
    assert said.code == 0
    assert all(f"\n  {command} " in said.out for command in COMMANDS)
    assert "..." not in said.out.partition("Commands:")[2]


def test_no_command_is_answered_with_help(shell: Shell) -> None:
    said = shell()
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("Usage: coreeval")


def test_version(shell: Shell) -> None:
    said = shell("--version")
    assert said.code == 0
    assert said.out.startswith("coreeval 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refesh", "x.yaml"], "Did you mean 'refresh', 'release'?"),
        (["refresh", "x.yaml", "--limt", "3"], "--limit"),
        (["refresh"], "CONFIG"),
        (["refresh", "x.yaml", "--limit", "0"], "--limit"),
        (["refresh", "x.yaml", "--limit", "few"], "--limit"),
        (["refresh", "x.yaml", "--run-dir", "a-file"], "--run-dir"),
        (["status", "a-file"], "is a file"),
        (["init", "a-file"], "is a file"),
        (["resume", ".", "--keep", "--anew"], "--keep and --anew"),
        (["trace", ".", "id", "--outcome", "failed"], "--outcome"),
        (["detect", "recitation", ".", "--probe", "quizz"], "unknown probe 'quizz'"),
    ],
)
def test_a_wrong_command_line(shell: Shell, arguments: list[str], message: str) -> None:
    shell.write("a-file", "")
    said = shell(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert message in said.err
    as_json = shell(*arguments, "--json")
    assert (as_json.code, as_json.err) == (2, "")
    assert as_json.error["kind"] == "usage"
    assert message in as_json.error["message"]


@pytest.mark.parametrize("command", ["status", "resume", "retry", "trace"])
def test_a_folder_that_is_no_run(shell: Shell, command: str) -> None:
    said = shell(command, "nowhere", "--json")
    assert said.code == 2
    assert said.error["kind"] == "run_state"
    assert not (shell.folder / "nowhere").exists()


def test_a_folder_that_cannot_be_written(shell: Shell) -> None:
    shell.write("a-file", "")
    said = shell("init", "a-file/inner", "--json")
    assert (said.code, said.error["kind"]) == (1, "run")
    assert said.error["where"] == "a-file/inner"


def test_init_never_overwrites(shell: Shell) -> None:
    first = shell("init", "new", "--json")
    path = shell.folder / "new" / "coreeval.yaml"
    assert Path(first.document["config"]) == path.relative_to(shell.folder)
    path.write_text("mine", encoding="utf-8")
    again = shell("init", "new")
    assert again.code == 2
    assert path.read_text(encoding="utf-8") == "mine"


def test_init_writes_through_no_link(shell: Shell) -> None:
    (shell.folder / "coreeval.yaml").symlink_to("elsewhere.yaml")
    said = shell("init", ".")
    assert said.code == 2
    assert "this folder already has a config" in said.err
    assert not (shell.folder / "elsewhere.yaml").exists()


def test_a_traceback_only_with_debug(shell: Shell) -> None:
    assert "Traceback" not in shell("validate", "gone.yaml").err
    said = shell("validate", "gone.yaml", "--debug", "--json")
    assert said.code == 2
    assert "Traceback" in said.err
    assert said.error["kind"] == "config"


def test_a_fault_of_ours_is_one_message_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(program, "app", broken)
    said = shell("status", "run")
    assert said.code == 1
    assert "Traceback" not in said.err
    assert "ZeroDivisionError: by nought" in said.err
    assert "test_app.py, line" in said.err
    assert "ZeroDivisionError" in shell("status", "run", "--json").error["message"]


def test_ctrl_c_in_a_command_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coreeval.runs.status.read_status", stopped)
    assert shell("status", ".").err == "error: stopped by Ctrl-C\n"
    said = shell("status", ".", "--json")
    assert (said.code, said.error["kind"]) == (130, "interrupted")


IMPORTING = """
import sys
from coreeval.__main__ import run

class Stop:
    def find_spec(self, name, path, target=None):
        if name == "coreeval.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
run()
"""


def test_ctrl_c_while_modules_are_imported_is_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "error: stopped by Ctrl-C\n")


def test_ctrl_c_before_the_run_has_begun(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "app", stopped)
    said = shell("refresh", "x.yaml", "--json")
    assert (said.code, said.error["kind"]) == (130, "interrupted")


def test_the_installed_program_says_the_same() -> None:
    script = Path(sys.executable).parent / "coreeval"
    done = subprocess.run([script, "status", "/nowhere", "--json"], capture_output=True, text=True)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "run_state"
    assert done.stderr == ""
    assert main(["status", "/nowhere"]) == 2


ENDING = """
import atexit, sys, weakref
from coreeval.__main__ import run

class Last:
    pass

kept = Last()
weakref.finalize(kept, print, "tidied")
atexit.register(print, "registered")
sys.argv = ["coreeval", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(("arguments", "code"), [(("--version",), 0), (("nonsense",), 2)])
def test_a_process_ends_with_its_code_and_all_that_is_registered(
    arguments: tuple[str, ...], code: int
) -> None:
    """It leaves its objects as they are, which is for nobody to see."""
    done = subprocess.run(
        [sys.executable, "-c", ENDING, *arguments], capture_output=True, text=True
    )
    assert done.returncode == code
    assert done.stdout.endswith("registered\ntidied\n")
    assert ("No such command" in done.stderr) == (code == 2)
