"""What recorded calls say about the next ones: pure functions over a few numbers of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coreeval.graph.forecast.ranges import Basis, Known, Range, between, interval
from coreeval.graph.forecast.stated import CHARACTERS_PER_TOKEN, answer_of, seconds_of

OF_OTHER_ROLES = 1.1
OF_OTHER_MODELS = 1.3
"""By how much figures of other roles and other models may be further off, each way."""
OTHER_ANSWERS = 2.0
"""The same for how long another model's answers are."""
FEW = 5
"""Calls from which a share is worth something."""
STATED = Basis(origin="stated default")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What of a recorded call tells about others."""

    role: str
    model: str
    size: int
    """Characters of messages and schema."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Player:
    """Who is asked, and in which role."""

    role: str
    model: str
    max_tokens: int
    effort: str | None = None


def density(seen: Iterable[Seen], player: Player) -> Known:
    """Return how many characters of a prompt make a token."""
    counted = [one for one in seen if one.prompt_tokens]
    for calls, basis, factor in _nearest(counted, player):
        if calls:
            ratios = [one.size / one.prompt_tokens for one in calls]
            return Known(range=interval(ratios).widened(factor), basis=basis)
    return Known(range=CHARACTERS_PER_TOKEN, basis=STATED)


def answer(seen: Iterable[Seen], player: Player) -> Known:
    """Return how many tokens an answer has."""
    same = [one for one in seen if one.role == player.role and one.completion_tokens]
    own = [one for one in same if one.model == player.model]
    if own:
        found = interval([one.completion_tokens for one in own])
        return Known(range=found.at_most(player.max_tokens), basis=_own(own))
    if same:
        found = interval([one.completion_tokens for one in same]).widened(OTHER_ANSWERS)
        return Known(range=found.at_most(player.max_tokens), basis=_others(same))
    stated = answer_of(player.role, max_tokens=player.max_tokens, effort=player.effort)
    return Known(range=stated, basis=STATED)


def duration(seen: Iterable[Seen], player: Player, said: Range) -> Known:
    """Return how many seconds a call takes.

    Args:
        seen: Recorded calls.
        player: Who is asked.
        said: Tokens of its answers, for where no call of the model was recorded.
    """
    timed = [one for one in seen if one.seconds and one.model == player.model]
    for calls, basis, factor in _nearest(timed, player):
        if calls:
            found = interval([one.seconds for one in calls]).widened(factor)
            return Known(range=found, basis=basis)
    return Known(range=seconds_of(said), basis=STATED)


def cached_share(seen: Iterable[Seen], player: Player) -> float:
    """Return which share of the prompt tokens a provider had in its cache; 0 if not known."""
    own = [one for one in seen if (one.role, one.model) == (player.role, player.model)]
    tokens = sum(one.prompt_tokens for one in own)
    return sum(one.cached_tokens for one in own) / tokens if len(own) >= FEW and tokens else 0.0


def _nearest(seen: Sequence[Seen], player: Player) -> tuple[tuple[list[Seen], Basis, float], ...]:
    """Return calls of the model in the role, in other roles, and of other models."""
    model = [one for one in seen if one.model == player.model]
    role = [one for one in model if one.role == player.role]
    elsewhere = Basis(origin="recorded calls of the model in other roles", n=len(model))
    return (
        (role, _own(role), 1.0),
        (model, elsewhere, OF_OTHER_ROLES),
        (list(seen), _others(seen), OF_OTHER_MODELS),
    )


def _own(calls: Sequence[Seen]) -> Basis:
    return Basis(origin="recorded calls of the model in this role", n=len(calls))


def _others(calls: Sequence[Seen]) -> Basis:
    return Basis(origin="recorded calls of other models", n=len(calls))


def spread(counts: Sequence[float]) -> Range:
    """Return what comes to each of many samples on average, given what came to some.

    That is never outside of the least and the most that came to one.
    """
    found, least, most = interval(counts), min(counts), max(counts)
    return between(max(found.low, least), found.likely, min(found.high, most))
