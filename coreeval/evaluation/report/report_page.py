"""The page of a report, the parts that other pages show, and the format of its numbers."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coreeval import project
from coreeval.evaluation.comparability.rows import (
    describe_depths,
    describe_reuse,
    list_absent,
    list_rows,
    list_sources,
    read_comparability,
)
from coreeval.evaluation.detectors import (
    BENCHMARK_DETECTORS,
    PROBES,
    TARGET_DETECTORS,
    list_target_detectors,
)
from coreeval.evaluation.detectors.base import DOCUMENTS, AxisMarks, Detector
from coreeval.evaluation.grading import SCORING
from coreeval.evaluation.report.definitions import DEFINITIONS, DETECTION, define_terms
from coreeval.evaluation.report.provenance import DATED, ON_REJECT
from coreeval.meanings import COMPARABILITY, OUTCOMES, RUNGS
from coreeval.schema import TaskKind
from coreeval.tools.formatting import (
    Form,
    format_count,
    format_interval,
    format_name,
    format_number,
    format_p_value,
    format_percent,
    format_points,
    format_usd,
)
from coreeval.tools.pages import open_templates
from coreeval.tools.tables import Table, format_html

if TYPE_CHECKING:
    from jinja2 import Environment


IntervalJson = Mapping[str, Any]
MARGIN: Final = 2.0
"""The per cent of an axis that is left free at each end, so marks are not cut off."""


def figure(value: float | None, sign: str = "") -> str:
    """Format a number with three decimals; an undefined one is "n/a"."""
    return format_number(value, f"{sign}.3f")


def figure_span(found: IntervalJson, sign: str = "") -> str:
    """Format the ends of an interval of such a number, or return "" if it is undefined."""
    return span(found, f"{sign}.3f")


def span(found: IntervalJson, form: Form) -> str:
    """Format the ends of an interval, or return "" if there is none (one sample)."""
    return format_interval(found["ci_low"], found["ci_high"], form, joint=" … ")


def place(value: float, axis: tuple[float, float]) -> str:
    """Return the SVG position of a value on an axis, clamped to the ends of the axis."""
    low, high = axis
    share = (min(max(value, low), high) - low) / ((high - low) or 1)
    return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"


def extent(value: float, axis: tuple[float, float]) -> str:
    """Return the SVG length of a value on an axis."""
    low, high = axis
    return f"{(100 - 2 * MARGIN) * value / ((high - low) or 1):.2f}%"


def axis_round(values: Sequence[float | None], least: float) -> tuple[float, float]:
    """Return an axis from -x to x that covers all defined values and `least`."""
    furthest = max([least, *(abs(value) for value in values if value is not None)])
    steps = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 2, 5, 10)
    step = next((each for each in steps if furthest <= each), furthest)
    return -step, step


Json = Mapping[str, Any]


def report_page(document: Json) -> str:
    """Render a report as one self-contained page; untrusted text is escaped."""
    style = "".join(_style(name) for name in ("report.css", "marks.css"))
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            **document,
            of=document,
            about={**DEFINITIONS, **define_terms(_kind_of(document))},
            homepage=project.HOMEPAGE,
            style=style,
            style_hash=b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            axes=axes_of(document),
            sections=list_sections(document),
            not_run=list_not_run(document),
            measured=list_measured(document),
            headline=SCORING[_kind_of(document)].headline,
            **_comparability(document),
        )
    )


def _kind_of(document: Json) -> TaskKind:
    """Return the kind of task of a report; reports on labels do not have the key."""
    kind: TaskKind = document["arms"].get("kind", "labels")
    return kind


def _comparability(document: Json) -> Mapping[str, Any]:
    """Return the data on the comparability of the arms, by name in the templates of a page."""
    found = read_comparability(document)
    if found is None:
        return {"alike": None}
    return {
        "alike": found,
        "alike_rows": list_rows(found),
        "alike_sources": list_sources(found),
        "alike_absent": list_absent(found),
        "alike_reuse": describe_reuse(found),
        "alike_depths": describe_depths(found),
    }


def detection_part(document: Json) -> str:
    """Render a report's findings on targets, for a page with its own frame and style."""
    named = {
        "about": {**DETECTION, **define_terms(_kind_of(document))},
        "axes": axes_of(document),
        "sections": list_sections(document),
        "not_run": list_not_run(document),
        "measured": list_measured(document),
        **_comparability(document),
    }
    return _environment().get_template("part.html.jinja").render(**document, **named)


