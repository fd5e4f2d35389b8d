"""How a run stands with the persons who look at it before it is published."""

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import ReleaseError, ReviewOpen
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.releases.release import read_release
from coreeval.releases.release_manifest import ReviewState
from coreeval.releases.review.decisions import About, DecisionLog
from coreeval.releases.review.listed import Listed
from coreeval.releases.review.listing import listing, written
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command


@dataclass(frozen=True, kw_only=True)
class Review:
    """What asks for a decision in a run, and what was decided."""

    run: Path
    samples: tuple[Listed, ...]
    """Those that are listed, the gravest reasons first."""
    rejected: frozenset[str]
    """Samples whose new text nobody may publish, be they listed or not."""

    @property
    def open(self) -> tuple[Listed, ...]:
        """The samples that nobody has decided about."""
        return tuple(each for each in self.samples if each.decision is None)

    def state(self, *, required: bool) -> ReviewState:
        """Return the numbers that a release records."""
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
        """Refuse to go on while a sample is open.

        Raises:
            ReviewOpen: with the number of samples and the command that lists them.
        """
        if waiting := len(self.open):
            raise ReviewOpen(
                f"{waiting} of {len(self.samples)} listed samples wait for a person's decision",
                where=str(self.run),
                hint=f"list them: {command('review', self.run)}",
            )


def decided(run: Path) -> Review:
    """Return how a run stands; nothing in it is changed.

    Raises:
        RunStateError: there is no run.
        RunCorrupt: its store or the log of decisions is damaged.
    """
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    with closing(RunStore.open(files.require_store(), now=utc_now)) as store:
        return review_of(files, manifest, store)


def log_of(manifest: Manifest) -> DecisionLog:
    """Return the log of a run's benchmark."""
    return DecisionLog(Workspace(Path(manifest.workspace)).decisions(manifest.name))


def review_of(files: RunFiles, manifest: Manifest, store: RunStore) -> Review:
    """Return how an open run stands.

    Raises:
        RunCorrupt: the log of decisions is damaged.
    """
    decisions = log_of(manifest).in_force()
    against = {about for about, said in decisions.items() if said.verdict == "rejected"}
    samples = (
        each.model_copy(update={"decision": decisions.get((each.sample, each.digest))})
        for each in listing(store, vouched=_vouched(manifest))
    )
    return Review(
        run=files.root,
        samples=tuple(samples),
        rejected=frozenset(_among(store, against)) if against else frozenset(),
    )


def _among(store: RunStore, about: Collection[About]) -> Iterator[str]:
    """Yield the samples of a run whose new text is one of these."""
    for ended in store.sample_results():
        text = written(ended)
        if text and (ended.sample.id, text.digest) in about:
            yield ended.sample.id


def _vouched(manifest: Manifest) -> bool:
    """Tell whether the release that a run follows had waited for a person; not if it is gone."""
    if manifest.parent is None:
        return False
    try:
        return read_release(Path(manifest.parent.path)).manifest.review.required
    except ReleaseError:
        return False
