"""The detectors of memory: the one list for commands, reports, gates and calibration."""

from collections.abc import Mapping
from typing import Final

from coreeval.evaluation.detectors.arms import ARMS, ITEMS, PANEL
from coreeval.evaluation.detectors.base import Detector
from coreeval.evaluation.detectors.exchangeability import EXCHANGEABILITY
from coreeval.evaluation.detectors.finetune import FINETUNE
from coreeval.evaluation.detectors.membership import MEMBERSHIP
from coreeval.evaluation.detectors.numleak import NUMLEAK
from coreeval.evaluation.detectors.overlap import OVERLAP
from coreeval.evaluation.detectors.pcr import PCR
from coreeval.evaluation.detectors.recitation import RECITATION

DETECTORS: Final[Mapping[str, Detector]] = {
    each.name: each
    for each in (
        PCR,
        ARMS,
        ITEMS,
        PANEL,
        NUMLEAK,
        RECITATION,
        MEMBERSHIP,
        EXCHANGEABILITY,
        OVERLAP,
        FINETUNE,
    )
}
"""By name, in the order in which they are shown."""
SUMMARIES: Final = {
    each.report_key: each.summarize for each in DETECTORS.values() if each.summarize
}
"""What a terminal shows of a detector's part of report.json, by the key of that part."""
TARGET_DETECTORS: Final = tuple(each for each in DETECTORS.values() if each.about_targets)
"""Those that say something of a target."""
BENCHMARK_DETECTORS: Final = tuple(each for each in DETECTORS.values() if not each.about_targets)
"""Those that say something of a benchmark."""
GATED: Final[Mapping[str, Detector]] = {
    each.verdict_gate.name: each for each in TARGET_DETECTORS if each.verdict_gate
}
"""Those whose verdicts a gate may forbid, by the name of the gate."""
ASKED: Final[Mapping[str, Detector]] = {
    each.name: each for each in TARGET_DETECTORS if each.questions
}
"""Those that `coreeval detect NAME RUN` runs, by name."""
PROBES: Final = tuple(probe for each in ASKED.values() for probe in each.probes.values())
"""Those that `coreeval detect NAME RUN --probe KEY` runs; only their documents are read."""
DOCUMENTED: Final[Mapping[str, Detector]] = {
    each.name: each for each in (*DETECTORS.values(), *PROBES) if each.has_document
}
"""Those of which a run keeps a document, by name."""
