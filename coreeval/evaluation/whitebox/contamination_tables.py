"""The tables and the plot of a contamination test, in percentage points as in the paper."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name
from coreeval.evaluation.scores import Score
from coreeval.evaluation.whitebox.contamination import LEAKED, ContaminationFinding, Rise
from coreeval.tools.formatting import format_interval, format_points
from coreeval.tools.tables import Column, Foreign, Row, Table, numbers, texts

Json = Mapping[str, Any]
NAMES: Final = {"held_out": "clean samples"}
DELTAS: Final = ("delta1", "delta2")


def make_contamination_tables(document: Json) -> Sequence[Table]:
    """Return the tables of a document: verdicts, the paper's tables 3 and 4, shares, worth."""
    found = {each["target"]: _read_finding(each) for each in document["targets"]}
    tables = [
        _verdicts(document, found),
        _leaks_of_originals(found, text_only=False),
        _leaks_of_originals(found, text_only=True),
        _leaks_of_all(found),
        _by_share(found),
        _worth(found),
        _zero(found),
    ]
    return [table for table in tables if table.rows]


def _read_finding(entry: Json) -> ContaminationFinding:
    return ContaminationFinding.model_validate(
        {key: value for key, value in entry.items() if key != "target"}
    )


def _verdicts(document: Json, found: Mapping[str, ContaminationFinding]) -> Table:
    columns = [*(texts(head, gap=2, most=40) for head in ("model", "verdict")), texts("why", gap=2)]
    rows: list[Row] = [
        (Foreign(name), each.verdict, Foreign(each.reason)) for name, each in found.items()
    ]
    notes = dict.fromkeys(note for each in found.values() for note in each.notes)
    return Table(columns, rows, document["question"], "; ".join(notes))


def _leaks_of_originals(found: Mapping[str, ContaminationFinding], *, text_only: bool) -> Table:
    """Return table 3 of the paper, or table 4 if only texts are leaked."""
    rows = [
        (Foreign(name), _name(rise.measured), *_cells(rise.delta1), *_cells(rise.delta2))
        for name, each in found.items()
        for rise in _select(each, text_only=text_only, percent=_full(each))
        if rise.leaked == LEAKED
    ]
    what = "the texts of the originals without labels" if text_only else "the originals"
    return Table(
        _columns("model", "measured on"),
        rows,
        f"Effect of leaking {what}, in points of macro-F1 (CoreEval paper, table "
        f"{4 if text_only else 3}).",
    )


def _leaks_of_all(found: Mapping[str, ContaminationFinding]) -> Table:
    rows = [
        (
            Foreign(name),
            _name(rise.leaked),
            _name(rise.measured),
            *_cells(rise.delta1),
            *_cells(rise.delta2),
        )
        for name, each in found.items()
        for rise in _select(each, text_only=False, percent=_full(each))
        if rise.leaked != LEAKED
    ]
    title = "Effect of leaking an arm other than the originals, in points of macro-F1."
    return Table(_columns("model", "leaked", "measured on"), rows, title)


def _by_share(found: Mapping[str, ContaminationFinding]) -> Table:
    """Return the numbers of figure 4 of the paper, if several shares were leaked."""
    rows = [
        (
            Foreign(name),
            f"{rise.percent} %",
            _name(rise.measured),
            *_cells(rise.delta1),
            *_cells(rise.delta2),
        )
        for name, each in found.items()
        if len({rise.percent for rise in each.rises}) > 1
        for rise in _select(each, text_only=False, percent=None)
        if rise.leaked == LEAKED
    ]
    title = (
        "Effect of leaking a share of the originals, in points of macro-F1. In delta 1, this is "
        "the share of the test part; in delta 2, that of the train part (figure 4)."
    )
    return Table(_columns("model", "share", "measured on"), rows, title)


def _worth(found: Mapping[str, ContaminationFinding]) -> Table:
    columns = [
        *(texts(head, gap=2, most=40) for head in ("model", "leaked arm", "measure")),
        *(_pair("on itself")),
        *(_pair("on clean samples")),
        *(_pair("beyond")),
    ]
    rows = [
        (
            Foreign(name),
            worth.leaked,
            worth.delta,
            *_cells(worth.on_itself),
            *_cells(worth.on_held_out),
            *_cells(worth.beyond),
        )
        for name, each in found.items()
        for worth in each.worth
    ]
    title = "Effect of leaking an arm on the scores on this arm, in points."
    note = (
        "Beyond: the effect on the leaked arm minus that on clean samples. This part is due to "
        "remembering samples, not to learning the task."
    )
    return Table(columns, rows, title, note)


