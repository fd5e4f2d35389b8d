"""Finds the weights of a local model: a folder, a GGUF file, a Python package, or the hub.

Before anything is loaded, the files are checked: whether they are complete, how many parameters
they have, and whether these fit into memory. Pickled weights are refused, because loading them runs
code.
"""

import hashlib
import json
import os
import struct
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

from coreeval.errors import UsageError
from coreeval.tools.extras import require_extra
from coreeval.tools.formatting import format_size
from coreeval.tools.tokenizer_file import find_swelling

PREFIX: Final = "hf:"
PACKAGE: Final = "package:"
EXTRA: Final = "whitebox"
_NO_SAFETENSORS: Final = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
_HEADER: Final = struct.Struct("<Q")
_MOST_HEADER: Final = 100 << 20
"""The most bytes of a weights file's header; the format allows no more."""
_WEIGHTS: Final = "*.safetensors"
_OTHERS: Final = (
    "*.json",
    "*.txt",
    "*.model",
    "*.jinja",
    "additional_chat_templates/*.jinja",
)
"""The files besides the weights that determine a model's answers."""
_PATTERNS: Final = (_WEIGHTS, *_OTHERS)
"""The files that are downloaded from the hub."""
_SLACK: Final = 8
"""The most parameters per stored number: quantised weights are packed."""
_ALWAYS_ALLOWED: Final = 1 << 26
"""Numbers that any network may have beside its weights, such as those of positions: 256 MiB (own
choice)."""
_WIDTHS: Final = ("hidden_size", "n_embd", "d_model", "dim", "embedding_size")
"""Config keys of the embedding size."""
_MOST_EXPERTS: Final = 1 << 17
"""The most experts of all layers, unless there are more tensors (own choice; 25,000 are known)."""
_IN_PLACE_OF: Final = {
    "config.json": "configuration_files",
    "tokenizer_config.json": "fast_tokenizer_files",
}
"""The key by which a file makes transformers read others instead of the usual ones."""
_INDEX: Final = "model.safetensors.index.json"


class Weights(NamedTuple):
    """The weights of a model on this machine."""

    name: str
    """The name in the config, such as `hf:models/smol`."""
    folder: Path
    gguf: str
    """The name of the GGUF file in the folder; empty for a folder of safetensors."""
    parameters: int
    revision: str
    """The commit of the hub, or the hash of the files."""
    is_encoder: bool = False
    """Whether the model is an encoder, such as BERT, which writes no text."""


def find_weights(name: str, *, hub: bool = False) -> Weights:
    """Find the weights of a name such as `hf:PATH`, and check that they are complete.

    Args:
        name: `hf:` and a folder, a GGUF file, `package:NAME` for the weights in an installed
            package, or, with `hub`, `OWNER/NAME[@REVISION]`.
        hub: Whether the hub may be asked.

    Raises:
        UsageError: there are no weights, or they are incomplete.
    """
    if not name.startswith(PREFIX) or name == PREFIX:
        raise UsageError(
            f"{name!r} is not a local model",
            where=name,
            hint=f"write {PREFIX}FOLDER, {PREFIX}FILE.gguf or {PREFIX}{PACKAGE}NAME",
        )
    said = name.removeprefix(PREFIX)
    if said.startswith(PACKAGE):
        place = _find_in_package(name, said.removeprefix(PACKAGE))
    elif there := _find_path(said):
        place = there
    elif hub:
        return _fetch(name, said)
    else:
        raise UsageError(
            f"there is no folder or file {said!r}",
            where=name,
            hint="use an existing one, or download the model from Hugging Face with --hub, or with "
            "`extra: {hub: true}` for the model in the config",
        )
    return _read_once(name, place, _list_files(place))


def _find_path(said: str) -> Path | None:
    try:
        path = Path(said).expanduser()
        return path.resolve() if path.exists() else None
    except (RuntimeError, OSError, ValueError):  # an unknown user, a name too long, a NUL
        return None


