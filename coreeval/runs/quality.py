"""Quality measures of a dataset: acceptance, balance, label noise, coverage, overlap, findings.

The overlap is the share of the updated texts that is copied from their originals word for word. The
findings are the scores, ranks and verdicts of the run's report.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from coreeval.agents.text.words import split_words
from coreeval.errors import RunCorrupt
from coreeval.evaluation.comparability.verdict import Comparability
from coreeval.evaluation.detectors import GATED, list_target_detectors
from coreeval.evaluation.detectors.base import Finding
from coreeval.evaluation.scores import NO_SCORE, RANKED_ARMS, Score, TargetRanking, score_proportion
from coreeval.runs.arms import accepted_fields
from coreeval.schema import Rung, Task, Value
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import UNSPACED

Share = Annotated[float, Field(ge=0, le=1)]


class LabelShare(Value):
    """The results for one label."""

    label: str
    total: int
    """Number of benchmark samples with the label."""
    accepted: Score
    """Share of them in the updated arm."""
    original_share: float
    """Share of the label in the benchmark."""
    updated_share: float | None
    """Share of the label in the updated arm; None if the arm is empty."""


class LabelNoise(Value):
    """Label judgements of blind judges, who see neither a text's label nor its history."""

    original: Score = NO_SCORE
    """Share of the judged originals that clearly have another label."""
    updated: Score = NO_SCORE
    """Share of the judged new texts, including retries, that did not have the label."""
    bound: Share | None = None
    """Upper bound for the share of wrong labels in the updated arm (`estimate_noise_bound`); None
    if nothing was judged, or if there are no updated texts."""


class RungCoverage(Value):
    """The results of one rung of the knowledge ladder."""

    rung: Rung
    samples: int
    """Number of samples for which it found news."""
    accepted: int


class Overlap(Value):
    """Verbatim overlap of the updated texts with their originals."""

    size: int
    """Number of words in an n-gram."""
    share: Share | None
    """Share of the updated texts' n-grams that their original has; None if they have none."""
    grams: int
    """Number of n-grams in the updated texts."""
    texts: int
    """Number of updated samples compared."""


class Quality(Value):
    """The measures of a dataset that its owner approves."""

    acceptance: Score
    by_label: tuple[LabelShare, ...]
    balance_shift: float | None
    """Total variation distance between the label distributions of the benchmark and the updated
    arm."""
    label_noise: LabelNoise = LabelNoise()
    evidence: Score
    """Share of the benchmark's samples for which news was found."""
    rungs: tuple[RungCoverage, ...]
    overlap: Overlap | None = None
    """The overlap; None in releases made before it was measured."""


class TargetVerdict(NamedTuple):
    """A detector's verdict on a target."""

    part: str
    """The part of the target, such as a series; empty for the whole target."""
    verdict: str
    caveat: str
    """The condition under which it holds; empty if there is none."""


