"""Returns the review state of a run, and records decisions.

Nothing is recorded if any choice is invalid. A run is given by its directory or by a release made
from it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from coreeval.errors import ReviewOpen, RunCorrupt, RunStateError, UsageError, suggest_name
from coreeval.releases.release import MANIFEST, Release, read_release
from coreeval.releases.release_manifest import ReviewState
from coreeval.releases.review.decisions import (
    Decision,
    DecisionKey,
    DecisionLog,
    ReviewedReleases,
    ReviewEntry,
    Verdict,
)
from coreeval.releases.review.listing import find_published_text, list_samples
from coreeval.releases.review.notes import Remarks, read_notes
from coreeval.runs.manifest import Manifest, read_manifest, require_workspace
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command, find_own_workspaces


@dataclass(frozen=True, kw_only=True)
class Review:
    """The samples of a run that need a decision, and the decisions made."""

    run: Path
    samples: tuple[ReviewEntry, ...]
    """The listed samples, most serious reasons first."""
    rejected: frozenset[str]
    """The samples whose new text must not be published, whether listed or not."""
    remarks: Mapping[str, Remarks] = field(default_factory=dict)
    """The notes and tags of the run's samples, whether listed or not."""
    notes_problem: RunCorrupt | None = None
    """The reason that notes, and samples listed because of them, may be missing; None if none
    are."""

    @property
    def open(self) -> tuple[ReviewEntry, ...]:
        """Return the samples without a decision."""
        return tuple(each for each in self.samples if each.decision is None)

    def state(self, *, required: bool) -> ReviewState:
        """Return the numbers for a release's manifest."""
        approved = sum(
            each.decision is not None and each.decision.verdict == "approved"
            for each in self.samples
        )
        return ReviewState(
            required=required,
            listed=len(self.samples),
            approved=approved,
            rejected=len(self.rejected),
            pending=len(self.open),
        )

    def require_decided(self) -> None:
        """Raise an error if a sample is open.

        Raises:
            ReviewOpen: with the number of samples and the command that lists them.
            RunCorrupt: notes cannot be read, so that a sample may be missing from the list.
        """
        if self.notes_problem:
            raise self.notes_problem
        if waiting := len(self.open):
            raise ReviewOpen(
                f"{waiting} of {len(self.samples)} listed samples await a person's decision",
                where=str(self.run),
                hint=f"list them: {command('review', self.run)}",
            )


def load_review(run: Path) -> Review:
    """Return the state of a run's review without changing the run.

    Raises:
        RunStateError: there is no run.
        RunCorrupt: its store or the log of decisions is damaged.
    """
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    with RunStore.open(files.require_store(), now=utc_now) as store:
        return build_review(files, manifest, store)


def open_log(manifest: Manifest) -> DecisionLog:
    """Return the decision log of a run's benchmark.

    Raises:
        RunCorrupt: the log is a link, pipe or device, or is too large.
    """
    return DecisionLog(Workspace(Path(manifest.workspace)).decisions(manifest.name))


def read_rejections_elsewhere(
    files: RunFiles, manifest: Manifest
) -> Mapping[DecisionKey, tuple[Decision, Path]]:
    """Return the rejections in other workspaces than the manifest's, each with its log.

    They are those that the run's location implies: a renamed project leaves the manifest's missing.
    One beside a run from elsewhere may be from somebody else, who may give a decision any date. So
    its approvals do not count, and no approval overrides a rejection in another log.

    Raises:
        RunCorrupt: a log of decisions is damaged.
    """
    places = find_own_workspaces(files.root)
    paths = (Workspace(place).decisions(manifest.name) for place in places)
    own = open_log(manifest).path.resolve()
    logs = dict.fromkeys(path.resolve() for path in paths if path.exists())
    return {
        about: (decision, log)
        for log in logs
        if log != own
        for about, decision in DecisionLog(log).in_force().items()
        if decision.verdict == "rejected"
    }


def open_reviewed_releases(manifest: Manifest) -> ReviewedReleases:
    """Return the reviewed releases of a run's benchmark.

    Raises:
        RunCorrupt: their file is a link, pipe or device, or is too large.
    """
    workspace = Workspace(Path(manifest.workspace))
    return ReviewedReleases(workspace.reviewed_releases(manifest.name))


