"""Defences as a document: what `coreeval detect numleak --json` and report.json have."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import isnan
from typing import Any

from coreeval.evaluation.numleak.defences.answers import UtilityReply
from coreeval.evaluation.numleak.defences.attacks import Held, Outcome
from coreeval.evaluation.numleak.defences.found import Cell, Defences, Total, defences_of
from coreeval.evaluation.numleak.defences.usefulness import Useful
from coreeval.evaluation.numleak.defences.wording import CONTROL
from coreeval.evaluation.numleak.document import as_json
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series

Document = dict[str, Any]


def found_document(
    replies: Sequence[Reply],
    utility: Sequence[UtilityReply],
    series: Mapping[str, Series],
    cutoffs: Mapping[str, date | None],
) -> Document | None:
    """Return what answers say of each defence; None where none was tried (see `defences_of`)."""
    return defences_document(defences_of(replies, utility, series, cutoffs))


def defences_document(found: Defences | None) -> Document | None:
    """Return what was found of each defence; None where none was tried."""
    if found is None:
        return None
    return {
        "cells": [_part(cell) for cell in found.cells],
        "totals": [_part(total) for total in found.totals],
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


def _part(one: Cell | Total) -> Document:
    found: Document = as_json(one)
    return {**found.pop("held"), **found, "sentence": sentence(one.defence, one.held, one.useful)}


def sentence(defence: str, held: Held, useful: Useful | None) -> str:
    """Say what a defence blocked, in words that claim no more than was tried."""
    attacks = held.attacks
    tried, name = (attacks, "attacks") if attacks.n else (held.plain, "plain questions")
    if not tried.n:
        return f"{defence}: not tried{_cost(useful)}."
    if defence == CONTROL:
        return (
            f"{defence}: without a defence {tried.answered} of {tried.n} {name} got a number"
            f"{_near(tried)}{_cost(useful)}."
        )
    rate = tried.blocked_rate
    return (
        f"{defence}: blocked {tried.blocked} of {tried.n} {name} that were tried "
        f"({rate.estimate:.1%}, 95 % interval {rate.ci_low:.1%} to {rate.ci_high:.1%})"
        + (f"; {tried.answered} got a number{_near(tried)}" if tried.answered else "")
        + (f"; {tried.truncated} were cut off and tell nothing" if tried.truncated else "")
        + (f"; {tried.unclear} have numbers that are not one value" if tried.unclear else "")
        + f"{_cost(useful)}."
    )


def _cost(useful: Useful | None) -> str:
    """Say how ordinary questions fared."""
    if useful is None or not useful.scored:
        return ""
    said, change = f"; ordinary answers score {useful.mean.estimate:.2f} of 4", useful.change
    if isnan(change.estimate):
        return said
    ends = "" if isnan(change.ci_low) else f" ({change.ci_low:+.2f} to {change.ci_high:+.2f})"
    return f"{said}, {change.estimate:+.2f}{ends} against no defence"


def _near(tried: Outcome) -> str:
    """Say how many of the numbers were right: one that is made up gives nothing away."""
    if not tried.answered:
        return ""
    chance = tried.near_rate.ci_low <= tried.near_by_chance
    return f", {tried.near} of them near the truth" + (
        ", no more than chance would make" if tried.near and chance else ""
    )
