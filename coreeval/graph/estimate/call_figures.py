"""Expected usage of one call, from recorded calls or from assumptions with a stated source.

Calls: from the sample graph (docs/pipeline.md) and the outcomes of the quality trials
(docs/quality.md: 5.4 to 7.7 calls per sample, 2.2 to 2.8 of them label readings). Answers: from the
bundled rules on the demo's 120 samples, at 3.5 characters per token, plus the drafts that only
models write, and from the demo's recorded runs of the lean pipeline for kinds of task other than
labels; the high end is for verbose models. Answers about series: from NumLeak's records,
between a bare number and a refusal in a few sentences. Speed: 150, 60 or 20 tokens per second.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coreeval.config import RunConfig
from coreeval.graph.estimate.model import (
    FigureBasis,
    KnownRange,
    Range,
    between,
    estimate_mean,
    exactly,
)
from coreeval.schema import Arm, RoleName, TaskKind

CHARACTERS_PER_TOKEN = between(3.0, 4.0, 4.8)
"""Characters per token of English prompts with JSON, across current tokenisers."""
REPEATED_QUESTIONS = between(1.0, 1.02, 1.15)
"""Calls per answer; unreadable answers are requested again."""
RETRY_PROMPT = between(1.0, 1.02, 1.1)
"""Length of a retry's varying part relative to the first attempt; a retry shows the last
attempt."""


@dataclass(frozen=True)
class AttemptCalls:
    """Calls of a role per sample: those of first attempts, and those of all later ones."""

    first: Range
    again: Range


_CALLS: Mapping[RoleName, AttemptCalls] = {
    "extractor": AttemptCalls(exactly(1), exactly(0)),
    "replacer": AttemptCalls(between(0.4, 0.9, 1), between(0, 0.1, 1)),
    "rewriter": AttemptCalls(between(0.9, 1.05, 2), exactly(0)),
    "composer": AttemptCalls(between(0.2, 0.8, 1), between(0, 0.3, 1)),
    "fact_judge": AttemptCalls(between(0.15, 0.75, 1), between(0, 0.2, 1)),
    "label_judge": AttemptCalls(between(1.6, 2.7, 3), between(0, 0.1, 1)),
}
ARM_SHARES: Mapping[Arm, Range] = {
    "original": exactly(1),
    "semantic": between(0.5, 0.9, 1),
    "updated": between(0.15, 0.7, 1),
}
"""The share of samples in each arm."""
REWORDING_CALLS: Mapping[RoleName, Range] = {
    "extractor": exactly(1),
    "rewriter": _CALLS["rewriter"].first,
    "label_judge": between(1.5, 1.9, 2),
}
"""Calls of each role per train item: the steps before the news for a sample."""
AFTER_NEWS: tuple[RoleName, ...] = ("replacer", "composer", "fact_judge", "label_judge")
"""Roles that are asked about a sample after news for it is found."""
_ANSWERS: Mapping[str, Range] = {
    "extractor": between(150, 300, 700),
    "extractor_choice": between(200, 430, 1200),
    "extractor_answer": between(200, 550, 1500),
    "extractor_summary": between(300, 800, 2000),
    "replacer": between(150, 350, 900),
    "replacer_answer": between(150, 480, 1300),
    "replacer_summary": between(150, 520, 1300),
    "rewriter": between(40, 80, 200),
    "composer": between(80, 220, 600),
    "fact_judge": between(80, 200, 600),
    "fact_judge_answer": between(80, 440, 1500),
    "label_judge": between(25, 45, 120),
    "target": between(8, 12, 60),
    "target_answer": between(8, 20, 120),
    "target_summary": between(40, 150, 600),
    "target_text": between(2, 100, 600),
    "target_series": between(3, 30, 150),
    "target_series_prose": between(80, 250, 500),
    "target_utility": between(60, 250, 900),
    "utility_judge": between(20, 45, 120),
    "paraphraser": between(80, 300, 1500),
}
"""Tokens per answer, by role; `ROLE_KIND` if the kind of task needs longer answers."""
_NO_REASONING = {None, "none", "minimal"}


LEAN_CALLS: Mapping[RoleName, AttemptCalls] = {
    "rewriter": AttemptCalls(between(0, 0.15, 1), exactly(0)),
    "composer": AttemptCalls(exactly(0), between(0, 0.3, 1)),
}
"""Calls of roles whose first text is written by another role in the lean pipeline (own
estimate)."""
_SEMANTIC_LABELS = between(0.5, 0.9, 1)
"""Label readings of the semantic arm per sample, equal to the arm's share."""


