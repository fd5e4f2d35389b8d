"""The report of a run: report.json for programs, report.html for people."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.tools.files import write_json, write_text

if TYPE_CHECKING:
    from coreeval.evaluation.arm_scores import ArmTable

Json = Mapping[str, Any]


def write_report(
    *,
    json_path: Path,
    html_path: Path,
    manifest: Json,
    ruled: Sequence[str],
    arms: "ArmTable",
    pcr: Json | None,
    numleak: Json | None,
) -> None:
    """Write both forms of the report; text from outside is escaped.

    Args:
        json_path: The form for programs.
        html_path: The form for people.
        manifest: The run's.
        ruled: The roles that the offline rules played.
        arms: The targets on the arms.
        pcr: The splits compared; None where the run was not to.
        numleak: The audits of series; likewise.
    """
    document = {
        "run": manifest["run"],
        "task": manifest["task"],
        "window": manifest["window"],
        "window_start": manifest["window_start"],
        "after_cutoff": manifest["after_cutoff"],
        "offline_roles": list(ruled),
        "counts": manifest["counts"],
        "bad_rows": manifest["bad_rows"],
        "cost": manifest["cost"],
        "knowledge": manifest["knowledge"],
        "arms": arms.model_dump(mode="json"),
        "pcr": pcr,
        "numleak": numleak,
    }
    write_json(json_path, document)
    write_text(html_path, _page(document))


def _page(document: Json) -> str:
    from jinja2 import Environment, StrictUndefined

    template = resources.files("coreeval.evaluation").joinpath("report.html.jinja")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["percent"] = _percent
    environment.filters["interval"] = _interval
    environment.filters["figure"] = _figure
    environment.filters["span"] = _span
    environment.filters["pcr_axis"] = _pcr_axis
    environment.filters["share"] = lambda metric: _percent(metric["estimate"])
    return environment.from_string(template.read_text(encoding="utf-8")).render(**document)


def _interval(score: Json) -> str:
    """Return the ends of a score's interval; one sample has none."""
    if score["ci_low"] is None:
        return ""
    return f"{_percent(score['ci_low'])} … {_percent(score['ci_high'])}"


def _figure(value: float | None, sign: str = "") -> str:
    return "n/a" if value is None else f"{value:{sign}.3f}"


def _span(found: Json) -> str:
    """Return the ends of an interval of PCR; one that is not defined has none."""
    if found["ci_low"] is None:
        return ""
    return f"{_figure(found['ci_low'], '+')} … {_figure(found['ci_high'], '+')}"


def _pcr_axis(pcr: Json) -> Json:
    """Return the ends of the axis on which the differences of PCR are drawn."""
    shown = [one["difference"][end] for one in pcr["targets"]
             for end in ("estimate", "ci_low", "ci_high")]  # fmt: skip
    margin = pcr["settings"]["margin"]
    known = [-1.2 * margin, 1.2 * margin, *(value for value in shown if value is not None)]
    return {"low": min(known), "high": max(known)}


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f} %"
