"""Collects from a run's store what its arms are compared by: texts, evidence and answers."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from coreeval.errors import ConfigError
from coreeval.evaluation.embedded_targets import has_no_memory
from coreeval.graph.run_context import RunContext
from coreeval.graph.train_split import draw_lowest
from coreeval.runs.arms import accepted_fields, iter_used_evidence, original_fields
from coreeval.schema import Evidence, Task
from coreeval.tasks import adapt_task

if TYPE_CHECKING:
    from coreeval.evaluation.comparability.measure import PairedAccuracy, SampleEvidence, TextPair
    from coreeval.evaluation.comparability.verdict import Comparability
    from coreeval.tools.embeddings import Embedder

EMBEDDER: Final = "minilm"
"""The model on this machine that measures whether texts have the same topic."""
DEPTHS: Final = ("headline", "description", "article")
"""How much of an article was read, from least to most."""


def compare_with_originals(run: RunContext) -> "Comparability | None":
    """Compare the updated arm of a run with its original arm; None if no sample was accepted."""
    if not run.store.counts().get("accepted"):
        return None
    from coreeval.evaluation.clusters import find_clusters
    from coreeval.evaluation.comparability import measure  # needs numpy, only at the end of a run

    clusters = find_clusters(run.store.clusters(), run.task.shown_fields)
    embed, absent = _open_embedder()
    references = list_references(run)
    accuracy = _average_references(run, references, clusters)
    if references and accuracy is None:
        absent["difficulty"] = measure.NO_ANSWERS
    pairs = measure.ArmPairs(
        texts=list(_iter_text_pairs(run, clusters)),
        evidence=list(_iter_evidence(run, clusters)),
        accuracy=accuracy,
        absent=absent,
        language=run.task.language,
    )
    return measure.measure_comparability(pairs, embed)


def _open_embedder() -> "tuple[Embedder | None, dict[str, str]]":
    """Return the model on this machine, or why there is none; nothing is downloaded."""
    from coreeval.tools.embeddings import open_embeddings  # numpy

    try:
        return open_embeddings(EMBEDDER), {}
    except ConfigError as error:
        return None, {"topic": error.message}


def list_references(run: RunContext) -> list[str]:
    """Return the targets that measure how hard a text is, because they have no memory of it.

    Those with `role: reference`; if there are none, the embedded ones that have seen nothing.
    """
    targets = run.config.models.targets
    named = [each.model for each in targets if each.role == "reference"]
    return named or [each.model for each in targets if has_no_memory(each.model)]


def _average_references(
    run: RunContext, references: Collection[str], clusters: Mapping[str, str]
) -> "PairedAccuracy | None":
    from coreeval.evaluation.answer_codes import code_answers
    from coreeval.evaluation.comparability.measure import average_accuracy
    from coreeval.evaluation.grading import scoring_of
    from coreeval.evaluation.scores import RANKED_ARMS

    coded = code_answers(
        ((target, run.store.answers(target, RANKED_ARMS)) for target in references),
        gold={sample_id: label for sample_id, label, _ in run.store.labels()},
        labels=run.list_label_names(),
        clusters=clusters,
        graded=scoring_of(run.task).grade is not None,
    )
    return average_accuracy(coded)


def _iter_text_pairs(run: RunContext, clusters: Mapping[str, str]) -> "Iterator[TextPair]":
    """Yield both texts of each accepted sample; of very many samples, a fixed subset."""
    from coreeval.evaluation.comparability.measure import TextPair
    from coreeval.evaluation.covariates import MOST

    accepted = (key for key, _, outcome in run.store.labels() if outcome == "accepted")
    drawn = set(draw_lowest(accepted, MOST, id_of=str, seed=run.config.run.seed))
    for ended in run.store.sample_results(("accepted",)):
        before, after = original_fields(ended), accepted_fields(ended)
        if before and after and ended.sample.id in drawn:
            yield TextPair(
                cut_hidden_fields(run.task, before),
                cut_hidden_fields(run.task, after),
                clusters[ended.sample.id],
            )


def cut_hidden_fields(task: Task, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that targets are shown: without accepted answers or a reference summary."""
    hidden = adapt_task(task, fields).hidden_fields
    return {name: text for name, text in fields.items() if name not in hidden}


def _iter_evidence(run: RunContext, clusters: Mapping[str, str]) -> "Iterator[SampleEvidence]":
    """Yield the evidence of each accepted sample."""
    from coreeval.evaluation.comparability.measure import SampleEvidence

    used: dict[str, dict[str, str]] = {}
    for sample_id, item in iter_used_evidence(run.store):
        own, event = used.setdefault(sample_id, {}), item.cluster or item.id
        own[event] = deepest((own.get(event, DEPTHS[0]), evidence_depth(item)))
    for sample_id, _, outcome, rung, _ in run.store.figures.fates():
        if outcome == "accepted":
            own = used.get(sample_id, {})
            yield SampleEvidence(
                rung=rung,
                events=frozenset(own),
                depth=deepest(own.values()),
                cluster=clusters[sample_id],
            )


def deepest(depths: Iterable[str]) -> str:
    """Return the deepest of several texts that were read; a headline if there is none."""
    return max(depths, key=DEPTHS.index, default=DEPTHS[0])


def evidence_depth(item: Evidence) -> str:
    """Return how much of an article was read; by default, its headline."""
    return item.depth
