"""Numbers of any size on the command line: for each option of each command."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from coreeval.cli.app import COMMANDS, build_app
from tests.cli.kit import Shell

HUGE = 10**30


def list_parameters(
    command: Any,  # noqa: ANN401 - typer hides its class
    kinds: tuple[object, ...],
    path: tuple[str, ...] = (),
) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that takes such a number, with the name of the option."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from list_parameters(inner, kinds, (*path, name))
    for parameter in command.params:
        if parameter.type_descriptor.annotation in kinds:
            option = parameter.param_type_name == "option"
            yield (*path, parameter.opts[0] if option else "")


PROGRAM = typer.main.get_command(build_app(COMMANDS))
INTEGERS = list(list_parameters(PROGRAM, (int, list[int])))
FLOATS = list(list_parameters(PROGRAM, (float, list[float])))


def test_the_sweep_finds_options_of_groups_too() -> None:
    assert len(INTEGERS) > 15
    assert {("gdelt", "sync", "--days"), ("trace", "--limit")} <= set(INTEGERS)
    assert {("detect", "pcr", "--alpha"), ("refresh", "--budget")} <= set(FLOATS)


@pytest.mark.parametrize("number", [HUGE, -HUGE])
@pytest.mark.parametrize("words", INTEGERS, ids=" ".join)
def test_an_integer_that_nothing_can_hold_is_a_usage_error(
    shell: Shell, words: tuple[str, ...], number: int
) -> None:
    *path, option = words
    said = shell(*path, *([option] if option else ["--"]), str(number))
    assert said.code == 2
    bound = "too large: it must be at most" if number > 0 else "too small: it must be at least"
    assert f"Invalid value for '{option}" in said.err
    assert f" is {bound} " in said.err and "Input should" not in said.err


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
@pytest.mark.parametrize("words", FLOATS, ids=" ".join)
def test_a_number_that_is_none_is_a_usage_error(
    shell: Shell, words: tuple[str, ...], number: str
) -> None:
    *path, option = words
    said = shell(*path, option, number)
    assert said.code == 2
    assert f"Invalid value for '{option}" in said.err
