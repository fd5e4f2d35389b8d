"""CAP's Performance Consistency Ratio as a detector, with the caveats of its verdicts."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from coreeval.evaluation.detectors.base import (
    Detector,
    Finding,
    Json,
    MemoryFinding,
    ReportSection,
    VerdictGate,
    iter_part,
)

Basis = Literal["references", "exchangeable_splits", "none"]
"""The argument against a gap in difficulty."""
ABOUT_MEMORY: Final = frozenset({"fine_tuned", "contaminated", "difficulty_or_memory"})
"""The verdicts that are shown with a caveat."""
CAVEATS: Final[Mapping[Basis, str]] = {
    "references": "this holds if the references have not seen either split",
    "exchangeable_splits": "this holds if the splits are random parts of one pool, as you vouch",
    "none": "what was seen in training explains it, and a gap in difficulty between the splits "
    "explains it as well; references tell the two apart",
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


PCR: Final = Detector(
    name="pcr",
    title="PCR",
    question="Is performance out of proportion to consistency in one of two splits?",
    config_key="detect.pcr",
    access="answers",
    read=_read,
    verdicts=_VERDICTS,
    gate=VerdictGate(
        name="pcr",
        asked="labelling",
        none="PCR was not measured",
        some="PCR was not measured of",
        hint="detect.pcr asks for it; ",
    ),
    sections=(
        ReportSection("pcr", "PCR", "pcr.html.jinja", lambda report: bool(report["pcr"]), 3),
    ),
)