def _list_files(place: Path) -> tuple[tuple[str, int, int], ...]:
    """Return the name, size and modification time of each file, to notice changes."""
    folder = place.parent if place.is_file() else place
    files = [
        *_find_others(folder),
        *([place] if place.is_file() else _find_files(folder, _WEIGHTS)),
    ]
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)


def _find_others(folder: Path) -> list[Path]:
    return [path for pattern in _OTHERS for path in _find_files(folder, pattern)]


def _find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the regular files of a folder; reading a pipe would block."""
    return [path for path in sorted(folder.glob(pattern)) if path.is_file()]


@lru_cache(maxsize=16)  # hashing takes a second for each gigabyte
def _read_once(name: str, place: Path, _files: tuple[tuple[str, int, int], ...]) -> Weights:
    return _read_gguf(name, place) if place.is_file() else _read_folder(name, place)


def _find_in_package(name: str, package: str) -> Path:
    """Return the folder or GGUF file of weights in an installed package, without importing it."""
    spec = find_spec(package) if package.isidentifier() else None
    for place in (spec and spec.submodule_search_locations) or ():
        configs = [
            path for path in Path(place).rglob("config.json") if _find_files(path.parent, _WEIGHTS)
        ]
        for found in sorted([*Path(place).rglob("*.gguf"), *configs]):
            return found if found.suffix == ".gguf" else found.parent
    raise UsageError(
        f"no installed package named {package!r} contains weights",
        where=name,
        hint="install it with pip; coreeval docs whitebox names a package with a small model",
    )


def _fetch(name: str, said: str) -> Weights:
    """Download a model from the hub at a pinned commit."""
    with require_extra(EXTRA, "a model from the hub", where=name):
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    repository, _, revision = said.partition("@")
    try:
        folder = Path(
            snapshot_download(repository, revision=revision or None, allow_patterns=list(_PATTERNS))
        )
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise UsageError(
            f"the hub did not return {said!r}: {str(error).splitlines()[0]}",
            where=name,
            hint="check the model's name and the connection, or use a folder",
        ) from None
    return _read_folder(name, folder)._replace(revision=folder.name)


# -- a folder of safetensors ----------------------------------------------------------------------


def _read_folder(name: str, folder: Path) -> Weights:
    files = _find_files(folder, _WEIGHTS)
    if not files or not (folder / "config.json").is_file():
        pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt"))
        raise UsageError(
            "the folder contains only pickled weights, which may run code"
            if pickled
            else "the folder contains no model",
            where=str(folder),
            hint="the folder needs config.json and *.safetensors, which `save_pretrained` of "
            "transformers writes; for a GGUF file, pass the path of the file",
        )
    counts = [_count_safetensors(path) for path in files]
    parameters, tensors = (sum(each) for each in zip(*counts, strict=True))
    _check_config(folder / "config.json", parameters, tensors)
    _refuse_other_files(folder)
    _check_tokenizer(folder / "tokenizer.json")
    _check_index(folder / _INDEX, {path.name for path in files})
    return Weights(
        name=name,
        folder=folder,
        gguf="",
        parameters=parameters,
        revision=_hash_files([*files, *_find_others(folder)]),
        is_encoder=_is_encoder(folder / "config.json"),
    )


def _read_object(path: Path) -> dict[str, Any]:
    """Return a JSON object of a model's folder.

    Raises:
        UsageError: the file is not a JSON object.
    """
    try:
        if path.stat().st_size > _MOST_HEADER:
            raise ValueError("it is too large")
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise UsageError(
            f"{path.name} cannot be used: {error}",
            where=str(path),
            hint="download or copy the model again",
        ) from None
    return found


def _check_config(path: Path, parameters: int, tensors: int) -> None:
    """Refuse a model that names custom code or whose config is larger than its weights.

    Raises:
        UsageError: the model is refused, or the file is damaged.
    """
    config = _read_object(path)
    for one in _iter_objects(config):
        if not _fits(one, parameters, tensors):
            raise UsageError(
                f"{path.name} describes a larger model than its weights: {parameters / 1e6:,.1f} "
                f"million parameters in {tensors:,} tensors",
                where=str(path),
                hint="download or copy the model again, with its config.json",
            )
    for key in ("attn_implementation", "_attn_implementation", "experts_implementation"):
        if "/" in str(config.get(key, "")):
            raise UsageError(
                f"{path.name} refers to code to download: {key}: {str(config[key])[:80]!r}",
                where=str(path),
                hint=f"delete the key {key}",
            )


_ENCODERS: Final = frozenset(
    ("albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "modernbert",
     "mpnet", "roberta", "xlm-roberta")
)  # fmt: skip
"""Types of models that write no text, unless their config names a language model."""


def _is_encoder(path: Path) -> bool:
    """Return whether a config describes an encoder."""
    config = _read_object(path)
    written = "ForCausalLM" in str(config.get("architectures"))
    return config.get("model_type") in _ENCODERS and not written


_LABELS: Final = frozenset(("label2id", "id2label"))
"""Parts of a config whose keys are the words of labels, such as `record player`."""


def _iter_objects(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a config and the configs of its parts."""
    yield config
    for key, value in config.items():
        if isinstance(value, dict) and key not in _LABELS:
            yield from _iter_objects(value)


