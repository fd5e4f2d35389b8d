"""Evidence of memory in a run: the finding of each detector on each target, and their agreement.

The matrix is not reduced to one number: single detectors mislead, and they answer different
questions; if they disagree, that is the finding. For each detector, the matrix has its error rates
when the truth was known. The panel tests whether a target does better on the original arm than its
score on the updated arm predicts; each target is compared with the line through all others
(`excess.py`, after ConStat).
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal, get_args

from coreeval.evaluation.answer_codes import AnswerCodes
from coreeval.evaluation.decomposition import (
    TERM_DEFINITIONS,
    ArmTexts,
    ItemEvidence,
    ItemFindings,
    Losses,
    find_items,
    judge_losses,
    measure_losses,
)
from coreeval.evaluation.decomposition.losses import MIN_SAMPLES
from coreeval.evaluation.detectors import TARGET_DETECTORS, list_target_detectors
from coreeval.evaluation.detectors.base import ANY_OTHER, Detector, Finding, Json, MemoryFinding
from coreeval.evaluation.excess import MIN_OTHERS, TargetStanding, measure_excess
from coreeval.evaluation.label_scores import mean_of_templates, resample
from coreeval.evaluation.scores import DRAWS, LEVEL, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, adjust_holm
from coreeval.evaluation.text_measures import DEFINITIONS as COVARIATES
from coreeval.schema import Value

MIN_TARGETS: Final = MIN_OTHERS + 1
"""The fewest targets in a panel: the tested one and the fewest others."""

Metric = Literal["accuracy", "macro_f1"]


class TargetExcess(Value):
    """The comparison of one target with the others."""

    target: str
    original: float
    updated: float
    excess: Score
    """The score on the original arm minus the prediction of the line through the others."""
    p_value: float
    """One-sided, for the hypothesis of no excess."""
    p_adjusted: float
    """Adjusted over all targets together (Holm 1979)."""
    stands_out: bool


class Panel(Value):
    """The comparison of each target with all others."""

    metric: Metric
    targets: tuple[TargetExcess, ...]
    note: str
    """The reason why no target was tested, or the assumptions of the panel."""
    level: float = LEVEL


def measure_standing(
    coded: AnswerCodes, *, metric: Metric = "accuracy", seed: int = 7, draws: int = DRAWS
) -> TargetStanding | None:
    """Return a target's scores on both arms, or None if they share fewer than 20 samples.

    With the same seed, every target of a benchmark gets the same draws of samples.
    """
    views = coded.views(("original", "updated"))
    if views is None or int(views[0].counted.any(axis=1).sum()) < MIN_SAMPLES:
        return None
    first, second = resample(coded.table, views, seed=seed, draws=draws)
    values = [mean_of_templates(getattr(each, metric), each) for each in (first, second)]
    return TargetStanding(coded.target, first.n, *values)


def compare_targets(
    standings: Sequence[TargetStanding],
    *,
    references: Collection[str] = (),
    metric: Metric = "accuracy",
) -> Panel:
    """Test each target but the references against all others; test none with fewer than five."""
    if len(standings) < MIN_TARGETS:
        note = f"panel too small: {len(standings)} targets, but {MIN_TARGETS} are needed"
        return Panel(metric=metric, targets=(), note=note)
    some = [each for each in standings if each.target not in references]
    tested = [
        measure_excess(each, [other for other in standings if other is not each]) for each in some
    ]
    fair = adjust_holm([p for _, p in tested])
    return Panel(
        metric=metric,
        targets=tuple(
            TargetExcess(
                target=each.target,
                original=float(each.front[0]),
                updated=float(each.back[0]),
                excess=excess,
                p_value=p,
                p_adjusted=adjusted,
                stands_out=adjusted <= SIGNIFICANCE,
            )
            for each, (excess, p), adjusted in zip(some, tested, fair, strict=True)
        ),
        note="each target is compared with the others, which are assumed to remember nothing: if "
        "most of them do remember the samples, none stands out",
    )


class Calibration(Value):
    """The error rate and the detection rate of a detector when the truth was known."""

    false_positives: Score | None
    """The share of clean targets that it called remembered."""
    found: Score | None
    """The share of contaminated targets that it found, at the dose in `setting`."""
    setting: str
    """The planted contamination, and the numbers of samples and studies."""


class AgreementCell(Value):
    """The finding of one detector on one target."""

    said: MemoryFinding
    verdict: str
    """The detector's own wording; empty if it was not run."""
    reason: str


class AgreementRow(Value):
    """The findings of all detectors on one target."""

    target: str
    cells: dict[str, AgreementCell]


class DetectorAgreement(Value):
    """The matrix of detectors and targets, and the calibration of each detector."""

    rows: tuple[AgreementRow, ...]
    asks: dict[str, str]
    titles: dict[str, str]
    """The titles of the plugins' detectors."""
    calibration: dict[str, Calibration]