def _zero(found: Mapping[str, ContaminationFinding]) -> Table:
    columns = [
        *(texts(head, gap=2, most=40) for head in ("model", "measured on")),
        numbers("n", gap=2),
        *_pair("macro-F1"),
        *_pair("accuracy"),
    ]
    rows = [
        (
            Foreign(name),
            _name(each.measured),
            str(each.macro_f1.n),
            *_cells(each.macro_f1, sign=False),
            *_cells(each.accuracy, sign=False),
        )
        for name, one in found.items()
        for each in one.zero
    ]
    return Table(columns, rows, "Scores of the original model, in percent.")


def _columns(*heads: str) -> list[Column]:
    return [
        *(texts(head, gap=2, most=40) for head in heads),
        *_pair("delta 1"),
        *_pair("delta 2"),
    ]


def _pair(head: str) -> tuple[Column, Column]:
    return numbers(head, gap=2, most=20), texts("95 % interval", gap=2, most=24)


def _cells(found: Score, *, sign: bool = True) -> tuple[str, str]:
    if found.estimate is None:
        return "not measured", ""
    said = format_points if sign else _format_share
    return said(found.estimate), format_interval(found.ci_low, found.ci_high, said)


def _format_share(share: float | None) -> str:
    return format_points(share).lstrip("+")


def _full(finding: ContaminationFinding) -> int:
    return max(rise.percent for rise in finding.rises)


def _select(
    finding: ContaminationFinding, *, text_only: bool, percent: int | None
) -> Iterator[Rise]:
    for rise in finding.rises:
        if rise.text_only == text_only and percent in (None, rise.percent):
            yield rise


def _name(part: str) -> str:
    return NAMES.get(part, part)


# -- the plot -------------------------------------------------------------------------------------


def draw_contamination(path: Path, document: Json) -> Path:
    """Draw both deltas of a leak of the originals over the share, a row for each model."""
    found = {each["target"]: _read_finding(each) for each in document["targets"]}
    with open_figure(path, 7.2, 0.8 + 2.6 * len(found)) as figure:
        panels = figure.subplots(len(found), 2, squeeze=False)
        for row, (name, finding) in zip(panels, found.items(), strict=True):
            for panel, delta in zip(row, DELTAS, strict=True):
                _draw_panel(panel, finding, delta)
                panel.set_title(f"{shorten_name(name)}: δ{delta[-1]}", fontsize=8)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
        figure.suptitle("Effect of leaking the originals, in points of macro-F1", fontsize=10)
    return path


def _draw_panel(panel: Any, finding: ContaminationFinding, delta: str) -> None:  # noqa: ANN401 - an Axes, or None where nothing draws
    panel.axhline(0, color="black", linewidth=0.6)
    some = [r for r in _select(finding, text_only=False, percent=None) if r.leaked == LEAKED]
    for place, part in enumerate(dict.fromkeys(rise.measured for rise in some)):
        shown = sorted(
            (rise.percent, getattr(rise, delta)) for rise in some if rise.measured == part
        )
        known = [(x, each) for x, each in shown if each.ci_low is not None]
        x = [percent + place for percent, _ in known]
        y = [100 * each.estimate for _, each in known]
        down = [100 * (each.estimate - each.ci_low) for _, each in known]
        up = [100 * (each.ci_high - each.estimate) for _, each in known]
        panel.errorbar(
            x, y, yerr=[down, up], fmt="o-", color=COLOURS[place], markersize=3.5, linewidth=1,
            label=_name(part),
        )  # fmt: skip
    shares, parts = ({getattr(r, field) for r in some} for field in ("percent", "measured"))
    panel.set_xticks([share + (len(parts) - 1) / 2 for share in sorted(shares)], sorted(shares))
    panel.set_xlim(min(shares, default=0) - 5, max(shares, default=100) + len(parts) + 4)
    panel.set_xlabel("share, percent", fontsize=8)
    panel.tick_params(labelsize=7)
