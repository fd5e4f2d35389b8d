"""The value for each gate or the reason that it is missing, and the targets that must have one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple

from coreeval.config import ModelsConfig, TargetConfig
from coreeval.config.models import ON_THIS_MACHINE
from coreeval.evaluation.arms import FEWEST
from coreeval.evaluation.comparability.verdict import Comparability
from coreeval.evaluation.detectors import GATED
from coreeval.evaluation.embedded_targets import is_classifier
from coreeval.evaluation.scores import Score, score_proportion
from coreeval.releases.gates.limits import Limit, RankLimit
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.runs.quality import Findings, TargetFindings
from coreeval.tools.formatting import format_quantity
from coreeval.tools.local_paths import shorten_name


class ExpectedTargets:
    """The targets of a release: those in its config, and those that were asked later."""

    def __init__(self, manifest: ReleaseManifest, found: Iterable[TargetFindings]) -> None:
        configured = _configured_targets(manifest)
        names = (
            *(each.model for each in configured),
            *(each.target for each in manifest.after_cutoff),
            *(each.target for each in found if not _is_only_scored(each)),
        )
        self._all = list(dict.fromkeys(names))
        self._references = {each.model for each in configured if each.role == "reference"}

    @property
    def models(self) -> list[str]:
        """Return the targets that may know news; embedded targets, fitted here, know none."""
        return [each for each in self._all if not _embedded_targets(each)]

    @property
    def labelling(self) -> list[str]:
        """Return the tested targets that label texts: models and classifiers, but not personas."""
        return [each for each in self._tested if is_classifier(each) or not _embedded_targets(each)]

    @property
    def audited(self) -> list[str]:
        """Return the targets that can be asked for values: models and personas, no classifiers."""
        return [each for each in self._tested if not is_classifier(each)]

    @property
    def _tested(self) -> list[str]:
        """Return all targets except the references, which get no verdict."""
        return [each for each in self._all if each not in self._references]


def _is_only_scored(found: TargetFindings) -> bool:
    """Return whether a model only scored texts, such as weights that are not a target."""
    gates = {name for name in GATED if any(found.verdicts(name))}
    scored = {name for name in gates if GATED[name].scores_texts}
    return bool(scored) and scored == gates and not found.original.n and not found.updated.n


def _configured_targets(manifest: ReleaseManifest) -> tuple[TargetConfig, ...]:
    return ModelsConfig.model_validate(manifest.models).targets


def _name_in_release(target: str, names: Iterable[str]) -> str:
    """Return the name that a release has for a target of a report, which has absolute paths.

    A release has paths relative to its config or to the home folder, or without their folder.
    """
    provider, _, path = target.partition(":")
    if provider not in ON_THIS_MACHINE or not path.startswith("/"):
        return target
    if (short := shorten_name(target)) in names:
        return short
    ends = {name: name.removeprefix(f"{provider}:").removeprefix("~/") for name in names}
    same = [name for name, end in ends.items() if f"/{path}".endswith(f"/{end}")]
    return max(same, key=lambda name: len(ends[name]), default=target)


def _embedded_targets(target: str) -> bool:
    return target.startswith("offline:")


JUDGE_HINT = "it is measured only if a model or rules judge the labels: see models.label_judge"
RELEASE_HINT = "release the run again with this version of CoreEval"
EVALUATE_HINT = (
    "evaluate targets with coreeval evaluate RUN, then release the run again or use --report FILE"
)


class GateValue(NamedTuple):
    """A value of the release, or of one label, target or series."""

    score: Score
    of: str = ""


class VerdictValue(NamedTuple):
    """A verdict on a target, or on its knowledge of a series."""

    verdict: str
    of: str
    caveat: str = ""
    """The condition under which the verdict holds; empty if there is none."""


class MissingValue(NamedTuple):
    """The reason that a release does not have a value, and what to do about it."""

    why: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class GateSubject:
    """The data that gates check."""

    manifest: ReleaseManifest
    findings: Findings | None
    """Findings about targets: those of the release, or of a report made after it."""

    @property
    def left_out(self) -> MissingValue | None:
        """Return why findings are not about this release, if they include samples that it lacks."""
        found = _comparability(self)
        more = found.samples - self.manifest.published if found else 0
        if more < 1:
            return None
        why = f"the report includes {format_quantity(more, 'sample')} that this release leaves out"
        return MissingValue(why, "release the run again: it is then compared without them")

    @property
    def expected(self) -> ExpectedTargets:
        """Return the targets that must have a value."""
        return ExpectedTargets(self.manifest, self.targets)

    @property
    def targets(self) -> list[TargetFindings]:
        """Return the findings about each target, under its name in the release."""
        names = [each.model for each in _configured_targets(self.manifest)]
        return [
            each.model_copy(update={"target": _name_in_release(each.target, names)})
            for each in (self.findings.targets if self.findings else ())
        ]


Numbers = Sequence[GateValue | MissingValue] | MissingValue
"""Values of a number gate; a missing value among them names the targets without one."""
Verdicts = Sequence[VerdictValue | MissingValue] | MissingValue
"""Verdicts of a detector; a missing value among them names the targets without one."""


_EMPTY_ARM = MissingValue("the updated arm is empty", "see why: coreeval status RUN")


def _exact_value(value: float) -> GateValue:
    """Return a value without an interval."""
    return GateValue(Score(estimate=value, ci_low=None, ci_high=None, n=1))


def _missing_values(missing: Iterable[str], why: str, hint: str) -> Iterator[MissingValue]:
    """Yield one missing value that names all of `missing`; nothing if it is empty."""
    if names := "; ".join(missing):
        yield MissingValue(f"{why} {names}", hint)


def _label_noise(subject: GateSubject, _: Limit) -> Numbers:
    bound = subject.manifest.quality.label_noise.bound
    if bound is None:
        return MissingValue("no blind judge labelled originals and new texts", JUDGE_HINT)
    return [_exact_value(bound)]


def _share(name: Literal["acceptance", "evidence"]) -> Callable[[GateSubject, Limit], Numbers]:
    def look(subject: GateSubject, _: Limit) -> Numbers:
        score: Score = getattr(subject.manifest.quality, name)
        if score.estimate is None:
            return MissingValue("the benchmark has no samples", "see bad_rows: coreeval status RUN")
        return [GateValue(score)]

    return look


def _label_acceptance(subject: GateSubject, _: Limit) -> Numbers:
    found = [
        GateValue(each.accepted, each.label)
        for each in subject.manifest.quality.by_label
        if each.accepted.estimate is not None
    ]
    return found or MissingValue("no sample has a label", "see bad_rows: coreeval status RUN")


def _balance_shift(subject: GateSubject, _: Limit) -> Numbers:
    shift = subject.manifest.quality.balance_shift
    if shift is None:
        return _EMPTY_ARM
    return [_exact_value(shift)]


def _overlap(subject: GateSubject, _: Limit) -> Numbers:
    found = subject.manifest.quality.overlap
    if found is None:
        return MissingValue("the release was made before overlap was measured", RELEASE_HINT)
    if found.share is None:
        texts = f"all {found.texts} updated texts are shorter than {found.size} words"
        return MissingValue(
            texts if found.texts else "the updated arm is empty", "remove this gate"
        )
    return [_exact_value(found.share)]


def _after_cutoff(subject: GateSubject, _: Limit) -> Numbers:
    """Return, for each target, the share of texts known to use only news after its cutoff."""
    if not subject.manifest.published:
        return _EMPTY_ARM
    known = [
        GateValue(score_proportion(each.after, each.sample_count), each.target)
        for each in subject.manifest.after_cutoff
        if each.after + each.before
    ]
    hint = (
        "set a cutoff in models.targets or a table in knowledge.cutoffs, and refresh again: "
        "coreeval docs cutoffs"
    )
    if not known:
        return MissingValue("no target has a known cutoff", hint)
    missing = _missing_targets(known, subject.expected.models)
    return [*known, *_missing_values(missing, "no cutoff is known for", hint)]


def _still_stale(subject: GateSubject, _: Limit) -> Numbers:
    """Return the share of published samples whose renewal found no recent enough news."""
    manifest = subject.manifest
    if manifest.still_stale is None:
        hint = "remove this gate, or refresh with --from RELEASE --stale-after AGE"
        return MissingValue(
            "the run is not based on a release, so there was nothing to renew", hint
        )
    if not manifest.published:
        return _EMPTY_ARM
    return [GateValue(score_proportion(manifest.still_stale, manifest.published))]


def _cost(subject: GateSubject, _: Limit) -> list[GateValue] | MissingValue:
    usd = _usd(subject.manifest)
    if usd is None:
        hint = "set its price: `price` of the model, or run.prices (coreeval docs cost)"
        return MissingValue("a paid model has no known price", hint)
    return [_exact_value(usd)]


def _cost_per_accepted(subject: GateSubject, limit: Limit) -> Numbers:
    """Return the cost per sample accepted in the run; kept samples cost nothing."""
    cost, manifest = _cost(subject, limit), subject.manifest
    made = manifest.counts["accepted"] - manifest.kept
    if isinstance(cost, MissingValue):
        return cost
    if made < 1:
        return MissingValue("the run accepted no new samples", "see why: coreeval status RUN")
    return [_exact_value((cost[0].score.estimate or 0.0) / made)]


def _usd(manifest: ReleaseManifest) -> float | None:
    """Return the run's total cost: models, requests with unknown outcome, and bought news."""
    billed = manifest.cost.billed_usd
    if billed is None:
        return None
    return billed + manifest.cost.unknown_usd + manifest.knowledge.cost_usd