def assume_calls(
    role: RoleName, run: RunConfig, gold_questions: int = 1, reworded: float = 1
) -> Range:
    """Return the number of calls of a role for one sample.

    A batch of originals costs about as much as two calls, because its texts are in one prompt. The
    label judge is asked `gold_questions` times about a text with new facts. `reworded` is the share
    of samples that are short enough to be reworded.
    """
    lean, rewords = run.pipeline == "lean", "semantic" in run.arms
    if role == "rewriter" and not rewords:
        return exactly(0)
    attempts = LEAN_CALLS.get(role, _CALLS[role]) if lean else _CALLS[role]
    first = attempts.first
    if role == "label_judge":
        share = 1 / run.label_batch
        labels = between(0.2, 0.8, 1).times(gold_questions) + between(share, min(1, 2 * share), 1)
        first = labels + _SEMANTIC_LABELS.times(reworded) if rewords else labels
    planned = first + attempts.again if run.max_attempts > 1 else first
    asked = planned * REPEATED_QUESTIONS
    return asked.times(reworded) if role == "rewriter" else asked


def assume_answer(
    role: str, *, max_tokens: int, effort: str | None, kind: TaskKind = "labels"
) -> Range:
    """Return the number of tokens in an answer of a role, for a task of a kind.

    A reasoning model may reason up to the limit, and reasoning is billed as output.
    """
    usual = _ANSWERS.get(f"{role}_{kind}", _ANSWERS[role])
    if effort in _NO_REASONING:
        return usual.at_most(max_tokens)
    return between(usual.low, 3 * usual.likely, max(3 * usual.likely, max_tokens)).at_most(
        max_tokens
    )


def assume_seconds(answer: Range) -> Range:
    """Return the duration of a call, in seconds, given the number of tokens in its answer."""
    return between(0.5 + answer.low / 150, 1.5 + answer.likely / 60, 5 + answer.high / 20)


OF_OTHER_ROLES = 1.1
OF_OTHER_MODELS = 1.3
"""Factor that widens figures from other roles and models, in each direction."""
OTHER_ANSWERS = 2.0
"""The same factor for the answer lengths of another model."""
FEW = 5
"""The fewest calls from which a share is estimated."""
STATED_BASIS = FigureBasis(origin="stated default")


