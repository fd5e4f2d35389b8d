"""A release's manifest with values that are known to the letter."""

from typing import Any

from coreeval.evaluation.comparability.verdict import Comparability, Measure
from coreeval.evaluation.scores import Score, TargetRanking, score_proportion
from coreeval.releases.gates.check import GateFinding, check_gates
from coreeval.releases.gates.limits import GatesFile
from coreeval.releases.gates.values import GateSubject
from coreeval.releases.release_manifest import ChangeCounts, Changelog, Licence, ReleaseManifest
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import Cost, Fingerprints, KnowledgeUsed
from coreeval.runs.quality import Findings, LabelNoise, LabelShare, Overlap, Quality, TargetFindings
from coreeval.schema import Coverage, Window
from coreeval.tools.cutoffs import TargetFreshness
from tests.releases.kit import NOW

COVERAGE = Coverage(articles=2, days=2)
QUALITY = Quality(
    acceptance=score_proportion(60, 100),
    by_label=(
        LabelShare(
            label="joy",
            total=50,
            accepted=score_proportion(45, 50),
            original_share=0.5,
            updated_share=0.75,
        ),
        LabelShare(
            label="anger",
            total=50,
            accepted=score_proportion(15, 50),
            original_share=0.5,
            updated_share=0.25,
        ),
        LabelShare(
            label="none",
            total=0,
            accepted=score_proportion(0, 0),
            original_share=0.0,
            updated_share=0.0,
        ),
    ),
    balance_shift=0.25,
    label_noise=LabelNoise(bound=0.04),
    evidence=score_proportion(80, 100),
    rungs=(),
    overlap=Overlap(size=5, share=0.125, grams=800, texts=60),
)
TARGETS = (
    TargetFindings(
        target="a:1",
        original=score_proportion(8, 10),
        updated=score_proportion(7, 10),
        pcr="comparable",
        drop="not_shown",
        numleak={"cpi": "fluent"},
    ),
    TargetFindings(target="b:2", pcr="contaminated", numleak={"cpi": "memorized", "co2": "fluent"}),
)
TAU = Score(estimate=0.33, ci_low=-0.33, ci_high=0.67, n=3)
RHO = Score(estimate=0.5, ci_low=-0.5, ci_high=0.8, n=3)
COMPARABILITY = Comparability(
    verdict="not_comparable",
    sentences=("They are shorter.",),
    samples=60,
    compared=60,
    measures=(
        Measure(
            name="length_ratio",
            score=Score(estimate=0.45, ci_low=0.4, ci_high=0.5, n=60),
            low=0.8,
            high=1.25,
            word="differs",
            decides=True,
        ),
        Measure(
            name="structure",
            score=score_proportion(24, 60),
            low=None,
            high=0.3,
            word="cannot_tell",
            decides=True,
        ),
    ),
    most_reused=4,
)
FINDINGS = Findings(
    ranking=TargetRanking(targets=("a:1", "b:2", "c:3"), kendall=TAU, spearman=RHO),
    targets=TARGETS,
    comparability=COMPARABILITY,
)


def manifest(**changes: Any) -> ReleaseManifest:  # noqa: ANN401 - any field of a manifest
    """Return a manifest with some fields changed."""
    others = dict.fromkeys(("config", "task", "prompts", "data", "knowledge", "code", "graph"), "f")
    said: dict[str, Any] = {
        "name": "weekly",
        "version": "1",
        "created_at": NOW.isoformat(),
        "run": "weekly/1",
        "now": NOW.isoformat(),
        "task": "emotion",
        "split": "test",
        "window": Window(start=NOW, end=NOW),
        "models": {"default": {"model": "offline"}},
        "prompts": {},
        "fingerprints": Fingerprints(**others),
        "source": ConfigSource(path="c.yaml", sha256="f"),
        "knowledge": KnowledgeUsed(
            backend="local", path=None, min_precision="crawl", coverage=COVERAGE, cost_usd=1.0
        ),
        "counts": {"total": 100, "accepted": 60},
        "kept": 10,
        "still_stale": 12,
        "cost": Cost(billed_usd=3.0, unknown_usd=1.0),
        "after_cutoff": (
            TargetFreshness(target="a:1", after=54, before=3, unknown=3),
            TargetFreshness(target="b:2", after=60),
        ),
        "quality": QUALITY,
        "findings": FINDINGS,
        "arms": {},
        "licence": Licence(name="l", source="s"),
        "changelog": Changelog(samples=ChangeCounts(), facts=ChangeCounts()),
        "files": {},
    }
    return ReleaseManifest.model_validate(said | changes)


def found(gate: str, said: dict[str, Any], **changes: Any) -> GateFinding:  # noqa: ANN401
    """Return what one gate finds in a manifest."""
    of = manifest(**changes)
    gates = GatesFile.model_validate({"gates": {gate: said}}).gates
    [finding] = check_gates(GateSubject(manifest=of, findings=of.findings), gates)
    return finding
