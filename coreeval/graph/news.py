"""The news of a run: the backends that its config names, as one source."""

from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from coreeval.errors import KnowledgeError
from coreeval.graph.setup import Setup
from coreeval.releases.manifest import KnowledgeUsed
from coreeval.schema import Retrieval
from coreeval.tools.endpoints import bigquery_pairs, refuse_untrusted
from coreeval.tools.gdelt.local import LocalKnowledge, open_local
from coreeval.tools.gdelt.sources import SourceCache, SourceChain
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.trust import TrustRecord
from coreeval.tools.workspace import Workspace, user_cache


class Listener(Protocol):
    """Whoever wants to know what remote backends do."""

    def told(self, note: str) -> None:
        """Hear what a backend is about to do, such as to spend money."""
        ...

    def heard(self, backend: str, answer: Retrieval) -> None:
        """Hear what a backend answered."""
        ...


class _Deaf:
    def told(self, note: str) -> None: ...
    def heard(self, backend: str, answer: Retrieval) -> None: ...


DEAF: Listener = _Deaf()


class News(SourceChain):
    """All backends of a run in their order, and the local one where it is among them."""

    def __init__(self, sources: list[KnowledgeSource], local: LocalKnowledge | None) -> None:
        super().__init__(sources)
        self.local = local

    @property
    def fingerprint(self) -> str:
        """The names of the backends, and the hash of what is kept here."""
        return f"{self.name}:{self.local.stats().fingerprint}" if self.local else self.name


def open_news(setup: Setup, workspace: Workspace, listener: Listener = DEAF) -> News:
    """Open the backends; local news are made ready for searching if they are not yet.

    Raises:
        KnowledgeError: news files are missing, or nobody has news of the window.
    """
    sources: list[KnowledgeSource] = []
    local: LocalKnowledge | None = None
    with ExitStack() as opened:
        for backend in setup.config.knowledge.backends:
            if backend == "local":
                local = _open_local(setup, workspace)
                sources.append(local)
            else:
                sources.append(_open_remote(setup, backend, workspace, listener))
            opened.callback(sources[-1].close)
        if local and len(sources) == 1:
            local.require(setup.window)
        opened.pop_all()
    return News(sources, local)


def _open_local(setup: Setup, workspace: Workspace) -> LocalKnowledge:
    chosen = setup.config.knowledge
    path = Path(chosen.path) if chosen.path else workspace.news
    if chosen.path is None and not path.exists():
        raise KnowledgeError(
            "there is no news yet",
            where=str(path),
            hint="bring it in: coreeval gdelt sync --days 30; or set knowledge.path",
        )
    return open_local(path, workspace.gdelt, min_precision=chosen.min_precision)


def _open_remote(
    setup: Setup, backend: str, workspace: Workspace, listener: Listener
) -> KnowledgeSource:
    source = _bigquery(setup, workspace, listener) if backend == "bigquery" else _doc(setup)
    cache = JsonCache(workspace.cache / backend)
    return SourceCache(source, cache, lambda answer: listener.heard(backend, answer))


def _bigquery(setup: Setup, workspace: Workspace, listener: Listener) -> KnowledgeSource:
    from coreeval.tools.gdelt.bigquery.bigquery_source import open_bigquery

    record = TrustRecord(workspace)
    refuse_untrusted(bigquery_pairs(setup.config), record.endpoints(), record=record.path)
    chosen = setup.config.knowledge
    return open_bigquery(chosen.bigquery, min_precision=chosen.min_precision, tell=listener.told)


def _doc(setup: Setup) -> KnowledgeSource:
    from coreeval.tools.gdelt.doc.doc_source import open_doc

    chosen = setup.config.knowledge
    return open_doc(chosen.doc, user_cache(), min_precision=chosen.min_precision)


def news_used(setup: Setup, news: News) -> KnowledgeUsed:
    """Return what the manifest says about the news when a run starts."""
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
