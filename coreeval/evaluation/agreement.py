"""What each detector says of each target, side by side: a matrix, and never one number.

Single detectors mislead, and they answer different questions; where they disagree, that is the
finding. Beside each stands how often it was wrong where the truth was known.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final, Literal

from coreeval.evaluation.decomposition import Decomposition, ItemEvidence
from coreeval.evaluation.panel import Panel
from coreeval.evaluation.scoring.classification import Score
from coreeval.schema import Value

Detector = Literal["pcr", "decomposition", "items", "panel", "numleak"]
Said = Literal["remembered", "not_shown", "cannot_tell", "not_measured"]
"""Memory was found; it was looked for and not found; what was asked cannot tell; nobody asked."""

ASKS: Final[Mapping[Detector, str]] = {
    "pcr": "Is performance out of proportion to consistency in one of two splits?",
    "decomposition": "Is more lost than rewriting and wrong labels explain?",
    "items": "Are there samples right on the original only, more than chance makes?",
    "panel": "Does the target do better on the originals than others of its ability?",
    "numleak": "Can the target recite numbers of a published series?",
}
_VERDICTS: Final[Mapping[Detector, Mapping[str, Said]]] = {
    "pcr": {
        "fine_tuned": "remembered",
        "contaminated": "remembered",
        "comparable": "not_shown",
        "difficulty_or_memory": "cannot_tell",
        "inconclusive": "cannot_tell",
        "insufficient_signal": "cannot_tell",
    },
    "decomposition": {
        "remembered": "remembered",
        "not_shown": "not_shown",
        "arms_differ": "cannot_tell",
        "no_control": "cannot_tell",
        "too_few": "cannot_tell",
    },
    "numleak": {
        "memorized": "remembered",
        "partly_memorized": "remembered",
        "fluent": "not_shown",
        "fabricating": "not_shown",
        "no_recall": "not_shown",
        "inconclusive": "cannot_tell",
        "refusing": "cannot_tell",
    },
}


class Calibration(Value):
    """How often a detector was wrong, and right, where the truth was known."""

    false_positives: Score | None
    """Share of clean targets that it called remembered."""
    found: Score | None
    """Share of contaminated ones that it found, at the dose of `setting`."""
    setting: str
    """What was planted, and how many samples and studies there were."""


class Cell(Value):
    """What one detector says of one target."""

    said: Said
    verdict: str
    """In the detector's own words; empty where it was not run."""
    reason: str


class Row(Value):
    """All detectors on one target."""

    target: str
    cells: dict[Detector, Cell]


class Agreement(Value):
    """The matrix, and what is known of each detector."""

    rows: tuple[Row, ...]
    asks: dict[Detector, str]
    calibration: dict[Detector, Calibration]


Spoken = tuple[str, str]
"""A verdict and its reason."""


def agreement(
    targets: Sequence[str],
    *,
    pcr: Mapping[str, Spoken],
    decompositions: Mapping[str, Decomposition],
    items: Mapping[str, ItemEvidence],
    panel: Panel | None,
    numleak: Mapping[str, Sequence[Spoken]],
) -> Agreement:
    """Put side by side what was found of each target; what was not run is not measured.

    Args:
        targets: The targets, in the order of the rows.
        pcr: By target.
        decompositions: By target.
        items: By target.
        panel: All targets; None where it was not asked for.
        numleak: By target, for each series.
    """
    return Agreement(
        rows=tuple(
            Row(
                target=target,
                cells={
                    "pcr": _by_verdict("pcr", pcr.get(target)),
                    "decomposition": _decomposed(decompositions.get(target)),
                    "items": _singled_out(items.get(target)),
                    "panel": _against_others(panel, target),
                    "numleak": _recited(numleak.get(target, ())),
                },
            )
            for target in targets
        ),
        asks=dict(ASKS),
        calibration=calibration(),
    )


def calibration() -> dict[Detector, Calibration]:
    """Read the packaged table of `benchmarks/calibration.py`; detectors without one are absent."""
    table = resources.files("coreeval.evaluation").joinpath("calibration.json")
    found = json.loads(table.read_text(encoding="utf-8"))
    return {name: Calibration.model_validate(found[name]) for name in ASKS if name in found}


_NOT_RUN: Final = Cell(said="not_measured", verdict="", reason="was not run")


def _by_verdict(detector: Detector, spoken: Spoken | None) -> Cell:
    if spoken is None:
        return _NOT_RUN
    verdict, reason = spoken
    return Cell(said=_VERDICTS[detector][verdict], verdict=verdict, reason=reason)


def _decomposed(found: Decomposition | None) -> Cell:
    spoken = (found.verdict, "; ".join(found.reasons)) if found else None
    return _by_verdict("decomposition", spoken)


def _singled_out(found: ItemEvidence | None) -> Cell:
    if found is None:
        return _NOT_RUN
    if found.base is None:
        return Cell(said="cannot_tell", verdict="too_few", reason=found.note)
    flagged = sum(len(each.ids) for each in found.kinds.values())
    verdict = f"{flagged} of {found.n} flagged"
    if not flagged:
        return Cell(said="not_shown", verdict=verdict, reason=found.note)
    wrong = sum(each.expected_false for each in found.kinds.values())
    reason = f"of them at most {wrong:.1f} falsely, on average"
    return Cell(said="remembered", verdict=verdict, reason=reason)


def _against_others(found: Panel | None, target: str) -> Cell:
    if found is None:
        return _NOT_RUN
    own = next((each for each in found.targets if each.target == target), None)
    if own is None:
        return Cell(said="not_measured", verdict="", reason=found.note)
    said: Said = "remembered" if own.stands_out else "not_shown"
    verdict = "stands out" if own.stands_out else "as the others"
    return Cell(said=said, verdict=verdict, reason=f"adjusted p {own.p_adjusted:.4f}")


def _recited(series: Sequence[Spoken]) -> Cell:
    cells = [_by_verdict("numleak", each) for each in series]
    for said in ("remembered", "not_shown", "cannot_tell", "not_measured"):
        if some := [cell for cell in cells if cell.said == said]:
            verdicts = ", ".join(dict.fromkeys(cell.verdict for cell in some))
            reason = f"{len(some)} of {len(cells)} series; {some[0].reason}"
            return Cell(said=said, verdict=verdicts, reason=reason)
    return _NOT_RUN
