"""Recording what a person decides; nothing is recorded where anything is wrong."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.releases.manifest import read_manifest
from coreeval.releases.review.decided import log_of
from coreeval.releases.review.decisions import Decision, Verdict
from coreeval.releases.review.listing import written
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What somebody says of one sample."""

    sample: str
    verdict: Verdict
    note: str = ""
    digest: str = ""
    """sha256 of the text that they saw; empty for the one that the run has."""
    where: str = ""
    """The place in a file where they say so."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What became of choices."""

    new: tuple[Decision, ...] = ()
    unchanged: int = 0
    """Choices that were in force already."""


def record(run: Path, choices: Sequence[Choice], *, by: str, now: Clock = utc_now) -> Recorded:
    """Add decisions to the log of a run's benchmark.

    Args:
        run: The run's directory.
        choices: About samples of the run that have a new text, be they listed or not.
        by: Who decides.
        now: Dates the decisions.

    Raises:
        UsageError: nobody decides, or a choice is about no text of the run.
        RunStateError: there is no run.
    """
    if not by.strip():
        raise UsageError("a decision needs a name", where="--by", hint="say who decides: --by NAME")
    _refuse_contradictions(choices)
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    log, texts = log_of(manifest), _texts(files)
    for choice in choices:
        _check(choice, texts, run)
    known, at = log.in_force(), now().isoformat(timespec="seconds")
    decisions = (
        Decision(
            sample=choice.sample,
            digest=texts[choice.sample],
            verdict=choice.verdict,
            by=by.strip(),
            at=at,
            note=choice.note,
            run=manifest.run,
        )
        for choice in {choice.sample: choice for choice in choices}.values()
    )
    new = tuple(each for each in decisions if not _says(known.get(each.about), each))
    if new:
        log.append(new)
    return Recorded(new=new, unchanged=len(choices) - len(new))


def _says(known: Decision | None, again: Decision) -> bool:
    """Tell whether a decision is in force already; a note of its own makes it another one."""
    return known is not None and known.verdict == again.verdict and again.note in ("", known.note)


def _texts(files: RunFiles) -> Mapping[str, str]:
    """Return what each new text of a run is known by."""
    with closing(RunStore.open(files.require_store(), now=utc_now)) as store:
        found = ((ended.sample.id, written(ended)) for ended in store.sample_results())
        return {sample: text.digest for sample, text in found if text}


def _refuse_contradictions(choices: Iterable[Choice]) -> None:
    said: dict[str, Choice] = {}
    for choice in choices:
        before = said.setdefault(choice.sample, choice)
        if before.verdict != choice.verdict:
            where = ", ".join(filter(None, (before.where, choice.where)))
            raise UsageError(
                f"{choice.sample!r} is both approved and rejected",
                where=where,
                hint="decide for one of the two",
            )


def _check(choice: Choice, texts: Mapping[str, str], run: Path) -> None:
    """Refuse a choice about a text that the run does not have."""
    if choice.sample not in texts:
        raise UsageError(
            f"the run has no new text of a sample {choice.sample!r}",
            where=choice.where or str(run),
            hint=_near(choice.sample, texts),
        )
    if choice.digest not in ("", texts[choice.sample]):
        raise UsageError(
            f"the text of {choice.sample!r} is another one than the one that was decided about",
            where=choice.where,
            hint="write the sheet again, and look at the new text",
        )


def _near(sample: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(sample, known, n=1)
    return f"did you mean {near[0]!r}?" if near else "the ids are those of the list"
