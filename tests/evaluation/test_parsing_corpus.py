"""Answers in many shapes, each with what it says: none is read wrong, few are lost.

Every line of `parsing_corpus/*.jsonl` is one shape: a question, a response written by hand, and
what `expected` says it tells (null: nothing may be read, `why` says what the shape is).
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from coreeval.evaluation.answer_parsers import LabelShape, read_choice
from coreeval.evaluation.numleak.leak.signals import read_scores
from coreeval.evaluation.numleak.parsing import read_points
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.series.catalogue import find_definition, read_series
from coreeval.models.answers import InvalidAnswer
from coreeval.tasks import load_task

FOLDER: Final = Path(__file__).with_name("parsing_corpus")
LOST: Final = 0.02
"""Largest share of the answers that say something which may go unread."""
Shape = Mapping[str, Any]


class Found(NamedTuple):
    """What was read of one shape; `status` where the reader gives one."""

    said: Any
    status: str | None = None


def reply_of(shape: Shape, **changes: str | int) -> Reply:
    kinds = {"choice_of_dates": "forced_choice", "score": "sentiment"}
    return Reply(
        model="m",
        series=shape["series"],
        date=shape["date"],
        variant=kinds.get(shape["kind"], shape["kind"]),
        response=shape["response"],
        kind="truncated" if shape.get("cut") else "answered",
        **changes,
    )


def value(shape: Shape) -> Found:
    definition = find_definition(shape["series"], base=Path())
    asked = Period.parse(shape["date"], definition.frequency)
    series = Series(definition=definition, values={asked: 1.0})
    (point,) = read_points([reply_of(shape)], series, None).points
    return Found(point.estimate, point.status)


def chosen_date(shape: Shape) -> Found:
    definition = find_definition(shape["series"], base=Path())
    dates = [Period.parse(shape[key], definition.frequency) for key in ("date", "other_date")]
    series = Series(definition=definition, values=dict(zip(dates, (1.0, 2.0), strict=True)))
    reply = reply_of(shape, other_date=shape["other_date"])
    (choice,) = read_points([reply], series, None).comparisons
    return Found(choice.chosen, choice.status)


def option(shape: Shape) -> Found:
    return Found(read_choice(shape["response"], shape["options"]) or None)


@cache
def label_shape(task: str) -> LabelShape:
    return LabelShape(load_task(task, "wind power" if task == "stance" else None))


def label(shape: Shape) -> Found:
    found = set[str | None]()
    for mend in (False, True):
        try:
            found.add(label_shape(shape["task"]).parse(shape["response"], mend=mend).label)
        except InvalidAnswer:
            found.add(None)
    (said,) = found
    return Found(said)


def continuation(shape: Shape) -> Found:
    definition = find_definition(shape["series"], base=Path())
    series = read_series(definition, shape["file"].encode(), origin="a test")
    reply = reply_of(shape, shown=shape["shown"], wanted=shape["wanted"])
    readings = read_points([reply], series, None)
    assert not readings.bad
    return Found([each.estimate for each in readings.continued])


def score(shape: Shape) -> Found:
    definition = find_definition(shape["series"], base=Path())
    asked = Period.parse(shape["date"], definition.frequency)
    series = Series(definition=definition, values={asked: 1.0})
    (found,) = read_scores([reply_of(shape)], series).scores
    return Found(found.value, found.status)


READERS: Final[Mapping[str, Callable[[Shape], Found]]] = {
    "value": value,
    "description": value,
    "step_by_step": value,
    "choice_of_dates": chosen_date,
    "pair": chosen_date,
    "option": option,
    "label": label,
    "continuation": continuation,
    "score": score,
}


def shapes() -> list[Shape]:
    lines = (line for path in sorted(FOLDER.glob("*.jsonl"))
             for line in path.read_text("utf-8").splitlines())  # fmt: skip
    return [json.loads(line) for line in lines]


def parts(said: object) -> list[object]:
    return said if isinstance(said, list) else [said]


def compared(shape: Shape) -> str:
    """Return whether a shape is read `right`, is `lost`, or `wrong`: read as what it is not."""
    pairs = list(
        zip(parts(shape["expected"]), parts(READERS[shape["kind"]](shape).said), strict=True)
    )
    if all(wanted == said for wanted, said in pairs):
        return "right"
    return "wrong" if any(said is not None and said != wanted for wanted, said in pairs) else "lost"


def told(shape: Shape) -> str:
    found = READERS[shape["kind"]](shape)
    return (
        f"{shape['kind']}: {shape['response']!r} ({shape['why']}): {found} for {shape['expected']}"
    )


def test_of_all_shapes_none_is_read_wrong_and_few_are_lost() -> None:
    every = shapes()
    assert len(every) >= 300
    by_outcome: dict[str, list[Shape]] = {"right": [], "lost": [], "wrong": []}
    for shape in every:
        by_outcome[compared(shape)].append(shape)
    for outcome in ("lost", "wrong"):
        for shape in by_outcome[outcome]:
            sys.stdout.write(f"{outcome} {told(shape)}\n")
    telling = [shape for shape in every if any(one is not None for one in parts(shape["expected"]))]
    assert not by_outcome["wrong"]
    assert len(by_outcome["lost"]) <= LOST * len(telling)


@pytest.mark.parametrize("shape", [one for one in shapes() if "status" in one],
                         ids=lambda shape: shape["why"])  # fmt: skip
def test_an_answer_that_says_no_value_ends_as_what_it_is(shape: Shape) -> None:
    assert READERS[shape["kind"]](shape).status == shape["status"]


def test_no_two_shapes_are_the_same() -> None:
    keys = [
        tuple(one.get(key) for key in ("kind", "response", "task", "series", "date"))
        for one in shapes()
    ]
    assert len(set(keys)) == len(keys)