@dataclass(frozen=True, kw_only=True)
class CallUsage:
    """The figures of a recorded call for estimating other calls."""

    role: str
    model: str
    is_alike: bool = True
    """Whether its question is of the kind whose answers are estimated."""
    size: int
    """Characters of the messages and the schema."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RoleModel:
    """A role and the model that plays it."""

    role: str
    model: str
    max_tokens: int
    effort: str | None = None
    kind: TaskKind = "labels"
    """The kind of task of its questions."""


def estimate_density(past_calls: Iterable[CallUsage], player: RoleModel) -> KnownRange:
    """Return the number of prompt characters per token."""
    counted = [one for one in past_calls if one.prompt_tokens]
    for calls, basis, factor in _find_nearest(counted, player):
        if calls:
            ratios = [one.size / one.prompt_tokens for one in calls]
            return KnownRange(range=estimate_mean(ratios).widen(factor), basis=basis)
    return KnownRange(range=CHARACTERS_PER_TOKEN, basis=STATED_BASIS)


def estimate_answer(past_calls: Iterable[CallUsage], player: RoleModel) -> KnownRange:
    """Return the number of tokens in an answer, learned only from the same kind of question."""
    counted = [one for one in past_calls if one.is_alike and one.completion_tokens]
    same = [one for one in counted if one.role == player.role]
    own = [one for one in same if one.model == player.model]
    if own:
        found = estimate_mean([one.completion_tokens for one in own])
        return KnownRange(range=found.at_most(player.max_tokens), basis=_own_basis(own))
    if same:
        found = estimate_mean([one.completion_tokens for one in same]).widen(OTHER_ANSWERS)
        return KnownRange(range=found.at_most(player.max_tokens), basis=_others_basis(same))
    stated = assume_answer(
        player.role, max_tokens=player.max_tokens, effort=player.effort, kind=player.kind
    )
    return KnownRange(range=stated, basis=STATED_BASIS)


def estimate_duration(
    past_calls: Iterable[CallUsage], player: RoleModel, said: Range
) -> KnownRange:
    """Return the duration of a call in seconds.

    Args:
        past_calls: Recorded calls.
        player: The model in its role.
        said: Tokens of its answers, used if the model was not asked such questions. Its pace with
            other questions is used, if it is known.
    """
    timed = [one for one in past_calls if one.seconds and one.model == player.model]
    if same := [one for one in timed if one.role == player.role and one.is_alike]:
        return KnownRange(
            range=estimate_mean([one.seconds for one in same]), basis=_own_basis(same)
        )
    stated = assume_seconds(said)
    if counted := [one for one in timed if one.completion_tokens]:
        expected = sum(assume_seconds(exactly(one.completion_tokens)).likely for one in counted)
        pace = sum(one.seconds for one in counted) / expected
        basis = FigureBasis(origin="recorded calls of the model, by length", n=len(counted))
        return KnownRange(range=stated.times(pace), basis=basis)
    return KnownRange(range=stated, basis=STATED_BASIS)


def estimate_cached_share(past_calls: Iterable[CallUsage], player: RoleModel) -> float | None:
    """Return the share of prompt tokens that a provider read from its cache; None if not known."""
    own = [one for one in past_calls if (one.role, one.model) == (player.role, player.model)]
    tokens = sum(one.prompt_tokens for one in own)
    return sum(one.cached_tokens for one in own) / tokens if len(own) >= FEW and tokens else None


def _find_nearest(
    past_calls: Sequence[CallUsage], player: RoleModel
) -> tuple[tuple[list[CallUsage], FigureBasis, float], ...]:
    """Return recorded calls of the model in the role, in other roles, and of other models."""
    model = [one for one in past_calls if one.model == player.model]
    role = [one for one in model if one.role == player.role]
    elsewhere = FigureBasis(origin="recorded calls of the model in other roles", n=len(model))
    return (
        (role, _own_basis(role), 1.0),
        (model, elsewhere, OF_OTHER_ROLES),
        (list(past_calls), _others_basis(past_calls), OF_OTHER_MODELS),
    )


def _own_basis(calls: Sequence[CallUsage]) -> FigureBasis:
    return FigureBasis(origin="recorded calls of the model in this role", n=len(calls))


def _others_basis(calls: Sequence[CallUsage]) -> FigureBasis:
    return FigureBasis(origin="recorded calls of other models", n=len(calls))


def estimate_spread(counts: Sequence[float]) -> Range:
    """Return the mean per sample over many samples, given the counts of some of them.

    The range always lies between the smallest and the largest of the counts; the mean of equal
    fractions may be rounded away from them.
    """
    found, least, most = estimate_mean(counts), min(counts), max(counts)
    low, likely, high = (
        min(max(each, least), most) for each in (found.low, found.likely, found.high)
    )
    return between(low, likely, high)
