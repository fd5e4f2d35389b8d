"""Compares the arms of a run by what its store has: texts, evidence and answers.

A run's report compares all accepted samples; a release, those that it contains.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from coreeval.errors import ConfigError
from coreeval.evaluation.embedded_targets import has_no_memory
from coreeval.runs.arms import accepted_fields, iter_used_evidence, original_fields
from coreeval.schema import Evidence, Task
from coreeval.tasks import adapt_task, kind_of
from coreeval.tools.draws import draw_lowest
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import TargetAnswer

if TYPE_CHECKING:
    from coreeval.evaluation.comparability.measure import PairedAccuracy, SampleEvidence, TextPair
    from coreeval.evaluation.comparability.verdict import Comparability
    from coreeval.evaluation.scores import ArmTable
    from coreeval.tools.embeddings import Embedder

EMBEDDER: Final = "minilm"
"""The model on this machine that measures whether texts have the same topic."""
DEPTHS: Final = ("headline", "description", "article")
"""How much of an article was read, from least to most."""


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """A run whose arms are compared."""

    store: RunStore
    task: Task
    targets: Mapping[str, str]
    """The role of each target."""
    seed: int
    withheld: Collection[str] = frozenset()
    """The samples whose new texts do not count, because they are not published."""

    def list_accepted(self) -> list[str]:
        """Return the ids of the samples in the updated arm, in the benchmark's order."""
        ended = self.store.labels()
        return [key for key, _, end in ended if end == "accepted" and key not in self.withheld]

    def find_clusters(self) -> dict[str, str]:
        """Return the cluster of each sample."""
        from coreeval.evaluation.clusters import find_clusters

        return find_clusters(self.store.clusters(), self.task.shown_fields)

    def iter_answers(
        self, targets: Iterable[str], arms: Sequence[str]
    ) -> Iterator[tuple[str, Iterator[TargetAnswer]]]:
        """Yield each target with its answers about original texts, and new ones that count."""
        for target in targets:
            said = self.store.answers(target, arms)
            yield (
                target,
                (each for each in said if each[0] == "original" or each[2] not in self.withheld),
            )


def list_label_names(store: RunStore, task: Task) -> list[str]:
    """Return the names of the labels that a run's samples can have."""
    return kind_of(task).used_labels(task, (fields for _, _, fields in store.clusters()))


def compare_arms(run: ComparedRun) -> "ArmTable":
    """Score the stored answers and compare arms on their common samples."""
    from coreeval.evaluation import arms  # needs numpy, only at the end of a run
    from coreeval.evaluation.scores import ARMS

    gold: dict[str, str] = {}
    unrecoverable: set[str] = set()
    for sample_id, label, outcome in run.store.labels():
        gold[sample_id] = label
        if outcome == "label_unrecoverable":
            unrecoverable.add(sample_id)
    return arms.compare_arms(
        run.iter_answers(run.targets, ARMS),
        gold=gold,
        labels=list_label_names(run.store, run.task),
        unrecoverable=unrecoverable,
        clusters=run.find_clusters(),
        kind=run.task.kind,
        seed=run.seed,
    )


def compare_with_originals(run: ComparedRun) -> "Comparability | None":
    """Compare the updated arm of a run with its original arm; None if it has no sample."""
    accepted = run.list_accepted()
    if not accepted:
        return None
    from coreeval.evaluation.comparability import measure  # needs numpy, only at the end of a run

    clusters = run.find_clusters()
    embed, absent = _open_embedder()
    references = list_references(run.targets)
    accuracy = _average_references(run, references, clusters)
    if references and accuracy is None:
        absent["difficulty"] = measure.NO_ANSWERS
    pairs = measure.ArmPairs(
        texts=list(_iter_text_pairs(run, accepted, clusters)),
        evidence=list(_iter_evidence(run, accepted, clusters)),
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


def list_references(targets: Mapping[str, str]) -> list[str]:
    """Return the targets that measure how hard a text is, because they have no memory of it.

    Those with `role: reference`; if there are none, the embedded ones that have seen nothing.
    """
    named = [name for name, role in targets.items() if role == "reference"]
    return named or [name for name in targets if has_no_memory(name)]


def _average_references(
    run: ComparedRun, references: Collection[str], clusters: Mapping[str, str]
) -> "PairedAccuracy | None":
    from coreeval.evaluation.answer_codes import code_answers
    from coreeval.evaluation.comparability.measure import average_accuracy
    from coreeval.evaluation.grading import scoring_of
    from coreeval.evaluation.scores import RANKED_ARMS

    coded = code_answers(
        run.iter_answers(references, RANKED_ARMS),
        gold={sample_id: label for sample_id, label, _ in run.store.labels()},
        labels=list_label_names(run.store, run.task),
        clusters=clusters,
        graded=scoring_of(run.task).grade is not None,
    )
    return average_accuracy(coded)


def _iter_text_pairs(
    run: ComparedRun, accepted: Sequence[str], clusters: Mapping[str, str]
) -> "Iterator[TextPair]":
    """Yield both texts of each accepted sample; of very many samples, a fixed subset."""
    from coreeval.evaluation.comparability.measure import TextPair
    from coreeval.evaluation.covariates import MOST

    drawn = set(draw_lowest(accepted, MOST, id_of=str, seed=run.seed))
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


def _iter_evidence(
    run: ComparedRun, accepted: Collection[str], clusters: Mapping[str, str]
) -> "Iterator[SampleEvidence]":
    """Yield the evidence of each accepted sample."""
    from coreeval.evaluation.comparability.measure import SampleEvidence

    used: dict[str, dict[str, str]] = {}
    for sample_id, item in iter_used_evidence(run.store):
        own, event = used.setdefault(sample_id, {}), item.cluster or item.id
        own[event] = deepest((own.get(event, DEPTHS[0]), evidence_depth(item)))
    published = set(accepted)
    for sample_id, _, _, rung, _ in run.store.figures.fates():
        if sample_id in published:
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
