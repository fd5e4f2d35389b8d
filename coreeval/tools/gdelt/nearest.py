"""Finds news similar to a text in meaning, regardless of its words.

A search by words finds "fires" for "fired", but not a server outage for a game that does not
download. So the headlines of a store are embedded too, each once: the embedder's cache stores the
vectors.
"""

from collections.abc import Callable

import numpy as np

from coreeval.schema import Evidence, Window
from coreeval.tools.embeddings import Embedder, Vectors, normalise_vectors
from coreeval.tools.gdelt.local import LocalKnowledge

MOST_EMBEDDED = 20_000
"""The most headlines of a window that are embedded: the stories on most sites, which readers know
best, then the newest (own choice: minutes for MiniLM, 30 MB of vectors)."""
_AT_ONCE = 256


class NearestNews:
    """The news of a window by meaning.

    Args:
        news: The store.
        window: The window.
        embeds: The embedder; give it a cache, or each process embeds all headlines.
    """

    def __init__(self, news: LocalKnowledge, window: Window, embeds: Embedder) -> None:
        self._news = news
        self._embeds = embeds
        self._articles = news.list_leading(window, MOST_EMBEDDED)
        self._vectors: list[Vectors] = []

    def embed(self, watch: Callable[[int, int], bool]) -> bool:
        """Embed the headlines that are not embedded yet; return whether all of them are.

        Args:
            watch: Called after each few hundred headlines with the number of them and the number of
                all; it returns whether to continue.

        Raises:
            ModelUnusable: the embedder did not return vectors.
        """
        done, total = sum(map(len, self._vectors)), len(self._articles)
        while done < total:
            if not watch(done, total):
                return False
            articles = self._articles[done : done + _AT_ONCE].tolist()
            titles = [found.title for found in self._news.read(articles)]
            self._vectors.append(normalise_vectors(self._embeds(titles)))
            done += len(articles)
        watch(done, total)
        return True

    def find(self, text: str, most: int) -> list[tuple[Evidence, float]]:
        """Return up to `most` articles and their cosines with a text, nearest first.

        Raises:
            ModelUnusable: the embedder did not return a vector.
        """
        if not self._vectors:
            return []
        near = np.concatenate(self._vectors) @ normalise_vectors(self._embeds([text]))[0]
        best = np.argsort(-near, kind="stable")[:most]
        found = self._news.read(self._articles[best].tolist())
        return [(item, float(near[at])) for item, at in zip(found, best, strict=True)]
