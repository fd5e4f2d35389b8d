"""`coreeval release` and `verify`: makes and verifies immutable releases of a run's dataset."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.completion import complete_releases
from coreeval.cli.options import ReleaseArgument, RunArgument
from coreeval.cli.output import (
    AsJson,
    brief,
    command,
    comparability_lines,
    note,
    offline_lines,
    one_line,
    show,
)
from coreeval.tools.formatting import NOT_MEASURED, format_quantity, format_share
from coreeval.tools.workspace import RunFiles

if TYPE_CHECKING:
    from coreeval.releases.release import Release
    from coreeval.releases.sources import Parent
    from coreeval.releases.verify import Verification


SHOWN = 20
"""The most problems listed; `--json` has them all."""


def release(
    run: RunArgument,
    version: Annotated[
        str,
        typer.Option(metavar="VERSION", help="The version, such as 2026.47.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Output folder; by default releases/NAME/VERSION in the workspace.",
        ),
    ] = None,
    parent: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="The parent release: latest, none, or the directory of a release.",
            autocompletion=complete_releases,
        ),
    ] = "latest",
    snippets: Annotated[
        bool,
        typer.Option(
            "--snippets/--no-snippets", help="Whether to quote the news in the provenance."
        ),
    ] = True,
    takedown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="A list of names and evidence ids to exclude; it replaces the config's list.",
        ),
    ] = None,
    require_review: Annotated[
        bool,
        typer.Option(
            "--require-review",
            help="Require a person's decision on every sample that `coreeval review` lists.",
        ),
    ] = False,
    gates: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A file of gates that the release must pass (otherwise, the exit code is 4); "
            "`default` uses the built-in gates.",
        ),
    ] = None,
    allow_empty_arm: Annotated[
        bool,
        typer.Option(
            "--allow-empty-arm",
            help="Make the release even if no sample has a new text (otherwise, the exit code "
            "is 4).",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make an immutable, named release of a run's dataset."""
    from coreeval.releases.create import make_release
    from coreeval.releases.gates.limits import resolve_gates
    from coreeval.releases.release_document import build_release_document
    from coreeval.runs.manifest import read_manifest
    from coreeval.runs.own_config import iter_config_remarks

    made = make_release(
        run,
        version=version,
        out=out,
        parent=_parse_parent(parent),
        snippets=snippets,
        takedown=takedown,
        require_review=require_review,
        gates=resolve_gates(gates, base=Path()),
        allow_empty_arm=allow_empty_arm,
    )
    for remark in iter_config_remarks(read_manifest(RunFiles(run).manifest).source):
        note(f"note: {remark}")
    show(build_release_document(made), as_json, lambda: "\n".join(_words(made, run)))


def _parse_parent(said: str) -> "Parent":
    if said == "latest":
        return "latest"
    return None if said == "none" else Path(said)


def _words(made: "Release", run: Path) -> Iterator[str]:
    from coreeval.releases.release_document import count_other_samples, describe_comparability

    manifest, found = made.manifest, made.manifest.quality
    follows = f"based on {manifest.parent.version}" if manifest.parent else "the first release"
    yield f"released {manifest.name} {manifest.version}, {follows}"
    if manifest.findings is None:
        yield f"  {'report':<14}the run has none, so gates have no findings to check:"
        yield f"  {'':<14}write it ({command('resume', run)}), then release again"
    yield from comparability_lines(describe_comparability(made))
    yield f"  {'accepted':<14}{format_share(found.acceptance)}"
    yield f"  {'with news':<14}{format_share(found.evidence)}"
    yield from quality_lines(found.balance_shift, found.label_noise.bound, manifest.arms["updated"])
    samples = manifest.changelog.samples
    yield (
        f"  {'updated arm':<14}{format_quantity(manifest.arms['updated'], 'sample')}: "
        f"{samples.added} new, {samples.changed} changed, {samples.kept} kept, {samples.removed} "
        "removed"
    )
    if other := count_other_samples(made):
        yield (
            f"  {'other samples':<14}{other['missing']} of the "
            f"{format_quantity(other['parent'], 'sample')} of the release before are missing, "
            f"{other['new']} are new; if this is not meant, refresh the"
        )
        yield f"  {'':<14}same samples, or start a series of its own with --parent none"
    if manifest.still_stale:
        stale = (
            f"{format_quantity(manifest.still_stale, 'sample')} without sufficiently recent news"
        )
        yield f"  {'still stale':<14}{stale}"
    yield from _withheld_lines(made)
    yield from _source_lines(made)
    yield f"release: {brief(made.path)}"
    yield f"digest:  {made.digest}"
    yield f"check:   {command('verify', made.path)}"
    yield from offline_lines(list(manifest.ruled))


