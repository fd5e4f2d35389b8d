"""The value that each gate looks at, or why a release does not have it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.arms import FEWEST
from coreeval.evaluation.scores import Score, score_proportion
from coreeval.releases.gates.expected import Expected, known_as
from coreeval.releases.gates.limits import Limit, RankLimit
from coreeval.releases.release_manifest import Findings, ReleaseManifest, TargetFindings

JUDGED = "it is measured when a model or the rules judge labels: see models.label_judge"
AGAIN = "release the run again with this version of CoreEval"
ASKED = "ask targets: coreeval evaluate RUN; then release it again, or give --report FILE"


class Measure(NamedTuple):
    """A value, of the release or of one label, target or series of it."""

    score: Score
    of: str = ""


class Said(NamedTuple):
    """A verdict on a target, or on what it says of a series."""

    verdict: str
    of: str
    caveat: str = ""
    """Under which condition the verdict holds."""


class Absent(NamedTuple):
    """Why a release does not have a value, and what to do about it."""

    why: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What gates look at."""

    manifest: ReleaseManifest
    findings: Findings | None
    """Of targets: those of the release, or of a report from after it."""

    @property
    def expected(self) -> Expected:
        """The targets that must have a value."""
        return Expected(self.manifest, self.findings)


Numbers = Sequence[Measure | Absent] | Absent
"""One that is absent beside others tells which targets have none."""
Verdicts = Sequence[Said | Absent] | Absent
"""Likewise."""


def _whole(value: float) -> Measure:
    """Return a value without an interval."""
    return Measure(Score(estimate=value, ci_low=None, ci_high=None, n=1))


def _without(missing: Iterable[str], why: str, hint: str) -> Iterator[Absent]:
    """Yield that some have no value; nothing where all have one."""
    if names := "; ".join(missing):
        yield Absent(f"{why} {names}", hint)


def _label_noise(subject: Subject, _: Limit) -> Numbers:
    bound = subject.manifest.quality.label_noise.bound
    if bound is None:
        return Absent("no blind judge labelled originals and new texts", JUDGED)
    return [_whole(bound)]


def _share(name: Literal["acceptance", "evidence"]) -> Callable[[Subject, Limit], Numbers]:
    def look(subject: Subject, _: Limit) -> Numbers:
        score: Score = getattr(subject.manifest.quality, name)
        if score.estimate is None:
            return Absent("the benchmark has no samples", "see bad_rows: coreeval status RUN")
        return [Measure(score)]

    return look


def _label_acceptance(subject: Subject, _: Limit) -> Numbers:
    found = [
        Measure(each.accepted, each.label)
        for each in subject.manifest.quality.by_label
        if each.accepted.estimate is not None
    ]
    return found or Absent("no sample has a label", "see bad_rows: coreeval status RUN")


def _balance_shift(subject: Subject, _: Limit) -> Numbers:
    shift = subject.manifest.quality.balance_shift
    if shift is None:
        return Absent("the updated arm is empty", "see why: coreeval status RUN")
    return [_whole(shift)]


def _overlap(subject: Subject, _: Limit) -> Numbers:
    found = subject.manifest.quality.overlap
    if found is None:
        return Absent("the release was made before overlap was measured", AGAIN)
    if found.share is None:
        texts = f"none of {found.texts} updated texts has {found.size} words"
        return Absent(texts if found.texts else "the updated arm is empty", "leave this gate out")
    return [_whole(found.share)]


def _after_cutoff(subject: Subject, _: Limit) -> Numbers:
    """Return for each target the share of texts that are known to rest on newer news only."""
    known = [
        Measure(score_proportion(each.after, each.sample_count), each.target)
        for each in subject.manifest.after_cutoff
        if each.after + each.before
    ]
    hint = (
        "give models.targets a cutoff, or knowledge.cutoffs a table, and refresh anew: "
        "docs/cutoffs.md"
    )
    if not known:
        return Absent("no target has a cutoff that is known", hint)
    missing = _beside(known, subject.expected.models)
    return [*known, *_without(missing, "no cutoff is known of", hint)]


def _still_stale(subject: Subject, _: Limit) -> Numbers:
    """Return the share of accepted samples whose renewal found no news that is new enough."""
    manifest = subject.manifest
    if manifest.still_stale is None:
        hint = "leave this gate out, or refresh with --from RELEASE --stale-after AGE"
        return Absent("the run followed no release, so nothing was to be renewed", hint)
    accepted = manifest.counts["accepted"] - manifest.takedown.withheld - manifest.review.rejected
    if accepted < 1:
        return Absent("the updated arm is empty", "see why: coreeval status RUN")
    return [Measure(score_proportion(manifest.still_stale, accepted))]


