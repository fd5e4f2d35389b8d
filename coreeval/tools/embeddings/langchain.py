"""Embeddings of any provider that LangChain knows, each through a package of its own."""

from collections.abc import Sequence

import numpy as np

from coreeval.errors import ConfigError, ModelUnusable
from coreeval.tools.embeddings.embeds import Vectors

BATCH = 256
"""Texts handed to the provider's package at once; it may cut them smaller."""
_INSTALL = "pip install 'coreeval[providers]'"


class LangChainEmbeddings:
    """Embeddings as `init_embeddings` opens them.

    Args:
        name: `provider:name`.

    Raises:
        ConfigError: LangChain or the provider's package is missing, or it knows no such provider.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            from langchain.embeddings import init_embeddings
        except ImportError:
            message = f"{name!r} needs LangChain"
            raise ConfigError(message, where="embeddings", hint=_INSTALL) from None
        try:
            self._model = init_embeddings(name)
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            raise ConfigError(
                f"{name} cannot be opened: {_first_line(error)}",
                where="embeddings",
                hint=f"{_INSTALL} and the provider's package; its key comes from the environment",
            ) from None

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions).

        Raises:
            ModelUnusable: the provider did not answer, or not with one vector a text.
        """
        found: list[list[float]] = []
        try:
            for start in range(0, len(texts), BATCH):
                found += self._model.embed_documents(list(texts[start : start + BATCH]))
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            raise ModelUnusable(f"{self.name} gave no embeddings: {_first_line(error)}") from None
        if len(found) != len(texts) or len({len(vector) for vector in found}) > 1:
            raise ModelUnusable(
                f"{self.name} gave {len(found)} vectors for {len(texts)} texts, or uneven ones"
            )
        return np.array(found, dtype=np.float32).reshape(len(texts), -1)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
