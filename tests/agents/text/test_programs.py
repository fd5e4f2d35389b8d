"""Programs in FinQA's notation: bounded, linear, and with the results of FinQA's own evaluation."""

import json
from pathlib import Path

import pytest

from coreeval.agents.text import programs
from coreeval.agents.text.programs import (
    LONGEST,
    ProgramError,
    execute_program,
    find_foreign_numbers,
)
from coreeval.evaluation.benchmarks.finqa import read_report

RECORDS = Path(__file__).parents[4] / "shared" / "data" / "finqa_raw" / "finqa_sample20.json"
TABLE = (
    "Ships\n | 2025 | 2026\nFerries | $ 10 | 14 (a)\nCost (net) | $(1,300) | -2%\nNames | a | b\n"
    f"Large | {'9' * 308} | {'9' * 308}\nHuge | {'9' * 400} | ({'9' * 400})"
)


@pytest.mark.skipif(not RECORDS.exists(), reason="the development data is not here")
def test_the_results_are_those_that_finqa_states() -> None:
    records = json.loads(RECORDS.read_text())
    assert len(records) == 20
    for record in records:
        context, program, due = (
            read_report(record),
            record["qa"]["program"],
            record["qa"]["exe_ans"],
        )
        assert context is not None
        result = execute_program(program, context)
        said = ("yes" if result else "no") if isinstance(result, bool) else round(result, 5)
        assert said == due
        assert find_foreign_numbers(program, f"{context} {record['qa']['question']}") == []


@pytest.mark.parametrize(
    ("program", "result"),
    [
        ("add(1,300, 2)", 1302),
        ("subtract(-2, .5)", -2.5),
        ("divide(10%, const_m1)", -0.1),
        ("exp(2, const_10)", 1024),
        ("multiply(const_1000, #0)", None),
        ("add(1, 2), multiply(#0, #0)", 9),
        ("add(const_1000000000, const_99)", 1_000_000_099),
        ("greater(2, 1)", True),
        ("table_sum(ferries, none)", 24),
        ("table_average(FERRIES, none)", 12),
        ("table_max(cost (net), none)", -0.02),
        ("table_min(cost (net), none), add(#0, 1)", -1299),
    ],
)
def test_each_operation(program: str, result: float | bool | None) -> None:
    if result is None:
        with pytest.raises(ProgramError, match="no number of an earlier step"):
            execute_program(program, TABLE)
    else:
        assert execute_program(program, TABLE) == pytest.approx(result)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("", "no step"),
        ("add(1)", "no step"),
        ("power(1, 2)", "no step"),
        ("add(1, 2); add(3, 4)", "neither a number"),
        ("add(one, 2)", "neither a number"),
        ("add(1, #0)", "no number of an earlier step"),
        ("greater(1, 2), add(#0, 1)", "no number of an earlier step"),
        ("divide(1, 0)", "no finite result"),
        ("exp(10, 1000)", "no finite result"),
        ("exp(-1, .5)", "no finite result"),
        ("exp(2, 10), table_max(huge, none)", "no finite result"),
        ("table_sum(large, none)", "no finite result"),
        ("table_average(large, none)", "no finite result"),
        ("table_sum(huge, none)", "no finite result"),
        (
            ", ".join(["add(const_1, 99)", *(f"multiply(#{n}, #{n})" for n in range(9))]),
            "no finite",
        ),
        (f"greater({'9' * 400}, 1)", "too large"),
        ("multiply(const_5321, 1)", "is no constant"),
        ("add(const_200, 1)", "is no constant"),
        ("add(1, const_m9000000000)", "is no constant"),
        ("table_sum(names, none)", "no table row"),
        ("table_sum(trains, none)", "no table row"),
        (", ".join(["add(1, 2)"] * 21), "more than 20 steps"),
        ("add(1, 2)" * LONGEST, "more than 2,000 characters"),
    ],
)
def test_what_is_no_program_says_why(program: str, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        execute_program(program, TABLE)


@pytest.mark.parametrize(
    ("program", "context", "foreign"),
    [
        ("add(1300, 2)", "It cost 1,300 and 2.", []),
        ("add(1.3, -2%)", "1,3 Millionen und 2 %", []),
        ("add(52.4, 3), divide(#0, const_100)", "$52.4 million", ["3"]),
    ],
)
def test_numbers_stand_in_the_context(program: str, context: str, foreign: list[str]) -> None:
    assert find_foreign_numbers(program, context) == foreign


def test_a_row_is_read_once_however_many_steps_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def read_row(context: str, name: str) -> list[float]:
        read.append(name)
        return [1.0]

    monkeypatch.setattr(programs, "_read_row", read_row)
    assert execute_program(", ".join(["table_sum(ferries, none)"] * 20), TABLE) == 1
    assert read == ["ferries"]
