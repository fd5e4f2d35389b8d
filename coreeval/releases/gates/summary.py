"""What gates found, for terminals, as Markdown for the summary of a CI job, and as JUnit."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from coreeval.releases.gates.check import GateFinding, GateResult, GateStatus
from coreeval.releases.junit import JUnitCase, JUnitEnding, write_suite
from coreeval.tools.files import replacing

STATUS_WORDS: Final[Mapping[GateStatus, str]] = {
    "met": "met",
    "not_met": "NOT met",
    "not_measured": "NOT measured",
    "skipped": "skipped",
}
_SIGN: Final[Mapping[GateStatus, str]] = {
    "met": "✅",
    "not_met": "❌",
    "not_measured": "❌",
    "skipped": "⏭️",
}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~])")
"""What Markdown, or GitHub's kind of it, could take for something other than text."""
_AUTOLINKS = re.compile(r"(?i:www)(?=\.)|:/(?=/)|[@#]")
"""Where links begin that need no brackets: addresses, e-mail, people, issues."""
_BREAK = "<!-- -->"
"""Parts a text without a trace. A backslash does not: its mark is gone before many renderers, that
of GitHub among them for e-mail, look for links."""


def format_value(found: GateFinding) -> str:
    """Return the value with its interval, or the verdict; `not measured` without either."""
    if found.verdict:
        return found.verdict
    score = found.score
    if score is None or score.estimate is None:
        return "not measured"
    told = f"{score.estimate:.4g}"
    if score.ci_low is None or score.ci_high is None:
        return told
    return f"{told} ({score.ci_low:.4g} to {score.ci_high:.4g}, n = {score.n})"


def format_finding(found: GateFinding) -> str:
    """Return the value with whose it is, or why it is missing and what to do."""
    if found.status == "not_met":
        return found.reason
    if found.reason:
        return f"not measured: {found.reason}; to do: {found.hint}"
    return f"{format_value(found)} ({found.of})" if found.of else format_value(found)


def format_verdict(gated: GateResult) -> str:
    """Return in one line whether the release passes."""
    title, number = f"{gated.name} {gated.version}", len(gated.gates)
    if not gated.passed:
        return f"{title} does NOT pass: gates not met: {len(gated.stopped)} of {number}"
    skipped = sum(each.status == "skipped" for each in gated.gates)
    without = f", the others not measured and skipped: {skipped}" if skipped else ""
    return f"{title} passes: gates met: {number - skipped} of {number}{without}"


def format_summary(gated: GateResult) -> str:
    """Return the summary as Markdown; what others wrote is text in it and nothing else."""
    return "\n".join(_summary_lines(gated)) + "\n"


def _summary_lines(gated: GateResult) -> Iterator[str]:
    yield f"## {'✅' if gated.passed else '❌'} {_text(format_verdict(gated))}"
    yield ""
    yield "| | gate | found | wanted |"
    yield "|---|---|---|---|"
    for each in gated.gates:
        cells = (f"`{each.gate}`", _text(format_finding(each)), _text(each.limit))
        yield f"| {_SIGN[each.status]} | {' | '.join(cells)} |"
    yield ""
    yield f"Release `{gated.digest}`."


def _text(text: str) -> str:
    """Return a text on one line that Markdown shows as it is, without links."""
    bare = "".join(each if each.isprintable() else " " for each in text)
    shown = _MARKDOWN.sub(r"\\\1", " ".join(bare.split())).replace("&", "&amp;")
    return _AUTOLINKS.sub(lambda found: found[0] + _BREAK, shown)


_ENDINGS: Final[Mapping[GateStatus, JUnitEnding]] = {
    "met": "passed",
    "not_met": "failure",
    "not_measured": "failure",
    "skipped": "skipped",
}


def write_junit(path: Path, gated: GateResult, moment: datetime) -> None:
    """Write the file; a gate that is not met, or not measured, is a failure."""
    name = f"gates of {gated.name} {gated.version}"
    with replacing(path) as draft:
        write_suite(
            draft,
            name=name,
            moment=moment,
            cases=lambda: (_gate_case(name, g) for g in gated.gates),
        )


def _gate_case(group: str, found: GateFinding) -> JUnitCase:
    return JUnitCase(
        group=group,
        name=found.gate,
        ending=_ENDINGS[found.status],
        kind=found.status,
        message=f"{format_finding(found)}; wanted {found.limit}",
    )
