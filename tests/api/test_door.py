"""The door: which names there are, what they cost, and that they are typed."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import JsonValue

import coreeval

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
