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
    *, json_path: Path, html_path: Path, manifest: Json, ruled: Sequence[str], arms: "ArmTable"
) -> None:
    """Write both forms of the report; text from outside is escaped.

    `ruled` names the roles that the offline rules played.
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
    }
    write_json(json_path, document)
    write_text(html_path, _page(document))


def _page(document: Json) -> str:
    from jinja2 import Environment, StrictUndefined

    template = resources.files("coreeval.evaluation").joinpath("report.html.jinja")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["percent"] = _percent
    environment.filters["interval"] = _interval
    return environment.from_string(template.read_text(encoding="utf-8")).render(**document)


def _interval(score: Json) -> str:
    """Return the ends of a score's interval; one sample has none."""
    if score["ci_low"] is None:
        return ""
    return f"{_percent(score['ci_low'])} … {_percent(score['ci_high'])}"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f} %"
