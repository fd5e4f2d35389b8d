"""What a run's answers say of memory: drops taken apart, samples, the panel, and what agrees."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coreeval.evaluation.agreement import (
    Panel,
    VerdictReason,
    compare_detectors,
    compare_targets,
    measure_standing,
)
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
from coreeval.evaluation.scores import DRAWS
from coreeval.evaluation.text_measures import DEFINITIONS as COVARIATES

Json = Mapping[str, Any]


@dataclass(frozen=True)
class MemoryEvidence:
    """The findings as report.json has them, and the table of samples that they rest on."""

    document: Json
    items: Sequence[ItemFindings]
    """One for each target that labelled texts."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table: the target, then those of any target."""
        every = (name for each in self.items for name in each.columns)
        return ("target", *dict.fromkeys(every))

    def rows(self) -> Iterator[dict[str, str | int | float | None]]:
        """Yield the table's rows, a target after the other; an arm nobody asked has no value."""
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
    pcr: Json | None,
    numleak: Json | None,
    draws: int = DRAWS,
) -> MemoryEvidence:
    """Take every target's drop apart and lay beside it what else is known of its memory.

    Args:
        targets: The targets that verdicts are about, in the order of the matrix.
        answers: What those said that labelled the arms.
        texts: How the texts of the arms differ; None if nobody looked.
        references: Targets that are presumed to remember nothing; what they said is no finding.
        noise: Share of new texts whose label may be wrong, at most; None where nobody judged.
        seed: Of the bootstrap.
        pcr: As report.json has it.
        numleak: Likewise.
        draws: Bootstrap draws.
    """
    said = list(answers)
    losses = [measure_losses(each, noise=noise, seed=seed, draws=draws) for each in said]
    judged = judge_losses(losses, texts=texts, references=references)
    parts = {each.target: each for each in judged if each.target not in references}
    items = [find_items(each, parts[each.target].checks) for each in said if each.target in parts]
    together = _compare_fair_targets(said, losses, references, seed, draws) if said else None
    evidence: dict[str, ItemEvidence] = {each.found.target: each.found for each in items}
    matrix = compare_detectors(
        targets,
        pcr=_read_pcr_verdicts(pcr),
        decompositions=parts,
        items=evidence,
        panel=together,
        numleak=_read_series_verdicts(numleak),
    )
    document = {
        "targets": [
            each.model_dump(mode="json") | {"items": evidence[name].model_dump(mode="json")}
            for name, each in parts.items()
        ],
        "panel": together and together.model_dump(mode="json"),
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
    """Hold targets against each other, without those that answer one arm in prose more often.

    An answer without a label says nothing of what a target knows.
    """
    alike = [
        coded
        for coded, loss in zip(said, losses, strict=True)
        if not any(claim.lenient for claim in loss.claims.values())
    ]
    standings = [measure_standing(coded, seed=seed, draws=draws) for coded in alike]
    return compare_targets([each for each in standings if each], references=references)


def _read_pcr_verdicts(found: Json | None) -> dict[str, VerdictReason]:
    targets = found["targets"] if found else ()
    return {each["name"]: (each["verdict"], each["reason"]) for each in targets}


def _read_series_verdicts(found: Json | None) -> dict[str, list[VerdictReason]]:
    spoken: dict[str, list[VerdictReason]] = {}
    for each in found["series"] if found else ():
        said = (each["verdict"], f"{each['name']}: {'; '.join(each['reasons'])}")
        spoken.setdefault(each["model"], []).append(said)
    return spoken
