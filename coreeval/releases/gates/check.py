"""Checks a release against gates, and summarises findings for terminals, Markdown and JUnit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeVar, get_args

from coreeval.errors import GateNotMet, RunError, RunStateError
from coreeval.evaluation.report.report_file import load_report
from coreeval.evaluation.scores import Score
from coreeval.releases.gates.few_samples import explain_few_samples
from coreeval.releases.gates.limits import ForbiddenVerdicts, Gate, Gates, Limit, Side
from coreeval.releases.gates.values import (
    NUMBERS,
    GateSubject,
    GateValue,
    MissingValue,
    VerdictValue,
    read_verdicts,
)
from coreeval.releases.junit import JUnitCase, JUnitEnding, write_suite
from coreeval.releases.release import Release, read_release
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.releases.verify import verify
from coreeval.runs.quality import Findings, read_findings
from coreeval.schema import Value
from coreeval.tools.files import replacing
from coreeval.tools.formatting import format_estimate
from coreeval.tools.outputs import refuse_foreign_output
from coreeval.tools.tables import markdown_table
from coreeval.tools.workspace import command

GateStatus = Literal["met", "not_met", "not_measured", "too_few", "skipped"]
GATE_STATUSES: tuple[GateStatus, ...] = get_args(GateStatus)
STOPPING: Final[frozenset[GateStatus]] = frozenset({"not_met", "not_measured"})
"""Statuses that block a release; `skipped` marks a missing value whose gate tolerates it, `too_few`
a value beyond the limit that so few samples cannot avoid."""
Bound = Literal["min", "max"]
_BOUNDS: tuple[Bound, ...] = get_args(Bound)
V = TypeVar("V", GateValue, VerdictValue)
_NO_INTERVAL = MissingValue(
    "one sample is not enough for an interval", "omit `by`, or measure more samples"
)
_EXACT = 1e-9
"""Values this close to a limit meet it, because sums of floats differ in their last bits."""
_SIDES: Final[dict[Side, str]] = {
    "estimate": "",
    "ci_low": "lower end ",
    "ci_high": "upper end ",
}


class GateFinding(Value):
    """The result of one gate."""

    gate: str
    status: GateStatus
    of: str = ""
    """The label, target or series closest to the limit, or furthest beyond it."""
    score: Score | None = None
    """The value; `n` is 1 if there is no interval."""
    verdict: str = ""
    """The verdict, for a gate on verdicts; empty otherwise."""
    limit: str
    """The limit in words, with the relevant side of the interval."""
    reason: str = ""
    """The reason that the gate is not met or not measured; empty if it is met."""
    hint: str = ""
    """What to do about a missing value."""

    @property
    def stops(self) -> bool:
        """Return whether this finding blocks the release."""
        return self.status in STOPPING


def check_gates(subject: GateSubject, gates: Gates) -> tuple[GateFinding, ...]:
    """Return the finding of each gate that is set, in the order of `Gates`."""
    return tuple(
        _check_gate(subject, name, gate)
        for name in type(gates).model_fields
        if (gate := getattr(gates, name)) is not None
    )


def _check_gate(subject: GateSubject, name: str, gate: Gate) -> GateFinding:
    if isinstance(gate, Limit):
        return _check_numbers(subject, name, gate)
    assert isinstance(gate, ForbiddenVerdicts), "these are all the gates"
    said, absent = _split_values(read_verdicts(subject, name))
    limit = "not " + " or ".join(gate.forbid)
    bad = [each for each in said if each.verdict in gate.forbid]
    if absent and not bad:
        return _missing_finding(name, gate, absent, limit)
    if not bad:
        verdicts = ", ".join(dict.fromkeys(each.verdict for each in said))
        return GateFinding(gate=name, status="met", verdict=verdicts, limit=limit)
    return GateFinding(
        gate=name,
        status="not_met",
        of=bad[0].of,
        verdict=bad[0].verdict,
        limit=limit,
        reason="; ".join(map(_describe_finding, bad)),
    )


def _split_values(
    found: Sequence[V | MissingValue] | MissingValue,
) -> tuple[list[V], MissingValue | None]:
    """Return the values, and the first missing value if there is one."""
    if isinstance(found, MissingValue):
        return [], found
    absent = next((each for each in found if isinstance(each, MissingValue)), None)
    return [each for each in found if not isinstance(each, MissingValue)], absent


def _describe_finding(said: VerdictValue) -> str:
    return f"{said.of} is {said.verdict}{f' ({said.caveat})' if said.caveat else ''}"


def _missing_finding(name: str, gate: Gate, absent: MissingValue, limit: str) -> GateFinding:
    status: GateStatus = "skipped" if gate.missing == "skip" else "not_measured"
    return GateFinding(gate=name, status=status, limit=limit, reason=absent.why, hint=absent.hint)


def _check_numbers(subject: GateSubject, name: str, limit: Limit) -> GateFinding:
    found, absent = _split_values(NUMBERS[name](subject, limit))
    words, margins = limit_words(limit), {each: _margin(limit, each.score) for each in found}
    known = [each for each in found if margins[each] is not None]
    if len(known) < len(found):
        absent = absent or _NO_INTERVAL
    broken = [reason for each in known for reason in _broken_bounds(limit, each)]
    if absent and not broken:
        return _missing_finding(name, limit, absent, words)
    worst = min(known, key=lambda each: margins[each] or 0.0)
    few = explain_few_samples(subject.manifest, name, limit) if broken else ""
    if few:
        status: GateStatus = "too_few" if limit.missing == "skip" else "not_measured"
        return GateFinding(
            gate=name,
            status=status,
            of=worst.of,
            score=worst.score,
            limit=words,
            reason=few,
            hint="refresh more samples",
        )
    return GateFinding(
        gate=name,
        status="not_met" if broken else "met",
        of=worst.of,
        score=worst.score,
        limit=words,
        reason="; ".join(broken),
    )


def _broken_bounds(limit: Limit, found: GateValue) -> Iterator[str]:
    """Yield a description of each bound that a value exceeds."""
    for bound, side, allowed in _bounds(limit):
        value = getattr(found.score, side)
        beyond = value - allowed if bound == "max" else allowed - value
        if beyond > _EXACT:
            than = "more" if bound == "max" else "less"
            who = f"{found.of}: " if found.of else ""
            yield f"{who}{_SIDES[side]}{value:.4g} is {than} than {allowed:g}"


def _margin(limit: Limit, score: Score) -> float | None:
    """Return the distance to the nearest bound, negative beyond it; None without an interval."""
    margins = list[float]()
    for bound, side, allowed in _bounds(limit):
        value: float | None = getattr(score, side)
        if value is None:
            return None
        margins.append(allowed - value if bound == "max" else value - allowed)
    return min(margins)


def _bounds(limit: Limit) -> Iterator[tuple[Bound, Side, float]]:
    for bound in _BOUNDS:
        allowed = getattr(limit, bound)
        if allowed is not None:
            yield bound, limit.side(bound), allowed


def limit_words(limit: Limit) -> str:
    """Describe a limit in words: `at most 0.06`, `upper end at least 0.4`."""
    least = {"min": "at least", "max": "at most"}
    return " and ".join(
        f"{_SIDES[side]}{least[bound]} {allowed:g}" for bound, side, allowed in _bounds(limit)
    )


class GateResult(Value):
    """The results of all gates of a release."""

    release: str
    """Directory of the release."""
    name: str
    version: str
    digest: str
    gates: tuple[GateFinding, ...]

    @property
    def passed(self) -> bool:
        """Return whether the release may be passed on."""
        return not self.stopped

    @property
    def stopped(self) -> tuple[GateFinding, ...]:
        """Return the findings that block the release."""
        return tuple(each for each in self.gates if each.stops)


def check_release(
    path: Path, gates: Gates, *, report: Path | None = None, chain: bool = True
) -> GateResult:
    """Check a release against gates.

    Args:
        path: The release's directory.
        gates: The limits.
        report: The report.json of its run, if targets were queried after the release was made.
        chain: Whether the releases before it must exist, unchanged.

    Raises:
        ReleaseError: there is no release.
        RunError: the release was altered since it was made.
        RunStateError: the report is missing, or belongs to another run.
        RunCorrupt: the report is damaged.
    """
    _refuse_altered(path, chain)
    release = read_release(path)
    manifest = release.manifest
    findings = _read_findings(report, manifest) if report else manifest.findings
    return GateResult(
        release=str(path),
        name=manifest.name,
        version=manifest.version,
        digest=release.digest,
        gates=check_gates(GateSubject(manifest=manifest, findings=findings), gates),
    )


def require_gates(release: Release, gates: Gates) -> None:
    """Refuse a release in the making, before it has a name, if it fails a gate.

    Raises:
        GateNotMet: a limit is not met.
    """
    manifest = release.manifest
    where = f"{manifest.name} {manifest.version}, of {manifest.run}"
    hint = "no release was made; `coreeval docs gates` explains each gate"
    _require(manifest, gates, where, hint)


def require_gates_of_release(path: Path, gates: Gates) -> None:
    """Refuse an existing release, made without these gates, before it is announced.

    Raises:
        ReleaseError: there is no release.
        RunError: the release was altered since it was made.
        GateNotMet: a limit is not met.
    """
    _refuse_altered(path, chain=False)
    hint = (
        "remove the release and make it again (it is refused until it meets the gates), or change "
        "the gates (coreeval docs gates)"
    )
    _require(read_release(path).manifest, gates, str(path), hint)


def _require(manifest: ReleaseManifest, gates: Gates, where: str, hint: str) -> None:
    found = check_gates(GateSubject(manifest=manifest, findings=manifest.findings), gates)
    stopped = [f"{each.gate}: {each.reason}" for each in found if each.stops]
    if stopped:
        message = f"{len(stopped)} of {len(found)} gates not met: " + "; ".join(stopped)
        raise GateNotMet(message, where=where, hint=hint)


def _refuse_altered(path: Path, chain: bool) -> None:
    found = verify(path, chain=chain)
    if found.ok:
        return
    first, more = found.problems[0], len(found.problems) - 1
    others = f", and {more} more" if more else ""
    raise RunError(
        f"the release has changed since it was made: {first.kind} {first.file}: "
        f"{first.message}{others}",
        where=str(path),
        hint=f"no gate was checked; see all problems with: {command('verify', path)}",
    )


def _read_findings(report: Path, release: ReleaseManifest) -> Findings:
    said = load_report(report, hint="use the report.json of the release's run")
    if said is None:
        raise RunStateError(
            "report not found", where=str(report), hint="use RUN/report.json of its run"
        )
    if (said.get("run"), said.get("now")) != (release.run, release.now):
        raise RunStateError(
            f"the report is from run {said.get('run')}, but the release is from run {release.run}",
            where=str(report),
            hint="use the report of the released run",
        )
    return read_findings(said, where=report)


STATUS_WORDS: Final[Mapping[GateStatus, str]] = {
    "met": "met",
    "not_met": "NOT met",
    "not_measured": "NOT measured",
    "too_few": "too few",
    "skipped": "skipped",
}
_SIGN: Final[Mapping[GateStatus, str]] = {
    "met": "✅",
    "not_met": "❌",
    "not_measured": "❌",
    "too_few": "⏭️",
    "skipped": "⏭️",
}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~])")
"""Characters that Markdown, including GitHub's dialect, could interpret as markup."""
_AUTOLINKS = re.compile(r"(?i:www)(?=\.)|:/(?=/)|[@#]")
"""Patterns that start a link without brackets: addresses, e-mail, people, issues."""
_BREAK = "<!-- -->"
"""An invisible character that splits a text. A backslash does not work, because many renderers,
such as GitHub's for e-mail, remove it before they detect links."""


