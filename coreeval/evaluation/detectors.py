"""The detectors of memory: the one list that agreement, findings, gates and calibration go through.

A detector reads its findings from report.json. What a run asks of targets, its estimate and the
sections of its report are still written by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from coreeval.evaluation.pcr.verdicts import ABOUT_MEMORY, CAVEATS

Json = Mapping[str, Any]
MemoryFinding = Literal["remembered", "not_shown", "cannot_tell", "not_measured"]
"""Memory was found; it was looked for and not found; what was asked cannot tell; nobody asked."""
Access = Literal["answers", "log_probabilities", "weights"]


ANY_OTHER: Final = ""
"""In place of a target: every target that no finding names."""


class Finding(NamedTuple):
    """What a detector says of a target, or of one part of what the target was asked."""

    target: str
    memory: MemoryFinding
    verdict: str
    """In the detector's own words; empty where it was not run on the target."""
    reason: str
    part: str = ""
    """Such as the series that it is about."""
    caveat: str = ""
    """Under which condition the verdict holds."""


@dataclass(frozen=True, kw_only=True)
class VerdictGate:
    """How a gate forbids verdicts of a detector."""

    name: str
    """In a file of gates, and in the findings of a release."""
    asked: Literal["labelling", "audited"]
    """Which targets must have a verdict: those that label texts, or those asked for values."""
    none: str
    """What is said where no target has a verdict."""
    some: str
    """What is said before the names of targets without one."""
    hint: str = ""
    """What to do, before the advice to ask the targets."""


@dataclass(frozen=True, kw_only=True)
class Detector:
    """One way to tell whether a target remembers a benchmark."""

    name: str
    title: str
    """Its name in sentences."""
    question: str
    """What it asks, in a sentence."""
    config_key: str
    """The key of a config that asks for it."""
    access: Access
    read: Callable[[Json], Iterable[Finding]]
    """Reads its findings from report.json; yields nothing where it was not run."""
    verdicts: Mapping[str, MemoryFinding] = field(default_factory=dict)
    """What each verdict says of memory; empty where `read` says that itself."""
    gate: VerdictGate | None = None
    parts: str = ""
    """What the parts of its findings are called, if it has several for a target."""
    column: str = ""
    """Its name in the agreement of report.json and in calibration.json, if it is another."""

    @property
    def key(self) -> str:
        """The detector's key in report.json."""
        return self.column or self.name


_PCR: Final[Mapping[str, MemoryFinding]] = {
    "fine_tuned": "remembered",
    "contaminated": "remembered",
    "comparable": "not_shown",
    "difficulty_or_memory": "cannot_tell",
    "inconclusive": "cannot_tell",
    "insufficient_signal": "cannot_tell",
}
_DROP: Final[Mapping[str, MemoryFinding]] = {
    "remembered": "remembered",
    "not_shown": "not_shown",
    "arms_differ": "cannot_tell",
    "no_control": "cannot_tell",
    "too_few": "cannot_tell",
}
_NUMLEAK: Final[Mapping[str, MemoryFinding]] = {
    "memorized": "remembered",
    "partly_memorized": "remembered",
    "fluent": "not_shown",
    "fabricating": "not_shown",
    "no_recall": "not_shown",
    "inconclusive": "cannot_tell",
    "refusing": "cannot_tell",
}


def _read_pcr(report: Json) -> Iterator[Finding]:
    for each in _list_part(report, "pcr", "targets"):
        verdict = each["verdict"]
        caveat = CAVEATS[each["test"]["basis"]] if verdict in ABOUT_MEMORY else ""
        yield Finding(each["name"], _PCR[verdict], verdict, each["reason"], caveat=caveat)


def _read_drops(report: Json) -> Iterator[Finding]:
    for each in _list_part(report, "decomposition", "targets"):
        verdict = each["verdict"]
        yield Finding(each["target"], _DROP[verdict], verdict, "; ".join(each["reasons"]))


def _read_items(report: Json) -> Iterator[Finding]:
    for each in _list_part(report, "decomposition", "targets"):
        yield _read_flagged(each["target"], each["items"])


def _read_flagged(target: str, items: Json) -> Finding:
    if items["base"] is None:
        return Finding(target, "cannot_tell", "too_few", items["note"])
    flagged = sum(len(each["ids"]) for each in items["kinds"].values())
    verdict = f"{flagged} of {items['n']} flagged"
    if not flagged:
        return Finding(target, "not_shown", verdict, items["note"])
    wrong = sum(each["expected_false"] for each in items["kinds"].values())
    return Finding(
        target, "remembered", verdict, f"of them at most {wrong:.1f} falsely, on average"
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


def _read_series(report: Json) -> Iterator[Finding]:
    for each in _list_part(report, "numleak", "series"):
        verdict = each["verdict"]
        reason = f"{each['name']}: {'; '.join(each['reasons'])}"
        yield Finding(each["model"], _NUMLEAK[verdict], verdict, reason, part=each["series"])


def _list_part(report: Json, part: str, key: str) -> Iterable[Json]:
    found = report.get(part)
    return found[key] if found else ()


def _list_detectors(*listed: Detector) -> dict[str, Detector]:
    return {each.name: each for each in listed}


DETECTORS: Final[Mapping[str, Detector]] = _list_detectors(
    Detector(
        name="pcr",
        title="PCR",
        question="Is performance out of proportion to consistency in one of two splits?",
        config_key="detect.pcr",
        access="answers",
        read=_read_pcr,
        verdicts=_PCR,
        gate=VerdictGate(
            name="pcr",
            asked="labelling",
            none="PCR was not measured",
            some="PCR was not measured of",
            hint="detect.pcr asks for it; ",
        ),
    ),
    Detector(
        name="arms",
        title="the decomposition",
        column="decomposition",
        question="Is more lost than rewriting and wrong labels explain?",
        config_key="models.targets",
        access="answers",
        read=_read_drops,
        verdicts=_DROP,
        gate=VerdictGate(
            name="drop",
            asked="labelling",
            none="no target labelled the arms",
            some="the arms were not labelled by",
        ),
    ),
    Detector(
        name="items",
        title="single samples",
        question="Are there samples right on the original only, more than chance makes?",
        config_key="models.targets",
        access="answers",
        read=_read_items,
    ),
    Detector(
        name="panel",
        title="the panel",
        question="Does the target do better on the originals than others of its ability?",
        config_key="models.targets",
        access="answers",
        read=_read_panel,
    ),
    Detector(
        name="numleak",
        title="NumLeak",
        question="Can the target recite numbers of a published series?",
        config_key="detect.numleak",
        access="answers",
        read=_read_series,
        parts="series",
        verdicts=_NUMLEAK,
        gate=VerdictGate(
            name="numleak",
            asked="audited",
            none="no series was asked for",
            some="not asked:",
            hint="detect.numleak names series; ",
        ),
    ),
)
"""By name, in the order in which they are shown."""
GATED: Final[Mapping[str, Detector]] = {
    each.gate.name: each for each in DETECTORS.values() if each.gate
}
"""Those whose verdicts a gate may forbid, by the name of the gate."""