def build_review(files: RunFiles, manifest: Manifest, store: RunStore) -> Review:
    """Return the review state of an open run.

    Raises:
        RunCorrupt: the log of decisions is damaged.
    """
    elsewhere = read_rejections_elsewhere(files, manifest)
    decisions = {
        **open_log(manifest).in_force(),
        **{about: decision for about, (decision, _) in elsewhere.items()},
    }
    notes = read_notes(manifest)
    against = {about for about, said in decisions.items() if said.verdict == "rejected"}
    samples = (
        each.model_copy(update={"decision": decisions.get((each.sample, each.digest))})
        for each in list_samples(
            store, vouched=_parent_was_reviewed(manifest), remarks=notes.remarks
        )
    )
    return Review(
        run=files.root,
        samples=tuple(samples),
        rejected=frozenset(_samples_with_texts(store, against)) if against else frozenset(),
        remarks={key: said for key, said in notes.remarks.items() if _has_sample(store, key)},
        notes_problem=notes.problem,
    )


def _has_sample(store: RunStore, sample: str) -> bool:
    try:
        store.sample(sample)
    except KeyError:
        return False
    return True


def _samples_with_texts(store: RunStore, about: Collection[DecisionKey]) -> Iterator[str]:
    """Yield the samples of a run whose new text is among the given texts."""
    for ended in store.sample_results():
        text = find_published_text(ended)
        if text and (ended.sample.id, text.digest) in about:
            yield ended.sample.id


def _parent_was_reviewed(manifest: Manifest) -> bool:
    """Return whether the release that a run follows was made in this workspace, and reviewed."""
    parent = manifest.parent
    return parent is not None and parent.digest in open_reviewed_releases(manifest)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A person's decision about one sample."""

    sample: str
    verdict: Verdict
    note: str = ""
    digest: str = ""
    """sha256 of the text that the person saw; empty for the text in the run."""
    where: str = ""
    """Position of the decision in a file."""
    shown: str | None = None
    """For a row of a sheet, the time of the decision that the sheet shows, empty if it shows none;
    None if the person decides now."""


@dataclass(frozen=True, kw_only=True)
class ChoiceResult:
    """The result of recording choices."""

    new: tuple[Decision, ...] = ()
    unchanged: int = 0
    """Number of choices that were already in force."""


def record_choices(
    run: Path, choices: Sequence[Choice], *, by: str, now: Clock = utc_now
) -> ChoiceResult:
    """Add decisions to the log of a run's benchmark.

    Args:
        run: The run's directory.
        choices: Decisions about samples of the run that have a new text, listed or not.
        by: The name of the person who decides.
        now: The clock that dates the decisions.

    Raises:
        UsageError: `by` is empty, a choice is not about a text of the run, or a row of a sheet
            would reverse a decision that the sheet does not show, or an approved text is
            rejected in another workspace.
        RunStateError: there is no run, or its workspace is missing.
    """
    if not by.strip():
        raise UsageError("a decision needs a name", where="--by", hint="add your name: --by NAME")
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    log, texts = open_log(manifest), _text_digests(files)
    choices = [_without_spaces(choice, texts) for choice in choices]
    _refuse_contradictions(choices)
    for choice in choices:
        _check_choice(choice, texts, run)
    every, at = log.every(), now().isoformat(timespec="seconds")
    known = {decision.about: decision for decision in every}
    made = {
        choice.sample: Decision(
            sample=choice.sample,
            digest=texts[choice.sample],
            verdict=choice.verdict,
            by=by.strip(),
            at=at,
            note=choice.note,
            run=manifest.run,
        )
        for choice in choices
    }
    _refuse_reversals(choices, made, every, known)
    _refuse_approvals(choices, made, read_rejections_elsewhere(files, manifest))
    new = tuple(each for each in made.values() if not _is_in_force(known.get(each.about), each))
    if new:
        require_workspace(manifest)
        log.append(new)
    return ChoiceResult(new=new, unchanged=len(choices) - len(new))


def _is_in_force(known: Decision | None, again: Decision) -> bool:
    """Return whether a decision is already in force; a new note makes it a different one."""
    return known is not None and known.verdict == again.verdict and again.note in ("", known.note)


