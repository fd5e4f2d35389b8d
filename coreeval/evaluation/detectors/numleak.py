"""NumLeak's audit of memorized series as a detector."""

from collections.abc import Iterator, Mapping
from typing import Final

from coreeval.evaluation.detectors.base import (
    Detector,
    Finding,
    Json,
    MemoryFinding,
    ReportSection,
    VerdictGate,
    iter_part,
)

_VERDICTS: Final[Mapping[str, MemoryFinding]] = {
    "memorized": "remembered",
    "partly_memorized": "remembered",
    "fluent": "not_shown",
    "fabricating": "not_shown",
    "no_recall": "not_shown",
    "inconclusive": "cannot_tell",
    "refusing": "cannot_tell",
}


def _read(report: Json) -> Iterator[Finding]:
    for each in iter_part(report, "numleak", "series"):
        verdict = each["verdict"]
        reason = f"{each['name']}: {'; '.join(each['reasons'])}"
        yield Finding(each["model"], _VERDICTS[verdict], verdict, reason, part=each["series"])


_TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "r": (
        "r",
        "Pearson's correlation of the values that a target said with those that were published.",
    ),
    "within": (
        "within tolerance",
        "the share of its answers that are no further from the published value than the tolerance "
        "of the series.",
    ),
    "parsed": ("answered", "the share of the questions to which a number could be read."),
}

NUMLEAK: Final = Detector(
    name="numleak",
    title="NumLeak",
    question="Can the target recite numbers of a published series?",
    config_key="detect.numleak",
    access="answers",
    report_key="numleak",
    read=_read,
    parts="series",
    verdicts=_VERDICTS,
    gate=VerdictGate(
        name="numleak",
        asked="audited",
        none="no series was asked for",
        some="not asked:",
        hint="detect.numleak names series; ",
    ),
    terms=_TERMS,
    sections=(
        ReportSection(
            "numleak", "NumLeak", "numleak.html.jinja", lambda report: bool(report["numleak"]), 4
        ),
    ),
)
