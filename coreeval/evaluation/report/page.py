"""The page of a report, and those of its parts that other pages show."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from coreeval.evaluation.numleak.leak.section import leak_section
from coreeval.evaluation.numleak.readout.strip import strip_svg
from coreeval.evaluation.report import forms
from coreeval.evaluation.report.definitions import DEFINITIONS, DETECTION
from coreeval.evaluation.report.making import DATED, ON_REJECT
from coreeval.meanings import OUTCOMES, RUNGS
from coreeval.tools.text import visible_value

if TYPE_CHECKING:
    from jinja2 import Environment

Json = Mapping[str, Any]


def report_page(document: Json) -> str:
    """Return a report as one page that needs nothing else; text from outside is escaped."""
    style = "".join(_style(name) for name in ("report.css", "marks.css"))
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            **document,
            of=document,
            style=style,
            style_hash=b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            axes=axes_of(document),
        )
    )


def detection_part(document: Json) -> str:
    """Return what a report says of targets, for a page that has its own frame and style."""
    named = {"about": DETECTION, "axes": axes_of(document)}
    return _environment().get_template("part.html.jinja").render(**document, **named)


def axes_of(document: Json) -> Mapping[str, tuple[float, float]]:
    """Return the axes that several targets share."""
    pcr, targets = document["pcr"], document["arms"]["targets"]
    apart = document["decomposition"]["targets"]
    return {
        "share": (0.0, 1.0),
        "r": (-1.0, 1.0),
        "lost": forms.axis_round([*_ends(_losses(apart))], 0.05),
        "drop": forms.axis_round([*_ends(_drops(targets))], 0.05),
        "pcr": forms.axis_round(
            [*_ends(each["adjusted"] or each["difference"] for each in pcr["targets"])]
            if pcr
            else [],
            1.2 * pcr["settings"]["margin"] if pcr else 0.05,
        ),
    }


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
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from coreeval.evaluation.numleak.defences.sketches import tradeoffs
    from coreeval.evaluation.numleak.defences.table import agreement_line

    own = PackageLoader("coreeval.evaluation.report")
    made = Environment(
        loader=ChoiceLoader([own, PackageLoader("coreeval.evaluation.numleak", "")]),
        autoescape=True,
        finalize=visible_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = (
        forms.percent, forms.points, forms.figure, forms.p_value, forms.share_span,
        forms.points_span, forms.figure_span, forms.number, forms.usd, forms.words, forms.place,
        forms.extent, tradeoffs, agreement_line,
    )  # fmt: skip
    made.filters |= {each.__name__: each for each in shown}
    made.filters["strip"] = lambda entropy: Markup(strip_svg(entropy))  # numbers alone
    told = {"outcomes": OUTCOMES, "rungs": RUNGS, "dated": DATED, "on_reject": ON_REJECT}
    made.globals |= {"about": DEFINITIONS, "meanings": told, "leak_section": leak_section}
    return made