def _rank_correlation(subject: GateSubject, limit: Limit) -> Numbers:
    assert isinstance(limit, RankLimit), "NUMBERS is by the names of limits"
    if subject.left_out:
        return subject.left_out
    found = subject.findings.ranking if subject.findings else None
    if found is None:
        scored = [
            each
            for each in subject.targets
            if each.original.estimate is not None and each.updated.estimate is not None
        ]
        why = (
            f"a ranking needs {FEWEST} targets with scores on both arms, but only "
            f"{len(scored)} have them"
        )
        return MissingValue(why, EVALUATE_HINT)
    score = found.kendall if limit.method == "kendall" else found.spearman
    if score.estimate is None:
        return MissingValue(
            "all targets have the same score on one of the arms", "remove this gate"
        )
    return [GateValue(score)]


COMPARE_HINT = (
    "write the report again (coreeval resume RUN if it is missing; otherwise, for a run with "
    "targets, coreeval evaluate RUN), then release the run again"
)
_NOT_COMPARED = MissingValue(
    "the report does not say whether the arms are comparable", COMPARE_HINT
)


def _comparability(subject: GateSubject) -> Comparability | None:
    return subject.findings.comparability if subject.findings else None


def _measure_of_arms(name: str) -> Callable[[GateSubject, Limit], Numbers]:
    """Return the function that reads one measure of the comparison of both arms."""

    def look(subject: GateSubject, _: Limit) -> Numbers:
        found = _comparability(subject)
        if found is None or subject.left_out:
            return subject.left_out or _NOT_COMPARED
        measure = found.find(name)
        if measure is None or measure.score.estimate is None:
            why = found.absent.get(name, "no accepted sample has texts to compare")
            return MissingValue(why, "see why: coreeval status RUN")
        return [GateValue(measure.score)]

    return look


