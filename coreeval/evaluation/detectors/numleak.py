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


NUMLEAK: Final = Detector(
    name="numleak",
    title="NumLeak",
    question="Can the target recite numbers of a published series?",
    config_key="detect.numleak",
    access="answers",
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
    sections=(
        ReportSection(
            "numleak", "NumLeak", "numleak.html.jinja", lambda report: bool(report["numleak"]), 4
        ),
    ),
)
