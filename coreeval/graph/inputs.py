"""The inputs of a run besides model answers: its benchmark and its news.

`InputSource` is the interface, which a cassette may replace. `open_news` opens the configured
backends as one source.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from coreeval.agents.events import MOST_REPORTS, MOST_REPORTS_OF_TWEET, Similarity
from coreeval.config import Config
from coreeval.config.plugins import parse_plugin
from coreeval.errors import ConfigError, DatasetError, KnowledgeError
from coreeval.evaluation.benchmarks import counts_note, iter_benchmark, list_splits, list_targets
from coreeval.graph.event_offers import EventOffers
from coreeval.graph.node_context import Retrieve
from coreeval.graph.setup import Setup
from coreeval.languages import ENGLISH, LANGUAGES
from coreeval.runs.manifest import KnowledgeUsed
from coreeval.schema import Retrieval, Sample, Task, Window
from coreeval.tools.endpoints import bigquery_pairs, embedding_pairs, refuse_untrusted
from coreeval.tools.gdelt.local import LocalKnowledge, open_local
from coreeval.tools.gdelt.sources import SourceCache, SourceChain
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.trust import TrustRecord
from coreeval.tools.workspace import Workspace, user_cache

if TYPE_CHECKING:
    from coreeval.graph.run_context import RunContext
    from coreeval.tools.embeddings import Embedder
    from coreeval.tools.gdelt.bigquery.request import BillRecord
    from coreeval.tools.gdelt.nearest import NearestNews


class BackendObserver(Protocol):
    """An observer of the remote backends' activity."""

    def on_note(self, note: str) -> None:
        """Receive a note on an imminent action of a backend, such as spending money."""
        ...

    def on_fetch(self, backend: str, answer: Retrieval) -> None:
        """Receive the answer of a backend."""
        ...

    def open_bill(self, backend: str) -> "BillRecord | None":
        """Return the record of what a backend bills; None if there is no run."""
        ...


class _NullBackendObserver:
    def on_note(self, note: str) -> None: ...
    def on_fetch(self, backend: str, answer: Retrieval) -> None: ...
    def open_bill(self, backend: str) -> None: ...


ENGLISH_BACKENDS: Final = ("bigquery", "doc")
"""Backends that search only English news."""
NULL_BACKEND_OBSERVER: BackendObserver = _NullBackendObserver()


class NewsSources(SourceChain):
    """All backends of a run in order, with the local one if it is among them."""

    def __init__(self, sources: list[KnowledgeSource], local: LocalKnowledge | None) -> None:
        super().__init__(sources)
        self.local = local

    @property
    def fingerprint(self) -> str:
        """Return the names of the backends and the hash of the local news."""
        return f"{self.name}:{self.local.stats().fingerprint}" if self.local else self.name


def open_news(
    setup: Setup, workspace: Workspace, observer: BackendObserver = NULL_BACKEND_OBSERVER
) -> NewsSources:
    """Open the backends; index local news for searching if that has not been done.

    Raises:
        ConfigError: a remote backend would search for news that is not in English.
        KnowledgeError: news files are missing, or no source has news of the window.
    """
    _refuse_english_backends(setup)
    sources: list[KnowledgeSource] = []
    local: LocalKnowledge | None = None
    with ExitStack() as opened:
        for backend in setup.config.knowledge.backends:
            if backend == "local":
                local = _open_local(setup, workspace)
                sources.append(local)
                if local.unsearchable:
                    observer.on_note(local.unsearchable)
            else:
                sources.append(_open_other(setup, backend, workspace, observer))
            opened.callback(sources[-1].close)
        if local and len(sources) == 1:
            local.require(setup.window)
        opened.pop_all()
    return NewsSources(sources, local)


def _refuse_english_backends(setup: Setup) -> None:
    """Raise an error if a backend that searches only English news is used for another language."""
    language = setup.task.language
    remote = [name for name in setup.config.knowledge.backends if name in ENGLISH_BACKENDS]
    if remote and language != ENGLISH:
        raise ConfigError(
            f"{' and '.join(remote)} search only English news, but the benchmark is in "
            f"{LANGUAGES[language]}",
            where="knowledge.backends",
            hint=f"backends: [local], with a store synced with --languages {language} and a feed "
            "in that language, such as gal",
        )


def _open_local(setup: Setup, workspace: Workspace) -> LocalKnowledge:
    chosen = setup.config.knowledge
    path = Path(chosen.path) if chosen.path else workspace.news
    if chosen.path is None and not path.exists():
        raise KnowledgeError(
            "there is no news yet",
            where=str(path),
            hint="run in the folder of the config: coreeval gdelt sync --days 3 --feeds gal "
            "(about 90 MB); or set knowledge.path",
        )
    return open_local(
        path,
        workspace.gdelt,
        min_precision=chosen.min_precision,
        language=setup.task.language,
    )


def _open_other(
    setup: Setup, backend: str, workspace: Workspace, observer: BackendObserver
) -> KnowledgeSource:
    if plugin := parse_plugin(backend):
        from coreeval.tools.gdelt.plugin_source import open_plugin_source  # needed by few configs

        return open_plugin_source(
            plugin,
            setup.config,
            setup.task.language,
            workspace.cache,
            heard=lambda answer: observer.on_fetch(backend, answer),
        )
    source = (
        _open_bigquery(setup, workspace, observer) if backend == "bigquery" else _open_doc(setup)
    )
    cache = JsonCache(workspace.cache / backend)
    billed = {"bytes_billed": 0, "cost_usd": 0.0}  # only BigQuery bills, and records it before
    return SourceCache(
        source,
        cache,
        lambda answer: observer.on_fetch(backend, answer.model_copy(update=billed)),
    )


