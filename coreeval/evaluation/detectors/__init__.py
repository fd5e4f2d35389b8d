"""The detectors of memory: the single list for commands, reports, gates and calibration."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from pydantic import ValidationError

from coreeval.config.plugins import parse_plugin
from coreeval.evaluation.detectors.arms import ARMS, ITEMS, PANEL
from coreeval.evaluation.detectors.base import DOCUMENTS, PLUGIN_DOCUMENT, Detector, Json
from coreeval.evaluation.detectors.exchangeability import EXCHANGEABILITY
from coreeval.evaluation.detectors.finetune import FINETUNE
from coreeval.evaluation.detectors.membership import MEMBERSHIP
from coreeval.evaluation.detectors.numleak import NUMLEAK
from coreeval.evaluation.detectors.pcr import PCR
from coreeval.evaluation.detectors.recitation import RECITATION

OVERLAP: Final = Detector(
    name="overlap",
    title="overlap",
    question="Does a benchmark repeat its own items or those of another benchmark?",
    access="answers",
    about_targets=False,
)
"""Texts that two benchmarks share: no target is asked or judged."""
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
"""The detectors by name, in display order."""
SUMMARIES: Final = {
    each.report_key: each.summarize for each in DETECTORS.values() if each.summarize
}
"""The terminal output for a detector's part of report.json, by the key of that part."""
TARGET_DETECTORS: Final = tuple(each for each in DETECTORS.values() if each.about_targets)
"""The detectors of memory in targets."""
BENCHMARK_DETECTORS: Final = tuple(each for each in DETECTORS.values() if not each.about_targets)
"""The detectors for benchmarks."""
GATED: Final[Mapping[str, Detector]] = {
    each.verdict_gate.name: each for each in TARGET_DETECTORS if each.verdict_gate
}
"""The detectors whose verdicts a gate may forbid, by the name of the gate."""
ASKED: Final[Mapping[str, Detector]] = {
    each.name: each for each in TARGET_DETECTORS if each.questions
}
"""The detectors that `coreeval detect NAME RUN` runs, by name."""
PROBES: Final = tuple(probe for each in ASKED.values() for probe in each.probes.values())
"""The detectors that `coreeval detect NAME RUN --probe KEY` runs; only their documents are read."""
DOCUMENTED: Final[Mapping[str, Detector]] = {
    each.name: each for each in (*DETECTORS.values(), *PROBES) if each.has_document
}
"""The detectors for which a run stores a document, by name."""


def find_detector(name: str) -> Detector | None:
    """Return a detector that asks targets of a run: a built-in one, or `plugin:NAME`.

    Return None if no detector has that name.

    Raises:
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    if name in ASKED:
        return ASKED[name]
    plugin = parse_plugin(name)
    if plugin is None:
        return None
    from coreeval.evaluation.detectors.plugin_detector import open_plugin_detector  # for few

    return open_plugin_detector(plugin)


def list_target_detectors(report: Json) -> list[Detector]:
    """Return the detectors of memory in targets, including those of a report's plugins.

    Plugins are not loaded: the documents of their findings define their verdicts. Documents without
    these definitions are left out.
    """
    documents = report.get(DOCUMENTS) or {}
    named = [document for name, document in documents.items() if name.startswith(PLUGIN_DOCUMENT)]
    return [*TARGET_DETECTORS, *restore_detectors(named)]


def restore_detectors(documents: Iterable[Json]) -> Iterator[Detector]:
    """Yield the plugin detectors that wrote these documents."""
    for document in documents:
        from coreeval.evaluation.detectors.plugin_detector import restore_detector  # for few

        with suppress(ValidationError, KeyError, TypeError):
            yield restore_detector(document)
