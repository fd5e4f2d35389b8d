"""What an audit will cost, before it is spent: questions are counted and measured, not sent."""

from collections.abc import Iterable, Iterator, Sequence

from coreeval.config import ModelConfig
from coreeval.evaluation.numleak.defences.judging import SHAPE, Exhibit
from coreeval.evaluation.numleak.probes import Question
from coreeval.graph.forecast.asking import Asking
from coreeval.graph.forecast.estimates import Estimate, Line, Stage
from coreeval.graph.forecast.learning import STATED, Seen
from coreeval.graph.forecast.lines import expected
from coreeval.graph.forecast.players import Cast
from coreeval.graph.forecast.ranges import Basis, Known, between, exactly, interval
from coreeval.graph.forecast.sizes import Size, size_of
from coreeval.graph.numleak.defending import JUDGE_DRAWS, JUDGE_ROLE, UTILITY_ROLE, Judged
from coreeval.graph.numleak.plan import Audit, NumleakPlan
from coreeval.graph.numleak.rooms import role_of, roomy
from coreeval.tools.clock import Clock, utc_now

ANSWERS = between(200, 1000, 4000)
"""Characters of an answer to an ordinary question."""


def estimate_numleak(plan: NumleakPlan, *, now: Clock = utc_now) -> Estimate:
    """Return what asking all that a plan says will cost; nothing is asked or kept.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the call store is damaged.
    """
    asking = Asking(
        source=plan.source,
        config=plan.config,
        workspace=plan.workspace,
        payer=plan.payer,
        task=f"NumLeak of {', '.join(one.definition.id for one in plan.series)}",
        samples=plan.questions,
        asked=[*(audit.target for audit in plan.audits), *_judges(plan)],
        fewer="detect.numleak.dates",
        notes=[*plan.universe.notes(), *plan.notes()],
    )
    return asking.estimate(lambda cast, seen: lines_of(plan.audits, cast, seen), now=now)


def lines_of(
    audits: Iterable[Audit], cast: Cast, seen: Sequence[Seen], *, stage: Stage = "run"
) -> Iterator[Line]:
    """Yield what each target costs that is not embedded; it is asked every question once."""
    for audit in audits:
        if not audit.target.is_embedded:
            for (role, room), questions in _kinds(audit).items():
                basis = Basis(origin="a question is asked once", n=len(questions))
                calls = Known(range=exactly(1), basis=basis)
                yield expected(
                    role, roomy(audit.target, room), calls, _size(questions), len(questions),
                    cast, seen, stage=stage,
                )  # fmt: skip
        if audit.judged:
            yield from _utility_lines(audit, audit.judged, cast, seen, stage)


def _kinds(audit: Audit) -> dict[tuple[str, int], list[Question]]:
    """Return the questions by the role that they are noted as, and the room for an answer."""
    every = [one for asked in audit.asked for one in asked.questions]
    rooms = {role_of(one.room): 0 for one in every}
    for one in every:
        rooms[role_of(one.room)] = max(one.room, rooms[role_of(one.room)])
    return {
        (role, room): [one for one in every if role_of(one.room) == role]
        for role, room in rooms.items()
    }


def _size(questions: Sequence[Question]) -> Size:
    sizes = [size_of(one.messages, {}) for one in questions]
    basis = Basis(origin="the questions", n=len(sizes))
    return Size(fixed=0, varied=Known(range=interval(sizes), basis=basis))


# -- ordinary questions, and those who score the answers ------------------------------------------


def _judges(plan: NumleakPlan) -> list[ModelConfig]:
    defences = plan.config.detect.numleak.defences
    return list(defences.judges) if defences else []


def _utility_lines(
    audit: Audit, judged: Judged, cast: Cast, seen: Sequence[Seen], stage: Stage
) -> Iterator[Line]:
    """Yield what ordinary questions cost, and the scoring of their answers."""
    texts = {one.text: one for one in judged.questions}
    basis = Basis(origin="a question is asked once in the same words", n=len(texts))
    once = Known(range=exactly(1), basis=basis)
    if not audit.target.is_embedded:
        sizes = [size_of(one.messages, {}) for one in texts.values()]
        size = Size(fixed=0, varied=Known(range=interval(sizes), basis=basis))
        yield expected(UTILITY_ROLE, audit.target, once, size, len(texts), cast, seen, stage=stage)
    own = sum(one.key(audit.target.model) in judged.again for one in judged.questions)
    for judge, answers in ((judged.judge, len(texts)), (judged.second_judge, own)):
        if judge and answers and not judge.is_rule_based:
            shown = _shown(judged)
            tries = Known(range=between(1, 1, JUDGE_DRAWS), basis=basis)
            yield expected(JUDGE_ROLE, judge, tries, shown, answers, cast, seen, stage=stage)


def _shown(judged: Judged) -> Size:
    """Return how long the prompts of a judge are, round answers of a stated length."""
    exhibits = [Exhibit(question=one.asked.question, points=one.asked.points, answer="")
                for one in judged.questions]  # fmt: skip
    fixed = size_of(exhibits[0].messages[:1], SHAPE.schema)
    sizes = interval([size_of(one.messages[1:], {}) for one in exhibits])
    return Size(fixed=fixed, varied=Known(range=sizes + ANSWERS, basis=STATED))
