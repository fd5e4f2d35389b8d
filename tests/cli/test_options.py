"""Numbers of any size on the command line."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from coreeval.cli.app import COMMANDS, build_app
from tests.cli.kit import Shell

HUGE = 10**30


def integer_parameters(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - typer hides the class
    """Yield the words of each command that takes an integer, with the name of the option."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from integer_parameters(inner, (*path, name))
    for parameter in command.params:
        if parameter.type_descriptor.annotation in (int, list[int]):
            option = parameter.param_type_name == "option"
            yield (*path, parameter.opts[0] if option else "")


PARAMETERS = list(integer_parameters(typer.main.get_command(build_app(COMMANDS))))


def test_the_sweep_finds_options_of_groups_too() -> None:
    assert len(PARAMETERS) > 15
    assert {("gdelt", "sync", "--days"), ("trace", "--limit")} <= set(PARAMETERS)


@pytest.mark.parametrize("number", [HUGE, -HUGE])
@pytest.mark.parametrize("words", PARAMETERS, ids=" ".join)
def test_an_integer_that_nothing_can_hold_is_a_usage_error(
    shell: Shell, words: tuple[str, ...], number: int
) -> None:
    *path, option = words
    said = shell(*path, *([option] if option else ["--"]), str(number))
    assert said.code == 2
    side = "less" if number > 0 else "greater"
    assert f"Invalid value for '{option}" in said.err
    assert f"Input should be {side} than or equal to " in said.err
