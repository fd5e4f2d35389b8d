"""The finding of a contamination test: how much a leak is worth, the rule, and the document.

The verdict is about the arms, not about the model: does a leak of the originals raise scores on
them, and less so on the updated texts?
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from coreeval.evaluation.scores import Score
from coreeval.evaluation.whitebox.cells import HELD_OUT, CellResult, Scenario
from coreeval.evaluation.whitebox.deltas import Delta, Leakage, PerformanceTable
from coreeval.evaluation.whitebox.settings import StudyHeader
from coreeval.schema import Arm, Value
from coreeval.tools.formatting import format_points, format_quantity

Verdict = Literal["resists", "not_told_apart", "rises_more", "no_rise", "too_few"]
TOO_FEW: Final = 50
"""The fewest samples for a verdict: the macro-F1 of 50 samples is known to within about 0.14."""
LEAKED: Final[Arm] = "original"
"""The arm whose leak the verdict is about: what is published can be leaked."""
_COMPARED: Final[tuple[Arm, ...]] = ("updated", "semantic", "control")
"""The arms to compare the originals with; the first existing one is used."""


class Rise(Value):
    """How much the leak of an arm raises the scores on a part of the samples."""

    leaked: Arm
    measured: str
    """An arm, or `held_out`: clean samples."""
    text_only: bool
    percent: int
    delta1: Score
    """P(test part leaked) - P(untrained model), in macro-F1."""
    delta2: Score
    """P(train and test part) - P(train part), in macro-F1; `n` is 0 if it was not requested."""
    delta1_accuracy: Score
    delta2_accuracy: Score


class Worth(Value):
    """The gain from leaking an arm on that arm, minus the gain on clean samples."""

    leaked: Arm
    percent: int
    delta: Delta
    on_itself: Score
    on_held_out: Score
    beyond: Score
    """The difference, with independent samples: memory as opposed to learning."""


class PlainPerformance(Value):
    """The score of the untrained model on a part of the samples."""

    measured: str
    macro_f1: Score
    accuracy: Score


class ContaminationFinding(Value):
    """The finding of a contamination test with one model."""

    verdict: Verdict
    reason: str
    study: StudyHeader
    samples: int
    seeds: int
    delta: Delta
    """The measure on which the verdict is based."""
    compared: Arm
    """The arm that the originals are compared with."""
    resistance: Score
    """How much smaller the gain from leaking the originals is on that arm than on the originals."""
    zero: tuple[PlainPerformance, ...]
    rises: tuple[Rise, ...]
    worth: tuple[Worth, ...]
    seconds: float
    """The time that all cells took."""
    notes: tuple[str, ...] = ()


def judge_contamination(
    table: PerformanceTable, header: StudyHeader, results: Sequence[CellResult]
) -> ContaminationFinding:
    """Return the finding from all cells of a study."""
    leaks = list_leaks(results)
    percent = max(leak.percent for leak in leaks)
    deltas: Sequence[Delta] = ("delta2", "delta1")
    given = {result.cell.scenario for result in results}
    text_only = not given & {"test", "train_test"}
    delta = next(each for each in deltas if _is_measured(each, given, text_only))
    compared = next(arm for arm in _COMPARED if arm in table.parts)
    one, other = (
        Leakage(arm=LEAKED, part=part, percent=percent, text_only=text_only)
        for part in (LEAKED, compared)
    )
    rise, resistance = table.delta(one, delta), table.difference(one, other, delta)
    verdict, reason = _judge(rise, resistance, delta, compared)
    return ContaminationFinding(
        verdict=verdict,
        reason=reason,
        study=header,
        samples=header.samples,
        seeds=len({result.cell.seed for result in results if result.cell.scenario != "zero"}),
        delta=delta,
        compared=compared,
        resistance=resistance,
        zero=tuple(_score_zero(table, results)),
        rises=tuple(_measure_rise(table, leak) for leak in leaks),
        worth=tuple(_measure_worth(table, leaks, percent, delta, text_only=text_only)),
        seconds=sum(result.seconds for result in results),
        notes=tuple(_list_notes(table, header, results)),
    )


def list_leaks(results: Sequence[CellResult]) -> list[Leakage]:
    """Return every leak on every part of the samples."""
    found = dict[Leakage, None]()
    for result in results:
        cell = result.cell
        if cell.arm is not None:
            for part in result.answers:
                text_only = cell.scenario in ("text", "train_text")
                leak = Leakage(arm=cell.arm, part=part, percent=cell.percent, text_only=text_only)
                found[leak] = None
    return list(found)


def _is_measured(delta: Delta, given: set[Scenario], text_only: bool) -> bool:
    with_train: Scenario = "train_text" if text_only else "train_test"
    return delta == "delta1" or with_train in given


def _judge(rise: Score, less: Score, delta: Delta, arm: Arm) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    if rise.n < TOO_FEW:
        shared = format_quantity(rise.n, "sample is", "samples are")
        return "too_few", f"{shared} shared by all arms, but {TOO_FEW} are needed"
    name = "delta 1" if delta == "delta1" else "delta 2"
    said = f"leaking the originals raises scores on them by {_say(rise)} points ({name})"
    if not rise.is_positive:
        return "no_rise", f"{said}, a rise that may be zero, so resistance cannot be assessed"
    fewer = f"{said}, and scores on the {arm} texts by {_say(less)} points less"
    if less.is_positive:
        return "resists", fewer
    if less.ci_high is not None and less.ci_high < 0:
        return "rises_more", fewer
    return "not_told_apart", f"{fewer}, a difference that may be zero"


def _say(found: Score) -> str:
    ends = f"{format_points(found.ci_low)} to {format_points(found.ci_high)}"
    return f"{format_points(found.estimate)} ({ends})"


def _score_zero(
    table: PerformanceTable, results: Sequence[CellResult]
) -> Iterator[PlainPerformance]:
    zero = [result.cell for result in results if result.cell.scenario == "zero"]
    for part in table.parts:
        yield PlainPerformance(
            measured=part,
            macro_f1=table.score(table.performance(zero, part, "macro_f1"), part, answers=0),
            accuracy=table.score(table.performance(zero, part, "accuracy"), part, answers=0),
        )


def _measure_rise(table: PerformanceTable, leak: Leakage) -> Rise:
    return Rise(
        leaked=leak.arm,
        measured=leak.part,
        text_only=leak.text_only,
        percent=leak.percent,
        delta1=table.delta(leak, "delta1"),
        delta2=table.delta(leak, "delta2"),
        delta1_accuracy=table.delta(leak, "delta1", "accuracy"),
        delta2_accuracy=table.delta(leak, "delta2", "accuracy"),
    )


def _measure_worth(
    table: PerformanceTable,
    leaks: Sequence[Leakage],
    percent: int,
    delta: Delta,
    *,
    text_only: bool,
) -> Iterator[Worth]:
    """Yield each leaked arm's gain on itself, if there are clean samples."""
    if HELD_OUT not in table.parts:
        return
    for arm in dict.fromkeys(leak.arm for leak in leaks):
        own, clean = (
            Leakage(arm=arm, part=part, percent=percent, text_only=text_only)
            for part in (arm, HELD_OUT)
        )
        yield Worth(
            leaked=arm,
            percent=percent,
            delta=delta,
            on_itself=table.delta(own, delta),
            on_held_out=table.delta(clean, delta),
            beyond=table.difference(own, clean, delta),
        )


def _list_notes(
    table: PerformanceTable, header: StudyHeader, results: Sequence[CellResult]
) -> Iterator[str]:
    if "control" not in table.parts:
        yield (
            "the run has no control arm: a smaller rise on the updated texts may be due to "
            "rewriting rather than to new facts"
        )
    if HELD_OUT not in table.parts:
        yield (
            "there are no clean samples, so learning the task cannot be distinguished from "
            "memorizing the texts"
        )
    if header.is_encoder:
        yield (
            "the model is an encoder whose classification head starts from random values, so "
            "delta 1 also contains what it learns about the task; delta 2 does not"
        )
    if len({result.cell.seed for result in results}) < 2:
        yield "there is only one seed, so intervals ignore the variation between training runs"
