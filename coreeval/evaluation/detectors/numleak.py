"""NumLeak's audit of memorized series as a detector."""

from collections.abc import Iterator, Mapping
from typing import Final

from coreeval.evaluation.detectors.base import (
    Detector,
    Finding,
    Json,
    MemoryFinding,
    ReportSection,
    SectionTemplates,
    VerdictGate,
    iter_part,
)
from coreeval.tools.formatting import format_number
from coreeval.tools.tables import Foreign, Table, numbers, text_lines, texts

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
        reason = f"{each['name']}: {' '.join(each['reasons'])}"
        yield Finding(each["model"], _VERDICTS[verdict], verdict, reason, part=each["series"])


_TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "r": (
        "r",
        "Pearson's correlation of the target's answers with the published values.",
    ),
    "within": (
        "within tolerance",
        "the share of the target's answers within the tolerance of the series.",
    ),
    "parsed": ("answered", "the share of the questions with a readable number as the answer."),
}

_COLUMNS: Final = (
    texts("target", 26), texts("series", 24), numbers("answered", 9), numbers("Pearson r", 11),
    numbers("within tolerance", 17), texts("verdict", gap=2),
)  # fmt: skip
_FIGURES: Final = ("parse_rate", "pearson_r", "within_tolerance")


def _summarize(part: Json) -> Iterator[str]:
    """Yield a table of the verdict on each target and series."""
    rows = [
        (Foreign(one["model"]), one["series"],
         *(format_number(one[name]["estimate"], ".2f") for name in _FIGURES),
         one["verdict"].replace("_", " "))
        for one in part["series"]
    ]  # fmt: skip
    if rows:
        yield from text_lines(Table(_COLUMNS, rows, "NumLeak: recall of published values"))


def _open_templates() -> SectionTemplates:
    from markupsafe import Markup

    from coreeval.evaluation.numleak.audit_page import leak_section
    from coreeval.evaluation.numleak.defences.tradeoff import describe_agreement, tradeoff_sketches
    from coreeval.evaluation.numleak.sketches import strip_svg

    return SectionTemplates(
        package="coreeval.evaluation.numleak",
        filters={
            "agreement_line": describe_agreement,
            "strip": lambda entropy: Markup(strip_svg(entropy)),  # numbers alone
            "tradeoffs": tradeoff_sketches,
        },
        functions={"leak_section": leak_section},
    )


NUMLEAK: Final = Detector(
    name="numleak",
    title="NumLeak",
    question="Can the target recite the values of a published series?",
    config_key="detect.numleak",
    access="answers",
    report_key="numleak",
    summarize=_summarize,
    open_templates=_open_templates,
    read=_read,
    parts="series",
    verdicts=_VERDICTS,
    gate=VerdictGate(
        name="numleak",
        asked="audited",
        none="the target was not asked about any series",
        some="no questions were asked for these targets and series:",
        hint="list series in detect.numleak; ",
    ),
    terms=_TERMS,
    sections=(
        ReportSection(
            "numleak", "NumLeak", "numleak.html.jinja", lambda report: bool(report["numleak"]), 4
        ),
    ),
)
