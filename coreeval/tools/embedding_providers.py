"""Embeddings from the providers of LangChain, with limits of time and of the answer's size.

Redirects and long answers are refused if the provider's package accepts an HTTP client or its
settings (openai, azure_openai, ollama). All packages are called in a thread that is abandoned after
a timeout, since some have none.
"""

import hashlib
import json
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coreeval.config.user_files import read_bytes
from coreeval.errors import ConfigError, ModelUnusable
from coreeval.tools.endpoints import embedding_address
from coreeval.tools.env_file import hide_secrets
from coreeval.tools.extras import require_extra
from coreeval.tools.http import MOST_BODY_BYTES, BodyTooLong, BoundedClient

if TYPE_CHECKING:
    import httpx

BATCH: Final = 64
"""The number of texts passed to the provider's package at once; their vectors of 4,096 numbers stay
below the limit of an answer's size."""
MOST_BATCH_S: Final = 120.0
"""The most seconds for the vectors of one batch (own choice: two seconds a text)."""
_INSTALL = "pip install 'coreeval[providers]'"
_OWN_CLIENT = ("openai", "azure_openai")
"""The providers whose packages take an HTTP client."""


class LangChainEmbeddings:
    """Embeddings opened with LangChain's `init_embeddings`.

    Args:
        name: `provider:name`.

    Raises:
        ConfigError: LangChain or the provider's package is missing, the provider is unknown, or a
            folder of weights contains its own code.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        _refuse_own_code(name)
        with require_extra("providers", name, where="embeddings", error=ConfigError):
            from langchain.embeddings import init_embeddings
        try:
            self._model = init_embeddings(name, **_transport_arguments(name))
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            raise ConfigError(
                f"{name} cannot be opened: {_first_line(error)}",
                where="embeddings",
                hint=f"{_INSTALL} and the provider's package, which reads its key from the "
                "environment",
            ) from None

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the provider's vectors, unchecked.

        Raises:
            ModelUnusable: the provider did not answer in time.
        """
        found: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            found += self._embed_batch(list(texts[start : start + BATCH]))
        return found

    def _embed_batch(self, texts: list[str]) -> list[list[float]]:
        ended: queue.SimpleQueue[list[list[float]] | Exception] = queue.SimpleQueue()

        def run() -> None:
            try:
                ended.put(list(self._model.embed_documents(texts)))
            except Exception as error:  # noqa: BLE001 - each package has errors of its own
                ended.put(error)

        threading.Thread(target=run, daemon=True, name=f"embeddings {self.name}").start()
        try:
            answer = ended.get(timeout=MOST_BATCH_S)
        except queue.Empty:
            raise self._failure(f"no answer within {MOST_BATCH_S:g} s") from None
        if isinstance(answer, Exception):
            raise self._failure(_first_line(answer)) from None
        return answer

    def _failure(self, why: str) -> ModelUnusable:
        return ModelUnusable(
            f"{self.name} returned no embeddings: {why}",
            where="embeddings",
            hint="check the provider, then run the same command again; existing embeddings are "
            "kept",
        )


def find_source(name: str, env: Mapping[str, str]) -> str:
    """Return where a provider's vectors come from if its name does not say it.

    Args:
        name: `provider:name`, or `huggingface:FOLDER`.
        env: The variables, which may set the provider's address.

    Returns:
        The address, or a digest of the names, sizes and times of the folder's files; "" for a
        provider at its usual address.
    """
    provider, _, model = name.partition(":")
    folder = Path(model.strip())
    if provider.strip().lower() != "huggingface" or not folder.is_dir():
        stated = embedding_address(name, env)
        return stated[1].rstrip("/") if stated else ""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        about = path.stat()
        told = f"{path.relative_to(folder)}\0{about.st_size}\0{about.st_mtime_ns}\0"
        digest.update(told.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _refuse_own_code(name: str) -> None:
    """Refuse a folder with modules of its own code, which sentence-transformers before 6 runs.

    Raises:
        ConfigError: it has such modules, or its list of modules cannot be read.
    """
    path = Path(name.partition(":")[2].strip(), "modules.json")
    if not path.is_file():
        return
    try:
        kinds = [str(one["type"]) for one in json.loads(read_bytes(path))]
    except (ValueError, OSError, TypeError, LookupError, RecursionError) as error:
        raise ConfigError(
            f"{name} cannot be opened: modules.json: {error}",
            where="embeddings",
            hint="download or copy the model again",
        ) from None
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise ConfigError(
                f"{name} would run its own code: modules.json names {kind[:80]!r}",
                where="embeddings",
                hint="use a model that contains only modules of sentence_transformers",
            )


def _transport_arguments(name: str) -> dict[str, Any]:
    """Return the arguments that limit a package's redirects, answers and time."""
    provider = name.partition(":")[0].strip().lower()
    if provider in _OWN_CLIENT:
        client = BoundedClient(most_s=MOST_BATCH_S, timeout=MOST_BATCH_S, follow_redirects=False)
        return {"http_client": client, "timeout": MOST_BATCH_S}
    if provider == "ollama":
        return {
            "sync_client_kwargs": {
                "follow_redirects": False,
                "timeout": MOST_BATCH_S,
                "headers": {"accept-encoding": "identity"},
                "event_hooks": {"response": [_bound_response]},
            }
        }
    return {}


def _bound_response(response: "httpx.Response") -> None:
    """Limit the size of the body; refuse a compressed one, whose size is unlimited."""
    import httpx

    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        response.close()
        raise httpx.DecodingError(
            f"the response is compressed, but CoreEval did not request compression: {packed[:40]!r}"
        )
    source = response.stream
    if not isinstance(source, httpx.SyncByteStream):
        raise TypeError("the response cannot be read piece by piece")

    sent: httpx.SyncByteStream = source

    class Bounded(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            left = MOST_BODY_BYTES
            for piece in sent:
                left -= len(piece)
                if left < 0:
                    most = f"{MOST_BODY_BYTES / (1 << 20):g} MiB"
                    raise BodyTooLong(f"the response has more than {most}")
                yield piece

        def close(self) -> None:
            sent.close()

    response.stream = Bounded()


def _first_line(error: Exception) -> str:
    """Return the first line of an error, without the keys that an endpoint may repeat."""
    return (hide_secrets(str(error)).splitlines() or [type(error).__name__])[0]
