"""What gates found, in words: for terminals, and as Markdown for the summary of a CI job."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from coreeval.releases.gates.checking import Finding, Status
from coreeval.releases.gates.gating import Gated

SAID: Final[Mapping[Status, str]] = {
    "met": "met",
    "not_met": "NOT met",
    "not_measured": "NOT measured",
    "skipped": "skipped",
}
_SIGN: Final[Mapping[Status, str]] = {
    "met": "✅",
    "not_met": "❌",
    "not_measured": "❌",
    "skipped": "⏭️",
}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~])")
"""What Markdown, or GitHub's kind of it, could take for something other than text."""
_LINKED = re.compile(r"(?i:www)(?=\.)|:/(?=/)|[@#]")
"""Where links begin that need no brackets: addresses, e-mail, people, issues."""
_BREAK = "<!-- -->"
"""Parts a text without a trace. A backslash does not: its mark is gone before many renderers, that
of GitHub among them for e-mail, look for links."""


def value_words(found: Finding) -> str:
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


def found_words(found: Finding) -> str:
    """Return the value with whose it is, or why it is missing and what to do."""
    if found.status == "not_met":
        return found.reason
    if found.reason:
        return f"not measured: {found.reason}; to do: {found.hint}"
    return f"{value_words(found)} ({found.of})" if found.of else value_words(found)


def verdict_words(gated: Gated) -> str:
    """Return in one line whether the release passes."""
    title, number = f"{gated.name} {gated.version}", len(gated.gates)
    if not gated.passed:
        return f"{title} does NOT pass: gates not met: {len(gated.stopped)} of {number}"
    skipped = sum(each.status == "skipped" for each in gated.gates)
    without = f", the others not measured and skipped: {skipped}" if skipped else ""
    return f"{title} passes: gates met: {number - skipped} of {number}{without}"


def summary(gated: Gated) -> str:
    """Return the summary as Markdown; what others wrote is text in it and nothing else."""
    return "\n".join(_summary_lines(gated)) + "\n"


def _summary_lines(gated: Gated) -> Iterator[str]:
    yield f"## {'✅' if gated.passed else '❌'} {_text(verdict_words(gated))}"
    yield ""
    yield "| | gate | found | wanted |"
    yield "|---|---|---|---|"
    for each in gated.gates:
        cells = (f"`{each.gate}`", _text(found_words(each)), _text(each.limit))
        yield f"| {_SIGN[each.status]} | {' | '.join(cells)} |"
    yield ""
    yield f"Release `{gated.digest}`."


def _text(text: str) -> str:
    """Return a text on one line that Markdown shows as it is, without links."""
    bare = "".join(each if each.isprintable() else " " for each in text)
    shown = _MARKDOWN.sub(r"\\\1", " ".join(bare.split())).replace("&", "&amp;")
    return _LINKED.sub(lambda found: found[0] + _BREAK, shown)
