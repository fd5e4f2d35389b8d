"""The page that compares two runs or releases: settings, results, samples that differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval import meanings
from coreeval.tasks.kinds import find_display, title_fields
from coreeval.tools.text import DiffPiece, word_diff
from coreeval.viewer.catalog import RunCatalog
from coreeval.viewer.comparison import (
    DIFFERENCE_KINDS,
    RELEASE_PREFIX,
    ComparisonSide,
    DifferenceFilter,
    SampleDifference,
    SideSample,
    compare_models,
    compare_sides,
    find_changes,
    load_release_side,
    load_run_side,
)
from coreeval.viewer.rendering import render_page
from coreeval.viewer.results import find_task_change
from coreeval.viewer.several_page import MOST_SIDES, list_targets, show_several

PAGE_SIZE = 20
"""The number of samples on a page, each with all its texts."""
MOST_DIGITS = 10
"""The most digits that a page number may have."""


@dataclass(frozen=True, kw_only=True)
class SamplePair:
    """A sample that differs, as shown on a page."""

    difference: SampleDifference
    before: SideSample | None
    """None if that side does not have it."""
    after: SideSample | None
    texts: Mapping[str, Mapping[str, Sequence[DiffPiece]]]
    """The word diff from the earlier to the later side, by arm and field."""

    @property
    def label_title(self) -> str:
        """Return a description of the sample's label."""
        side = self.after or self.before
        if side is None:
            return ""
        fields = side.original or side.updated or side.semantic or {}
        return find_display(fields, side.label).label_title

    @property
    def original(self) -> Mapping[str, str]:
        """Return the original text, from a side that may show it."""
        sides = [side for side in (self.before, self.after) if side and side.original]
        return title_fields(sides[0].original or {}, sides[0].label) if sides else {}


def show_comparison(request: Request) -> Response:
    """Compare the sides in the address: `a` and `b`, or each `side` of several.

    With fewer than two, let the reader choose sides.
    """
    catalog: RunCatalog = request.app.state.catalog
    choices = [*catalog.find_runs(), *(RELEASE_PREFIX + key for key in catalog.find_releases())]
    query = request.query_params
    pair = [query.get(name, "") for name in "ab"]
    keys = pair if all(pair) else list(dict.fromkeys(filter(None, query.getlist("side"))))
    if len(keys) < 2:
        return render_page(request, "compare_choose.html", choices=choices, query=query, keys=keys)
    if len(keys) > MOST_SIDES:
        raise HTTPException(
            400, f"At most {MOST_SIDES} runs or releases can be shown side by side; choose fewer."
        )
    sides = [_find_side(catalog, key) for key in keys]
    if len(sides) > 2:
        return show_several(request, sides)
    return _render_comparison(request, sides[0], sides[1], choices)


def _find_side(catalog: RunCatalog, key: str) -> ComparisonSide:
    runs, releases = catalog.find_runs(), catalog.find_releases()
    if key in runs:
        return load_run_side(key, runs[key])
    if (name := key.removeprefix(RELEASE_PREFIX)) in releases:
        return load_release_side(RELEASE_PREFIX + name, releases[name])
    raise HTTPException(404, f"This workspace has no run or release {key!r}.")


def _render_comparison(
    request: Request, before: ComparisonSide, after: ComparisonSide, choices: Sequence[str]
) -> Response:
    found, by, number = (
        compare_sides(before, after),
        _read_filter(request),
        _read_page_number(request),
    )
    chosen = found.select(by)
    shown = chosen[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    return render_page(
        request,
        "compare.html",
        before=before,
        after=after,
        choices=choices,
        roles=compare_models(before, after),
        settings=list(find_changes(before.settings, after.settings)),
        found=found,
        by=by,
        kinds=DIFFERENCE_KINDS,
        total=len(chosen),
        first=(number - 1) * PAGE_SIZE,
        pairs=list(_build_pairs(before, after, shown, hide=request.app.state.hide_texts)),
        links=CompareLinks(
            before=before, after=after, by=by, page=number, last=-(-len(chosen) // PAGE_SIZE)
        ),
        outcomes=_list_outcomes(before, after),
        targets=list_targets([before, after]),
        task_change=find_task_change([before.task, after.task]),
        meanings=meanings,
    )


def _read_filter(request: Request) -> DifferenceFilter:
    said = {name: request.query_params.get(name, "") for name in DifferenceFilter.model_fields}
    try:
        return DifferenceFilter.model_validate({k: v for k, v in said.items() if v})
    except ValidationError:
        raise HTTPException(
            400, f"Choose one of these kinds of differences: {', '.join(DIFFERENCE_KINDS)}."
        ) from None


def _read_page_number(request: Request) -> int:
    said = request.query_params.get("page", "1")
    if not (said.isascii() and said.isdigit() and len(said) < MOST_DIGITS and int(said) > 0):
        raise HTTPException(400, "The page must be a whole number of at least 1.")
    return int(said)


def _list_outcomes(before: ComparisonSide, after: ComparisonSide) -> list[str]:
    """Return the outcomes that occur on either side."""
    return [name for name in meanings.OUTCOMES if any(s.counts.get(name) for s in (before, after))]


def _build_pairs(
    before: ComparisonSide, after: ComparisonSide, shown: Sequence[SampleDifference], *, hide: bool
) -> Iterator[SamplePair]:
    ids = [one.sample for one in shown]
    old, new = (side.samples.read_some(ids) for side in (before, after))
    for one in shown:
        was, now = ((each.redact() if each and hide else each)
                    for each in (old.get(one.sample), new.get(one.sample)))  # fmt: skip
        yield SamplePair(
            difference=one, before=was, after=now, texts=dict(_diff_texts(one, was, now))
        )


def _diff_texts(
    one: SampleDifference, was: SideSample | None, now: SideSample | None
) -> Iterator[tuple[str, Mapping[str, Sequence[DiffPiece]]]]:
    """Yield each arm whose texts differ, with the word diff of each field."""
    for arm in ("updated", "semantic"):
        old, new = (getattr(side, arm) or {} if side else {} for side in (was, now))
        if arm in one.kinds or not (was and now):
            titles = _title_fields({**old, **new}, now or was)
            yield (
                arm,
                {
                    title: word_diff(old.get(name, ""), new.get(name, ""))
                    for name, title in titles.items()
                },
            )


def _title_fields(fields: Mapping[str, str], side: SideSample | None) -> Mapping[str, str]:
    label = side.label if side else ""
    return find_display(fields, label).titles(fields, label)


@dataclass(frozen=True, kw_only=True)
class CompareLinks:
    """The URLs of the same comparison with another filter or page."""

    before: ComparisonSide
    after: ComparisonSide
    by: DifferenceFilter
    page: int
    last: int
    """The number of the last page; 0 if no sample is shown."""

    def to(self, **changes: str | None) -> str:
        """Return the address of the first page with changed conditions."""
        return self._address({**self.by.model_dump(), **changes})

    def at(self, page: int) -> str:
        """Return the address of another page."""
        return self._address({**self.by.model_dump(), "page": page if page > 1 else None})

    @property
    def plain(self) -> str:
        """Return the address without a filter."""
        return self._address({})

    @property
    def swapped(self) -> str:
        """Return the address with the two sides swapped."""
        return "/compare?" + urlencode({"a": self.after.key, "b": self.before.key})

    def _address(self, conditions: Mapping[str, object]) -> str:
        given = {name: value for name, value in conditions.items() if value}
        return "/compare?" + urlencode({"a": self.before.key, "b": self.after.key, **given})
