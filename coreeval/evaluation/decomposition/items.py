"""Which samples a target seems to remember, with so many of them flagged falsely and no more.

A sample's p-value is the rank of its score among scores that memory has no part in (conformal
p-values, which Benjamini and Hochberg's procedure takes: Bates, Candès, Lei, Romano and Sesia 2023,
Annals of Statistics 51, 149-178); those flagged are held to a share of false ones for each kind of
memory apart, since a sample that stands out in one does not in the other. That share holds if the
arms are alike but for memory: the same check as for a target's verdict comes before any flag.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.item_scores import Scored, Scores, score_items
from coreeval.evaluation.decomposition.values import BACK, MIN_SAMPLES, Check, Kind
from coreeval.evaluation.scoring.answers import Floats, Mask, Numbers
from coreeval.evaluation.statistics import adjusted
from coreeval.schema import Value

FALSE_SHARE: Final = 0.1
"""Ours: a list to look at may be wrong in one of ten."""
ItemRow = Mapping[str, str | int | float | None]


class Flagged(Value):
    """The samples that seem remembered in one way."""

    ids: tuple[str, ...]
    """The surest first."""
    expected_false: float
    """How many of them are not remembered, at most, on average."""
    highest: int
    """Samples with the highest score that there can be."""
    by_chance: int
    """How many have it without being remembered."""
    least: int
    """How many must have it before any of them can be flagged."""


class ItemEvidence(Value):
    """What is said of single samples of one target."""

    target: str
    n: int
    """Samples with an answer that counts in every arm that was asked."""
    templates: int
    base: str | None
    """Where the base rate is from, `control`; None where nothing can be told."""
    false_share: float
    kinds: dict[Kind, Flagged]
    """Without those of which nothing can be told."""
    note: str
    """How far this reaches, for a reader."""


@dataclass(frozen=True, eq=False)
class Items:
    """The evidence, and the table that it rests on."""

    found: ItemEvidence
    columns: tuple[str, ...]
    rows: Sequence[ItemRow]
    """A line a sample with an answer: id, label; for each arm and template (`original_1`) 1 for a
    right answer, 0 for a wrong one, None for none or a refusal; for each kind `score_KIND`,
    `p_KIND`, `q_KIND` (None without evidence) and `flagged_KIND`, 0 or 1."""


@dataclass(frozen=True, eq=False)
class _Levels:
    """One kind of evidence for each line of the table; nan without any."""

    score: Floats
    p: Floats
    q: Floats
    flagged: Mask


def find_items(
    coded: Coded, checks: Mapping[Kind, Check] = {}, *, false_share: float = FALSE_SHARE
) -> Items:
    """Score every sample and flag those that seem remembered, at most `false_share` falsely.

    Nothing is said of a kind of memory without a check, or if a harder arm would explain it; no
    sample is flagged if the target loses no more than others do.
    """
    scored = score_items(coded)
    open_questions = {kind: tuple(_open_questions(checks.get(kind))) for kind in BACK}
    told = {kind for kind, why in open_questions.items() if not why}
    levels = _levels(len(coded.keys), scored, checks, told, false_share) if scored else {}
    flagged = {
        kind: _flagged(coded, level, scored.kinds[kind], false_share)
        for kind, level in levels.items()
        if scored
    }
    templates = len({template for _, template in coded.ways})
    names = [f"{arm}_{template}" for arm, template in coded.ways]
    columns = [f"{level}_{kind}" for kind in levels for level in ("score", "p", "q", "flagged")]
    return Items(
        found=ItemEvidence(
            target=coded.target,
            n=len(scored.places) if scored else 0,
            templates=templates,
            base="control" if flagged else None,
            false_share=false_share,
            kinds=flagged,
            note="; ".join(_notes(scored, flagged, checks, open_questions, templates)),
        ),
        columns=("id", "label", *names, *columns),
        rows=tuple(_rows(coded, names, levels)),
    )


def _open_questions(check: Check | None) -> Iterator[str]:
    """Yield why nothing can be said of single samples."""
    if check is None:
        yield "no other targets or texts were compared"
        return
    yield from check.unlike
    if check.no_label and check.no_label.differs:
        yield "answers without a label are more frequent on the arm behind"


def _levels(
    lines: int,
    scored: Scored,
    checks: Mapping[Kind, Check],
    told: Collection[Kind],
    false_share: float,
) -> dict[Kind, _Levels]:
    """Return the evidence of each kind that can be told, on all lines of a table."""
    found: dict[Kind, _Levels] = {}
    for kind, scores in scored.kinds.items():
        if kind not in told:
            continue
        p_values = (1 + _at_least(scores.unseen, scores.seen)) / (1 + len(scores.unseen))
        score, p, q = np.full((3, lines), np.nan)
        for values, own in ((score, scores.seen), (p, p_values), (q, adjusted(p_values.tolist()))):
            values[scored.places] = own
        flagged = (q <= false_share) & (score > 0) & checks[kind].exceeds
        found[kind] = _Levels(score, p, q, flagged)
    return found


def _at_least(values: Floats, ends: Floats) -> Numbers:
    """Return how many values are at least each end."""
    return np.asarray(len(values) - np.searchsorted(np.sort(values), ends, side="left"))


def _flagged(coded: Coded, levels: _Levels, scores: Scores, false_share: float) -> Flagged:
    some = np.flatnonzero(levels.flagged)
    some = some[np.argsort(-levels.score[some], kind="stable")]
    n, chance = len(scores.seen), int((scores.unseen >= scores.top).sum())
    return Flagged(
        ids=tuple(coded.keys[place] for place in some),
        expected_false=float(levels.q[some].max() * len(some)) if len(some) else 0.0,
        highest=int((scores.seen >= scores.top).sum()),
        by_chance=chance,
        least=int(np.ceil((1 + chance) / (1 + n) * n / false_share)),
    )


def _notes(
    scored: Scored | None,
    kinds: Mapping[Kind, Flagged],
    checks: Mapping[Kind, Check],
    open_questions: Mapping[Kind, Sequence[str]],
    templates: int,
) -> Iterator[str]:
    """Yield how far the lists reach, a sentence each."""
    if scored is None:
        yield (
            f"fewer than {MIN_SAMPLES} samples have an answer in all four arms: nothing is said of "
            "single samples"
        )
        return
    for kind, why in open_questions.items():
        if why:
            yield f"{kind}: no sample is flagged, since a harder arm cannot be ruled out ({why[0]})"
    for kind, each in kinds.items():
        if not checks[kind].exceeds:
            yield f"{kind}: no sample is flagged, since other targets may lose as much"
            continue
        yield (
            f"{kind}: {each.highest} of {len(scored.places)} samples have the highest score, "
            f"{each.by_chance} would without being remembered, {each.least} must before any can be "
            "flagged"
        )
    if kinds and templates == 1:
        yield "one template and one draw cannot single out samples unless so many stand out"


def _rows(
    coded: Coded, names: Sequence[str], levels: Mapping[Kind, _Levels]
) -> Iterator[dict[str, str | int | float | None]]:
    table = coded.table
    right, counted = table.said == table.due[:, None], table.counted
    for place in np.flatnonzero(table.asked.any(axis=1)):
        row: dict[str, str | int | float | None] = {
            "id": coded.keys[place],
            "label": coded.labels[table.due[place]],
        }
        for way, name in enumerate(names):
            row[name] = int(right[place, way]) if counted[place, way] else None
        for kind, level in levels.items():
            row |= _level_row(kind, level, int(place))
        yield row


def _level_row(kind: Kind, level: _Levels, place: int) -> dict[str, str | int | float | None]:
    known = not np.isnan(level.score[place])
    values = {"score": level.score, "p": level.p, "q": level.q}
    row: dict[str, str | int | float | None] = {
        f"{name}_{kind}": float(each[place]) if known else None for name, each in values.items()
    }
    return row | {f"flagged_{kind}": int(level.flagged[place])}