def _refuse_reversals(
    choices: Collection[Choice],
    made: Mapping[str, Decision],
    every: Iterable[Decision],
    known: Mapping[DecisionKey, Decision],
) -> None:
    """Refuse rows of a sheet that would reverse decisions made after the sheet was filled in.

    A row may reverse the decision that it shows, and a person may change their mind in the sheet;
    but a verdict that was recorded before and then reversed is an old row, not a new decision.
    """
    recorded = {(each.about, each.verdict) for each in every}
    named = {choice.sample for choice in choices if choice.shown is None}
    stale: list[tuple[Choice, Decision]] = []
    for choice in choices:
        again = made[choice.sample]
        before = known.get(again.about)
        if before is None or before.verdict == again.verdict:
            continue
        if choice.sample in named or choice.shown == before.at:
            continue
        if before.by != again.by or (again.about, again.verdict) in recorded:
            stale.append((choice, before))
    if stale:
        choice, before = stale[0]
        others = f" (and {len(stale) - 1} more such rows)" if stale[1:] else ""
        raise UsageError(
            f"{before.by} {before.verdict} {choice.sample!r} on {before.at[:10]}, which this sheet "
            f"does not show{others}",
            where=choice.where,
            hint="clear the decision in the row; to change it after all, pass --approve ID or "
            "--reject ID",
        )


def _refuse_approvals(
    choices: Iterable[Choice],
    made: Mapping[str, Decision],
    elsewhere: Mapping[DecisionKey, tuple[Decision, Path]],
) -> None:
    """Refuse to approve texts that are rejected in another workspace: they would stay rejected."""
    for choice in choices:
        if choice.verdict == "approved" and (found := elsewhere.get(made[choice.sample].about)):
            against, log = found
            raise UsageError(
                f"{against.by} rejected {choice.sample!r} in another workspace that this run is in "
                "or near, and this is not overridden here",
                where=str(log),
                hint="if the rejection is not yours or no longer holds, delete its line from this "
                "file, and approve again",
            )


def _text_digests(files: RunFiles) -> Mapping[str, str]:
    """Return the digest of each new text of a run, by sample id."""
    with RunStore.open(files.require_store(), now=utc_now) as store:
        found = ((ended.sample.id, find_published_text(ended)) for ended in store.sample_results())
        return {sample: text.digest for sample, text in found if text}


def _without_spaces(choice: Choice, texts: Mapping[str, str]) -> Choice:
    """Return a choice without the spaces that a spreadsheet or a person put around its id."""
    bare = choice.sample.strip()
    if choice.sample in texts or bare not in texts:
        return choice
    return replace(choice, sample=bare)


def _refuse_contradictions(choices: Iterable[Choice]) -> None:
    said: dict[str, Choice] = {}
    for choice in choices:
        before = said.setdefault(choice.sample, choice)
        if before.verdict != choice.verdict:
            where = ", ".join(filter(None, (before.where, choice.where)))
            raise UsageError(
                f"{choice.sample!r} is both approved and rejected",
                where=where,
                hint="choose one",
            )


def _check_choice(choice: Choice, texts: Mapping[str, str], run: Path) -> None:
    """Refuse a choice about a text that the run does not have."""
    if choice.sample not in texts:
        raise UsageError(
            f"the run has no new text for sample {choice.sample!r}",
            where=choice.where or str(run),
            hint=suggest_name(choice.sample, texts, "use the ids in the list"),
        )
    if choice.digest not in ("", texts[choice.sample]):
        raise UsageError(
            f"the text of {choice.sample!r} has changed since the decision",
            where=choice.where,
            hint="write the sheet again, to another file, and review the new text",
        )


def resolve_run(place: Path) -> Path:
    """Return a run's directory, given that directory or a release made from the run.

    Raises:
        UsageError: the directory is neither, or the release's run is not in its workspace.
        ReleaseError: the release is damaged.
    """
    if RunFiles(place).manifest.exists():
        return place
    if not (place / MANIFEST).exists():
        raise UsageError(
            "this is neither a run nor a release",
            where=str(place),
            hint="use the directory printed by `coreeval refresh` or `coreeval release`",
        )
    release = read_release(place)
    if run := find_run_of_release(release):
        return run
    raise UsageError(
        f"the run {release.manifest.run} that this release was made from is not in its workspace",
        where=str(_guess_workspace(release).root),
        hint="use the run's directory, because decisions are about its texts",
    )


def find_run_of_release(release: Release) -> Path | None:
    """Return the run that a release in its workspace was made from; None if it is not there."""
    run = _guess_workspace(release).runs / release.manifest.run
    return run if _is_same_run(run, release) else None


def _guess_workspace(release: Release) -> Workspace:
    folder = release.path.resolve()
    return Workspace(folder.parents[min(2, len(folder.parents) - 1)])


def _is_same_run(run: Path, release: Release) -> bool:
    try:
        manifest = read_manifest(RunFiles(run).manifest)
    except RunStateError:
        return False
    return (manifest.run, manifest.now) == (release.manifest.run, release.manifest.now)
