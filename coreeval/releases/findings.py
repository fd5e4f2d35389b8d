"""What a run's report says of its targets, as a release keeps it: scores, ranks and verdicts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coreeval.errors import RunCorrupt
from coreeval.evaluation.pcr.verdicts import ABOUT_MEMORY, CAVEATS, Basis
from coreeval.evaluation.scores import NO_SCORE, RANKED_ARMS, Score
from coreeval.releases.release_manifest import Findings, TargetFindings

Json = Mapping[str, Any]


def findings_of(report: Json, *, where: Path) -> Findings:
    """Return what a report (`read_report`) says of each target; one that nobody asked is absent.

    Raises:
        RunCorrupt: something in it is not as a run writes it.
    """
    try:
        return _findings(report)
    except (AttributeError, KeyError, TypeError, ValidationError) as error:
        raise RunCorrupt(
            f"the report is not as a run writes it: {type(error).__name__}: {error}",
            where=str(where),
            hint="write it anew: coreeval evaluate RUN",
        ) from None


def _findings(report: Json) -> Findings:
    references = {each["target"] for each in report["targets"] if each.get("role") == "reference"}
    pcr = {each["name"]: each for each in _listed(report["pcr"], "targets")}
    drops = {each["target"]: each["verdict"] for each in report["decomposition"]["targets"]}
    scores = {each["target"]: _scores(each) for each in report["arms"]["targets"]}
    series = _by_series(report)
    return Findings(
        ranking=report["arms"]["ranking"],
        targets=tuple(
            TargetFindings(
                target=target,
                original=scores.get(target, (NO_SCORE, NO_SCORE))[0],
                updated=scores.get(target, (NO_SCORE, NO_SCORE))[1],
                pcr=pcr[target]["verdict"] if target in pcr else None,
                pcr_caveat=caveat_of(pcr[target]) if target in pcr else "",
                drop=drops.get(target),
                numleak=series.get(target, {}),
            )
            for target in dict.fromkeys((*scores, *pcr, *drops, *series))
            if target not in references
        ),
    )


def caveat_of(found: Json) -> str:
    """Return under which condition a verdict of memory by PCR holds; nothing for another one."""
    basis: Basis = found["test"]["basis"]
    return CAVEATS[basis] if found["verdict"] in ABOUT_MEMORY else ""


def _scores(found: Json) -> tuple[Score, Score]:
    """Return a target's macro-F1 on both arms, on the samples that both have."""
    for each in found["all_samples"]["comparisons"]:
        if (each["first"]["arm"], each["second"]["arm"]) == RANKED_ARMS:
            one, other = (each[side]["macro_f1"] for side in ("first", "second"))
            return Score.model_validate(one), Score.model_validate(other)
    return NO_SCORE, NO_SCORE


def _by_series(report: Json) -> dict[str, dict[str, str]]:
    """Return NumLeak's verdicts by target and series."""
    found = dict[str, dict[str, str]]()
    for each in _listed(report["numleak"], "series"):
        found.setdefault(each["model"], {})[each["series"]] = each["verdict"]
    return found


def _listed(part: Json | None, key: str) -> list[Json]:
    return list(part[key]) if part else []