def quality_lines(shift: float | None, bound: float | None, updated: int) -> Iterator[str]:
    """Yield the shift and possible errors of labels, if any sample is updated."""
    nothing = f"{NOT_MEASURED}: no new samples" if updated == 0 else ""
    balance = nothing or (
        NOT_MEASURED if shift is None else f"shifted by {shift:.3f} on a scale from 0 to 1"
    )
    noise = nothing or (NOT_MEASURED if bound is None else f"at most {bound:.3f}")
    if bound is not None and bound >= 1:
        noise = nothing or "no bound: too few judgements, or too many that disagree"
    yield f"  {'label balance':<14}{balance}"
    yield f"  {'label noise':<14}{noise} (coreeval docs releases)"


def _source_lines(made: "Release") -> Iterator[str]:
    """Yield the duties under the news licences of anyone who redistributes the release."""
    for one in made.manifest.sources:
        if one.share_alike:
            facts = format_quantity(one.facts, "fact is", "facts are")
            yield f"  {'share-alike':<14}{facts} from {one.source}: {one.licence}"
            yield f"  {'':<14}credit and link the source, state changes, and share adaptations"
            yield f"  {'':<14}under the same licence (coreeval docs knowledge)"


def _withheld_lines(made: "Release") -> Iterator[str]:
    manifest = made.manifest
    if manifest.takedown.withheld:
        withheld = format_quantity(manifest.takedown.withheld, "sample")
        yield f"  {'excluded':<14}{withheld}, because of the takedown list"
    if manifest.review.rejected:
        rejected = format_quantity(manifest.review.rejected, "sample")
        yield f"  {'excluded':<14}{rejected} that a person rejected"
    if manifest.review.pending:
        pending = format_quantity(manifest.review.pending, "sample")
        yield f"  {'undecided':<14}{pending} that a person should review"
    if manifest.semantic_left_out:
        left_out = format_quantity(manifest.semantic_left_out, "reworded text")
        yield f"  {'left out':<14}{left_out} that still contain whole texts of the benchmark"
    if not manifest.licence.redistribute:
        licence = one_line(manifest.licence.name)
        yield f"  {'originals':<14}ids without texts; licence of the benchmark: {licence}"


def verify(
    folder: ReleaseArgument,
    chain: Annotated[
        bool, typer.Option("--chain/--no-chain", help="Whether to check earlier releases too.")
    ] = True,
    digest: Annotated[
        str | None,
        typer.Option(metavar="SHA256", help="The expected digest, as published elsewhere."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that no byte of a release has changed.

    If a byte has changed, the exit code is 1.
    """
    from coreeval.api.verification import verify as check

    found = check(folder, chain=chain, digest=digest)
    show(found.document, as_json, lambda: "\n".join(_verify_lines(found)))
    if not found.ok:
        raise typer.Exit(1)


def _verify_lines(found: "Verification") -> Iterator[str]:
    if found.ok:
        yield f"{found.name} {found.version} is unchanged: {format_quantity(found.files, 'file')}"
        if found.chain:
            yield f"the earlier releases are unchanged too: {', '.join(found.chain)}"
        yield f"digest: {found.digest}"
        return
    yield f"{found.release} has CHANGED since it was made"
    for problem in found.problems[:SHOWN]:
        yield f"  {problem.kind:<15}{one_line(problem.file)}: {one_line(problem.message)}"
    if len(found.problems) > SHOWN:
        yield f"  and {len(found.problems) - SHOWN} more; --json lists them all"
    yield "download the release again from its source, or make a new one; do not repair it by hand"
