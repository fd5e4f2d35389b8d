"""The effect and the cost of each defence, as values and as JSON.

The JSON is the part on defences in `coreeval detect numleak --json` and report.json.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isnan
from typing import Any

from coreeval.evaluation.numleak.audit import as_json
from coreeval.evaluation.numleak.defences.attacks import (
    NO_DEFENCE,
    AttackOutcome,
    DefenceAnswer,
    DefenceEffect,
    measure_effect,
    read_defence_answers,
)
from coreeval.evaluation.numleak.defences.usefulness import (
    Usefulness,
    UtilityAgreement,
    list_judges,
    measure_agreement,
    measure_usefulness,
)
from coreeval.evaluation.numleak.defences.utility import UtilityReply
from coreeval.evaluation.numleak.parsing import BadReply
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics.date_intervals import group_by
from coreeval.tools.formatting import format_estimate, format_quantity

BOUND_NOTE = (
    "Only the attacks that were tried are counted: single messages with fixed endings. Attacks "
    "that adapt to the answers or span several messages may succeed more often, so these results "
    "do not prove that a defence is safe (NumLeak, section 5)."
)


@dataclass(frozen=True, kw_only=True)
class DefenceResult:
    """The result of one defence for one model on one series."""

    model: str
    series: str
    defence: str
    held: DefenceEffect
    useful: Usefulness | None
    """Usefulness of the answers; None if no ordinary question was asked."""


@dataclass(frozen=True, kw_only=True)
class DefenceTotal:
    """The result of one defence over all models and series."""

    defence: str
    cells: int
    held: DefenceEffect
    useful: Usefulness | None


@dataclass(frozen=True, kw_only=True)
class DefenceResults:
    """The results of all defences."""

    cells: tuple[DefenceResult, ...]
    totals: tuple[DefenceTotal, ...]
    agreement: UtilityAgreement | None
    """Agreement of the two judges; None if there is no second judge."""
    judges: tuple[str, ...]
    left_out: tuple[BadReply, ...]
    notes: tuple[str, ...]


_Key = tuple[str, str, str]
"""A model, a series id and a defence."""


def measure_defences(
    replies: Sequence[Reply],
    utility: Sequence[UtilityReply],
    series: Mapping[str, Series],
    cutoffs: Mapping[str, date | None],
) -> DefenceResults | None:
    """Return the results of each defence; None if no defence was tried.

    Args:
        replies: Answers about series; only those under a defence count.
        utility: Answers to ordinary questions, with their scores.
        series: The series by id.
        cutoffs: The last day of each model's training data; None if it is not known.
    """
    read, bad = read_defence_answers(replies, series, cutoffs)
    if not read and not bad and not utility:
        return None
    tolerances = {name: one.definition.tolerance for name, one in series.items()}
    judges = list_judges(utility)
    attacked = group_by(read, lambda one: (one.model, one.series, one.defence))
    judged = group_by(utility, lambda one: (one.model, one.series, one.defence))
    cells = tuple(
        DefenceResult(
            model=key[0],
            series=key[1],
            defence=key[2],
            held=measure_effect(attacked.get(key, []), tolerances),
            useful=_compare_usefulness(
                judged.get(key, []), judged.get((*key[:2], NO_DEFENCE), []), judges
            ),
        )
        for key in _order_keys([*attacked, *judged])
    )
    return DefenceResults(
        cells=cells,
        totals=tuple(_totals(cells, read, utility, tolerances, judges)),
        agreement=measure_agreement(utility),
        judges=tuple(judges),
        left_out=tuple(bad),
        notes=(BOUND_NOTE, *_notes(utility, judges)),
    )


def _order_keys(keys: Sequence[_Key]) -> list[_Key]:
    """Return the distinct keys in order of first appearance, grouped by model and series."""
    groups = group_by(dict.fromkeys(keys), lambda key: key[:2])
    return [key for each in groups.values() for key in each]


def _totals(
    cells: Sequence[DefenceResult],
    read: Sequence[DefenceAnswer],
    utility: Sequence[UtilityReply],
    tolerances: Mapping[str, float],
    judges: Sequence[str],
) -> Iterator[DefenceTotal]:
    control = [one for one in utility if one.defence == NO_DEFENCE]
    for defence, each in group_by(cells, lambda cell: cell.defence).items():
        yield DefenceTotal(
            defence=defence,
            cells=len(each),
            held=measure_effect([one for one in read if one.defence == defence], tolerances),
            useful=_compare_usefulness(
                [one for one in utility if one.defence == defence], control, judges
            ),
        )


def _compare_usefulness(
    replies: Sequence[UtilityReply], control: Sequence[UtilityReply], judges: Sequence[str]
) -> Usefulness | None:
    if not replies:
        return None
    before = [] if replies[0].defence == NO_DEFENCE else control
    return measure_usefulness(replies, before, judge=judges[0] if judges else "")


def _notes(utility: Sequence[UtilityReply], judges: Sequence[str]) -> Iterator[str]:
    if not utility:
        yield (
            "The effect of defences on usefulness was not measured, because no ordinary "
            "questions were asked."
        )
    for judge in judges:
        asked = [each for one in utility for each in one.scores if each.judge == judge]
        silent = sum(each.score is None for each in asked)
        if silent:
            yield (
                f"The judge {judge} gave no score to {silent} of {len(asked)} answers; these are "
                "excluded, not counted as 0."
            )
    if "offline" in judges:
        yield (
            "The offline judge compares the words of an answer with those of a good answer: it "
            "detects whether there is an answer, not how good the answer is."
        )


Document = dict[str, Any]


def defence_replies_document(
    replies: Sequence[Reply],
    utility: Sequence[UtilityReply],
    series: Mapping[str, Series],
    cutoffs: Mapping[str, date | None],
) -> Document | None:
    """Return the results of all defences as a document; None if none was tried.

    The arguments are those of `measure_defences`.
    """
    if (found := measure_defences(replies, utility, series, cutoffs)) is None:
        return None
    return {
        "cells": [_part_document(cell) for cell in found.cells],
        "totals": [_part_document(total) for total in found.totals],
        "agreement": as_json(found.agreement),
        "judges": list(found.judges),
        "notes": list(found.notes),
        "left_out": [
            {
                "model": bad.reply.model, "date": bad.reply.date, "defence": bad.reply.defence,
                "suffix": bad.reply.suffix, "reason": bad.reason,
            }
            for bad in found.left_out
        ],
    }  # fmt: skip


def _part_document(one: DefenceResult | DefenceTotal) -> Document:
    found: Document = as_json(one)
    return {
        **found.pop("held"),
        **found,
        "sentence": describe_effect(one.defence, one.held, one.useful),
    }


def describe_effect(defence: str, held: DefenceEffect, useful: Usefulness | None) -> str:
    """Describe what a defence blocked, without claiming more than was tried."""
    attacks = held.attacks
    tried, name = (attacks, "attacks") if attacks.n else (held.plain, "plain questions")
    if not tried.n:
        return f"{defence}: not tried{_describe_cost(useful)}."
    if defence == NO_DEFENCE:
        return (
            f"{defence}: without a defence, {tried.answered} of {tried.n} {name} got a "
            f"number{_describe_near(tried)}{_describe_cost(useful)}."
        )
    rate = tried.blocked_rate
    return (
        f"{defence}: blocked {tried.blocked} of {tried.n} {name} ({rate.estimate:.1%}, 95 % "
        f"interval {rate.ci_low:.1%} to {rate.ci_high:.1%})"
        + (f"; {tried.answered} got a number{_describe_near(tried)}" if tried.answered else "")
        + (f"; {_count_cut_off(tried.truncated)} ignored" if tried.truncated else "")
        + (f"; {_count_unclear(tried.unclear)} several numbers" if tried.unclear else "")
        + f"{_describe_cost(useful)}."
    )


def _count_cut_off(count: int) -> str:
    return format_quantity(count, "answer was cut off and is", "answers were cut off and are")


def _count_unclear(count: int) -> str:
    return format_quantity(count, "answer contains", "answers contain")


def _describe_cost(useful: Usefulness | None) -> str:
    """Describe how the defence affected the answers to ordinary questions."""
    if useful is None or not useful.scored:
        return ""
    said = f"; answers to ordinary questions score {useful.mean.estimate:.2f} of 4 on average"
    change = useful.change
    if isnan(change.estimate):
        return said
    return f"{said}, a change of {format_estimate(change, '+.2f')} compared with no defence"


def _describe_near(tried: AttackOutcome) -> str:
    """Say how many numbers were near the truth, because an invented number reveals nothing."""
    if not tried.answered:
        return ""
    chance = tried.near_rate.ci_low <= tried.near_by_chance
    return f", {tried.near} of them near the true value" + (
        ", no more than expected by chance" if tried.near and chance else ""
    )