def _fits(config: Mapping[str, Any], parameters: int, tensors: int) -> bool:
    """Return whether files can contain the layers, experts and vocabulary that a config declares.

    transformers allocates them before it notices that weights are missing.
    """
    numbers = {key: value for key, value in config.items() if isinstance(value, int)}
    layers, experts = (
        max((numbers[key] for key in numbers if key.endswith(ends)), default=0)
        for ends in (("layer", "layers", "block_count"), ("experts", "expert_count"))
    )
    words = numbers.get("vocab_size", 0)
    width = max((numbers.get(key, 0) for key in _WIDTHS), default=0)
    return (
        layers <= tensors
        and layers * experts <= max(tensors, _MOST_EXPERTS)
        and words * width <= parameters * _SLACK
    )


def _refuse_other_files(folder: Path) -> None:
    """Refuse a model whose files name others to be read instead, maybe outside of its folder.

    Raises:
        UsageError: they do, or one is damaged.
    """
    for name, key in _IN_PLACE_OF.items():
        path = folder / name
        named = _read_object(path).get(key) if path.is_file() else None
        if named and named not in (["config.json"], ["tokenizer.json"]):
            raise UsageError(
                f"{name} names other files to read instead: {key}: {str(named)[:80]!r}",
                where=str(path),
                hint=f"delete the key {key}",
            )


def _check_tokenizer(path: Path) -> None:
    """Refuse a tokenizer that swells texts before they can be cut.

    Raises:
        UsageError: it does, or the file is damaged.
    """
    if path.is_file() and (problem := find_swelling(_read_object(path))):
        raise UsageError(
            f"{path.name} {problem}",
            where=str(path),
            hint="download or copy the model again from a trusted source",
        )


def _check_index(path: Path, files: Collection[str]) -> None:
    """Refuse an index of weights with paths outside the folder or to missing files.

    Raises:
        UsageError: the index is refused.
    """
    if not path.is_file():
        return
    named = _read_object(path).get("weight_map")
    for file in set(map(str, named.values())) if isinstance(named, dict) else {"no weight_map"}:
        if file not in files:
            told = f"missing: the index names {file[:80]!r}, which is not in the folder"
            raise _damaged(path, told)


def _count_safetensors(path: Path) -> tuple[int, int]:
    """Return the numbers of parameters and of tensors in a file of weights.

    Raises:
        UsageError: the file is truncated or not a weights file.
    """
    try:
        with path.open("rb") as file:
            (length,) = _HEADER.unpack(file.read(_HEADER.size))
            if length > _MOST_HEADER:
                raise ValueError("its header is too long")
            header: dict[str, Any] = json.loads(file.read(length))
        header.pop("__metadata__", None)
        end = max((one["data_offsets"][1] for one in header.values()), default=0)
        shapes = [one["shape"] for one in header.values()]
        if not all(isinstance(size, int) and size >= 0 for shape in shapes for size in shape):
            raise ValueError("a shape is invalid")
        count, there = sum(map(prod, shapes)), path.stat().st_size
        if count > 8 * there or not isinstance(end, int):
            raise ValueError("it declares more parameters than it has bits")
    except _NO_SAFETENSORS as error:
        raise _damaged(path, f"not a valid safetensors file: {error}") from None
    whole = _HEADER.size + length + end
    if there < whole:
        raise _damaged(path, f"truncated: {format_size(there)} of {format_size(whole)}")
    return int(count), len(header)