def format_value(found: GateFinding) -> str:
    """Format the value with its interval, or the verdict; `not measured` without either."""
    if found.verdict:
        return found.verdict
    score = found.score
    shown = score and score.ci_low is not None
    return format_estimate(score, ".4g", n=score.n if score and shown else None)


def format_finding(found: GateFinding) -> str:
    """Format the value with its target, or the reason that it is missing and what to do."""
    if found.status in ("not_met", "too_few"):
        return found.reason
    if found.reason:
        return f"not measured: {found.reason}; to do: {found.hint}"
    return f"{format_value(found)} ({found.of})" if found.of else format_value(found)


def format_verdict(gated: GateResult) -> str:
    """Return one line that says whether the release passes."""
    title, number = f"{gated.name} {gated.version}", len(gated.gates)
    if not gated.passed:
        return f"{title} does NOT pass: {len(gated.stopped)} of {number} gates not met"
    skipped = sum(each.status == "skipped" for each in gated.gates)
    few = sum(each.status == "too_few" for each in gated.gates)
    without = f", {skipped} skipped because not measured" if skipped else ""
    without += f", {few} not judged because there are too few samples" if few else ""
    return f"{title} passes: {number - skipped - few} of {number} gates met{without}"


def format_summary(gated: GateResult) -> str:
    """Return the summary as Markdown, with third-party text escaped."""
    return "\n".join(_summary_lines(gated)) + "\n"


