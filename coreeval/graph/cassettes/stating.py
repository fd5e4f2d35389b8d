"""Results that a replay takes as they are, because nothing recorded could bring them about."""

from pathlib import Path

from coreeval.graph.threads import BEFORE_FAILED
from coreeval.releases.cassettes.lines import Quoted, Stated
from coreeval.releases.portable import portable
from coreeval.schema import Result
from coreeval.tools.stores.run_records import EvidenceExcerpt, ReleaseSample, SampleResult
from coreeval.tools.stores.run_store import RunStore


def stated_of(store: RunStore, root: Path) -> dict[str, Stated]:
    """Return by sample the results of a pass that were kept from a release, or broken off.

    In their reasons paths below the run's directory `root`, or the user's, are cut.

    Broken off are samples that failed, and those that a step failed of when they had an outcome:
    how far their other branch came hung on the moment.
    """
    broken = {sample_id for sample_id, _, _ in store.step_errors()}
    return {
        ended.sample.id: _stated(store, ended.result, root)
        for ended in store.sample_results()
        if ended.result.kept_from is not None
        or ended.result.outcome == "failed"
        or (ended.result.outcome in BEFORE_FAILED and ended.sample.id in broken)
    }


def _stated(store: RunStore, result: Result, root: Path) -> Stated:
    facts = tuple(store.facts(result.sample_id))
    kept = result.kept_from is not None
    told = store.excerpts(fact.evidence_id for fact in facts) if kept else {}
    reason = portable({"reason": result.reason}, root)
    return Stated(
        result=result.model_copy(update={"facts": facts, **reason}),
        excerpts=tuple(
            Quoted(evidence=each.evidence, snippet_sha256=each.snippet_sha256)
            for each in told.values()
        ),
    )


def as_kept(ended: SampleResult, stated: Stated) -> ReleaseSample:
    """Return a sample with its stated result, as a run store takes it in."""
    return ReleaseSample(
        sample=ended.sample,
        result=stated.result,
        excerpts=tuple(
            EvidenceExcerpt(evidence=each.evidence, snippet_sha256=each.snippet_sha256)
            for each in stated.excerpts
        ),
    )