class ShownSection(NamedTuple):
    """A detector's section of a page."""

    anchor: str
    title: str
    template: str
    tables: Sequence[Table]
    """The tables of a detector without a template of its own."""


def list_sections(document: Json) -> list[ShownSection]:
    """Return the sections on detectors for which a report has data, in the order of the page."""
    present = [
        (section, detector)
        for detector in (*list_target_detectors(document), *PROBES, *BENCHMARK_DETECTORS)
        for section in detector.list_sections()
        if section.is_present(document)
    ]
    documents = document.get(DOCUMENTS, {})
    shown = [
        ShownSection(
            section.anchor,
            section.title[:1].upper() + section.title[1:],
            section.template,
            detector.make_tables(documents[detector.name]) if detector.name in documents else (),
        )
        for section, detector in sorted(present, key=lambda each: each[0].place)
    ]
    return [*shown, _AGREEMENT] if list_measured(document) else shown


_AGREEMENT: Final = ShownSection(
    "agreement", "Results of all detectors", "agreement.html.jinja", tables=()
)


def list_measured(document: Json) -> dict[str, str]:
    """Return the statement of each detector that judged at least one target, by its key."""
    matrix = (document.get("decomposition") or {}).get("agreement", {"asks": {}, "rows": ()})
    known = {each.key: each.statement for each in list_target_detectors(document)}
    return {
        key: known.get(key, question)
        for key, question in matrix["asks"].items()
        if any(row["cells"][key]["said"] != "not_measured" for row in matrix["rows"])
    }


def list_not_run(document: Json) -> list[Detector]:
    """Return the detectors that `coreeval detect NAME RUN` runs and that were not run."""
    return [
        each
        for each in TARGET_DETECTORS
        if each.questions and each.name not in document.get(DOCUMENTS, {})
    ]


def axes_of(document: Json) -> Mapping[str, tuple[float, float]]:
    """Return the axes shared by several targets."""
    targets, apart = document["arms"]["targets"], document["decomposition"]["targets"]
    return {
        "share": (0.0, 1.0),
        "r": (-1.0, 1.0),
        "lost": axis_round([*_ends(_losses(apart))], 0.05),
        "drop": axis_round([*_ends(_drops(targets))], 0.05),
        **{each.name: _own_axis(each.axis(document)) for each in TARGET_DETECTORS if each.axis},
    }


def _own_axis(marks: AxisMarks | None) -> tuple[float, float]:
    return axis_round([*_ends(iter(marks.shown))], marks.least) if marks else axis_round([], 0.05)


def _drops(targets: list[Json]) -> Iterator[Json]:
    for target in targets:
        for pair in target["all_samples"]["comparisons"]:
            yield pair["macro_f1_difference"]


def _losses(targets: list[Json]) -> Iterator[Json]:
    for target in targets:
        for term in target["accuracy"]["terms"].values():
            yield term["lost"]


def _ends(found: Iterator[Json]) -> Iterator[float | None]:
    for each in found:
        yield from (each[end] for end in ("estimate", "ci_low", "ci_high"))


def _style(name: str) -> str:
    folder = resources.files("coreeval.evaluation.report").joinpath("static")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    parts = [each.open_templates() for each in TARGET_DETECTORS if each.open_templates]
    made = open_templates(
        "coreeval.evaluation.report",
        *(part.package for part in parts),
        folder="templates",
        lstrip_blocks=True,
    )
    made.filters |= {
        "extent": extent,
        "figure": figure,
        "figure_span": figure_span,
        "number": format_count,
        "p_value": format_p_value,
        "percent": format_percent,
        "place": place,
        "points": format_points,
        "points_span": partial(span, form=format_points),
        "share_span": partial(span, form=format_percent),
        "table": format_html,
        "usd": format_usd,
        "words": format_name,
    }
    told = {
        "outcomes": OUTCOMES,
        "rungs": RUNGS,
        "comparability": COMPARABILITY,
        "dated": DATED,
        "on_reject": ON_REJECT,
    }
    made.globals |= {"about": DEFINITIONS, "meanings": told}
    for part in parts:
        made.filters |= part.filters
        made.globals |= part.functions
    return made