def _summary_lines(gated: GateResult) -> Iterator[str]:
    yield f"## {'✅' if gated.passed else '❌'} {_text(format_verdict(gated))}"
    yield ""
    rows = (
        (_SIGN[each.status], f"`{each.gate}`", _text(format_finding(each)), _text(each.limit))
        for each in gated.gates
    )
    yield from markdown_table("", "gate", "found", "required", rows=rows).splitlines()
    yield ""
    yield f"Release `{gated.digest}`."


def _text(text: str) -> str:
    """Return a text on one line, escaped so that Markdown shows it literally and without links."""
    bare = "".join(each if each.isprintable() else " " for each in text)
    shown = _MARKDOWN.sub(r"\\\1", " ".join(bare.split())).replace("&", "&amp;")
    return _AUTOLINKS.sub(lambda found: found[0] + _BREAK, shown)


_ENDINGS: Final[Mapping[GateStatus, JUnitEnding]] = {
    "met": "passed",
    "not_met": "failure",
    "not_measured": "failure",
    "too_few": "skipped",
    "skipped": "skipped",
}


def write_junit(path: Path, gated: GateResult, moment: datetime) -> None:
    """Write the JUnit file; a gate that is not met, or not measured, is a failure."""
    refuse_foreign_output(path, "<?xml")
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
        message=f"{format_finding(found)}; required: {found.limit}",
    )
