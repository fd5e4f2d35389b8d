"""What a run takes from outside beside its samples and its models' answers: benchmark and news."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from coreeval.config import Config
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import counts_note, iter_benchmark, splits_of, targets_of
from coreeval.graph.news import open_news
from coreeval.graph.offering import Offer, offer_of
from coreeval.schema import Sample, Task
from coreeval.tools.knowledge import KnowledgeSource

if TYPE_CHECKING:
    from coreeval.graph.job import Job

TRAIN_MOST = 20_000
"""Most labelled samples that the offline label judge learns from."""


class Inputs(Protocol):
    """Where a run looks; a recording may stand in its place."""

    def news(self, job: "Job") -> KnowledgeSource:
        """Open the news of a pass."""
        ...

    def offer(self, job: "Job", knowledge: KnowledgeSource) -> Offer:
        """Return what looks for news for one sample."""
        ...

    def train(self, job: "Job") -> list[Sample]:
        """Return labelled samples for a label judge that plays by rules."""
        ...

    def targets(self, job: "Job") -> Sequence[str]:
        """Return the stance targets of a benchmark that has several."""
        ...

    def oddity(self, job: "Job", rows: int) -> str | None:
        """Return what is odd about a benchmark of so many rows."""
        ...


class Live:
    """The benchmark's files, and the news that the config names."""

    def news(self, job: "Job") -> KnowledgeSource:
        """Open the backends; see `open_news`."""
        return open_news(job.setup, job.workspace, job)

    def offer(self, job: "Job", knowledge: KnowledgeSource) -> Offer:
        """Return what asks them."""
        setup = job.setup
        candidates = setup.config.knowledge.candidates
        return offer_of(knowledge, setup.window, candidates=candidates, rules=setup.rules)

    def train(self, job: "Job") -> list[Sample]:
        """Return the first of the train split; see `learnt_from`."""
        return learnt_from(job.config, job.task)

    def targets(self, job: "Job") -> Sequence[str]:
        """Return the targets of the benchmark's folders."""
        return targets_of(job.config.dataset)

    def oddity(self, job: "Job", rows: int) -> str | None:
        """Return whether rows are missing or too many, as far as the files are still there."""
        try:
            return counts_note(job.config.dataset, rows)
        except DatasetError:
            return None


def learnt_from(config: Config, task: Task) -> list[Sample]:
    """Return the train split's first samples, where the label judge plays by rules and has one."""
    dataset = config.dataset
    if "label_judge" not in config.models.rule_based_roles or dataset.train_split == dataset.split:
        return []
    if dataset.train_split not in splits_of(dataset):
        return []
    rows = iter_benchmark(dataset, task, split=dataset.train_split)
    return list(islice((row for row in rows if isinstance(row, Sample)), TRAIN_MOST))


LIVE: Inputs = Live()