def _cost(subject: Subject, _: Limit) -> list[Measure] | Absent:
    usd = _usd(subject.manifest)
    if usd is None:
        hint = "price it: `price` beside the model, or run.prices (docs/cost.md)"
        return Absent("a model that was paid has no known price", hint)
    return [_whole(usd)]


def _cost_per_accepted(subject: Subject, limit: Limit) -> Numbers:
    """Return the cost by sample that the run itself accepted: kept ones cost it nothing."""
    cost, manifest = _cost(subject, limit), subject.manifest
    made = manifest.counts.get("accepted", 0) - manifest.kept
    if isinstance(cost, Absent):
        return cost
    if made < 1:
        return Absent("the run accepted no sample of its own", "see why: coreeval status RUN")
    return [_whole((cost[0].score.estimate or 0.0) / made)]


def _usd(manifest: ReleaseManifest) -> float | None:
    """Return all that the run cost: models, requests whose end nobody knows, bought news."""
    billed = manifest.cost.billed_usd
    if billed is None:
        return None
    return billed + manifest.cost.unknown_usd + manifest.knowledge.cost_usd


def _rank_correlation(subject: Subject, limit: Limit) -> Numbers:
    assert isinstance(limit, RankLimit), "NUMBERS is by the names of limits"
    found = subject.findings.ranking if subject.findings else None
    if found is None:
        scored = [
            each
            for each in _targets(subject)
            if each.original.estimate is not None and each.updated.estimate is not None
        ]
        why = f"an order needs {FEWEST} targets with scores on both arms; there are {len(scored)}"
        return Absent(why, ASKED)
    score = found.kendall if limit.method == "kendall" else found.spearman
    if score.estimate is None:
        return Absent("all targets have the same score on one of the arms", "leave this gate out")
    return [Measure(score)]


def _targets(subject: Subject) -> Iterable[TargetFindings]:
    return subject.findings.targets if subject.findings else ()


NUMBERS: Final[Mapping[str, Callable[[Subject, Limit], Numbers]]] = {
    "label_noise": _label_noise,
    "acceptance": _share("acceptance"),
    "label_acceptance": _label_acceptance,
    "balance_shift": _balance_shift,
    "overlap": _overlap,
    "evidence": _share("evidence"),
    "after_cutoff": _after_cutoff,
    "still_stale": _still_stale,
    "cost_usd": _cost,
    "cost_per_accepted_usd": _cost_per_accepted,
    "rank_correlation": _rank_correlation,
}
"""By the name of the gate."""


def _pcr(subject: Subject) -> Verdicts:
    found = [Said(each.pcr, each.target, each.pcr_caveat) for each in _targets(subject) if each.pcr]
    why, hint = "PCR was not measured", f"detect.pcr asks for it; {ASKED}"
    missing = _beside(found, subject.expected.labelling)
    return [*found, *_without(missing, f"{why} of", hint)] if found else Absent(why, hint)


def _drop(subject: Subject) -> Verdicts:
    found = [Said(each.drop, each.target) for each in _targets(subject) if each.drop]
    missing = _beside(found, subject.expected.labelling)
    if not found:
        return Absent("no target labelled the arms", ASKED)
    return [*found, *_without(missing, "the arms were not labelled by", ASKED)]


def _numleak(subject: Subject) -> Verdicts:
    said = {
        (each.target, series): verdict
        for each in _targets(subject)
        for series, verdict in each.numleak.items()
    }
    hint = f"detect.numleak names series; {ASKED}"
    if not said:
        return Absent("no series was asked for", hint)
    asked = product(subject.expected.audited, dict.fromkeys(series for _, series in said))
    known = {(known_as(target), series) for target, series in said}
    missing = [", ".join(each) for each in asked if each not in known]
    found = [Said(verdict, ", ".join(each)) for each, verdict in said.items()]
    return [*found, *_without(missing, "not asked:", hint)]


def _beside(found: Iterable[Measure | Said], expected: Iterable[str]) -> list[str]:
    """Return the targets that have no value beside those that have one."""
    known = {known_as(each.of) for each in found}
    return [each for each in expected if each not in known]


VERDICTS: Final[Mapping[str, Callable[[Subject], Verdicts]]] = {
    "pcr": _pcr,
    "drop": _drop,
    "numleak": _numleak,
}
"""By the name of the gate."""
