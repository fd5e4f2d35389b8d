"""The three detectors that compare a target's answers on the arms of a run."""

from collections.abc import Iterator, Mapping
from typing import Final

from coreeval.evaluation.detectors.base import (
    ANY_OTHER,
    Detector,
    Finding,
    Json,
    MemoryFinding,
    ReportSection,
    VerdictGate,
    iter_part,
)

_VERDICTS: Final[Mapping[str, MemoryFinding]] = {
    "remembered": "remembered",
    "not_shown": "not_shown",
    "arms_differ": "cannot_tell",
    "no_control": "cannot_tell",
    "too_few": "cannot_tell",
}


def _read_drops(report: Json) -> Iterator[Finding]:
    for each in iter_part(report, "decomposition", "targets"):
        verdict = each["verdict"]
        yield Finding(each["target"], _VERDICTS[verdict], verdict, "; ".join(each["reasons"]))


ARMS: Final = Detector(
    name="arms",
    title="the decomposition",
    column="decomposition",
    question="Is the drop from the originals to the updated texts larger than rewriting and wrong "
    "labels can explain?",
    config_key="models.targets",
    access="answers",
    read=_read_drops,
    verdicts=_VERDICTS,
    gate=VerdictGate(
        name="drop",
        asked="labelling",
        none="no target labelled the arms",
        some="these targets did not label the arms:",
    ),
    sections=(
        ReportSection(
            "arms", "Targets", "arms.html.jinja", lambda report: bool(report["arms"]["targets"]), 1
        ),
        ReportSection(
            "apart",
            "Causes of the drop",
            "decomposition.html.jinja",
            lambda report: bool(report["decomposition"]["targets"]),
            2,
        ),
    ),
)


def _read_items(report: Json) -> Iterator[Finding]:
    for each in iter_part(report, "decomposition", "targets"):
        yield _read_flagged(each["target"], each["items"])


def _read_flagged(target: str, items: Json) -> Finding:
    if items["base"] is None:
        return Finding(target, "cannot_tell", "too_few", items["note"])
    flagged = sum(len(each["ids"]) for each in items["kinds"].values())
    verdict = f"{flagged} of {items['n']} flagged"
    if not flagged:
        return Finding(target, "not_shown", verdict, items["note"])
    wrong = sum(each["expected_false"] for each in items["kinds"].values())
    reason = f"of the flagged samples, at most {wrong:.1f} are false positives on average"
    return Finding(target, "remembered", verdict, reason)


ITEMS: Final = Detector(
    name="items",
    title="single samples",
    question="Is the target right only on the original for more samples than expected by chance?",
    config_key="models.targets",
    access="answers",
    read=_read_items,
)


def _read_panel(report: Json) -> Iterator[Finding]:
    panel = (report.get("decomposition") or {}).get("panel")
    if not panel:
        return
    for each in panel["targets"]:
        memory: MemoryFinding = "remembered" if each["stands_out"] else "not_shown"
        verdict = "stands out" if each["stands_out"] else "as the others"
        yield Finding(each["target"], memory, verdict, f"adjusted p {each['p_adjusted']:.4f}")
    yield Finding(ANY_OTHER, "not_measured", "", panel["note"])


PANEL: Final = Detector(
    name="panel",
    title="the panel",
    question="Does the target do better on the originals than comparable targets?",
    config_key="models.targets",
    access="answers",
    read=_read_panel,
)
