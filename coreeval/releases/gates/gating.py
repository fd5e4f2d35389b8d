"""Gating a release: that it is what was made, then what each gate finds."""

from pathlib import Path

from coreeval.errors import GateNotMet, RunError, RunStateError
from coreeval.evaluation.report.report_file import load_report
from coreeval.releases.findings import findings_of
from coreeval.releases.gates.checking import Finding, check
from coreeval.releases.gates.limits import Gates
from coreeval.releases.gates.values import Subject
from coreeval.releases.release import Release, read_release
from coreeval.releases.release_manifest import Findings, ReleaseManifest
from coreeval.releases.verifying import verify
from coreeval.schema import Value
from coreeval.tools.workspace import command


class Gated(Value):
    """What the gates of a release found."""

    release: str
    """Its directory."""
    name: str
    version: str
    digest: str
    gates: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether others may have it."""
        return not self.stopped

    @property
    def stopped(self) -> tuple[Finding, ...]:
        """The gates that keep it back."""
        return tuple(each for each in self.gates if each.stops)


def gate_release(
    path: Path, gates: Gates, *, report: Path | None = None, chain: bool = True
) -> Gated:
    """Hold a release against gates.

    Args:
        path: The release's directory.
        gates: The limits.
        report: The report.json of its run, where targets were asked after the release was made.
        chain: Whether the releases before it must be there, unchanged.

    Raises:
        ReleaseError: there is no release.
        RunError: it is not what was made.
        RunStateError: the report is not there, or of another run.
        RunCorrupt: the report is damaged.
    """
    _refuse_altered(path, chain)
    release = read_release(path)
    manifest = release.manifest
    findings = _findings_in(report, manifest) if report else manifest.findings
    return Gated(
        release=str(path),
        name=manifest.name,
        version=manifest.version,
        digest=release.digest,
        gates=check(Subject(manifest=manifest, findings=findings), gates),
    )


def require_gates(release: Release, gates: Gates) -> None:
    """Refuse a release that is being made, and has no name yet.

    Raises:
        GateNotMet: it is beyond a limit.
    """
    manifest = release.manifest
    where = f"{manifest.name} {manifest.version}, of {manifest.run}"
    hint = "no release was made; docs/gates.md says what each gate looks at"
    _require(manifest, gates, where, hint)


def require_gates_of(path: Path, gates: Gates) -> None:
    """Refuse a release that is there, made without these gates, before others are told of it.

    Raises:
        ReleaseError: there is none.
        RunError: it is not what was made.
        GateNotMet: it is beyond a limit.
    """
    _refuse_altered(path, chain=False)
    hint = (
        "remove it to have it made anew, which these gates refuse as long as it is beyond them, or "
        "change them (docs/gates.md)"
    )
    _require(read_release(path).manifest, gates, str(path), hint)


def _require(manifest: ReleaseManifest, gates: Gates, where: str, hint: str) -> None:
    found = check(Subject(manifest=manifest, findings=manifest.findings), gates)
    stopped = [f"{each.gate}: {each.reason}" for each in found if each.stops]
    if stopped:
        message = f"gates not met: {len(stopped)} of {len(found)}: " + "; ".join(stopped)
        raise GateNotMet(message, where=where, hint=hint)


def _refuse_altered(path: Path, chain: bool) -> None:
    found = verify(path, chain=chain)
    if found.ok:
        return
    first, more = found.problems[0], len(found.problems) - 1
    others = f", and {more} more" if more else ""
    raise RunError(
        f"the release is not what was made: {first.kind} {first.file}: {first.message}{others}",
        where=str(path),
        hint=f"see all of it: {command('verify', path)}; no gate was looked at",
    )


def _findings_in(report: Path, release: ReleaseManifest) -> Findings:
    said = load_report(report, hint="give the report.json of the release's run")
    if said is None:
        raise RunStateError(
            "there is no such report", where=str(report), hint="give RUN/report.json of its run"
        )
    if (said.get("run"), said.get("now")) != (release.run, release.now):
        raise RunStateError(
            f"the report is of the run {said.get('run')}, the release of {release.run}",
            where=str(report),
            hint="give the report of the run that was released",
        )
    return findings_of(said, where=report)
