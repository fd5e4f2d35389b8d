"""Holding the values of a release against limits; pure."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeVar, get_args

from coreeval.evaluation.scores import Score
from coreeval.releases.gates.limits import DropGate, Gate, Gates, Limit, NumleakGate, PcrGate, Side
from coreeval.releases.gates.values import (
    NUMBERS,
    VERDICTS,
    Absent,
    Measure,
    Said,
    Subject,
)
from coreeval.schema import Value

Status = Literal["met", "not_met", "not_measured", "skipped"]
STATUSES: tuple[Status, ...] = get_args(Status)
STOPS: Final[frozenset[Status]] = frozenset({"not_met", "not_measured"})
"""What keeps a release back; `skipped` is a value that is not there, of a gate that lets it go."""
Bound = Literal["min", "max"]
_BOUNDS: tuple[Bound, ...] = get_args(Bound)
V = TypeVar("V", Measure, Said)
_NO_INTERVAL = Absent("one sample gives no interval", "leave `by` out, or measure more samples")
_EXACT = 1e-9
"""Values this near to a limit are on it: sums of floats differ in the last bits."""
_SIDES: Final[dict[Side, str]] = {
    "estimate": "",
    "ci_low": "lower end ",
    "ci_high": "upper end ",
}


class Finding(Value):
    """What one gate found."""

    gate: str
    status: Status
    of: str = ""
    """The label, target or series that is nearest to the limit, or furthest beyond it."""
    score: Score | None = None
    """Its value; `n` is 1 where there is no interval."""
    verdict: str = ""
    """In place of a value."""
    limit: str
    """In words, with the side of the interval that counts."""
    reason: str = ""
    """Why it is not met, or not measured; empty where it is met."""
    hint: str = ""
    """What to do about a value that is not there."""

    @property
    def stops(self) -> bool:
        """Whether the release is kept back for it."""
        return self.status in STOPS


def check(subject: Subject, gates: Gates) -> tuple[Finding, ...]:
    """Return what each gate of a file finds, in their order."""
    return tuple(
        _found(subject, name, gate)
        for name in Gates.model_fields
        if (gate := getattr(gates, name)) is not None
    )


def _found(subject: Subject, name: str, gate: Gate) -> Finding:
    if isinstance(gate, Limit):
        return _of_numbers(subject, name, gate)
    assert isinstance(gate, PcrGate | DropGate | NumleakGate), "these are all kinds of gates"
    said, absent = _parted(VERDICTS[name](subject))
    limit = "not " + " or ".join(gate.forbid)
    bad = [each for each in said if each.verdict in gate.forbid]
    if absent and not bad:
        return _absent(name, gate, absent, limit)
    if not bad:
        verdicts = ", ".join(dict.fromkeys(each.verdict for each in said))
        return Finding(gate=name, status="met", verdict=verdicts, limit=limit)
    return Finding(
        gate=name,
        status="not_met",
        of=bad[0].of,
        verdict=bad[0].verdict,
        limit=limit,
        reason="; ".join(map(_told, bad)),
    )


def _parted(found: Sequence[V | Absent] | Absent) -> tuple[list[V], Absent | None]:
    """Return the values, and what is missing of them."""
    if isinstance(found, Absent):
        return [], found
    absent = next((each for each in found if isinstance(each, Absent)), None)
    return [each for each in found if not isinstance(each, Absent)], absent


def _told(said: Said) -> str:
    return f"{said.of} is {said.verdict}{f' ({said.caveat})' if said.caveat else ''}"


def _absent(name: str, gate: Gate, absent: Absent, limit: str) -> Finding:
    status: Status = "skipped" if gate.missing == "skip" else "not_measured"
    return Finding(gate=name, status=status, limit=limit, reason=absent.why, hint=absent.hint)


def _of_numbers(subject: Subject, name: str, limit: Limit) -> Finding:
    found, absent = _parted(NUMBERS[name](subject, limit))
    words, margins = limit_words(limit), {each: _margin(limit, each.score) for each in found}
    known = [each for each in found if margins[each] is not None]
    if len(known) < len(found):
        absent = absent or _NO_INTERVAL
    broken = [reason for each in known for reason in _broken(limit, each)]
    if absent and not broken:
        return _absent(name, limit, absent, words)
    worst = min(known, key=lambda each: margins[each] or 0.0)
    return Finding(
        gate=name,
        status="not_met" if broken else "met",
        of=worst.of,
        score=worst.score,
        limit=words,
        reason="; ".join(broken),
    )


def _broken(limit: Limit, found: Measure) -> Iterator[str]:
    """Yield the bounds that a value is beyond, in words."""
    for bound, side, allowed in _bounds(limit):
        value = getattr(found.score, side)
        beyond = value - allowed if bound == "max" else allowed - value
        if beyond > _EXACT:
            than = "more" if bound == "max" else "less"
            who = f"{found.of}: " if found.of else ""
            yield f"{who}{_SIDES[side]}{value:.4g} is {than} than {allowed:g}"


def _margin(limit: Limit, score: Score) -> float | None:
    """Return how far a value is from the nearest bound, negative beyond it; None without an end."""
    margins = list[float]()
    for bound, side, allowed in _bounds(limit):
        value: float | None = getattr(score, side)
        if value is None:
            return None
        margins.append(allowed - value if bound == "max" else value - allowed)
    return min(margins)


def _bounds(limit: Limit) -> Iterator[tuple[Bound, Side, float]]:
    for bound in _BOUNDS:
        allowed = getattr(limit, bound)
        if allowed is not None:
            yield bound, limit.side(bound), allowed


def limit_words(limit: Limit) -> str:
    """Return a limit in words: `at most 0.06`, `upper end at least 0.4`."""
    least = {"min": "at least", "max": "at most"}
    return " and ".join(
        f"{_SIDES[side]}{least[bound]} {allowed:g}" for bound, side, allowed in _bounds(limit)
    )
