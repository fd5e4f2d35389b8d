"""What the parts of a drop show, and by which rule."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from coreeval.evaluation.covariates import difference_sentence
from coreeval.evaluation.decomposition.losses import Losses
from coreeval.evaluation.decomposition.values import (
    CLAIMS,
    MIN_SAMPLES,
    Check,
    Kind,
    Parts,
    Term,
    TermName,
    Verdict,
)
from coreeval.evaluation.scoring.classification import Score

Why = tuple[str, ...]
ONE_SIDED: Final = 1.6449 / 1.9600
"""Half a 90 % interval over half a 95 % one, of a normal distribution."""


class Case(NamedTuple):
    """What a verdict is about."""

    losses: Losses
    checks: Mapping[Kind, Check]


Rule = Callable[[Case], Why | None]
"""Why the rule holds, or None."""

_MEMORY: Final[Mapping[Kind, str]] = {
    "wording": "memory of the words",
    "facts": "memory of facts",
}


def verdict_of(losses: Losses, checks: Mapping[Kind, Check]) -> tuple[Verdict, Why]:
    """Return the verdict and its reasons."""
    case = Case(losses, checks)
    return next((verdict, why) for verdict, rule in RULES if (why := rule(case)) is not None)


def _few_samples(case: Case) -> Why | None:
    terms = case.losses.accuracy.terms
    losses = [terms[name].lost.n for name, _ in CLAIMS.values() if name in terms]
    if losses and max(losses) >= MIN_SAMPLES:
        return None
    if not losses:
        return ("no two of the arms original, semantic and updated were asked alike",)
    return (
        f"the arms share at most {max(losses)} samples; {MIN_SAMPLES} are the least for a verdict",
    )


def _remembered(case: Case) -> Why | None:
    """Hold if something is lost beyond label noise and rewriting that no harder arm explains."""
    found = tuple(
        f"{_lost(case, kind)}: {_MEMORY[kind]}, {_excess(case.checks[kind])}"
        for kind in _claimed(case)
        if not [*_explanations(case, kind)]
    )
    return found or None


def _arms_differ(case: Case) -> Why | None:
    """Hold if something is lost beyond label noise and rewriting that a harder arm may explain."""
    found = tuple(
        f"{_lost(case, kind)}: {_MEMORY[kind]} explains it, and so does a harder arm, since "
        f"{'; '.join(_explanations(case, kind))}"
        for kind in _claimed(case)
    )
    return found or None


def _claimed(case: Case) -> list[Kind]:
    return [kind for kind in CLAIMS if _holds(case.losses.accuracy, kind)]


def _holds(parts: Parts, kind: Kind) -> bool:
    """Tell whether a loss is above 0 beyond label noise, and what the control arm leaves of it."""
    found = [_beyond(parts.terms.get(name)) for name in CLAIMS[kind]]
    return all(each is not None and _above_one_sided(each) for each in found)


def _explanations(case: Case, kind: Kind) -> Iterator[str]:
    """Yield what else than memory explains a loss."""
    claim, check = case.losses.claims[kind], case.checks[kind]
    yield from check.unlike
    if claim.lenient and claim.no_label and not _holds(claim.parts, kind):
        named = difference_sentence(claim.no_label, dict.fromkeys(claim.no_label.means, 1))
        yield f"answers without a label would explain it if they were right ({named})"
    if check.p_value is not None and not check.exceeds:
        yield f"the other targets may lose as much: {_excess(check)}"


def _excess(check: Check) -> str:
    return (
        f"{_span(check.excess)} beyond what {len(check.others)} other targets lose "
        f"(adjusted p {check.p_adjusted:.3f})"
    )


def _lost(case: Case, kind: Kind) -> str:
    (name, raw), (rest, left) = (
        (name, _beyond(case.losses.accuracy.terms.get(name))) for name in CLAIMS[kind]
    )
    return f"{name} ({_span(raw)}), of which the control arm leaves {_words(rest)} ({_span(left)})"


def _not_separable(case: Case) -> Why | None:
    """Hold where something is lost and no control arm, or too little of one, says to what."""
    parts = case.losses.accuracy
    lost = tuple(
        f"{name} ({_span(raw)}) is lost beyond label noise; {_without_control(parts, beside)}"
        for name, beside in CLAIMS.values()
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


def _nothing(case: Case) -> Why:
    parts = case.losses.accuracy
    return tuple(
        f"{_decisive(parts, name, beside)}: nothing beyond label noise and rewriting is shown; a "
        f"loss of {_detectable(parts, name, beside):.3f} would be found in 80 % of such tests"
        for name, beside in CLAIMS.values()
        if _beyond(parts.terms.get(name))
    )


def _decisive(parts: Parts, name: TermName, beside: TermName) -> str:
    """Return the term that decides, with its interval: what the control arm leaves of a loss.

    A loss that is not above 0 itself decides whatever the control arm leaves of it.
    """
    raw, left = _beyond(parts.terms.get(name)), _beyond(parts.terms.get(beside))
    if left is None or raw is None or not _above_one_sided(raw):
        return f"{_words(name)} ({_span(raw)})"
    return f"{_words(beside)} ({_span(left)}; {_words(name)} alone {_span(raw)})"


def _words(name: TermName) -> str:
    return name.replace("_", " ")


def _detectable(parts: Parts, *names: TermName) -> float:
    """Return the smallest true loss that shows in all of some terms."""
    found = [parts.terms[name].detectable for name in names if name in parts.terms]
    return max(each for each in found if each is not None)


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("too_few", _few_samples),
    ("remembered", _remembered),
    ("arms_differ", _arms_differ),
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


def _above_one_sided(score: Score) -> bool:
    """Tell whether a score is above 0 by a one-sided test at 5 %, the level of the excess too.

    Memory loses, it never gains; the end of the 90 % interval is taken from that of the 95 % one.
    """
    if score.estimate is None or score.ci_low is None:
        return False
    return score.estimate - ONE_SIDED * (score.estimate - score.ci_low) > 0


def _span(score: Score | None) -> str:
    if score is None or score.estimate is None or score.ci_low is None or score.ci_high is None:
        return "n/a"
    return f"{score.estimate:+.3f}, {score.ci_low:+.3f} to {score.ci_high:+.3f}, n {score.n}"
