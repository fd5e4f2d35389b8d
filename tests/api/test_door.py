"""The door: which names there are, what they cost, and that they are typed."""

import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from pydantic import JsonValue

import coreeval
from coreeval.errors import ConfigError, UsageError
from tests.cli.kit import CONFIG

OLD = (
    "RunSummary", "evaluate", "load_originals", "make_release", "read_release", "refresh", "resume",
    "retry", "verify",
)  # fmt: skip
STDLIB = sys.stdlib_module_names
NAMES = {
    "pandas": import_module("pandas"),
    "pyarrow": import_module("pyarrow"),
    "JsonValue": JsonValue,
}
"""What annotations name that is imported only for type checkers."""
FUNCTIONS = [name for name in coreeval.__all__ if name[0].islower()]
CLASSES = [name for name in coreeval.__all__ if name[0].isupper()]


def test_all_names_are_completed() -> None:
    assert dir(coreeval) == sorted(coreeval.__all__)
    assert set(OLD) <= set(dir(coreeval))
    for name in coreeval.__all__:
        assert getattr(coreeval, name) is not None


def test_the_version_is_that_of_the_package() -> None:
    assert coreeval.__version__ == version("coreeval")


def test_other_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'refesh'"):
        _ = coreeval.refesh


def test_every_name_has_a_home_of_its_own() -> None:
    assert set(coreeval._HOMES) == set(coreeval.__all__) - {"__version__"}


def test_importing_is_cheap() -> None:
    """It loads no other module of ours, and none of others, until a name is used."""
    code = (
        "import sys; before = set(sys.modules); import coreeval; dir(coreeval);"
        " print(*sorted(set(sys.modules) - before))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in said.stdout.split() if name.split(".")[0] not in STDLIB} == {
        "coreeval"
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_types_and_say_what_they_do(name: str) -> None:
    function = getattr(coreeval, name)
    hints = get_type_hints(function)
    assert set(inspect.signature(function).parameters) | {"return"} == set(hints)
    assert not list(find_any(hints.values()))
    assert "Raises:" in inspect.getdoc(function) or name == "arefresh"  # type: ignore[operator]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_can_be_sent_to_another_process(name: str) -> None:
    function = getattr(coreeval, name)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("name", CLASSES)
def test_what_functions_return_is_typed_too(name: str) -> None:
    kind = getattr(coreeval, name)
    assert inspect.getdoc(kind)
    for member, value in inspect.getmembers(kind):
        function = value.fget if isinstance(value, property) else value
        public = inspect.isfunction(function) and function.__module__.startswith("coreeval.api")
        if public and not member.startswith("_"):
            assert not list(find_any(get_type_hints(function, localns=NAMES).values())), member
            assert inspect.getdoc(function), member


PCR = {"pairs": [], "metric": "x", "consistency": "exact"}


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("load_release", {"release": None}, "must be .* or Release, not NoneType"),
        ("verify", {"release": b"x"}, "must be .*, not bytes"),
        ("read_cassette", {"file": []}, "file must be a path or a text, not list"),
        ("refresh", {"config": "c", "limit": 2.5}, "limit must be a whole number or None"),
        ("refresh", {"config": "c", "limit": True}, "limit must be .*, not bool"),
        ("tag_run", {"run": "r", "add": "abc"}, "add must be a list, not str"),
        ("make_release", {"run": "r", "version": 1}, "version must be a text, not int"),
        ("pcr", PCR | {"references": "x"}, "references must be a mapping or None, not str"),
        ("pcr", PCR | {"exchangeable_splits": "no"}, "must be True or False, not str"),
        ("numleak", {"answers": [], "values": {}, "tolerances": 0.5}, "must be a list, not float"),
        ("validate", {"config": "a\0b"}, "config contains a NUL character"),
        ("load_config", {"config": Path("\ud800")}, "config contains half a character"),
        ("overlap", {"a": "a\0b"}, "contains a NUL character"),
        ("refresh", {"config": "c", "ids": ["a", "\ud800"]}, r"ids\[1\] contains half a character"),
        ("overlap", {"a": ["a\0b"]}, r"a\[0\] contains a NUL character"),
        ("estimate", {"config": "c", "ids": [1]}, r"ids\[0\] must be a text, not int"),
        ("estimate", {"config": "c", "ids": np.array([1])}, r"ids\[0\] must be a text, not int64"),
        ("validate", {"config": "c", "overrides": iter(["a=1", 5])}, r"overrides\[1\] must be a"),
        ("run_due", {"configs": ["a", None]}, r"configs\[1\] must be a path or a text, not None"),
        ("numleak", {"answers": [], "values": {}, "tolerances": ["1"]}, r"\[0\] must be a number"),
    ],
)
def test_a_wrong_argument_is_one_message(name: str, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as told:
        getattr(coreeval, name)(**given)
    assert told.value.where == f"coreeval.{name}()"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("delete_calls", {"older_than": -1}),
        ("delete_calls", {"older_than": 10**9}),
        ("export_sheets", {"source": ".", "out": "o", "raters": 0}),
        ("export_sheets", {"source": ".", "out": "o", "samples": 0}),
    ],
)
def test_numbers_are_bounded_as_on_the_command_line(name: str, given: dict[str, Any]) -> None:
    said = "is not a valid (older_than|raters|samples)"
    with pytest.raises(UsageError, match=said):
        getattr(coreeval, name)(**given)


async def test_a_wrong_argument_of_a_coroutine_is_one_message() -> None:
    assert inspect.iscoroutinefunction(coreeval.arefresh)
    with pytest.raises(UsageError, match="limit must be a whole number"):
        await coreeval.arefresh("c.yaml", limit="2")  # type: ignore[arg-type]


def test_numbers_of_numpy_and_names_of_files_that_are_not_utf8_pass(tmp_path: Path) -> None:
    place = os.fsdecode(bytes(tmp_path) + b"/\xe9.yaml")
    with pytest.raises(ConfigError, match="config file not found"):
        coreeval.refresh(place, limit=np.int64(2), ids=("a",))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="config file not found"):
        coreeval.refresh(place, budget_usd=Decimal("0.50"))  # type: ignore[arg-type]
    changed = coreeval.load_config(CONFIG, overrides=iter(["run.seed=5"]))  # type: ignore[arg-type]
    assert changed.run.seed == 5
    with pytest.raises(TypeError, match=r"refresh\(\) missing 1 required positional argument"):
        coreeval.refresh()  # type: ignore[call-arg]


def find_any(hints: Iterable[object]) -> Iterator[object]:
    """Yield each Any inside types; those of a callable's arguments stand in a list."""
    for hint in hints:
        if hint is Any:
            yield hint
        yield from find_any(hint if isinstance(hint, list) else get_args(hint))


def test_the_search_for_any_finds_one() -> None:
    assert list(find_any(get_args(dict[str, list[Any] | None])))
    assert list(find_any(get_args(dict[str, Callable[[Any], None]])))
    assert not list(find_any(get_args(dict[str, list[int] | None])))