def compare_detectors(targets: Sequence[str], report: Json) -> DetectorAgreement:
    """Compare the findings of all detectors on each target; detectors not run are "not measured".

    Args:
        targets: The targets, in the order of the rows.
        report: report.json, or the parts of it that the detectors read.
    """
    detectors = list_target_detectors(report)
    found = [(detector, list(detector.find(report))) for detector in detectors]
    return DetectorAgreement(
        rows=tuple(
            AgreementRow(
                target=target,
                cells={
                    each.key: _merge_findings(each, findings, target) for each, findings in found
                },
            )
            for target in targets
        ),
        asks={each.key: each.question for each in detectors},
        titles={each.key: each.title for each in detectors if each.plugin},
        calibration=load_calibration(),
    )


def list_scored_models(report: Json) -> list[str]:
    """Return the models that scored texts; local ones need not be targets of the run."""
    scoring = (each for each in TARGET_DETECTORS if each.scores_texts)
    found = (finding.target for each in scoring for finding in each.find(report))
    return list(dict.fromkeys(found))


def load_calibration() -> dict[str, Calibration]:
    """Read the packaged table of `benchmarks/calibration.py`, which may lack some detectors."""
    table = resources.files("coreeval.evaluation").joinpath("calibration.json")
    found = json.loads(table.read_text(encoding="utf-8"))
    return {
        each.key: Calibration.model_validate(found[each.key])
        for each in TARGET_DETECTORS
        if each.key in found
    }


def _merge_findings(detector: Detector, found: Sequence[Finding], target: str) -> AgreementCell:
    """Return a detector's finding on a target; if it has several, the strongest for memory."""
    own = [each for each in found if each.target == target]
    own = own or [each for each in found if each.target == ANY_OTHER]
    for memory in get_args(MemoryFinding):
        if some := [each for each in own if each.memory == memory]:
            parts = f"{len(some)} of {len(own)} {detector.parts}; " if detector.parts else ""
            return AgreementCell(
                said=memory,
                verdict=", ".join(dict.fromkeys(each.verdict for each in some)),
                reason=f"{parts}{some[0].reason}",
            )
    return AgreementCell(said="not_measured", verdict="", reason="was not run")


@dataclass(frozen=True)
class MemoryEvidence:
    """The findings for report.json, and the table of samples on which they are based."""

    document: Json
    items: Sequence[ItemFindings]
    """One item for each target that labelled texts."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the table: the target, then the columns of all targets."""
        every = (name for each in self.items for name in each.columns)
        return ("target", *dict.fromkeys(every))

    def rows(self) -> Iterator[dict[str, str | int | float | None]]:
        """Yield the rows of the table, target by target; arms that were not asked have no value."""
        for each in self.items:
            for row in each.rows:
                yield {"target": each.found.target, **row}


def find_memory_evidence(
    targets: Sequence[str],
    answers: Iterable[AnswerCodes],
    *,
    texts: ArmTexts | None = None,
    references: Collection[str] = (),
    noise: float | None,
    seed: int,
    others: Json,
    draws: int = DRAWS,
) -> MemoryEvidence:
    """Decompose the drop of every target and combine it with the other evidence of its memory.

    Args:
        targets: The targets to judge, in the order of the matrix.
        answers: The answers of the targets that labelled the arms.
        texts: How the texts of the arms differ; None if they were not compared.
        references: Targets presumed to remember nothing; they get no finding.
        noise: Upper bound on the share of new texts with a wrong label; None if nobody judged them.
        seed: Seed of the bootstrap.
        others: The parts of report.json that other detectors read.
        draws: Number of bootstrap draws.
    """
    said = list(answers)
    losses = [measure_losses(each, noise=noise, seed=seed, draws=draws) for each in said]
    judged = judge_losses(losses, texts=texts, references=references)
    parts = {each.target: each for each in judged if each.target not in references}
    items = [find_items(each, parts[each.target].checks) for each in said if each.target in parts]
    together = _compare_fair_targets(said, losses, references, seed, draws) if said else None
    evidence: dict[str, ItemEvidence] = {each.found.target: each.found for each in items}
    drops = [
        each.model_dump(mode="json") | {"items": evidence[name].model_dump(mode="json")}
        for name, each in parts.items()
    ]
    panel = together and together.model_dump(mode="json")
    decomposition = {"targets": drops, "panel": panel}
    scored = [name for name in list_scored_models(others) if name not in references]
    rows = list(dict.fromkeys([*targets, *scored]))
    matrix = compare_detectors(rows, {**others, "decomposition": decomposition})
    document = {
        **decomposition,
        "agreement": matrix.model_dump(mode="json"),
        "texts": texts and texts.model_dump(mode="json"),
        "definitions": dict(TERM_DEFINITIONS),
        "covariates": dict(COVARIATES),
    }
    return MemoryEvidence(document, items)


def _compare_fair_targets(
    said: Sequence[AnswerCodes],
    losses: Sequence[Losses],
    references: Collection[str],
    seed: int,
    draws: int,
) -> Panel:
    """Compare the targets, except those that fail to give a label more often on one arm.

    An answer without a label says nothing about what a target knows.
    """
    alike = [
        coded
        for coded, loss in zip(said, losses, strict=True)
        if not any(claim.lenient for claim in loss.claims.values())
    ]
    standings = [measure_standing(coded, seed=seed, draws=draws) for coded in alike]
    return compare_targets([each for each in standings if each], references=references)
