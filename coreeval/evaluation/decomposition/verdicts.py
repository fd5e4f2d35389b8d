"""What the parts of a drop show, and by which rule."""

from collections.abc import Callable
from typing import Final

from coreeval.evaluation.decomposition.values import MIN_SAMPLES, Parts, Term, TermName, Verdict
from coreeval.evaluation.scoring.classification import Score

Why = tuple[str, ...]
Rule = Callable[[Parts], Why | None]
"""Why the rule holds, or None."""

MEMORY: Final[tuple[tuple[TermName, TermName, str], ...]] = (
    ("surface", "surface_unexplained", "of its words"),
    ("knowledge", "unexplained", "of facts"),
)
"""What may be memory, what the control arm leaves of it, and memory of what."""


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
        f"{name} ({_span(raw)}), of which the control arm leaves {_span(left)}: memory {of_what}"
        for name, beside, of_what in MEMORY
        if (raw := _beyond(parts.terms.get(name)))
        and (left := _beyond(parts.terms.get(beside)))
        and _above(raw)
        and _above(left)
    )
    return found or None


def _not_separable(parts: Parts) -> Why | None:
    lost = [
        f"{name} ({_span(raw)})"
        for name, _, _ in MEMORY
        if (raw := _beyond(parts.terms.get(name))) and _above(raw)
    ]
    if "rewriting" in parts.terms or not lost:
        return None
    return (
        f"{' and '.join(lost)} is lost beyond label noise, but without a control arm rewriting "
        "cannot be told from memory: set run.control_window",
    )


def _nothing(parts: Parts) -> Why:
    said = [
        f"{name} {_span(term.lost)}"
        for name, term in parts.terms.items()
        if term.lost.estimate is not None
    ]
    return (f"no loss that neither label noise nor rewriting explains: {'; '.join(said)}",)


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
