"""The names of plugins in a config.

`plugin:NAME` is an entry point of an installed package, `plugin:module:Class` a class. If built-in
names have no colon, `module:Class` is enough. `coreeval.tools.plugins` loads plugins.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from pydantic_core import PydanticKnownError

PluginGroup = Literal["detectors", "formats", "knowledge", "roles", "targets", "exports"]
"""The groups of plugins; the entry points of a group are those of `coreeval.GROUP`."""
PROVIDER: Final = "plugin"
_PREFIX: Final = f"{PROVIDER}:"
_CLASS: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", re.ASCII)
_MOST_NAME: Final = 200
SPELLING: Final = "plugin:NAME, or module:Class"


class PluginUse(NamedTuple):
    """A plugin named in a config or on a command line."""

    group: PluginGroup
    name: str
    """The name of an entry point, or `module:Class`; without `plugin:`."""
    where: str = ""
    """The key or option that names it."""

    def __str__(self) -> str:
        return f"{_PREFIX}{self.name}"


def is_class_name(name: str) -> bool:
    """Return whether a plugin's name is a class, `module:Class`."""
    return _CLASS.fullmatch(name) is not None


def parse_plugin(text: str) -> str | None:
    """Return the plugin with a name, without `plugin:`; None if the name is not a plugin's."""
    name = text.removeprefix(_PREFIX)
    if len(name) > _MOST_NAME:
        return None
    if is_class_name(name):
        return name
    return name if name != text and _NAME.fullmatch(name) else None


def check_choice(known: Sequence[str]) -> Callable[[str], str]:
    """Return a validator of values that are one of some names or the name of a plugin."""
    listed = [f"'{name}'" for name in known]
    expected = f"{', '.join(listed[:-1])} or {listed[-1]}"

    def check(value: str) -> str:
        if value in known or parse_plugin(value) is not None:
            return value
        raise PydanticKnownError("literal_error", {"expected": expected})

    return check