def _open_bigquery(
    setup: Setup, workspace: Workspace, observer: BackendObserver
) -> KnowledgeSource:
    from coreeval.tools.gdelt.bigquery.bigquery_source import open_bigquery

    record = TrustRecord(workspace)
    refuse_untrusted(bigquery_pairs(setup.config), record.endpoints(), record=record.path)
    chosen = setup.config.knowledge
    return open_bigquery(
        chosen.bigquery,
        min_precision=chosen.min_precision,
        tell=observer.on_note,
        record=observer.open_bill("bigquery"),
    )


def _open_doc(setup: Setup) -> KnowledgeSource:
    from coreeval.tools.gdelt.doc.doc_source import open_doc

    chosen = setup.config.knowledge
    return open_doc(chosen.doc, user_cache(), min_precision=chosen.min_precision)


def describe_news(setup: Setup, news: NewsSources) -> KnowledgeUsed:
    """Return what the manifest records about the news when a run starts."""
    chosen, coverage = setup.config.knowledge, news.coverage(setup.window)
    return KnowledgeUsed(
        backend=news.name,
        path=chosen.path,
        min_precision=chosen.min_precision,
        coverage=coverage,
        gaps=coverage.gaps,
        takedown=len(setup.rules.takedown),
        takedown_sha256=setup.rules.takedown.fingerprint,
        stats=news.local.stats().model_dump(mode="json") if news.local else {},
    )


@contextmanager
def open_embedder(config: Config, workspace: Workspace) -> "Iterator[Embedder | None]":
    """Open the embedder of the news, with the workspace's cache; None if only words rank news.

    Raises:
        ConfigError: the embeddings do not exist, or a package or the weights are missing.
        UntrustedEndpoint: their provider was not approved.
    """
    if config.knowledge.embeddings is None:
        yield None
        return
    from coreeval.tools.embeddings import open_cached_embeddings  # numpy

    record = TrustRecord(workspace)
    refuse_untrusted(embedding_pairs(config, os.environ), record.endpoints(), record=record.path)
    with open_cached_embeddings(config.knowledge.embeddings, workspace) as embeds:
        yield embeds


MOST_TRAIN_EXAMPLES = 20_000
"""The most labelled samples from which the offline label judge learns."""


class InputSource(Protocol):
    """The source of a run's inputs; a recording may replace it."""

    def news(self, run: "RunContext") -> KnowledgeSource:
        """Open the news of a pass."""
        ...

    def retrieve(
        self, run: "RunContext", knowledge: KnowledgeSource, embeds: "Embedder | None"
    ) -> Retrieve:
        """Return the function that offers news to one sample; an `EventOffers` deals it first."""
        ...

    def train(self, run: "RunContext") -> list[Sample]:
        """Return labelled samples for a rule-based label judge."""
        ...

    def targets(self, run: "RunContext") -> Sequence[str]:
        """Return the stance targets of a benchmark with several targets."""
        ...

    def row_count_warning(self, run: "RunContext", rows: int) -> str | None:
        """Return a warning if the number of rows is unexpected for the benchmark."""
        ...


def _open_similarity(embeds: "Embedder | None") -> Similarity | None:
    if embeds is None:
        return None
    from coreeval.tools.similarity import MeaningSimilarity  # numpy

    return MeaningSimilarity(embeds)


def _open_nearest(
    knowledge: KnowledgeSource, window: Window, embeds: "Embedder | None"
) -> "NearestNews | None":
    """Return the search by meaning, which only a store on this machine supports."""
    local = knowledge.local if isinstance(knowledge, NewsSources) else None
    if embeds is None or local is None:
        return None
    from coreeval.tools.gdelt.nearest import NearestNews  # numpy

    return NearestNews(local, window, embeds)


class FileInputs:
    """The benchmark's files, and the news that the config names."""

    def news(self, run: "RunContext") -> KnowledgeSource:
        """Open the backends; see `open_news`."""
        return open_news(run.setup, run.workspace, run)

    def retrieve(
        self, run: "RunContext", knowledge: KnowledgeSource, embeds: "Embedder | None"
    ) -> Retrieve:
        """Return the function that offers the run's events."""
        setup, chosen = run.setup, run.setup.config.knowledge
        return EventOffers(
            knowledge=knowledge,
            window=setup.window,
            store=run.store,
            rules=setup.rules,
            offered=chosen.candidates,
            reuse=chosen.reuse,
            seed=setup.config.run.seed,
            reports=MOST_REPORTS_OF_TWEET if run.task.text_kind == "tweet" else MOST_REPORTS,
            similarity=_open_similarity(embeds),
            nearest=_open_nearest(knowledge, setup.window, embeds),
        )

    def train(self, run: "RunContext") -> list[Sample]:
        """Return the first samples of the train split; see `load_train_examples`."""
        return load_train_examples(run.config, run.task)

    def targets(self, run: "RunContext") -> Sequence[str]:
        """Return the targets of the benchmark's folders."""
        return list_targets(run.config.dataset)

    def row_count_warning(self, run: "RunContext", rows: int) -> str | None:
        """Return a warning if there are too few or too many rows and the files still exist."""
        try:
            return counts_note(run.config.dataset, rows)
        except DatasetError:
            return None


def load_train_examples(config: Config, task: Task) -> list[Sample]:
    """Return the train split's first samples if the label judge is rule-based and has a split."""
    dataset = config.dataset
    if "label_judge" not in config.models.rule_based_roles or dataset.train_split == dataset.split:
        return []
    if dataset.train_split not in list_splits(dataset):
        return []
    rows = iter_benchmark(dataset, task, split=dataset.train_split)
    return list(islice((row for row in rows if isinstance(row, Sample)), MOST_TRAIN_EXAMPLES))


FILE_INPUTS: InputSource = FileInputs()