def _event_reuse(subject: GateSubject, _: Limit) -> Numbers:
    """Return the largest number of samples that use the same event."""
    found = _comparability(subject)
    if found is None or subject.left_out:
        return subject.left_out or _NOT_COMPARED
    if found.most_reused is None:
        return MissingValue("no accepted sample cites any news", "see why: coreeval status RUN")
    return [_exact_value(found.most_reused)]


NUMBERS: Final[Mapping[str, Callable[[GateSubject, Limit], Numbers]]] = {
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
    "length_ratio": _measure_of_arms("length_ratio"),
    "structure_share": _measure_of_arms("structure"),
    "event_reuse": _event_reuse,
    "rank_correlation": _rank_correlation,
}
"""The function that reads each gate's value, by the gate's name."""


def read_verdicts(subject: GateSubject, gate: str) -> Verdicts:
    """Return the verdicts for a gate: on both arms, or a detector's on each target.

    Targets without one are among them as a missing value.
    """
    if gate == "comparability":
        return _read_arms_verdict(subject)
    words = GATED[gate].verdict_gate
    assert words, "GATED has those with a gate"
    said = [(each.target, found) for each in subject.targets for found in each.verdicts(gate)]
    hint = f"{words.hint}{EVALUATE_HINT}"
    if not said:
        return MissingValue(words.none, hint)
    known = {(target, found.part) for target, found in said}
    parts = dict.fromkeys(found.part for _, found in said)
    expected: list[str] = getattr(subject.expected, words.asked)
    missing = [_name_part(*each) for each in product(expected, parts) if each not in known]
    return [
        *(
            VerdictValue(found.verdict, _name_part(target, found.part), found.caveat)
            for target, found in said
        ),
        *_missing_values(missing, words.some, hint),
    ]


def _read_arms_verdict(subject: GateSubject) -> Verdicts:
    found = _comparability(subject)
    if found is None or subject.left_out:
        return subject.left_out or _NOT_COMPARED
    return [VerdictValue(found.verdict, "the updated arm", " ".join(found.sentences))]


def _name_part(target: str, part: str) -> str:
    return f"{target}, {part}" if part else target


def _missing_targets(found: Iterable[GateValue], expected: Iterable[str]) -> list[str]:
    """Return the expected targets that have no value."""
    known = {each.of for each in found}
    return [each for each in expected if each not in known]
