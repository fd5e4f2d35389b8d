"""Texts as vectors: a small model on this machine, or any provider that LangChain knows."""

from coreeval.tools.embeddings.cached import CachedEmbeddings
from coreeval.tools.embeddings.embeds import Embeds, Vectors
from coreeval.tools.embeddings.opening import MINILM, open_embeddings

__all__ = ["MINILM", "CachedEmbeddings", "Embeds", "Vectors", "open_embeddings"]
