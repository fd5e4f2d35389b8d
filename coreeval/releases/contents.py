"""Whether the tables of a release agree with each other and with its task.

The digests of a release say that nothing was changed since it was made; whoever made it may have
written anything into it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple, get_args

from coreeval.errors import ReleaseError
from coreeval.releases.release import Release, ReleasedArm, hash_texts
from coreeval.releases.release_manifest import ArmRow, SampleRow
from coreeval.schema import Task


class Contradiction(NamedTuple):
    """A table that does not agree with the other ones, or cannot be read."""

    folder: str
    message: str


class _Contradicts(Exception):
    """Ends the check of a table at its first contradiction."""


Samples = dict[str, SampleRow]
_DIGEST_COLUMN: Final[dict[ReleasedArm, str]] = {
    "updated": "updated_sha256",
    "semantic": "semantic_sha256",
    "original": "original_sha256",
}


def find_contradictions(release: Release) -> Iterator[Contradiction]:
    """Yield the first contradiction in each table; the first one if no sample can be read."""
    try:
        task = release.task
        samples = _read_samples(release, task)
    except (ReleaseError, _Contradicts) as error:
        yield Contradiction("samples", _message(error))
        return
    checks: dict[str, Callable[[], None]] = {"provenance": partial(_check_facts, release, samples)}
    checks |= {
        arm: partial(_check_arm, release, arm, task, samples) for arm in get_args(ReleasedArm)
    }
    for folder, check in checks.items():
        try:
            check()
        except (ReleaseError, _Contradicts) as error:
            yield Contradiction(folder, _message(error))


def _message(error: Exception) -> str:
    return error.message if isinstance(error, ReleaseError) else str(error)


def _read_samples(release: Release, task: Task) -> Samples:
    found, labels = Samples(), {label.id: label.name for label in task.labels}
    for row in release.samples():
        if row.id in found:
            raise _Contradicts(f"{row.id} has two rows")
        if labels.get(row.label) != row.label_text:
            raise _Contradicts(f"the task has no label {row.label} {row.label_text!r} ({row.id})")
        found[row.id] = row
    return found


def _check_arm(release: Release, arm: ReleasedArm, task: Task, samples: Samples) -> None:
    if arm == "original" and not release.manifest.licence.redistribute:
        return
    column, seen = _DIGEST_COLUMN[arm], set[str]()
    for row in release.arm(arm):
        if row.id in seen:
            raise _Contradicts(f"{row.id} has two rows")
        seen.add(row.id)
        _check_text(row, samples.get(row.id), column, task)
    for sample in samples.values():
        if getattr(sample, column) is not None and sample.id not in seen:
            raise _Contradicts(f"the text of {sample.id} is not there")


def _check_text(row: ArmRow, sample: SampleRow | None, column: str, task: Task) -> None:
    if sample is None or getattr(sample, column) is None:
        raise _Contradicts(f"samples/ has no such text of {row.id}")
    if set(row.fields) != set(task.fields):
        raise _Contradicts(f"{row.id} does not have the fields of the task")
    if hash_texts(row.fields) != getattr(sample, column):
        raise _Contradicts(f"the text of {row.id} is not the one that samples/ records")
    if (row.label, row.label_text) != (sample.label, sample.label_text):
        raise _Contradicts(f"{row.id} has another label than in samples/")


def _check_facts(release: Release, samples: Samples) -> None:
    for fact in release.facts():
        if fact.id not in samples:
            raise _Contradicts(f"samples/ has no {fact.id}")
        if fact.snippet and sha256(fact.snippet.encode()).hexdigest() != fact.snippet_sha256:
            raise _Contradicts(f"a quotation of {fact.id} is not the one of its snippet_sha256")
