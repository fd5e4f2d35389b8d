"""What the parts of a drop show, and by which rule."""

from collections.abc import Callable
from typing import Final

from coreeval.evaluation.decomposition.values import MIN_SAMPLES, Parts, Term, TermName, Verdict
from coreeval.evaluation.scoring.classification import Score

Why = tuple[str, ...]
Rule = Callable[[Parts], Why | None]
"""Why the rule holds, or None."""

MEMORY: Final[tuple[tuple[TermName, TermName, str], ...]] = (
    (
        "surface",
        "surface_unexplained",
        "memory of the words, unless a rewording of any text costs this target as much, which PCR "
        "and a panel of targets can tell",
    ),
    ("knowledge", "unexplained", "memory of facts"),
)
"""What may be memory, what the control arm leaves of it, and what that is."""


def verdict_of(parts: Parts) -> tuple[Verdict, Why]:
    """Return the verdict and its reasons."""
    return next((verdict, why) for verdict, rule in RULES if (why := rule(parts)) is not None)


def _few_samples(parts: Parts) -> Why | None:
    losses = [parts.terms[name].lost.n for name, _, _ in MEMORY if name in parts.terms]
    if losses and max(losses) >= MIN_SAMPLES:
        return None
    if not losses:
        return ("no two of the arms original, semantic and updated were asked alike",)
    return (
        f"the arms share at most {max(losses)} samples; {MIN_SAMPLES} are the least for a verdict",
    )


def _left(parts: Parts) -> Why | None:
    """Hold where something is lost beyond label noise, and more than a rewriting costs."""
    found = tuple(
        f"{name} ({_span(raw)}), of which the control arm leaves {_span(left)}: {what}"
        for name, beside, what in MEMORY
        if (raw := _beyond(parts.terms.get(name)))
        and (left := _beyond(parts.terms.get(beside)))
        and _above(raw)
        and _above(left)
    )
    return found or None


def _not_separable(parts: Parts) -> Why | None:
    """Hold where something is lost and no control arm, or too little of one, says to what."""
    lost = tuple(
        f"{name} ({_span(raw)}) is lost beyond label noise; {_without_control(parts, beside)}"
        for name, beside, _ in MEMORY
        if (raw := _beyond(parts.terms.get(name)))
        and _above(raw)
        and _beyond(parts.terms.get(beside)) is None
    )
    return lost or None


def _without_control(parts: Parts, beside: TermName) -> str:
    if beside not in parts.terms:
        return (
            "without a control arm rewriting cannot be told from memory: run.control_window adds "
            "one"
        )
    return (
        f"the control arm shares {parts.terms[beside].lost.n} samples with the others, and "
        f"{MIN_SAMPLES} are the least that tell rewriting from memory"
    )


def _nothing(parts: Parts) -> Why:
    return tuple(
        f"{name} ({_span(raw)}): nothing beyond label noise and rewriting is shown; so many "
        f"samples show losses from about {_detectable(parts, name, beside):.3f} on"
        for name, beside, _ in MEMORY
        if (raw := _beyond(parts.terms.get(name)))
    )


def _detectable(parts: Parts, *names: TermName) -> float:
    """Return the smallest true loss that shows in all of some terms."""
    found = [parts.terms[name].detectable for name in names if name in parts.terms]
    return max(each for each in found if each is not None)


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("too_few", _few_samples),
    ("remembered", _left),
    ("no_control", _not_separable),
    ("not_shown", _nothing),
)
"""The first that holds gives the verdict."""


def _beyond(term: Term | None) -> Score | None:
    """Return what is lost beyond label noise; all of it where nobody judged labels."""
    if term is None or term.lost.n < MIN_SAMPLES:
        return None
    return term.beyond_noise or term.lost


def _above(score: Score) -> bool:
    return score.ci_low is not None and score.ci_low > 0


def _span(score: Score) -> str:
    if score.estimate is None or score.ci_low is None or score.ci_high is None:
        return "n/a"
    return f"{score.estimate:+.3f}, {score.ci_low:+.3f} to {score.ci_high:+.3f}, n {score.n}"
