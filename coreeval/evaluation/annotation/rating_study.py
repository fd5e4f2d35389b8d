"""A study of ratings: the samples and arms that each rater gets, and its key.

A block is two or three samples of one label that have the same arms; each is shown in a different
arm, drawn at random. The label and evidence next to a text belong to its sample, and the choice of
the shown text does not depend on them. So arms are compared as in a randomised trial: on different
samples of the same labels from the same pool. The key says which text each item is. Raters must not
have it.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import ValidationError

from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import UsageError
from coreeval.schema import Seed, Value
from coreeval.tools.files import write_json

RatedArm = Literal["original", "semantic", "updated"]
RATED_ARMS: Final[tuple[RatedArm, ...]] = ("original", "semantic", "updated")
MOST_RATERS: Final = 99
"""The most raters of a study, both for sheets written and for names read back."""
T = TypeVar("T")


class NewsExcerpt(Value):
    """A news excerpt on the subject of a sample."""

    published_at: str
    domain: str
    url: str
    snippet: str
    """The excerpt; empty if it may not be quoted."""


@dataclass(frozen=True, kw_only=True)
class RatingCandidate:
    """A sample that can be rated: it has an updated text, and therefore all other fields."""

    sample: str
    label: str
    meaning: str
    question: str
    """The question that the label answers."""
    texts: dict[RatedArm, dict[str, str]]
    """The texts of the sample, by arm and field."""
    evidence: tuple[NewsExcerpt, ...]
    group: str | None = None
    """The group of samples to compare with; by default those of its label."""


@dataclass(frozen=True, kw_only=True)
class StudyItem:
    """A sample to rate in one of its arms, under a name that reveals neither."""

    item: str
    arm: RatedArm
    candidate: RatingCandidate


def draw_study(
    candidates: Sequence[RatingCandidate], *, blocks: int, seed: int
) -> tuple[str, list[StudyItem]]:
    """Draw blocks in proportion to the labels; return the study's name and its items in order.

    Args:
        candidates: Samples with an original and an updated text; some also have a semantic one.
        blocks: The number of originals, and of updated texts; fewer if there are not enough.
        seed: Seed of all random choices.
    """
    rng = random.Random(seed)
    made = list(_make_blocks(candidates, rng))
    chosen = [pair for block in _sample_evenly(made, blocks, rng) for pair in block]
    rng.shuffle(chosen)
    study = _name_study(chosen, seed)
    return study, [
        StudyItem(item=f"{study}-{n:03d}", arm=arm, candidate=candidate)
        for n, (arm, candidate) in enumerate(chosen, start=1)
    ]


def _make_blocks(
    candidates: Sequence[RatingCandidate], rng: random.Random
) -> Iterator[list[tuple[RatedArm, RatingCandidate]]]:
    """Yield the pool in blocks: neighbours in a random order of each label's samples.

    Samples with all three arms come first; one or two of them that do not fill a block join the
    others. If a single sample of a label remains, it is not in a block.
    """
    left = rng.sample(candidates, len(candidates))
    for arms in (RATED_ARMS, ("original", "updated")):
        for pool in _split_into_groups(each for each in left if _has_arms(each, arms)):
            whole = pool[: len(pool) - len(pool) % len(arms)]
            used = {each.sample for each in whole}
            left = [each for each in left if each.sample not in used]
            for start in range(0, len(whole), len(arms)):
                yield list(zip(rng.sample(arms, len(arms)), whole[start:], strict=False))


def _split_into_groups(candidates: Iterable[RatingCandidate]) -> list[list[RatingCandidate]]:
    """Return the samples by group, with the groups sorted."""
    found = defaultdict[str, list[RatingCandidate]](list)
    for each in candidates:
        found[each.label if each.group is None else each.group].append(each)
    return [found[group] for group in sorted(found)]


def _has_arms(candidate: RatingCandidate, arms: Sequence[RatedArm]) -> bool:
    return all(arm in candidate.texts for arm in arms)


def _sample_evenly(items: Sequence[T], wanted: int, rng: random.Random) -> list[T]:
    """Return items at equal intervals from a random start (systematic sampling)."""
    if wanted >= len(items):
        return list(items)
    step = len(items) / wanted
    start = rng.random() * step
    return [items[min(int(start + n * step), len(items) - 1)] for n in range(wanted)]


def _name_study(chosen: Sequence[tuple[RatedArm, RatingCandidate]], seed: int) -> str:
    """Return six hexadecimal digits that identify the study."""
    told = f"{seed} " + " ".join(f"{candidate.sample}:{arm}" for arm, candidate in chosen)
    return hashlib.sha256(told.encode()).hexdigest()[:6]


def shuffle_for_rater(rater: str, items: Sequence[T], *, seed: int) -> list[T]:
    """Return the items in the rater's own order, so that fatigue affects different items."""
    return random.Random(f"{seed} {rater}").sample(items, len(items))


KEY_FILE = "key.json"


class KeyItem(Value):
    """The sample and arm behind one item of the sheets."""

    item: str
    sample: str
    arm: RatedArm
    label: str
    text_sha256: str
    """The sha256 of the sample's texts in this arm, as in releases."""


class StudySource(Value):
    """The run or the release whose texts are rated."""

    kind: Literal["run", "release"]
    name: str
    version: str


class StudyKey(Value):
    """The contents of the sheets of one study."""

    version: Literal[1] = 1
    study: str
    made_of: StudySource
    seed: Seed
    asked: int
    """The number of samples requested for each arm."""
    raters: tuple[str, ...]
    scale: str
    """The source of the criteria and their values."""
    items: tuple[KeyItem, ...]


def write_key(path: Path, key: StudyKey) -> None:
    """Write a key that only its owner can read."""
    write_json(path, key.model_dump(mode="json"))
    path.chmod(0o600)


def read_key(path: Path) -> StudyKey:
    """Read a key.

    Raises:
        UsageError: the key does not exist or is damaged.
    """
    try:
        return StudyKey.model_validate_json(read_bytes(path, most_bytes=MOST_DATA_BYTES))
    except OSError as error:
        raise UsageError(
            f"the key of the sheets cannot be read: {error.strerror or error}",
            where=str(path),
            hint=f"pass the {KEY_FILE} that `coreeval annotate export` wrote: --key FILE",
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            f"the key of the sheets is damaged: {first['msg']}",
            where=str(path),
            hint="restore it from a backup: without it, items cannot be matched to texts",
        ) from None
