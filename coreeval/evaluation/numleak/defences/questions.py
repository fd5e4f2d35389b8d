"""Ordinary questions about what a series is about: a defence should leave them answered."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Final, Literal, get_args

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from coreeval.config.user_files import YamlError, parse_yaml, read_text
from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.periods import Frequency
from coreeval.evaluation.numleak.series import Series
from coreeval.schema import Text, Value

Category = Literal["conceptual", "history", "adjacent_numeric"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
"""What things mean; what happened, in words; figures that are near to the values of dates but are
none of them (NumLeak, section 5)."""
_STEPS: Final[Mapping[Frequency, str]] = {
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "annual": "year",
}


class UtilityQuestion(Value):
    """One ordinary question, and what a good answer says."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    category: Category
    question: Text
    points: str = ""


_ALIKE: Final = 0.1
"""Halves that differ by less than so many standard deviations are not told apart by words."""
_LIST: Final = TypeAdapter(list[UtilityQuestion])


def questions_on(series: Series, own: Sequence[UtilityQuestion] = ()) -> list[UtilityQuestion]:
    """Return the questions about a series: a user's own, those of its field, or of any series."""
    if own:
        return list(own)
    finance = _built_in("finance")
    if series.definition.family in finance["families"]:
        return _LIST.validate_python(finance["questions"])
    known = _known(series)
    return [
        one.model_copy(
            update={
                "question": Template(one.question).substitute(known),
                "points": Template(one.points).substitute(known),
            }
        )
        for one in _LIST.validate_python(_built_in("generic")["questions"])
    ]


def read_questions(path: Path) -> list[UtilityQuestion]:
    """Read a user's own questions: a YAML list of {id, category, question, points}.

    Raises:
        ConfigError: the file cannot be read, is no such list, or has an id twice.
    """
    try:
        raw = parse_yaml(read_text(path))
        found = _LIST.validate_python(raw)
    except (OSError, UnicodeDecodeError, YamlError) as error:
        raise _unfit(path, f"the questions cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _unfit(path, f"{place}: {first['msg']}" if place else str(first["msg"])) from None
    ids = [one.id for one in found]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice or not found:
        raise _unfit(path, f"the id {twice!r} is there twice" if twice else "it has no question")
    return found


def _unfit(path: Path, problem: str) -> ConfigError:
    hint = f"a list of {{id, category, question, points}}; categories: {', '.join(CATEGORIES)}"
    return ConfigError(problem, where=str(path), hint=hint)


@cache
def _built_in(name: str) -> Any:  # noqa: ANN401 - YAML, checked where it is used
    file = resources.files("coreeval.evaluation.numleak.defences") / f"{name}.yaml"
    return yaml.safe_load(file.read_text("utf-8"))


# -- what is known of a series --------------------------------------------------------------------


def _known(series: Series) -> dict[str, str]:
    definition = series.definition
    return {
        "name": definition.name,
        "quantity": definition.quantity,
        "unit": definition.unit.name,
        "points_name": definition.unit.points_name,
        "step": _STEPS[definition.frequency],
        "first_year": str(series.first.start.year),
        "revisions": definition.revisions or "Whether and why, as it is with such figures.",
        "events": _events(series),
        **dict(_figures([*series.values.values()])),
    }


def _events(series: Series) -> str:
    days = {what: day for day, what in reversed(series.definition.notable.items())}
    known = "; ".join(f"{what} ({day})" for what, day in reversed(days.items()))
    return f"At least two true events, such as: {known}" if known else "At least two true events."


def _figures(values: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield what is roughly true of the values of a series, as texts."""
    import numpy as np

    found = np.array(values)
    steps = np.diff(found) if len(found) > 1 else np.zeros(1)
    early, late = found[: (len(found) + 1) // 2], found[len(found) // 2 :]
    low, high = np.quantile(found, [0.05, 0.95])
    sizes = {
        "average": found.mean(), "low": low, "high": high, "largest": found.max(),
        "smallest": found.min(), "change": np.median(np.abs(steps)),
        "early_average": early.mean(), "late_average": late.mean(),
        "early_spread": early.std(), "late_spread": late.std(),
    }  # fmt: skip
    yield from ((name, f"{size:.3g}") for name, size in sizes.items())
    yield "rises", f"{10 * float(np.mean(steps > 0)):.0f}"
    near = _ALIKE * float(found.std())
    yield "steadier", _half(late.std() - early.std(), near)
    yield "higher", _half(early.mean() - late.mean(), near)


def _half(ahead: float, near: float) -> str:
    """Return which half is ahead; by less than `near`, neither is."""
    if abs(ahead) < near:
        return "About alike: naming either is right"
    return f"In the {'first' if ahead > 0 else 'second'} half"