class TargetFindings(Value):
    """The findings about one target when the release is made."""

    target: str
    original: Score = NO_SCORE
    """Macro-F1 on the original arm, for the samples that are also in the updated arm."""
    updated: Score = NO_SCORE
    pcr: str | None = None
    """The verdict of PCR; None if it was not run. The next two fields work the same way."""
    pcr_caveat: str = ""
    """The condition under which the verdict holds; empty if there is none."""
    drop: str | None = None
    numleak: dict[str, str] = {}
    """Verdict for each series."""
    others: dict[str, dict[str, str]] = {}
    """The verdicts of other detectors by gate and part; an empty part is the whole target."""

    @model_serializer(mode="wrap")
    def _omit_no_others(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `others` out if it is empty, because older releases have no such key."""
        dumped: dict[str, Any] = dump(self)
        if not self.others:
            dumped.pop("others", None)
        return dumped

    def verdicts(self, gate: str) -> list[TargetVerdict]:
        """Return the verdicts of a gate's detector on the target; empty if it was not run."""
        said: str | dict[str, str] | None = getattr(self, gate, None) or self.others.get(gate)
        caveat: str = getattr(self, f"{gate}_caveat", "")
        if isinstance(said, dict):
            return [TargetVerdict(part, verdict, caveat) for part, verdict in said.items()]
        return [TargetVerdict("", said, caveat)] if said else []


class Findings(Value):
    """The findings about targets in the run's report."""

    ranking: TargetRanking | None = None
    targets: tuple[TargetFindings, ...] = ()
    comparability: Comparability | None = None
    """Whether the updated arm is comparable with the original; None if that was not measured."""

    @model_serializer(mode="wrap")
    def _omit_no_comparison(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `comparability` out if it is None, because older releases have no such key."""
        dumped: dict[str, Any] = dump(self)
        if self.comparability is None:
            dumped.pop("comparability", None)
        return dumped


GRAM = 5
"""Words per n-gram. The checks use three (pilot §7), which texts may share by chance through names
and phrases; five in a row are rarely shared unless copied (own choice)."""
_SIGN = re.compile(f"([{UNSPACED}])")
"""A character that counts as about one word."""
OverlapTexts = Mapping[str, str]


def measure_overlap(store: RunStore, *, withheld: Collection[str]) -> Overlap:
    """Measure the overlap of a run's updated arm with its originals, without withheld samples.

    The result quotes nothing, so it can be published even if the originals cannot.
    """
    return share_ngrams(
        (fields, ended.sample.fields)
        for ended in store.sample_results()
        if ended.sample.id not in withheld and (fields := accepted_fields(ended))
    )


def share_ngrams(pairs: Iterable[tuple[OverlapTexts, OverlapTexts]]) -> Overlap:
    """Return the share of all new texts' n-grams that are also in their originals.

    Args:
        pairs: New and original texts of each sample, by field; an n-gram may occur in any field
            of the original, and counts once per sample.
    """
    texts = grams = shared = 0
    for new, old in pairs:
        own = _overlap_of_fields(new)
        texts += 1
        grams += len(own)
        shared += len(own & _overlap_of_fields(old))
    return Overlap(size=GRAM, share=shared / grams if grams else None, grams=grams, texts=texts)


def _overlap_of_fields(fields: OverlapTexts) -> set[tuple[str, ...]]:
    return {gram for text in fields.values() for gram in _grams(text)}


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    found = split_words(_SIGN.sub(r" \1 ", text))
    return zip(*(found[start:] for start in range(GRAM)), strict=False)


def measure_quality(
    store: RunStore, task: Task, *, withheld: Collection[str], followed: Quality | None = None
) -> Quality:
    """Measure the quality of a release; withheld samples count as not accepted.

    Args:
        store: The run's store.
        task: Names the labels.
        withheld: The ids of samples that are not published.
        followed: The quality of the release that judged the kept samples.
    """
    endings = [
        SampleEnding(
            label, outcome == "accepted" and sample_id not in withheld, rung, bool(kept_from)
        )
        for sample_id, label, outcome, rung, kept_from in store.figures.fates()
    ]
    published = sum(one.published for one in endings)
    kept = sum(one.published and one.kept for one in endings)
    noise = _label_noise(
        store,
        kept=kept,
        renewed=published - kept,
        there=followed.label_noise.bound if followed else None,
    )
    overlap = measure_overlap(store, withheld=withheld)
    return measure_shares(endings, task).model_copy(
        update={"label_noise": noise, "overlap": overlap}
    )


class SampleEnding(NamedTuple):
    """The outcome of a sample of a release."""

    label: str
    published: bool
    """Whether its new text is in the updated arm."""
    rung: Rung
    kept: bool
    """Whether its text is from the release that the run followed."""


def measure_shares(endings: Iterable[SampleEnding], task: Task) -> Quality:
    """Return the quality measures that depend only on the outcomes of samples."""
    total, accepted = Counter[str](), Counter[str]()
    found, used = Counter[Rung](), Counter[Rung]()
    for label, published, rung, _ in endings:
        total[label] += 1
        found[rung] += 1
        accepted[label] += published
        used[rung] += published
    names = [label.name for label in task.labels]
    return Quality(
        acceptance=score_proportion(accepted.total(), total.total()),
        by_label=tuple(_label_share(name, total, accepted) for name in names),
        balance_shift=measure_balance_shift(total, accepted),
        evidence=score_proportion(total.total() - found["none"], total.total()),
        rungs=tuple(
            RungCoverage(rung=rung, samples=found[rung], accepted=used[rung])
            for rung in get_args(Rung)
            if found[rung]
        ),
    )


def _label_share(name: str, total: Counter[str], accepted: Counter[str]) -> LabelShare:
    return LabelShare(
        label=name,
        total=total[name],
        accepted=score_proportion(accepted[name], total[name]),
        original_share=total[name] / max(total.total(), 1),
        updated_share=accepted[name] / accepted.total() if accepted.total() else None,
    )


def measure_balance_shift(before: Counter[str], after: Counter[str]) -> float | None:
    """Return the total variation distance of two label distributions, from 0 (equal) to 1."""
    if not before.total() or not after.total():
        return None
    apart = (
        abs(before[name] / before.total() - after[name] / after.total()) for name in before | after
    )
    return sum(apart) / 2


def _label_noise(store: RunStore, *, kept: int, renewed: int, there: float | None) -> LabelNoise:
    originals, contrary = store.history.verdict_counts("original_label")
    texts, refused = store.history.verdict_counts("label_preserved")
    original, updated = score_proportion(contrary, originals), score_proportion(refused, texts)
    here = estimate_noise_bound(original, updated)
    bound = merge_noise_bounds(here, renewed, there, kept)
    return LabelNoise(original=original, updated=updated, bound=bound)


def merge_noise_bounds(
    here: float | None, renewed: int, there: float | None, kept: int
) -> float | None:
    """Return the bound over renewed and kept texts, each weighted by its number.

    `here` is the bound for renewed texts; `there` is the bound for kept texts, from the run that
    judged them. None if texts of either kind have no bound, or if there are no texts.
    """
    parts = [(bound, count) for bound, count in ((here, renewed), (there, kept)) if count]
    if not parts:
        return None
    shares = [bound * count for bound, count in parts if bound is not None]
    return sum(shares) / (renewed + kept) if len(shares) == len(parts) else None


def estimate_noise_bound(original: Score, updated: Score) -> float | None:
    """Bound the share of accepted texts with a wrong label; None without judgements.

    A text is accepted if a blind judge finds its label. A text that lost its label passes only if
    the judge errs. Assume that the judge errs on new texts at most as often as it disagrees with
    the originals (`m`, which the benchmark's own noise only raises). If a share `r` was rejected
    and `1 - r` passed, at most `r / (1 - m)` of the texts lost their label, of which a share `m`
    passed. Both `r` and `m` are taken at the upper end of their intervals.
    """
    if original.ci_high is None or updated.ci_high is None:
        return None
    mistaken, refused = original.ci_high, updated.ci_high
    passed = (1 - mistaken) * (1 - refused)
    return min(1.0, refused * mistaken / passed) if passed else 1.0


ReportJson = Mapping[str, Any]


def read_findings(report: ReportJson, *, where: Path) -> Findings:
    """Return the findings on each target in a report (`read_report`), without unqueried targets.

    Raises:
        RunCorrupt: the report is not in the format that a run writes.
    """
    try:
        return _target_findings(report)
    except (AttributeError, KeyError, TypeError, ValidationError) as error:
        raise RunCorrupt(
            f"the report is not in the expected format: {type(error).__name__}: {error}",
            where=str(where),
            hint="write it again: coreeval evaluate RUN",
        ) from None


def _target_findings(report: ReportJson) -> Findings:
    references = {each["target"] for each in report["targets"] if each.get("role") == "reference"}
    scores = {each["target"]: _target_scores(each) for each in report["arms"]["targets"]}
    plugins = {each.name: each for each in list_target_detectors(report) if each.plugin}
    found = {name: list(each.find(report)) for name, each in {**GATED, **plugins}.items()}
    named = (each.target for findings in found.values() for each in findings)
    return Findings(
        ranking=report["arms"]["ranking"],
        comparability=report.get("comparability"),
        targets=tuple(
            TargetFindings(
                target=target,
                original=scores.get(target, (NO_SCORE, NO_SCORE))[0],
                updated=scores.get(target, (NO_SCORE, NO_SCORE))[1],
                **_target_verdicts(found, target),
            )
            for target in dict.fromkeys((*scores, *named))
            if target not in references
        ),
    )


def _target_verdicts(found: Mapping[str, Sequence[Finding]], target: str) -> dict[str, Any]:
    """Return a target's verdicts as fields of `TargetFindings`, keyed by gate."""
    fields: dict[str, Any] = {"others": {}}
    for name, findings in found.items():
        for each in findings:
            if each.target != target:
                continue
            if name not in TargetFindings.model_fields:
                fields["others"].setdefault(name, {})[each.part] = each.verdict
            elif each.part:
                fields.setdefault(name, {})[each.part] = each.verdict
            else:
                fields[name] = each.verdict
            if each.caveat:
                fields[f"{name}_caveat"] = each.caveat
    return fields


def _target_scores(found: ReportJson) -> tuple[Score, Score]:
    """Return a target's macro-F1 on each of the two arms, over the samples in both."""
    pair = find_ranked_pair(found)
    if pair is None:
        return NO_SCORE, NO_SCORE
    one, other = (pair[side]["macro_f1"] for side in ("first", "second"))
    return Score.model_validate(one), Score.model_validate(other)


def find_ranked_pair(found: ReportJson) -> ReportJson | None:
    """Return a target's comparison of the two ranked arms in a report; None if there is none."""
    pairs = found["all_samples"]["comparisons"]
    ranked = ((each["first"]["arm"], each["second"]["arm"]) == RANKED_ARMS for each in pairs)
    return next((each for each, is_ranked in zip(pairs, ranked, strict=True) if is_ranked), None)


def read_arm_scores(report: ReportJson, key: str = "macro_f1") -> dict[str, dict[str, Score]]:
    """Return the score of each target of a report on each arm, over all samples of the arm."""
    return {
        str(target["target"]): {
            arm["arm"]: Score.model_validate(arm[key]) for arm in target["all_samples"]["arms"]
        }
        for target in report["arms"]["targets"]
    }
