"""The key of a study: which text each item is. Raters must not have it."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import UsageError
from coreeval.evaluation.annotation.drawing import RatedArm
from coreeval.schema import Value
from coreeval.tools.files import write_json

KEY = "key.json"


class KeyItem(Value):
    """What one item of the sheets is."""

    item: str
    sample: str
    arm: RatedArm
    label: str
    text_sha256: str
    """Of the sample's texts in this arm, as releases have it."""


class MadeOf(Value):
    """The run or the release whose texts are rated."""

    kind: Literal["run", "release"]
    name: str
    version: str


class Key(Value):
    """What the sheets of one study hold."""

    version: Literal[1] = 1
    study: str
    made_of: MadeOf
    seed: int
    asked: int
    """Samples that were wanted in each arm."""
    raters: tuple[str, ...]
    scale: str
    """Where the criteria and their values come from."""
    items: tuple[KeyItem, ...]


def write_key(path: Path, key: Key) -> None:
    """Write a key that only its owner may read."""
    write_json(path, key.model_dump(mode="json"))
    path.chmod(0o600)


def read_key(path: Path) -> Key:
    """Read a key.

    Raises:
        UsageError: there is none, or it is damaged.
    """
    try:
        return Key.model_validate_json(read_bytes(path, most_bytes=MOST_DATA_BYTES))
    except OSError as error:
        raise UsageError(
            f"the key of the sheets cannot be read: {error.strerror or error}",
            where=str(path),
            hint=f"give the {KEY} that `coreeval annotate export` wrote: --key FILE",
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            f"the key of the sheets is damaged: {first['msg']}",
            where=str(path),
            hint="restore it from a copy: without it nobody knows which text an item is",
        ) from None
