"""Verdicts from the losses of targets: a loss is memory if no harder arm explains it.

The texts of an arm, and the losses of other targets on it, show whether it is harder; `RULES` has
the rules that turn the parts of a drop into a verdict.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coreeval.evaluation.answer_codes import AnswerCodes
from coreeval.evaluation.covariates import (
    MOST,
    CovariateCheck,
    compare_measures,
    describe_difference,
)
from coreeval.evaluation.decomposition.losses import (
    BACK,
    CLAIMS,
    MIN_SAMPLES,
    PATH,
    Claim,
    Decomposition,
    DropParts,
    LossCheck,
    Losses,
    MemoryKind,
    Term,
    TermName,
    Verdict,
    measure_losses,
)
from coreeval.evaluation.excess import MIN_OTHERS, measure_excess
from coreeval.evaluation.scores import DRAWS, NO_SCORE, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, adjust_holm
from coreeval.evaluation.text_measures import measure_texts
from coreeval.schema import Arm, Value
from coreeval.tools.formatting import NOT_DEFINED, format_interval, format_quantity, is_defined

Why = tuple[str, ...]
ONE_SIDED: Final = 1.6449 / 1.9600
"""The half-width of a 90 % interval over that of a 95 % one, for a normal distribution."""


class DropCase(NamedTuple):
    """The data that a verdict is based on."""

    losses: Losses
    checks: Mapping[MemoryKind, LossCheck]


Rule = Callable[[DropCase], Why | None]
"""A function that returns the reasons why the rule holds, or None if it does not."""

_MEMORY: Final[Mapping[MemoryKind, str]] = {
    "wording": "memory of the words",
    "facts": "memory of facts",
}


def verdict_of(losses: Losses, checks: Mapping[MemoryKind, LossCheck]) -> tuple[Verdict, Why]:
    """Return the verdict and its reasons."""
    case = DropCase(losses, checks)
    return next((verdict, why) for verdict, rule in RULES if (why := rule(case)) is not None)


def _few_samples(case: DropCase) -> Why | None:
    terms = case.losses.accuracy.terms
    losses = [terms[name].lost.n for name, _ in CLAIMS.values() if name in terms]
    if losses and max(losses) >= MIN_SAMPLES:
        return None
    if not losses and "semantic" not in {step.arm for step in case.losses.accuracy.steps}:
        return (
            "there are no answers on the semantic arm, so losses due to rewording and losses due "
            "to new facts cannot be separated (see run.arms)",
        )
    if not losses:
        return ("no two of the arms original, semantic and updated were evaluated in the same way",)
    return (
        f"the arms share at most {max(losses)} samples; a verdict needs at least {MIN_SAMPLES}",
    )


def _remembered(case: DropCase) -> Why | None:
    """Hold if a loss exceeds label noise and rewriting, and no harder arm can explain it."""
    found = tuple(
        f"{_lost(case, kind)}, which is evidence of {_MEMORY[kind]}: {_excess(case.checks[kind])}"
        for kind in _list_claims(case)
        if not [*_explanations(case, kind)]
    )
    return found or None


def _arms_differ(case: DropCase) -> Why | None:
    """Hold if a loss exceeds label noise and rewriting, but a harder arm may explain it."""
    found = tuple(
        f"{_lost(case, kind)}: {_MEMORY[kind]} explains this, but so does a harder arm, because "
        f"{'; '.join(_explanations(case, kind))}"
        for kind in _list_claims(case)
    )
    return found or None


def _list_claims(case: DropCase) -> list[MemoryKind]:
    return [kind for kind in CLAIMS if _holds(case.losses.accuracy, kind)]


def _holds(parts: DropParts, kind: MemoryKind) -> bool:
    """Return whether a loss beyond label noise, and its part beyond the control arm, exceed 0."""
    found = [_beyond(parts.terms.get(name)) for name in CLAIMS[kind]]
    return all(each is not None and _above_one_sided(each) for each in found)


def _explanations(case: DropCase, kind: MemoryKind) -> Iterator[str]:
    """Yield explanations of a loss other than memory."""
    claim, check = case.losses.claims[kind], case.checks[kind]
    yield from check.unlike
    if claim.lenient and claim.no_label and not _holds(claim.parts, kind):
        named = describe_difference(claim.no_label, dict.fromkeys(claim.no_label.means, 1))
        yield f"answers without a label would explain the loss if they were right ({named})"
    if check.p_value is not None and not check.exceeds:
        yield f"other targets may lose as much: {_excess(check)}"


def _excess(check: LossCheck) -> str:
    return (
        f"the loss exceeds that of {format_quantity(len(check.others), 'other target')} by "
        f"{_span(check.excess)} (adjusted p {check.p_adjusted:.3f})"
    )


def _lost(case: DropCase, kind: MemoryKind) -> str:
    (name, raw), (rest, left) = (
        (name, _beyond(case.losses.accuracy.terms.get(name))) for name in CLAIMS[kind]
    )
    return (
        f"{name} ({_span(raw)}) and its part that the control arm does not explain, {_words(rest)} "
        f"({_span(left)}), are both above 0"
    )


def _not_separable(case: DropCase) -> Why | None:
    """Hold if there is a loss, but no control arm or too few of its samples to attribute it."""
    parts = case.losses.accuracy
    lost = tuple(
        f"{name} ({_span(raw)}) exceeds label noise; {_without_control(parts, beside)}"
        for name, beside in CLAIMS.values()
        if (raw := _beyond(parts.terms.get(name)))
        and raw.is_positive
        and _beyond(parts.terms.get(beside)) is None
    )
    return lost or None


def _without_control(parts: DropParts, beside: TermName) -> str:
    if beside not in parts.terms:
        return (
            "without a control arm, which run.control_window adds, rewriting effects cannot be "
            "distinguished from memory"
        )
    return (
        f"the control arm shares {format_quantity(parts.terms[beside].lost.n, 'sample')} with the "
        f"others; distinguishing rewriting effects from memory needs at least {MIN_SAMPLES}"
    )


def _nothing(case: DropCase) -> Why:
    parts = case.losses.accuracy
    return tuple(
        f"{_decisive(parts, name, beside)}: there is no evidence of a loss beyond label noise and "
        f"rewriting; a loss of {_detectable(parts, name, beside):.3f} would be detected in 80 % "
        "of such tests"
        for name, beside in CLAIMS.values()
        if _beyond(parts.terms.get(name))
    )


def _decisive(parts: DropParts, name: TermName, beside: TermName) -> str:
    """Return the decisive term with its interval: the remainder of a loss after the control arm.

    If the loss itself is not above 0, it is decisive, regardless of the remainder.
    """
    raw, left = _beyond(parts.terms.get(name)), _beyond(parts.terms.get(beside))
    if left is None or raw is None or not _above_one_sided(raw):
        return f"{_words(name)} ({_span(raw)})"
    return f"{_words(beside)} ({_span(left)}; {_words(name)} alone {_span(raw)})"


def _words(name: TermName) -> str:
    return name.replace("_", " ")


def _detectable(parts: DropParts, *names: TermName) -> float:
    """Return the smallest true loss that can be detected in all of the given terms."""
    found = [parts.terms[name].detectable for name in names if name in parts.terms]
    return max(each for each in found if each is not None)


RULES: Final[tuple[tuple[Verdict, Rule], ...]] = (
    ("too_few", _few_samples),
    ("remembered", _remembered),
    ("arms_differ", _arms_differ),
    ("no_control", _not_separable),
    ("not_shown", _nothing),
)
"""The first rule that holds gives the verdict."""


def _beyond(term: Term | None) -> Score | None:
    """Return the loss beyond label noise, or the whole loss if nobody judged labels."""
    if term is None or term.lost.n < MIN_SAMPLES:
        return None
    return term.beyond_noise or term.lost


def _above_one_sided(score: Score) -> bool:
    """Return whether a score is above 0 by a one-sided test at 5 %, the level of the excess too.

    The test is one-sided because memory can only cause losses; the end of the 90 % interval is
    derived from that of the 95 % interval.
    """
    if score.estimate is None or score.ci_low is None:
        return False
    return score.estimate - ONE_SIDED * (score.estimate - score.ci_low) > 0


def _span(score: Score | None) -> str:
    if score is None or not is_defined(score.ci_low):
        return NOT_DEFINED
    ends = format_interval(score.ci_low, score.ci_high, "+.3f")
    return f"{score.estimate:+.3f}, {ends}, n {score.n}"


WEIGHTS: Final[Mapping[MemoryKind, Mapping[str, int]]] = {
    "wording": {"original": 1, "semantic": -2, "control": 1},
    "facts": {"control": 1, "updated": -1},
}
"""The weights of the arms in `surface_unexplained` and `unexplained`: the change by the first
rewording minus the change by the next, and the new facts against older ones."""


class ArmTexts(Value):
    """The differences between the texts of the arms, for each kind of memory."""

    n: int
    """The number of samples compared: at most 2,000 of those with a text in all four arms."""
    kinds: dict[MemoryKind, CovariateCheck]
    """The differences; empty if there are fewer than 20 samples."""


def compare_arm_texts(
    texts: Mapping[Arm, Mapping[str, str]], clusters: Mapping[str, str] | None = None
) -> ArmTexts:
    """Compare the texts of the four arms on the samples that all of them have.

    Args:
        texts: By arm, the text of each sample by id; at most `covariates.MOST` samples that all
            arms share are used.
        clusters: The cluster of each sample by id; None if each sample is its own cluster.
    """
    own = [texts.get(arm, {}) for arm in PATH]
    keys = [key for key in own[0] if all(key in other for other in own)][:MOST]
    if len(keys) < MIN_SAMPLES:
        return ArmTexts(n=len(keys), kinds={})
    units = None if clusters is None else [clusters[key] for key in keys]
    measured = measure_texts({arm: [texts[arm][key] for key in keys] for arm in PATH}, units)
    return ArmTexts(
        n=len(keys),
        kinds={
            kind: compare_measures(measured, weights, clusters=units)
            for kind, weights in WEIGHTS.items()
        },
    )


def decompose(
    coded: AnswerCodes, *, noise: float | None = None, seed: int = 7, draws: int = DRAWS
) -> Decomposition:
    """Decompose the drop of a single target; without other targets, memory is never the verdict.

    See `measure_losses` for `noise`, and `judge_losses` for several targets.
    """
    return judge_losses([measure_losses(coded, noise=noise, seed=seed, draws=draws)])[0]


def judge_losses(
    found: Sequence[Losses], *, texts: ArmTexts | None = None, references: Collection[str] = ()
) -> tuple[Decomposition, ...]:
    """Return the verdict on each target, from its losses, the texts and the other targets.

    Args:
        found: The losses of each target, all with the same seed and number of draws.
        texts: How the texts of the arms differ; None if they were not compared, which leaves every
            loss unexplained.
        references: Targets presumed to remember nothing; if there are at least four, the other
            targets are compared with them only.
    """
    checks: dict[MemoryKind, dict[str, LossCheck]] = {
        kind: _checks(kind, found, texts, frozenset(references)) for kind in BACK
    }
    return tuple(
        _judge_target(each, {kind: of[each.target] for kind, of in checks.items()})
        for each in found
    )


def _judge_target(losses: Losses, checks: Mapping[MemoryKind, LossCheck]) -> Decomposition:
    verdict, reasons = verdict_of(losses, checks)
    return Decomposition(
        target=losses.target,
        accuracy=losses.accuracy,
        macro_f1=losses.macro_f1,
        noise=losses.noise,
        verdict=verdict,
        reasons=reasons,
        checks=dict(checks),
        draws=losses.draws,
        seed=losses.seed,
    )


def _checks(
    kind: MemoryKind, found: Sequence[Losses], texts: ArmTexts | None, references: frozenset[str]
) -> dict[str, LossCheck]:
    """Return the alternative explanations of each target's loss, with p-values adjusted over all.

    References are a separate family because their memory is not in question.
    """
    tested = {each.target: _compare_with_others(kind, each, found, references) for each in found}
    fair = dict[str, float]()
    for family in (references, {each.target for each in found} - references):
        some = {
            name: held.p for name, held in tested.items() if name in family and held.p is not None
        }
        fair |= zip(some, adjust_holm(list(some.values())), strict=True)
    unlike = tuple(_unlike_texts(kind, texts))
    return {
        each.target: _make_check(
            each.claims[kind], tested[each.target], fair.get(each.target), unlike
        )
        for each in found
    }


class _OtherTargets(NamedTuple):
    """The comparison of a target with others."""

    others: tuple[str, ...]
    excess: Score
    p: float | None


def _compare_with_others(
    kind: MemoryKind, own: Losses, found: Sequence[Losses], references: frozenset[str]
) -> _OtherTargets:
    """Compare a target with the references if there are at least four, or with all others.

    Targets whose answers lack a label more often on the arm behind are left out, because they say
    nothing about its difficulty.
    """
    there = [
        standing
        for each in found
        if each is not own
        and not each.claims[kind].lenient
        and (standing := each.claims[kind].standing) is not None
    ]
    clean = [each for each in there if each.target in references]
    others = clean if len(clean) >= MIN_OTHERS else there
    names, standing = tuple(each.target for each in others), own.claims[kind].standing
    if standing is None or len(others) < MIN_OTHERS:
        return _OtherTargets(names, NO_SCORE, None)
    return _OtherTargets(names, *measure_excess(standing, others))


def _make_check(
    claim: Claim, held: _OtherTargets, fair: float | None, unlike: tuple[str, ...]
) -> LossCheck:
    few = () if held.p is not None else (_too_few(held.others),)
    return LossCheck(
        no_label=claim.no_label,
        others=held.others,
        excess=held.excess,
        p_value=held.p,
        p_adjusted=fair,
        exceeds=fair is not None and fair <= SIGNIFICANCE,
        unlike=unlike + few,
    )


def _too_few(others: Sequence[str]) -> str:
    return (
        f"{format_quantity(len(others), 'other target')} answered all four arms; distinguishing a "
        f"harder arm from memory needs at least {MIN_OTHERS}: add more under models.targets, such "
        "as models that cannot know the benchmark, with `role: reference`"
    )


def _unlike_texts(kind: MemoryKind, texts: ArmTexts | None) -> Iterator[str]:
    """Yield the reasons why an arm may be harder, judging by the texts."""
    if texts is None:
        yield "the texts of the arms were not compared"
    elif kind not in texts.kinds:
        have = format_quantity(texts.n, "sample has", "samples have")
        yield f"{have} a text in all four arms, which is too few to compare"
    else:
        yield from (f"the arms differ in {each}" for each in texts.kinds[kind].sentences)