def _damaged(path: Path, problem: str) -> UsageError:
    return UsageError(
        f"the weights file is {problem}", where=str(path), hint="download or copy it again"
    )


# -- a GGUF file ----------------------------------------------------------------------------------


def _read_gguf(name: str, path: Path) -> Weights:
    if path.suffix != ".gguf":
        hint = f"use a folder with config.json and *.safetensors, or a *.gguf file: {PREFIX}PATH"
        raise UsageError("the file is not a GGUF file", where=str(path), hint=hint)
    with require_extra(EXTRA, "a GGUF file", where=name):
        from gguf import GGUFReader

    class WholeReader(GGUFReader):  # type: ignore[misc]
        """A reader that stops at the end of the file, whatever lengths the file claims."""

        def _get(
            self,
            offset: int,
            dtype: Any,  # noqa: ANN401 - gguf has no types
            count: int = 1,
            override_order: Any = None,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            found = super()._get(offset, dtype, count, override_order)
            if len(found) < count:
                raise ValueError("it ends earlier than its header states")
            return found

    try:
        reader = WholeReader(path)
        parameters = sum(int(one.n_elements) for one in reader.tensors)
        end = max(int(one.data_offset + one.n_bytes) for one in reader.tensors)
        named = (one for one in reader.fields.values() if one.name.endswith("_count"))
        told = {one.name: one.contents() for one in named}
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        raise _damaged(path, f"truncated or not a GGUF file: {error}") from None
    if path.stat().st_size < end:
        raise _damaged(path, f"truncated: {format_size(path.stat().st_size)} of {format_size(end)}")
    if not _fits(told, parameters, len(reader.tensors)):
        raise _damaged(path, f"too small for the sizes that it declares: {str(told)[:200]}")
    _refuse_other_files(path.parent)
    _check_tokenizer(path.parent / "tokenizer.json")
    return Weights(
        name=name,
        folder=path.parent,
        gguf=path.name,
        parameters=parameters,
        revision=_hash_files([path, *_find_others(path.parent)]),
    )


def _hash_files(paths: list[Path]) -> str:
    known = hashlib.sha256()
    for path in paths:
        known.update(path.name.encode())
        with path.open("rb") as file:
            known.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{known.hexdigest()}"


def declares_too_much(numbers: int, weights: Weights) -> bool:
    """Return whether a network of so many numbers cannot come from the files of a model."""
    return numbers > max(weights.parameters * _SLACK, _ALWAYS_ALLOWED)


# -- memory ---------------------------------------------------------------------------------------


def require_memory(weights: Weights, needed: int, free: int | None, device: str) -> None:
    """Check that a model fits into the memory of a device, before it is loaded.

    Args:
        weights: The model.
        needed: The bytes that it needs.
        free: The bytes that are free; None if that is unknown.
        device: The device to load it on.

    Raises:
        UsageError: it does not fit.
    """
    if free is not None and needed > free:
        raise UsageError(
            f"{weights.name} has {weights.parameters / 1e6:,.0f} million parameters and needs "
            f"{format_size(needed)} on {device}, but only {format_size(free)} is available; "
            "nothing was loaded",
            where=weights.name,
            hint="use a smaller model, another device or, for training, adapters only (no --full)",
        )


def free_memory() -> int | None:
    """Return the free bytes of this machine's memory; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        said = {line.partition(":")[0]: line.partition(":")[2] for line in lines}
        return int(said["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
