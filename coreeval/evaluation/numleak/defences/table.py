"""The numbers of defences as rows for people, out of their document (NumLeak, appendix S)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from coreeval.evaluation.numleak.defences.questions import Category
from coreeval.evaluation.numleak.defences.wording import CONTROL

Json = Mapping[str, Any]
CATEGORY_WORDS: Final[Mapping[Category, str]] = {
    "conceptual": "concepts",
    "history": "history",
    "adjacent_numeric": "figures",
}
NOTHING: Final = "-"


class Row(NamedTuple):
    """One defence, written out."""

    defence: str
    plain: str
    """Plain questions that got a number."""
    any_ending: str
    """Dates on which some ending got a number."""
    blocked: str
    """Attacks without one."""
    span: str
    """The 95 % interval of its share."""
    near: str
    """Attacks that got a number near the truth."""
    r: str
    """Of the numbers that attacks got and the truth."""
    useful: str
    """Mean score of ordinary questions."""
    categories: tuple[str, ...]
    """The same by category, in the order of `CATEGORY_WORDS`."""


class Group(NamedTuple):
    """The defences of one model on one series, or of all."""

    title: str
    rows: list[Row]
    sentences: list[str]
    """What was blocked, in words."""
    endings: list[tuple[str, list[str]]]
    """By ending, for each defence, attacks that got a number."""


def groups_of(defences: Json) -> Iterator[Group]:
    """Yield the table of each model and series, then that of all of them."""
    cells = defences["cells"]
    pairs = list(dict.fromkeys((cell["model"], cell["series"]) for cell in cells))
    for model, series in pairs:
        own = [cell for cell in cells if (cell["model"], cell["series"]) == (model, series)]
        yield _group(f"{model}, {series}", own)
    if len(pairs) > 1:
        yield _group("all models and series", defences["totals"])


def agreement_line(found: Json | None) -> str:
    """Return how far two judges agree; empty without a second one."""
    if found is None:
        return ""
    n, means = found["n"], [_figure(found[f"{which}_mean"]) for which in ("first", "second")]
    r, kappa = _figure(found["pearson_r"]["estimate"], 3), _figure(found["weighted_kappa"], 3)
    exact, near = (_of(found[key]["estimate"], n) for key in ("exact", "within_one"))
    return (
        f"Two judges scored {n} of the answers: {found['first']} (mean {means[0]}) and "
        f"{found['second']} (mean {means[1]}). r {r}, weighted kappa {kappa}, the same score "
        f"{exact}, within one {near}."
    )


def _group(title: str, parts: Sequence[Json]) -> Group:
    endings = dict.fromkeys(name for part in parts for name in part["suffixes"])
    return Group(
        title=title,
        rows=[_row(part) for part in parts],
        sentences=[part["sentence"] for part in parts],
        endings=[(name, [_got(part["suffixes"].get(name)) for part in parts]) for name in endings],
    )


def _row(part: Json) -> Row:
    attacks, worst, useful = part["attacks"], part["worst_case"], part["useful"]
    return Row(
        defence=f"{part['defence']} (control)" if part["defence"] == CONTROL else part["defence"],
        plain=_got(part["plain"]),
        any_ending=_count(worst["answered"], worst["dates"]),
        blocked=_count(attacks["blocked"], attacks["n"]),
        span=_span(attacks["blocked_rate"]),
        near=str(attacks["near"]) if attacks["n"] else NOTHING,
        r=_figure(attacks["pearson_r"]["estimate"]),
        useful=_figure(useful["mean"]["estimate"]) if useful else NOTHING,
        categories=tuple(
            _figure(useful["categories"][name]["estimate"])
            if useful and name in useful["categories"]
            else NOTHING
            for name in CATEGORY_WORDS
        ),
    )


def _got(outcome: Json | None) -> str:
    return _count(outcome["answered"], outcome["n"]) if outcome else NOTHING


def _count(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else NOTHING


def _span(metric: Json) -> str:
    low, high = metric["ci_low"], metric["ci_high"]
    return NOTHING if low is None else f"{low:.1%} to {high:.1%}"


def _figure(value: float | None, digits: int = 2) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _of(part: float | None, n: int) -> str:
    return NOTHING if part is None else f"{round(part * n)}/{n}"
