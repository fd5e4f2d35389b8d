"""CAP's Performance Consistency Ratio as a detector, with the caveats of its verdicts."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from coreeval.evaluation.detectors.base import (
    AxisMarks,
    Detector,
    Finding,
    Json,
    MemoryFinding,
    ReportSection,
    VerdictGate,
    iter_part,
)
from coreeval.tools.formatting import format_interval, format_number
from coreeval.tools.tables import Foreign, Table, intervals, numbers, text_lines, texts

Basis = Literal["references", "exchangeable_splits", "none"]
"""The reason why a gap in difficulty is ruled out."""
ABOUT_MEMORY: Final = frozenset({"fine_tuned", "contaminated", "difficulty_or_memory"})
"""The verdicts shown with a caveat."""
CAVEATS: Final[Mapping[Basis, str]] = {
    "references": "this assumes that the references have seen neither split",
    "exchangeable_splits": "this assumes that the splits are random parts of one pool, as you "
    "declared",
    "none": "either training on one split or a difference in difficulty explains the difference in "
    "PCR between the splits; references distinguish the two",
}
"""The caveat shown with each verdict on memory."""
_VERDICTS: Final[Mapping[str, MemoryFinding]] = {
    "fine_tuned": "remembered",
    "contaminated": "remembered",
    "comparable": "not_shown",
    "difficulty_or_memory": "cannot_tell",
    "inconclusive": "cannot_tell",
    "insufficient_signal": "cannot_tell",
}


def _read(report: Json) -> Iterator[Finding]:
    for each in iter_part(report, "pcr", "targets"):
        verdict = each["verdict"]
        caveat = CAVEATS[each["test"]["basis"]] if verdict in ABOUT_MEMORY else ""
        yield Finding(each["name"], _VERDICTS[verdict], verdict, each["reason"], caveat=caveat)


def _measure_axis(report: Json) -> AxisMarks | None:
    pcr = report["pcr"]
    if not pcr:
        return None
    shown = [each["adjusted"] or each["difference"] for each in pcr["targets"]]
    return AxisMarks(shown, 1.2 * pcr["settings"]["margin"])


_TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "pcr": (
        "PCR",
        "performance consistency ratio: tanh of performance divided by consistency, with alpha "
        "added to both (CAP, equation 9). It is larger on data that the target was trained on.",
    ),
    "consistency": (
        "consistency",
        "how often a target gives exactly the same answer to an item and to its paraphrase.",
    ),
    "pcr_difference": (
        "difference of PCR",
        "PCR of the train split minus that of the test split. A value above 0 means that the "
        "target was fine-tuned, and one below 0 that it has seen the test items (CAP, section "
        "3.2), unless one split is harder than the other. With references, the value is the excess "
        "over the difference of the references (after ConStat, arXiv 2405.16281). The shaded band "
        "marks differences that are treated as zero; its limit is half-way between the values that "
        "the paper treats as training and those that it ignores.",
    ),
    "pcr_points": (
        "performance, points",
        "performance on the train split minus that on the test split, in percentage points; with "
        "references, the excess over the difference of the references.",
    ),
    "p": (
        "p, adjusted",
        "how often PCR and performance would differ at least as much between equivalent splits: "
        "estimated by permuting the items (Phipson and Smyth 2010) or, with references, from "
        "their variation; adjusted over the targets (Benjamini and Hochberg 1995).",
    ),
}


_COLUMNS: Final = (texts("target", 26), numbers("PCR train - test", 17), intervals(20),
                   texts("verdict", gap=2))  # fmt: skip


def _summarize(part: Json) -> Iterator[str]:
    """Yield a table of the PCR difference and the verdict for each target."""
    beyond = (
        f", beyond what {len(part['references'])} references show" if part["references"] else ""
    )
    rows = []
    for one in part["targets"]:
        gap = one["adjusted"] or one["difference"]
        span = format_interval(gap["ci_low"], gap["ci_high"], "+.3f", joint=" … ")
        verdict = one["verdict"].replace("_", " ")
        estimate = format_number(gap["estimate"], "+.3f")
        rows.append((Foreign(one["name"]), estimate, span, verdict))
    if rows:
        title = f"PCR of the train split minus that of the test split{beyond}"
        yield from text_lines(Table(_COLUMNS, rows, title))


PCR: Final = Detector(
    name="pcr",
    title="PCR",
    question="Is performance disproportionate to consistency in one of two splits?",
    config_key="detect.pcr",
    access="answers",
    report_key="pcr",
    summarize=_summarize,
    read=_read,
    verdicts=_VERDICTS,
    gate=VerdictGate(
        name="pcr",
        asked="labelling",
        none="PCR was not measured",
        some="PCR was not measured for",
        hint="set detect.pcr to measure it; ",
    ),
    terms=_TERMS,
    axis=_measure_axis,
    sections=(
        ReportSection("pcr", "PCR", "pcr.html.jinja", lambda report: bool(report["pcr"]), 3),
    ),
)
