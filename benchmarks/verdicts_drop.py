"""Worlds of the drop: targets of whom it is known what they remember, and what makes an arm harder.

Studies go through `measure_losses`, `compare_arm_texts`, `judge_losses` and `find_items`, as the
report of a run does.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from benchmarks.calibration_worlds import Made, Planted, scores
from benchmarks.drop_worlds import DropStudy, Scene, make_study
from benchmarks.verdicts import World
from coreeval.evaluation.decomposition import (
    Decomposition,
    MemoryKind,
    compare_arm_texts,
    find_items,
    judge_losses,
    measure_losses,
)

DRAWS: Final = 200
"""Of each study: enough, since errors of single intervals average out."""
COSTS: Final = Planted("", rewording=0.05, rewriting=0.05)
REMEMBERED: Final = frozenset({"remembered"})
ANOTHER: Final = frozenset({"another remembered"})
FLAGGED: Final = frozenset({"flagged"})
WITHHELD: Final = frozenset({"arms_differ", "no_control", "too_few"})


def _judged(
    scene: Scene, seed: int, *, references: bool
) -> tuple[DropStudy, tuple[Decomposition, ...]]:
    """Judge the targets of a study as `find_levels` does, the tested one first."""
    made = make_study(scene, seed)
    losses = [measure_losses(each, seed=seed, draws=DRAWS) for each in made.answers]
    clean = [each.target for each in losses[1:]] if references else ()
    texts = compare_arm_texts(made.texts, made.clusters)
    return made, judge_losses(losses, texts=texts, references=clean)


def tested(scene: Scene, seed: int) -> str:
    """Return the verdict about a target whose others are references."""
    _, (first, *_) = _judged(scene, seed, references=True)
    return first.verdict


def any_of(scene: Scene, seed: int) -> str:
    """Return whether another than the first is said to remember, else the verdict about it."""
    _, (first, *others) = _judged(scene, seed, references=False)
    if any(each.verdict == "remembered" for each in others):
        return "another remembered"
    return first.verdict


def flagged(scene: Scene, kind: MemoryKind, seed: int) -> str:
    """Return whether samples of the tested target are flagged by one kind of memory."""
    made, (first, *_) = _judged(scene, seed, references=True)
    found = find_items(made.answers[0], first.checks).found.kinds
    if kind not in found:
        return "not told"
    return "flagged" if found[kind].ids else "none"


def interval(scene: Scene, seed: int) -> str:
    """Return whether the interval of what new facts cost holds the truth."""
    _, (first, *_) = _judged(scene, seed, references=True)
    lost = first.accuracy.terms["unexplained"].lost
    joints = Made(scene.planted).joints
    truth = scores(joints["control"])["accuracy"] - scores(joints["updated"])["accuracy"]
    low, high = lost.ci_low, lost.ci_high
    return "holds" if low is not None and high is not None and low <= truth <= high else "misses"


def _planted(**told: float) -> Planted:
    """Return a world in which each rewriting costs a twentieth, unless told otherwise."""
    return COSTS._replace(**told)  # type: ignore[arg-type]  # all but the name are numbers


ALONE: Final = "one target"
BESIDE: Final = "seven references"
EIGHT: Final = "eight targets, any of them"
REWORDING: Final = "rewording costs {} %, rewriting nothing"
SHOWN: Final = "new facts {} points harder, as texts show"
HIDDEN: Final = "new facts {} points harder, as no text shows"
TEN: Final = 0.16
"""Share of right answers that are about 10 points of accuracy."""


def _clean() -> Iterator[tuple[str, Scene, tuple[str, ...]]]:
    """Yield worlds in which nothing is remembered, and how many targets they have."""
    yield "nothing is lost", Scene(), (BESIDE, EIGHT)
    cost = _planted(rewording=0.1, rewriting=0.1)
    yield "each rewriting costs 10 %", Scene(planted=cost), (BESIDE, EIGHT)
    for times, targets in ((1, (BESIDE,)), (2, (BESIDE, EIGHT, ALONE))):
        cost = _planted(rewording=0.1 * times, rewriting=0.0)
        yield REWORDING.format(10 * times), Scene(planted=cost), targets
        harder = _planted(harder=TEN * times)
        yield SHOWN.format(10 * times), Scene(planted=harder, visible=True), (BESIDE,)
        yield HIDDEN.format(10 * times), Scene(planted=harder), targets
    prose = Scene(planted=_planted(), prose=0.3)
    yield "30 % of the updated arm is answered in prose", prose, (BESIDE,)
    yield "five samples a document", Scene(planted=_planted(), in_document=5), (EIGHT,)


PLANTED: Final = (
    ("words of half remembered", BESIDE, _planted(words=0.5), 0.74),
    ("words of all remembered", BESIDE, _planted(words=1.0), 1.0),
    ("facts of a quarter remembered", BESIDE, _planted(facts=0.25), 0.77),
    ("facts of half remembered", BESIDE, _planted(facts=0.5), 1.0),
    ("facts of all remembered by one", EIGHT, _planted(facts=1.0), 1.0),
)
HEADLINE: Final = PLANTED[2][0]
LISTED: Final[tuple[tuple[str, MemoryKind, Scene, float | None], ...]] = (
    (SHOWN.format(20), "facts", Scene(planted=_planted(harder=2 * TEN), visible=True), None),
    (HIDDEN.format(20), "facts", Scene(planted=_planted(harder=2 * TEN)), None),
    ("facts of half remembered", "facts", Scene(planted=_planted(facts=0.5)), 0.99),
    ("words of half remembered", "wording", Scene(planted=_planted(words=0.5)), 0.67),
)
"""What single samples are flagged by."""


def _study(scene: Scene, targets: str) -> Callable[[int], str]:
    alone = replace(scene, others=0) if targets == ALONE else scene
    return partial(any_of if targets == EIGHT else tested, alone)


def _worlds() -> Iterator[World]:
    for name, scene, numbers in _clean():
        for targets in numbers:
            yield World(
                detector="drop",
                name=f"{name}; {targets}",
                study=_study(scene, targets),
                false=REMEMBERED | ANOTHER,
                withheld=WITHHELD,
            )
    for name, targets, planted, before in PLANTED:
        yield World(
            detector="drop",
            name=f"{name}; {targets}",
            study=_study(Scene(planted=planted), targets),
            false=ANOTHER,
            found=REMEMBERED,
            withheld=WITHHELD,
            before=before,
            headline="decomposition" if name == HEADLINE else "",
        )
    for name, kind, scene, share in LISTED:
        yield World(
            detector="drop",
            name=f"single samples: {name}; {BESIDE}",
            study=partial(flagged, replace(scene, templates=5), kind),
            false=FLAGGED if share is None else frozenset(),
            found=frozenset() if share is None else FLAGGED,
            withheld=frozenset({"not told"}),
            before=share,
        )
    yield World(
        detector="drop",
        name="the 95 % interval of a loss misses it, five samples a document",
        study=partial(interval, Scene(planted=_planted(), in_document=5, others=0)),
        false=frozenset({"misses"}),
    )


WORLDS: Final[Sequence[World]] = tuple(_worlds())
