"""What a run's answers say of memory: drops taken apart, samples, the panel, and what agrees."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coreeval.evaluation.agreement import Spoken, agreement
from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition import (
    DEFINITIONS,
    Decomposition,
    ItemEvidence,
    Items,
    decompose,
    find_items,
)
from coreeval.evaluation.panel import Standing, panel, standing

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Levels:
    """The findings as report.json has them, and the table of samples that they rest on."""

    document: Json
    items: Sequence[Items]
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


def find_levels(
    targets: Sequence[str],
    answers: Iterable[Coded],
    *,
    noise: float | None,
    seed: int,
    pcr: Json | None,
    numleak: Json | None,
) -> Levels:
    """Take every target's drop apart and lay beside it what else is known of its memory.

    Args:
        targets: All targets, in the order of the matrix.
        answers: What those said that labelled the arms.
        noise: Share of new texts whose label may be wrong, at most; None where nobody judged.
        seed: Of the bootstrap.
        pcr: As report.json has it.
        numleak: Likewise.
    """
    parts, items = dict[str, Decomposition](), list[Items]()
    standings = list[Standing]()
    for coded in answers:
        parts[coded.target] = decompose(coded, noise=noise, seed=seed)
        items.append(find_items(coded))
        standings += [known for known in [standing(coded, seed=seed)] if known]
    together = panel(standings) if parts else None
    evidence: dict[str, ItemEvidence] = {each.found.target: each.found for each in items}
    matrix = agreement(
        targets,
        pcr=_of_pcr(pcr),
        decompositions=parts,
        items=evidence,
        panel=together,
        numleak=_of_series(numleak),
    )
    document = {
        "targets": [
            each.model_dump(mode="json") | {"items": evidence[name].model_dump(mode="json")}
            for name, each in parts.items()
        ],
        "panel": together and together.model_dump(mode="json"),
        "agreement": matrix.model_dump(mode="json"),
        "definitions": dict(DEFINITIONS),
    }
    return Levels(document, items)


def _of_pcr(found: Json | None) -> dict[str, Spoken]:
    targets = found["targets"] if found else ()
    return {each["name"]: (each["verdict"], each["reason"]) for each in targets}


def _of_series(found: Json | None) -> dict[str, list[Spoken]]:
    spoken: dict[str, list[Spoken]] = {}
    for each in found["series"] if found else ():
        said = (each["verdict"], f"{each['name']}: {'; '.join(each['reasons'])}")
        spoken.setdefault(each["model"], []).append(said)
    return spoken
