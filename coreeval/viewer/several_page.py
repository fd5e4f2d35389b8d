"""Outcomes and scores of several runs or releases, or of all releases of a benchmark.

Each side is a column; `compare_page` compares two sides in detail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval import meanings
from coreeval.releases.release import read_release
from coreeval.viewer.catalog import RunCatalog
from coreeval.viewer.comparison import RELEASE_PREFIX, ComparisonSide, load_release_side
from coreeval.viewer.rendering import render_page
from coreeval.viewer.results import TargetResult, find_task_change

MOST_SIDES = 12
"""The most columns of a page; for a benchmark, its newest releases."""
WIDTH, HEIGHT, MARGIN, FOOT = 720, 280, 70, 36
"""The size of the picture, and the margins beside and below its points."""
SHIFT, MAX_SHIFT = 9, 24
"""The space between the points of two targets, and the most distance from their side's position."""


@dataclass(frozen=True, kw_only=True)
class ScorePoint:
    """A target's scores in one side, as positions in the picture."""

    x: float
    original: float | None
    """The height of its score on the original arm; None if it was not asked."""
    updated: float | None
    low: float | None
    """The height of the lower end of the interval on the updated arm."""
    high: float | None
    result: TargetResult
    side: str


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    """A target's scores over all sides."""

    target: str
    points: tuple[ScorePoint, ...]

    def path(self, arm: str) -> str:
        """Return the corners of the line of one arm."""
        places = ((point.x, getattr(point, arm)) for point in self.points)
        return " ".join(f"{x},{y}" for x, y in places if y is not None)


def show_several(request: Request, sides: Sequence[ComparisonSide]) -> Response:
    """Show sides as columns, in the given order."""
    return _render_sides(request, sides, title="Side by side", is_series=False)


def show_benchmark(request: Request) -> Response:
    """Show the releases of a benchmark as columns, the oldest first, with a picture of scores.

    Raises:
        HTTPException: 404, there is no release with this name.
    """
    name = request.path_params["name"]
    catalog: RunCatalog = request.app.state.catalog
    found = {key: read_release(path).manifest for key, path in catalog.find_releases().items()
             if path.parent.name == name}  # fmt: skip
    if not found:
        raise HTTPException(404, f"This workspace has no release of {name!r}.")
    keys = sorted(found, key=lambda key: (found[key].created_at, found[key].version))
    paths = catalog.find_releases()
    sides = [load_release_side(RELEASE_PREFIX + key, paths[key]) for key in keys[-MOST_SIDES:]]
    return _render_sides(
        request, sides, title=name, is_series=True, left_out=len(keys) - len(sides)
    )


def _render_sides(
    request: Request,
    sides: Sequence[ComparisonSide],
    *,
    title: str,
    is_series: bool,
    left_out: int = 0,
) -> Response:
    return render_page(
        request,
        "compare_several.html",
        title=title,
        is_series=is_series,
        left_out=left_out,
        sides=sides,
        outcomes=[name for name in meanings.OUTCOMES if any(s.counts.get(name) for s in sides)],
        targets=list_targets(sides),
        lines=draw_scores(sides),
        ticks=[(share, _place_score(share)) for share in (0, 0.25, 0.5, 0.75, 1)],
        places=[_place_side(number, len(sides)) for number in range(len(sides))],
        size=(WIDTH, HEIGHT),
        task_change=find_task_change([side.task for side in sides]),
    )


def list_targets(sides: Sequence[ComparisonSide]) -> list[str]:
    """Return the targets of all sides, in order of first occurrence."""
    named = (each.target for side in sides if side.results for each in side.results.targets)
    return list(dict.fromkeys(named))


def draw_scores(sides: Sequence[ComparisonSide]) -> list[ScoreLine]:
    """Return a line for each target with a score in any side."""
    targets = list_targets(sides)
    lines = [
        ScoreLine(target=target, points=tuple(_place_points(target, sides, shift)))
        for target, shift in zip(targets, _shift_targets(len(targets)), strict=True)
    ]
    return [line for line in lines if line.points]


def _shift_targets(total: int) -> list[float]:
    """Return the distance of each target's points from their side, so that they do not overlap."""
    step = min(SHIFT, 2 * MAX_SHIFT / max(total - 1, 1))
    return [round((number - (total - 1) / 2) * step, 1) for number in range(total)]


def _place_points(target: str, sides: Sequence[ComparisonSide], shift: float) -> list[ScorePoint]:
    found = list[ScorePoint]()
    for number, side in enumerate(sides):
        result = side.results.find(target) if side.results else None
        if result and result.updated.estimate is not None:
            scores = {
                "original": result.original.estimate,
                "updated": result.updated.estimate,
                "low": result.updated.ci_low,
                "high": result.updated.ci_high,
            }
            heights: Mapping[str, float | None] = {
                name: None if score is None else _place_score(score)
                for name, score in scores.items()
            }
            x = round(_place_side(number, len(sides)) + shift, 1)
            found.append(ScorePoint(x=x, result=result, side=side.title.version, **heights))
    return found


def _place_side(number: int, total: int) -> float:
    """Return the horizontal position of a side; a single side is in the middle."""
    share = number / (total - 1) if total > 1 else 0.5
    return round(MARGIN + share * (WIDTH - 2 * MARGIN), 1)


def _place_score(share: float) -> float:
    """Return the height of a score from 0 to 1."""
    top = 12
    return round(top + (1 - share) * (HEIGHT - FOOT - top), 1)
