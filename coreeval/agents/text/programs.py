"""The calculation behind a numeric answer, in FinQA's notation, executed step by step.

`divide(9413, 20.01), divide(#0, const_100)` has two steps, each an operation with two arguments: a
number, `const_NUMBER`, or `#STEP` for the result of an earlier step. `table_max(ROW, none)` and
similar operations use the numbers of a row of the context's table, whose cells are separated by ` |
`. The semantics are those of FinQA's evaluation (Chen et al. 2021): 23.6% is 0.236, and the result
of `greater` is yes or no.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from statistics import fmean
from typing import Final

Step = tuple[str, str, str]
"""An operation and its two arguments, as written."""
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "add": lambda one, other: one + other,
    "subtract": lambda one, other: one - other,
    "multiply": lambda one, other: one * other,
    "divide": lambda one, other: one / other,
    "exp": math.pow,
}
_OF_ROWS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "table_sum": math.fsum,
    "table_average": fmean,
    "table_max": max,
    "table_min": min,
}
_GREATER: Final = "greater"
_OPERATIONS: Final = (*_ARITHMETIC, *_OF_ROWS, _GREATER)
_BETWEEN_STEPS: Final = re.compile(rf",\s*(?=(?:{'|'.join(_OPERATIONS)})\()")
_STEP: Final = re.compile(rf"({'|'.join(_OPERATIONS)})\((.*),([^,]*)\)")
_NUMBER: Final = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)%?")
_CONSTANT: Final = re.compile(r"const_(m?)(\d{1,10})")
_RESULT: Final = re.compile(r"#(\d{1,2})")
_CELL: Final = re.compile(r"\(?[-\u2212]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)\)?%?")
_CELLS: Final = " | "
MOST_STEPS: Final = 20
LONGEST: Final = 2_000
"""The most characters of a program (own choice: FinQA's longest has 192)."""
_LARGEST_CONSTANT: Final = 100
"""The largest whole number that may be any constant; larger constants must be powers of ten, since
a figure of the report is not a constant (own choice)."""


class ProgramError(ValueError):
    """The reason that a program has no result, in words for its author."""


def parse_program(program: str) -> list[Step]:
    """Return the steps of a program.

    Raises:
        ProgramError: it is not a program, or is too long.
    """
    if len(program) > LONGEST:
        raise ProgramError(f"the program has more than {LONGEST:,} characters")
    parts = _BETWEEN_STEPS.split(program.strip())
    if len(parts) > MOST_STEPS:
        raise ProgramError(f"the program has more than {MOST_STEPS} steps")
    found = [_STEP.fullmatch(part.strip()) for part in parts]
    for part, step in zip(parts, found, strict=True):
        if step is None:
            raise ProgramError(f"{part[:80]!r} is no step: operation(first, second)")
    return [(step[1], step[2].strip(), step[3].strip()) for step in found if step]


def list_program_numbers(program: str) -> list[str]:
    """Return the numbers that a program takes from its context, as written.

    Raises:
        ProgramError: it is not a program.
    """
    steps = (step for step in parse_program(program) if step[0] not in _OF_ROWS)
    return [each for step in steps for each in step[1:] if _NUMBER.fullmatch(each)]


def execute_program(program: str, context: str) -> float | bool:
    """Return the result of a program: a finite number, or whether one number is greater.

    Args:
        program: The program.
        context: The text with the table whose rows the program may name.

    Raises:
        ProgramError: it is not a program, names a missing row or number, or cannot be computed.
    """
    results = list[float | bool]()
    read_row = cache(partial(_read_row, context))
    for operation, one, other in parse_program(program):
        if operation in _OF_ROWS:
            compute = partial(_OF_ROWS[operation], read_row(one))
        else:
            values = [_read_value(each, results) for each in (one, other)]
            if operation == _GREATER:
                results.append(values[0] > values[1])
                continue
            compute = partial(_ARITHMETIC[operation], *values)
        try:
            value = compute()
        except (ArithmeticError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ProgramError(f"{operation}({one}, {other}) has no finite result")
        results.append(value)
    return results[-1]


def _read_value(written: str, results: Sequence[float | bool]) -> float:
    if earlier := _RESULT.fullmatch(written):
        place = int(earlier[1])
        if place >= len(results) or isinstance(results[place], bool):
            raise ProgramError(f"{written} is no number of an earlier step")
        return results[place]
    if constant := _CONSTANT.fullmatch(written):
        value = int(constant[2])
        if value > _LARGEST_CONSTANT and str(value).rstrip("0") != "1":
            raise ProgramError(f"{written} is no constant: up to 100, or a power of ten")
        return -float(value) if constant[1] else float(value)
    if _NUMBER.fullmatch(written):
        number = _read_number(written)
        if not math.isfinite(number):
            raise ProgramError(f"the number {written[:80]} is too large")
        return number
    raise ProgramError(f"{written[:80]!r} is neither a number nor const_NUMBER nor #STEP")


def _read_number(written: str) -> float:
    value = float(written.rstrip("%").replace(",", ""))
    return value / 100 if written.endswith("%") else value


def _read_row(context: str, name: str) -> list[float]:
    """Return the numbers of the first row with a name; other cells are ignored."""
    wanted = _fold(name)
    for line in context.split("\n"):
        first, *cells = line.split(_CELLS)
        if cells and _fold(first) == wanted:
            values = [value for cell in cells if (value := _read_cell(cell)) is not None]
            if values:
                return values
    raise ProgramError(f"the context has no table row {name[:80]!r} with numbers")


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()


def _read_cell(cell: str) -> float | None:
    """Return the number of a cell; in accounts, a number in brackets is negative."""
    plain = "".join(cell.replace("$", " ").split()).replace("\u2212", "-")
    plain, _, _ = plain.partition("(") if not plain.startswith("(") else (plain, "", "")
    if not _CELL.fullmatch(plain):
        return None
    value = _read_number(plain.replace("(", "").replace(")", ""))
    return -abs(value) if plain.startswith("(") else value


_DIGITS: Final = re.compile(r"\d+(?:[.,]\d+)*|\.\d+")


def find_foreign_numbers(program: str, context: str) -> list[str]:
    """Return the numbers of a program that its context lacks, ignoring signs and scales.

    Decimal commas are also recognised: programs are in English notation, but contexts may not be.

    Raises:
        ProgramError: it is not a program.
    """
    stated = set[float]()
    for written in _DIGITS.findall(context):
        stated |= {value for value in map(_read_digits, _list_readings(written)) if value}
    return [
        each
        for each in list_program_numbers(program)
        if (value := _read_digits(each.strip("-%").replace(",", ""))) and value not in stated
    ]


def _list_readings(written: str) -> tuple[str, str]:
    return written.replace(",", ""), written.replace(".", "").replace(",", ".")


def _read_digits(plain: str) -> float | None:
    try:
        return float(plain)
    except ValueError:  # several decimal points
        return None
