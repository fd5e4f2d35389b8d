"""An audit as one self-contained HTML page: the verdicts, the numbers, the pictures.

The page of a run's report also has the part on signals.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from coreeval.evaluation.numleak.audit import Audit
from coreeval.evaluation.numleak.audit_tables import (
    ROUTE_WORDS,
    Json,
    attribution_rows,
    audit_table,
    control_rows,
    control_sentences,
    describe_settings,
    further_rows,
    signature_rows,
    variant_rows,
)
from coreeval.evaluation.numleak.defences.tradeoff import defences_view
from coreeval.evaluation.numleak.memory_verdicts import Verdict, verdict_words
from coreeval.evaluation.numleak.replies import Stratum
from coreeval.evaluation.numleak.sketches import (
    calibration_sketch,
    gradient_sketch,
    step_sketch,
    strip_svg,
    ticks,
    x_at,
    y_at,
)
from coreeval.tools.files import write_text
from coreeval.tools.outputs import PAGE, refuse_foreign_output
from coreeval.tools.pages import open_templates
from coreeval.tools.tables import format_html

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


_AXIS_MARGIN: Final = 0.06
"""The margin next to the outermost points, as a share of their range."""
_SIDES: Final = (
    ("truth", "published", "slope_on_truth", "signal_r"),
    ("recall", "recalled", "slope_on_recall", "signal_recall_r"),
)


def leak_section(one: Json) -> "Markup":
    """Return the section on signals of an audited series as safe markup; empty if it has none.

    `one` is an audit in `series` of the document; documents of older runs have no `leak`.
    """
    from markupsafe import Markup

    leak = one.get("leak")
    if leak is None:
        return Markup("")
    template = _environment().get_template("leak/section.html.jinja")
    shown = template.render(
        one=one,
        leak=leak,
        views=[_signal_view(each) for each in leak["signals"]],
        controls=list(control_rows(leak)),
        says=list(control_sentences(leak)),
    )
    return Markup(shown)


def _signal_view(one: Json) -> dict[str, Any]:
    return {
        "document": one,
        "route": ROUTE_WORDS[one["route"]],
        "rows": list(attribution_rows(one)),
        "sketches": [_signal_sketch(one, *side) for side in _SIDES] if one["points"] else [],
    }


def _signal_sketch(one: Json, column: str, words: str, slope: str, r: str) -> dict[str, Any]:
    """Return the positions of a panel's marks, in the same frame as the page's other plots."""
    points = one["points"]
    line = _regression_line(points, column, one[slope]["estimate"])
    across = _axis_range([each[column] for each in points])
    up = _axis_range([*(each["signal"] for each in points), *(y for _, y in line)])
    return {
        "words": words,
        "dots": [
            {
                "x": x_at(each[column], across),
                "y": y_at(each["signal"], up),
                "title": f"{each['period']}: {words} {each[column]:g}, signal {each['signal']:g}",
            }
            for each in points
        ],
        "x_ticks": [{"at": x_at(at, across), "label": f"{at:g}"} for at in ticks(across)],
        "y_ticks": [{"at": y_at(at, up), "label": f"{at:g}"} for at in ticks(up)],
        "line": [(x_at(x, across), y_at(y, up)) for x, y in line],
        "slope": one[slope]["estimate"],
        "r": one[r]["estimate"],
    }


def _regression_line(
    points: Sequence[Json], column: str, slope: float | None
) -> list[tuple[float, float]]:
    """Return the ends of the least-squares line over the points; empty if there is no line."""
    if slope is None:
        return []
    x = [each[column] for each in points]
    middle = sum(x) / len(x), sum(each["signal"] for each in points) / len(points)
    return [(at, middle[1] + slope * (at - middle[0])) for at in (min(x), max(x))]


def _axis_range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = _AXIS_MARGIN * (high - low) or abs(high) or 1.0
    return low - room, high + room


@cache
def _environment() -> "Environment":
    from markupsafe import Markup

    environment = open_templates("coreeval.evaluation.numleak")
    environment.filters["percent"] = lambda share: f"{share:.0%}"
    environment.filters["numbers"] = lambda rows, title="": format_html(
        audit_table(rows, title), "numbers small"
    )
    environment.filters["in_words"] = verdict_words
    environment.filters["strip"] = lambda entropy: Markup(strip_svg(entropy))  # numbers alone
    return environment


def write_page(path: Path, audits: Sequence[Audit], document: Json) -> Path:
    """Write the page of a document and the audits it was built from; text is escaped."""
    refuse_foreign_output(path, PAGE)
    page = _environment().get_template("page.html.jinja")
    write_text(path, page.render(**_context(audits, document)))
    return path


def _context(audits: Sequence[Audit], document: Json) -> dict[str, Any]:
    backtest = document["backtest"]
    columns, heat = _heat_map(document["series"])
    of = (
        f"the back-test period from {backtest['start']} to {backtest['end']}"
        if backtest
        else "series"
    )
    return {
        "title": f"What models remember about {of}",
        "leads": backtest["models"] if backtest else [],
        "asked": _count_questions(document),
        "notes": document["notes"],
        "verdicts": get_args(Verdict),
        "strata": get_args(Stratum),
        "columns": columns,
        "heat": heat,
        "views": [_audit_view(number, *each)
                  for number, each in enumerate(zip(audits, document["series"], strict=True))],
        "defences": defences_view(document.get("defences")),
        "settings": describe_settings(document["settings"]),
    }  # fmt: skip


def _count_questions(document: Json) -> str:
    found = document["series"]
    questions, models = sum(one["n"] for one in found), {one["model"] for one in found}
    bad = len(document["bad_rows"])
    return (
        f"{_count(questions, 'question')} about values, {_count(len(models), 'model')}, "
        f"{_count(len({one['series'] for one in found}), 'series', 'series')}"
        + (f"; {_count(bad, 'line')} skipped (--json shows the reasons)" if bad else "")
        + "."
    )


def _count(number: int, name: str, names: str = "") -> str:
    return f"{number} {name if number == 1 else names or f'{name}s'}"


def _heat_map(found: Sequence[Json]) -> tuple[list[str], Mapping[str, list[Json | None]]]:
    """Return the columns, and the cells of each row; a cell is None if no question was asked.

    The columns are the models or the series, whichever are fewer, to fit narrow phone screens.
    """
    cells = {(one["model"], one["series"]): one for one in found}
    models, series = ([*dict.fromkeys(key[i] for key in cells)] for i in (0, 1))
    if len(series) > len(models):
        return models, {
            row: [_heat_cell(cells.get((each, row))) for each in models] for row in series
        }
    return series, {row: [_heat_cell(cells.get((row, each))) for each in series] for row in models}


def _heat_cell(one: Json | None) -> Json | None:
    if one is None:
        return None
    share, r = one["hits_of_asked"]["estimate"], one["pearson_r"]["estimate"]
    return {"verdict": one["verdict"], "share": share, "r": r}


def _audit_view(number: int, audit: Audit, one: Json) -> dict[str, Any]:
    drawn = bool(one["parsed"])
    return {
        "document": one,
        "leak": leak_section(one),
        "rows": list(signature_rows(one)),
        "more": list(further_rows(one)),
        "variants": list(variant_rows(one)),
        "paired": step_sketch(audit),
        "drawn": drawn,
        "calibration": calibration_sketch(audit, clip=f"plot-{number}") if drawn else None,
        "gradient": gradient_sketch(audit) if drawn else None,
    }
