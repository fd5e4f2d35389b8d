"""Samples that a target seems to remember, with a bound on the share of false flags.

A sample's score is the mean share of templates with a right answer on texts that may be remembered,
minus that on texts that cannot be, shrunk if there are few templates: with a Beta-binomial prior of
rates, the posterior mean of that difference is m / (m + s) of it, for m templates and a prior as
strong as s of them. Scores of the same form, without a part of memory, serve as the comparison.

A sample's p-value is the rank of its score among these (conformal p-values, which are valid in the
procedure of Benjamini and Hochberg: Bates, Candès, Lei, Romano and Sesia 2023, Annals of Statistics
51, 149-178); the share of false flags is bounded for each kind of memory separately, because a
sample that stands out in one kind does not in the other. The bound holds if the arms differ only in
memory, so the check of a target's verdict comes before any flag.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.answer_codes import AnswerCodes
from coreeval.evaluation.decomposition.losses import BACK, MIN_SAMPLES, PATH, LossCheck, MemoryKind
from coreeval.evaluation.label_scores import Floats, Mask, Numbers
from coreeval.evaluation.statistics import adjust_benjamini_hochberg
from coreeval.schema import Arm, Value


class ArmContrast(NamedTuple):
    """The arms that may be remembered, and the arms that cannot be."""

    front: tuple[Arm, ...]
    back: tuple[Arm, ...]


class ContrastPair(NamedTuple):
    """A contrast, and the same contrast with an arm in front that is not remembered."""

    seen: ArmContrast
    unseen: ArmContrast


CONTRAST_PAIRS: Final[Mapping[MemoryKind, ContrastPair]] = {
    "wording": ContrastPair(
        ArmContrast(("original",), ("semantic", "updated")),
        ArmContrast(("semantic",), ("control", "updated")),
    ),
    "facts": ContrastPair(
        ArmContrast(("original", "semantic", "control"), ("updated",)),
        ArmContrast(("original", "semantic", "updated"), ("control",)),
    ),
}
"""The first rewriting of a text is compared with the second, as in `surface_unexplained`, and the
updated arm is exchanged with the control arm, which was rewritten in the same way. Without a
control arm, the number of samples that stand out by chance is unknown."""


@dataclass(frozen=True, eq=False)
class KindScores:
    """The scores of one kind, for the samples at `Scored.places`."""

    seen: Floats
    unseen: Floats
    top: float
    """The highest possible score."""


@dataclass(frozen=True, eq=False)
class SampleScores:
    """The scores of all samples that are in every needed arm."""

    places: Numbers
    """The rows of the table."""
    kinds: Mapping[MemoryKind, KindScores]


def score_items(coded: AnswerCodes) -> SampleScores | None:
    """Score every sample, or return None if fewer than 20 have an answer in all four arms."""
    views = coded.views(PATH)
    if views is None:
        return None
    counted, due = views[0].counted, coded.table.due[:, None]
    places = np.flatnonzero(counted.any(axis=1))
    if len(places) < MIN_SAMPLES:
        return None
    hits = {
        arm: (counted & (coded.table.said[:, list(view.ways)] == due)).sum(axis=1)[places]
        for arm, view in zip(PATH, views, strict=True)
    }
    asked = counted.sum(axis=1)[places]
    weight = shrinkage(np.stack(list(hits.values())), asked)
    share = {arm: each / asked for arm, each in hits.items()}
    return SampleScores(
        places, {kind: _score_kind(bout, share, weight) for kind, bout in CONTRAST_PAIRS.items()}
    )


def _score_kind(bout: ContrastPair, share: Mapping[Arm, Floats], weight: Floats) -> KindScores:
    seen, unseen = (
        weight
        * (
            np.mean([share[arm] for arm in contrast.front], axis=0)
            - np.mean([share[arm] for arm in contrast.back], axis=0)
        )
        for contrast in bout
    )
    return KindScores(_round_equal(seen), _round_equal(unseen), float(_round_equal(weight).max()))


def shrinkage(hits: Numbers, asked: Numbers) -> Floats:
    """Return m / (m + s) for each sample, from hits of shape (arms, samples) out of those asked.

    1 / (1 + s) is the agreement beyond chance of two templates on a text: the pairwise estimator of
    Ridout, Demétrio and Firth (1999), Biometrics 55, 137-148, over all texts. With a single
    template, which gives no information on agreement, the result is 1.
    """
    pairs = float((asked * (asked - 1)).sum()) * len(hits)
    if not pairs:
        return np.ones(len(asked))
    mean = hits.sum() / (asked.sum() * len(hits))
    both = (hits * (hits - 1)).sum() / pairs
    spread = mean * (1 - mean)
    alike = float(np.clip((both - mean * mean) / spread, 0, 1)) if spread else 0.0
    return np.asarray(asked * alike / (asked * alike + 1 - alike))


def _round_equal(values: Floats) -> Floats:
    """Round values so that values that differ only in their last bits become equal."""
    return np.round(values, 9)


FALSE_SHARE: Final = 0.1
"""The share of false flags: one in ten entries of a list for inspection may be wrong (own
choice)."""
ItemRow = Mapping[str, str | int | float | None]


class SampleFlags(Value):
    """The samples that seem remembered in one way."""

    ids: tuple[str, ...]
    """The ids of the samples, the surest first."""
    expected_false: float
    """The upper bound of the expected number of ids that are not remembered."""
    highest: int
    """The number of samples with the highest possible score."""
    by_chance: int
    """The number of samples that have this score by chance, without memory."""
    least: int
    """The number of samples that must have this score before any can be flagged."""


class ItemEvidence(Value):
    """The evidence on single samples of one target."""

    target: str
    n: int
    """The number of samples with a valid answer in every arm that was asked."""
    templates: int
    base: str | None
    """The source of the base rate, `control`; None if there is no evidence."""
    false_share: float
    kinds: dict[MemoryKind, SampleFlags]
    """The flags by kind, without kinds that have no evidence."""
    note: str
    """The limits of the evidence, for a reader."""


@dataclass(frozen=True, eq=False)
class ItemFindings:
    """The evidence, and the table on which it is based."""

    found: ItemEvidence
    columns: tuple[str, ...]
    rows: Sequence[ItemRow]
    """One row per sample with an answer: id, label; for each arm and template (`original_1`) 1 for
    a right answer, 0 for a wrong one, None for none or a refusal; for each kind `score_KIND`,
    `p_KIND`, `q_KIND` (None without evidence) and `flagged_KIND`, 0 or 1."""


@dataclass(frozen=True, eq=False)
class _Levels:
    """One kind of evidence for each row of the table; nan if a row has none."""

    score: Floats
    p: Floats
    q: Floats
    flagged: Mask


def find_items(
    coded: AnswerCodes,
    checks: Mapping[MemoryKind, LossCheck] = {},
    *,
    false_share: float = FALSE_SHARE,
) -> ItemFindings:
    """Score every sample; flag those that seem remembered, at most `false_share` falsely.

    A kind of memory is left out if it has no check or if a harder arm would explain it. No sample
    is flagged if the target loses no more than the others.
    """
    scored = score_items(coded)
    open_questions = {kind: tuple(_open_questions(checks.get(kind))) for kind in BACK}
    told = {kind for kind, why in open_questions.items() if not why}
    levels = _levels(len(coded.keys), scored, checks, told, false_share) if scored else {}
    flagged = {
        kind: _flag_samples(coded, level, scored.kinds[kind], false_share)
        for kind, level in levels.items()
        if scored
    }
    templates = len({template for _, template in coded.ways})
    names = [f"{arm}_{template}" for arm, template in coded.ways]
    columns = [f"{level}_{kind}" for kind in levels for level in ("score", "p", "q", "flagged")]
    return ItemFindings(
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


def _open_questions(check: LossCheck | None) -> Iterator[str]:
    """Yield the reasons why single samples cannot be judged."""
    if check is None:
        yield "neither other targets nor texts were compared"
        return
    yield from check.unlike
    if check.no_label and check.no_label.differs:
        yield "unlabelled answers are more frequent on the lower-scoring arm"


def _levels(
    lines: int,
    scored: SampleScores,
    checks: Mapping[MemoryKind, LossCheck],
    told: Collection[MemoryKind],
    false_share: float,
) -> dict[MemoryKind, _Levels]:
    """Return the evidence for each kind of memory in `told`, for all rows of the table."""
    found: dict[MemoryKind, _Levels] = {}
    for kind, scores in scored.kinds.items():
        if kind not in told:
            continue
        p_values = (1 + _at_least(scores.unseen, scores.seen)) / (1 + len(scores.unseen))
        score, p, q = np.full((3, lines), np.nan)
        for values, own in (
            (score, scores.seen),
            (p, p_values),
            (q, adjust_benjamini_hochberg(p_values.tolist())),
        ):
            values[scored.places] = own
        flagged = (q <= false_share) & (score > 0) & checks[kind].exceeds
        found[kind] = _Levels(score, p, q, flagged)
    return found


def _at_least(values: Floats, ends: Floats) -> Numbers:
    """Return, for each end, the number of values that are at least as large."""
    return np.asarray(len(values) - np.searchsorted(np.sort(values), ends, side="left"))


def _flag_samples(
    coded: AnswerCodes, levels: _Levels, scores: KindScores, false_share: float
) -> SampleFlags:
    some = np.flatnonzero(levels.flagged)
    some = some[np.argsort(-levels.score[some], kind="stable")]
    n, chance = len(scores.seen), int((scores.unseen >= scores.top).sum())
    return SampleFlags(
        ids=tuple(coded.keys[place] for place in some),
        expected_false=float(levels.q[some].max() * len(some)) if len(some) else 0.0,
        highest=int((scores.seen >= scores.top).sum()),
        by_chance=chance,
        least=int(np.ceil((1 + chance) / (1 + n) * n / false_share)),
    )


def _notes(
    scored: SampleScores | None,
    kinds: Mapping[MemoryKind, SampleFlags],
    checks: Mapping[MemoryKind, LossCheck],
    open_questions: Mapping[MemoryKind, Sequence[str]],
    templates: int,
) -> Iterator[str]:
    """Yield notes on the limits of the lists, one sentence each."""
    if scored is None:
        yield (
            f"fewer than {MIN_SAMPLES} samples have an answer in all four arms, so no sample can "
            "be flagged"
        )
        return
    for kind, why in open_questions.items():
        if why:
            yield (
                f"{kind}: no sample is flagged, because a harder arm cannot be ruled out ({why[0]})"
            )
    for kind, each in kinds.items():
        if not checks[kind].exceeds:
            yield f"{kind}: no sample is flagged, because other targets may lose as much"
            continue
        yield (
            f"{kind}: {each.highest} of {len(scored.places)} samples have the highest score "
            f"(expected without memory: {each.by_chance}); at least {each.least} must have it "
            "before any sample can be flagged"
        )
    if kinds and templates == 1:
        yield (
            "with one template and one draw, samples can be flagged only if many of them share "
            "the highest score"
        )


def _rows(
    coded: AnswerCodes, names: Sequence[str], levels: Mapping[MemoryKind, _Levels]
) -> Iterator[dict[str, str | int | float | None]]:
    table = coded.table
    right, counted = table.said == table.due[:, None], table.is_counted
    for place in np.flatnonzero(table.is_asked.any(axis=1)):
        row: dict[str, str | int | float | None] = {
            "id": coded.keys[place],
            "label": coded.labels[table.due[place]],
        }
        for way, name in enumerate(names):
            row[name] = int(right[place, way]) if counted[place, way] else None
        for kind, level in levels.items():
            row |= _level_row(kind, level, int(place))
        yield row


def _level_row(kind: MemoryKind, level: _Levels, place: int) -> dict[str, str | int | float | None]:
    known = not np.isnan(level.score[place])
    values = {"score": level.score, "p": level.p, "q": level.q}
    row: dict[str, str | int | float | None] = {
        f"{name}_{kind}": float(each[place]) if known else None for name, each in values.items()
    }
    return row | {f"flagged_{kind}": int(level.flagged[place])}
