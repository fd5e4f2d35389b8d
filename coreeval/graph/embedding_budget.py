"""Embeddings of a provider have no known price: a budget refuses them, and an estimate says so."""

from collections.abc import Iterator

from coreeval.config import AnyConfig
from coreeval.errors import ConfigError
from coreeval.tools.endpoints import remote_embeddings


def refuse_uncounted_embeddings(config: AnyConfig) -> None:
    """Refuse a provider's embeddings under a budget, because their cost is not counted.

    Raises:
        ConfigError: the config names such embeddings and a budget, without `allow_unpriced`.
    """
    name = remote_embeddings(config)
    if name and config.run.budget_usd is not None and not config.run.allow_unpriced:
        raise ConfigError(
            f"the budget cannot be enforced: the cost of embeddings by {name} is not counted",
            where="run.budget_usd",
            hint="use embeddings on this machine (minilm), or use --allow-unpriced "
            "(run.allow_unpriced: true), which does not count the cost",
        )


def list_embedding_notes(config: AnyConfig, texts: str) -> Iterator[str]:
    """Yield remarks on a provider's embeddings for an estimate.

    Args:
        config: The config.
        texts: Which texts are sent, and how many, as the end of a sentence.
    """
    if name := remote_embeddings(config):
        yield (f"these figures and the budget exclude embeddings by {name}, which receives {texts}")
