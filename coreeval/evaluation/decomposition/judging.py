"""From what targets lose to verdicts: a loss is memory if no harder arm explains it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.arm_texts import ArmTexts
from coreeval.evaluation.decomposition.losses import Claim, Losses, measure_losses
from coreeval.evaluation.decomposition.values import BACK, Check, Decomposition, Kind
from coreeval.evaluation.decomposition.verdicts import verdict_of
from coreeval.evaluation.excess import MIN_OTHERS, excess_over
from coreeval.evaluation.scoring.classification import DRAWS, NOTHING, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, holm


def decompose(
    coded: Coded, *, noise: float | None = None, seed: int = 7, draws: int = DRAWS
) -> Decomposition:
    """Take the drop of a single target apart; alone it is never said to remember anything.

    See `measure_losses` for `noise`, and `judge_losses` for several targets.
    """
    return judge_losses([measure_losses(coded, noise=noise, seed=seed, draws=draws)])[0]


def judge_losses(
    found: Sequence[Losses], *, texts: ArmTexts | None = None, references: Collection[str] = ()
) -> tuple[Decomposition, ...]:
    """Return the verdict about each target, from its own losses, the texts and the other targets.

    Args:
        found: What each target loses, all with the same seed and number of draws.
        texts: How the texts of the arms differ; None if nobody looked, which leaves every loss
            unexplained.
        references: Targets that are presumed to remember nothing: the others are held against them
            alone if there are four.
    """
    checks: dict[Kind, dict[str, Check]] = {
        kind: _checks(kind, found, texts, frozenset(references)) for kind in BACK
    }
    return tuple(
        _judged(each, {kind: of[each.target] for kind, of in checks.items()}) for each in found
    )


def _judged(losses: Losses, checks: Mapping[Kind, Check]) -> Decomposition:
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
    kind: Kind, found: Sequence[Losses], texts: ArmTexts | None, references: frozenset[str]
) -> dict[str, Check]:
    """Return what else may explain each target's loss, p-values adjusted over all of them.

    References are a family of their own: nobody asks whether they remember anything.
    """
    tested = {each.target: _held_against(kind, each, found, references) for each in found}
    fair = dict[str, float]()
    for family in (references, {each.target for each in found} - references):
        some = {
            name: held.p for name, held in tested.items() if name in family and held.p is not None
        }
        fair |= zip(some, holm(list(some.values())), strict=True)
    unlike = tuple(_unlike_texts(kind, texts))
    return {
        each.target: _check(each.claims[kind], tested[each.target], fair.get(each.target), unlike)
        for each in found
    }


class _Held(NamedTuple):
    """A target held against others."""

    others: tuple[str, ...]
    excess: Score
    p: float | None


def _held_against(
    kind: Kind, own: Losses, found: Sequence[Losses], references: frozenset[str]
) -> _Held:
    """Hold a target against the references if there are four, else against all others.

    Those whose answers lack a label more often on the arm behind say nothing about its difficulty.
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
        return _Held(names, NOTHING, None)
    return _Held(names, *excess_over(standing, others))


def _check(claim: Claim, held: _Held, fair: float | None, unlike: tuple[str, ...]) -> Check:
    few = () if held.p is not None else (_too_few(held.others),)
    return Check(
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
        f"{len(others)} other targets answered all four arms, and {MIN_OTHERS} are the least that "
        "tell a harder arm from memory: name more under models.targets, such as models that cannot "
        "know the benchmark, with `role: reference`"
    )


def _unlike_texts(kind: Kind, texts: ArmTexts | None) -> Iterator[str]:
    """Yield why the texts leave open that an arm is harder."""
    if texts is None:
        yield "the texts of the arms were not compared"
    elif kind not in texts.kinds:
        yield f"{texts.n} samples have a text in all four arms, too few to compare"
    else:
        yield from (f"the arms differ in {each}" for each in texts.kinds[kind].sentences)
