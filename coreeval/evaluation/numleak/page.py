"""An audit as one page that needs nothing else: the verdicts, the numbers, the pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from coreeval.evaluation.numleak.defences.sketches import part_of_page
from coreeval.evaluation.numleak.leak.section import leak_section
from coreeval.evaluation.numleak.points import Stratum
from coreeval.evaluation.numleak.readout.strip import strip_svg
from coreeval.evaluation.numleak.sketches import calibration_sketch, gradient_sketch
from coreeval.evaluation.numleak.study import Audit
from coreeval.evaluation.numleak.table import Json, further_rows, settings_line, signature_rows
from coreeval.evaluation.numleak.variants.sketch import paired_sketch
from coreeval.evaluation.numleak.variants.table import variant_rows
from coreeval.evaluation.numleak.verdicts import Verdict, in_words
from coreeval.tools.files import write_text
from coreeval.tools.text import visible_value


def write_page(path: Path, audits: Sequence[Audit], document: Json) -> Path:
    """Write the page of a document and of the audits that it was made of; text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("coreeval.evaluation.numleak", ""),
        autoescape=True,
        finalize=visible_value,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["percent"] = lambda share: f"{share:.0%}"
    environment.filters["in_words"] = in_words
    environment.filters["strip"] = lambda entropy: Markup(strip_svg(entropy))  # numbers alone
    page = environment.get_template("page.html.jinja")
    write_text(path, page.render(**_context(audits, document)))
    return path


def _context(audits: Sequence[Audit], document: Json) -> dict[str, Any]:
    backtest = document["backtest"]
    columns, heat = _heat(document["series"])
    of = f"the back-test period {backtest['start']} to {backtest['end']}" if backtest else "series"
    return {
        "title": f"What models remember of {of}",
        "leads": backtest["models"] if backtest else [],
        "asked": _asked(document),
        "notes": document["notes"],
        "verdicts": get_args(Verdict),
        "strata": get_args(Stratum),
        "columns": columns,
        "heat": heat,
        "views": [_view(number, *each)
                  for number, each in enumerate(zip(audits, document["series"], strict=True))],
        "defences": part_of_page(document.get("defences")),
        "settings": settings_line(document["settings"]),
    }  # fmt: skip


def _asked(document: Json) -> str:
    found = document["series"]
    questions, models = sum(one["n"] for one in found), {one["model"] for one in found}
    bad = len(document["bad_rows"])
    return (
        f"{_count(questions, 'question')} for a value, {_count(len(models), 'model')}, "
        f"{_count(len({one['series'] for one in found}), 'series', 'series')}"
        + (f"; {_count(bad, 'line')} left out, with the reasons in --json" if bad else "")
        + "."
    )


def _count(number: int, name: str, names: str = "") -> str:
    return f"{number} {name if number == 1 else names or f'{name}s'}"


def _heat(found: Sequence[Json]) -> tuple[list[str], Mapping[str, list[Json | None]]]:
    """Return the columns, and for each row its cells; None where nothing was asked.

    Models or series are the columns, whichever are fewer: a telephone is narrow.
    """
    cells = {(one["model"], one["series"]): one for one in found}
    models, series = ([*dict.fromkeys(key[i] for key in cells)] for i in (0, 1))
    if len(series) > len(models):
        return models, {row: [_cell(cells.get((each, row))) for each in models] for row in series}
    return series, {row: [_cell(cells.get((row, each))) for each in series] for row in models}


def _cell(one: Json | None) -> Json | None:
    if one is None:
        return None
    share, r = one["hits_of_asked"]["estimate"], one["pearson_r"]["estimate"]
    return {"verdict": one["verdict"], "share": share, "r": r}


def _view(number: int, audit: Audit, one: Json) -> dict[str, Any]:
    drawn = bool(one["parsed"])
    return {
        "document": one,
        "leak": leak_section(one),
        "rows": list(signature_rows(one)),
        "more": list(further_rows(one)),
        "variants": list(variant_rows(one)),
        "paired": paired_sketch(audit),
        "drawn": drawn,
        "calibration": calibration_sketch(audit, clip=f"plot-{number}") if drawn else None,
        "gradient": gradient_sketch(audit) if drawn else None,
    }
