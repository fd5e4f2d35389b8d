"""Checks that the tables of a release agree with each other, with its task and release.json.

The digests of a release only show that it is unchanged since it was made; its maker may have
written anything.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from math import isclose
from typing import Final, NamedTuple, get_args

from coreeval.errors import ReleaseError
from coreeval.releases.release import Release, ReleasedArm, hash_texts
from coreeval.releases.release_manifest import ArmRow, IdentifierRow, SampleRow, count_left_out
from coreeval.runs.manifest import full_counts
from coreeval.runs.quality import SampleEnding, measure_shares
from coreeval.schema import Task
from coreeval.tasks import adapt_task


class Contradiction(NamedTuple):
    """A table, or release.json, that contradicts the others or cannot be read."""

    folder: str
    """The table's folder; empty for release.json."""
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
    """Yield the first contradiction in each table; the first one if no sample can be read.

    If the tables agree, release.json is compared with them.
    """
    try:
        task = release.task
        samples = _read_samples(release, task)
    except (ReleaseError, _Contradicts) as error:
        yield Contradiction("samples", _message(error))
        return
    rows, agreed = {"samples": len(samples)}, True
    checks: dict[str, Callable[[], int]] = {"provenance": partial(_check_facts, release, samples)}
    checks |= {
        arm: partial(_check_arm, release, arm, task, samples) for arm in get_args(ReleasedArm)
    }
    for folder, check in checks.items():
        try:
            rows[folder] = check()
        except (ReleaseError, _Contradicts) as error:
            agreed = False
            yield Contradiction(folder, _message(error))
    differs = _find_other_number(release, task, samples, rows) if agreed else ""
    if differs:
        yield Contradiction("", differs)


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


def _check_arm(release: Release, arm: ReleasedArm, task: Task, samples: Samples) -> int:
    """Return the number of rows of an arm, or of identifiers in place of originals."""
    column, seen = _DIGEST_COLUMN[arm], set[str]()
    replaced = arm == "original" and not release.manifest.licence.redistribute
    for row in release.identifiers() if replaced else release.arm(arm):
        if row.id in seen:
            raise _Contradicts(f"{row.id} has two rows")
        seen.add(row.id)
        if isinstance(row, IdentifierRow):
            _check_identifier(row, samples.get(row.id))
        else:
            _check_text(row, samples.get(row.id), column, task)
    for sample in samples.values():
        left_out = arm == "original" and sample.semantic_status == "policy"
        if getattr(sample, column) is not None and sample.id not in seen and not left_out:
            raise _Contradicts(f"the text of {sample.id} is missing")
    return len(seen)


def _check_identifier(row: IdentifierRow, sample: SampleRow | None) -> None:
    told = (row.sha256, row.label, row.label_text)
    if sample is None or told != (sample.original_sha256, sample.label, sample.label_text):
        raise _Contradicts(f"samples/ does not contain this original of {row.id}")


def _check_text(row: ArmRow, sample: SampleRow | None, column: str, task: Task) -> None:
    if sample is None or getattr(sample, column) is None:
        raise _Contradicts(f"samples/ does not contain this text of {row.id}")
    if set(row.fields) != set(adapt_task(task, row.fields).fields):
        raise _Contradicts(f"{row.id} does not have the fields of the task")
    if hash_texts(row.fields) != getattr(sample, column):
        raise _Contradicts(f"the text of {row.id} differs from the one in samples/")
    if (row.label, row.label_text) != (sample.label, sample.label_text):
        raise _Contradicts(f"{row.id} has a different label in samples/")


def _check_facts(release: Release, samples: Samples) -> int:
    """Return the number of rows of provenance."""
    rows = 0
    for rows, fact in enumerate(release.facts(), start=1):  # noqa: B007 - the last is counted
        if fact.id not in samples:
            raise _Contradicts(f"samples/ has no {fact.id}")
        if fact.snippet and sha256(fact.snippet.encode()).hexdigest() != fact.snippet_sha256:
            raise _Contradicts(f"a quotation of {fact.id} does not match its snippet_sha256")
    return rows


def _find_other_number(release: Release, task: Task, samples: Samples, rows: dict[str, int]) -> str:
    """Return where release.json states other numbers than its tables have; empty if nowhere."""
    ended = samples.values()
    manifest = release.manifest
    outcomes = full_counts(len(samples), Counter(row.outcome for row in ended))
    shares = measure_shares(map(_ending, ended), task)
    parts = {"acceptance", "by_label", "balance_shift"}
    if all("rung" in row.model_fields_set for row in ended):  # not in the first releases
        parts |= {"evidence", "rungs"}
    said = {
        "counts": manifest.counts,
        "kept": manifest.kept,
        "arms": {folder: manifest.arms.get(folder) for folder in rows},
        "semantic_left_out": manifest.semantic_left_out,
        "takedown.withheld": manifest.takedown.withheld,
        "quality": manifest.quality.model_dump(include=parts),
    }
    found = {
        "counts": outcomes,
        "kept": sum(row.kept_from is not None for row in ended),
        "arms": rows,
        "semantic_left_out": count_left_out(ended),
        "takedown.withheld": sum(row.withheld == "takedown" for row in ended),
        "quality": shares.model_dump(include=parts),
    }
    return _find_difference("", said, found)


def _ending(row: SampleRow) -> SampleEnding:
    published = row.outcome == "accepted" and not row.withheld
    return SampleEnding(row.label_text, published, row.rung, row.kept_from is not None)


def _find_difference(place: str, said: object, found: object) -> str:
    """Return the first difference between two plain values in words; empty if there is none.

    Floats may differ in their last digits, which depend on the machine.
    """
    if isinstance(said, dict) and isinstance(found, dict) and said.keys() == found.keys():
        pairs = ((f"{place}.{key}".strip("."), said[key], found[key]) for key in said)
    elif isinstance(said, tuple | list) and isinstance(found, tuple | list):
        if len(said) != len(found):
            return f"{place} has {len(said)} entries, but the release's tables give {len(found)}"
        pairs = ((f"{place}.{n}", *pair) for n, pair in enumerate(zip(said, found, strict=True)))
    elif said == found or (
        isinstance(said, float) and isinstance(found, float) and isclose(said, found)
    ):
        return ""
    else:
        return f"{place} is {said}, but the release's tables give {found}"
    return next(filter(None, (_find_difference(*pair) for pair in pairs)), "")
