"""Two runs or releases side by side: how they were made, what came of it, where they differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval import meanings
from coreeval.tools.text import DiffPiece, word_diff
from coreeval.viewer.compared import (
    Compared,
    changed,
    compared_release,
    compared_run,
    role_models,
)
from coreeval.viewer.contrast import KINDS, Difference, DifferenceFilter, contrast
from coreeval.viewer.rendering import page
from coreeval.viewer.shelf import Shelf
from coreeval.viewer.standings import SideSample

PAGE = 20
"""Samples on a page, each with all its texts."""
DIGITS = 10
"""Digits that no page's number has."""
RELEASE = "release:"
"""Begins the key of a release where a run could have the same."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One sample that differs, as a page shows it."""

    difference: Difference
    before: SideSample | None
    """None where that side does not have it."""
    after: SideSample | None
    texts: Mapping[str, Mapping[str, Sequence[DiffPiece]]]
    """By arm and field, what the later side has in place of the earlier one's words."""

    @property
    def original(self) -> Mapping[str, str]:
        """The text as the benchmark has it, from whichever side may show it."""
        sides = (side.original for side in (self.before, self.after) if side)
        return next(filter(None, sides), {})


def show(request: Request) -> Response:
    """Compare two sides; ask for them where the address names none."""
    shelf: Shelf = request.app.state.shelf
    choices = [*shelf.all_runs(), *(RELEASE + key for key in shelf.all_releases())]
    query = request.query_params
    if not (query.get("a") and query.get("b")):
        return page(request, "compare_choose.html", choices=choices, query=query)
    before, after = (_side(shelf, query[name]) for name in "ab")
    return _compare(request, before, after, choices)


def _side(shelf: Shelf, key: str) -> Compared:
    runs, releases = shelf.all_runs(), shelf.all_releases()
    if key in runs:
        return compared_run(key, runs[key])
    if (name := key.removeprefix(RELEASE)) in releases:
        return compared_release(RELEASE + name, releases[name])
    raise HTTPException(404, f"There is no run or release {key!r} here.")


def _compare(
    request: Request, before: Compared, after: Compared, choices: Sequence[str]
) -> Response:
    found, by, number = contrast(before, after), _filter(request), _number(request)
    chosen = found.chosen(by)
    shown = chosen[(number - 1) * PAGE : number * PAGE]
    return page(
        request,
        "compare.html",
        before=before,
        after=after,
        choices=choices,
        roles=role_models(before, after),
        settings=list(changed(before.settings, after.settings)),
        found=found,
        by=by,
        kinds=KINDS,
        total=len(chosen),
        first=(number - 1) * PAGE,
        pairs=list(_pairs(before, after, shown, hide=request.app.state.hide_texts)),
        links=Links(before=before, after=after, by=by, page=number, last=-(-len(chosen) // PAGE)),
        outcomes=_outcomes(before, after),
        meanings=meanings,
    )


def _filter(request: Request) -> DifferenceFilter:
    said = {name: request.query_params.get(name, "") for name in DifferenceFilter.model_fields}
    try:
        return DifferenceFilter.model_validate({k: v for k, v in said.items() if v})
    except ValidationError:
        raise HTTPException(400, f"Samples differ in {', '.join(KINDS)}.") from None


def _number(request: Request) -> int:
    said = request.query_params.get("page", "1")
    if not (said.isascii() and said.isdigit() and len(said) < DIGITS and int(said) > 0):
        raise HTTPException(400, "A page has a number, from 1.")
    return int(said)


def _outcomes(before: Compared, after: Compared) -> list[str]:
    """Return the outcomes that occur on either side."""
    return [name for name in meanings.OUTCOMES if any(s.counts.get(name) for s in (before, after))]


def _pairs(
    before: Compared, after: Compared, shown: Sequence[Difference], *, hide: bool
) -> Iterator[Pair]:
    ids = [one.sample for one in shown]
    old, new = (side.standings.some(ids) for side in (before, after))
    for one in shown:
        was, now = ((each.hidden() if each and hide else each)
                    for each in (old.get(one.sample), new.get(one.sample)))  # fmt: skip
        yield Pair(difference=one, before=was, after=now, texts=dict(_texts(one, was, now)))


def _texts(
    one: Difference, was: SideSample | None, now: SideSample | None
) -> Iterator[tuple[str, Mapping[str, Sequence[DiffPiece]]]]:
    """Yield each arm in which the texts differ, with its words by field."""
    for arm in ("updated", "semantic"):
        old, new = (getattr(side, arm) or {} if side else {} for side in (was, now))
        if arm in one.kinds or not (was and now):
            fields = dict.fromkeys((*new, *old))
            yield arm, {name: word_diff(old.get(name, ""), new.get(name, "")) for name in fields}


@dataclass(frozen=True, kw_only=True)
class Links:
    """Addresses of the same comparison with another filter or page."""

    before: Compared
    after: Compared
    by: DifferenceFilter
    page: int
    last: int
    """The last page; 0 where nothing is shown."""

    def to(self, **changes: str | None) -> str:
        """Return the address with some conditions changed, on its first page."""
        return self._address({**self.by.model_dump(), **changes})

    def at(self, page: int) -> str:
        """Return the address of another page."""
        return self._address({**self.by.model_dump(), "page": page if page > 1 else None})

    @property
    def plain(self) -> str:
        """The address without a filter."""
        return self._address({})

    @property
    def swapped(self) -> str:
        """The address with the sides the other way round."""
        return "/compare?" + urlencode({"a": self.after.key, "b": self.before.key})

    def _address(self, conditions: Mapping[str, object]) -> str:
        given = {name: value for name, value in conditions.items() if value}
        return "/compare?" + urlencode({"a": self.before.key, "b": self.after.key, **given})
