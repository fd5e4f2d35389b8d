"""How a config names a plugin, and which plugins it names.

`plugin:NAME` is an entry point of an installed package, `plugin:module:Class` a class. Where
built-in names have no colon, `module:Class` alone will do. Loading is in `coreeval.tools.plugins`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from pydantic_core import PydanticKnownError

PluginGroup = Literal["detectors", "formats", "knowledge", "roles", "targets", "exports"]
"""What a plugin is; the entry points of a group are those of `coreeval.GROUP`."""
PROVIDER: Final = "plugin"
_PREFIX: Final = f"{PROVIDER}:"
_CLASS: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", re.ASCII)
_MOST_NAME: Final = 200
SPELLING: Final = "plugin:NAME, or module:Class"


class PluginUse(NamedTuple):
    """A plugin that is named in a config or on a command line."""

    group: PluginGroup
    name: str
    """The name of an entry point, or `module:Class`; without `plugin:`."""
    where: str = ""
    """The key or the option that names it."""

    def __str__(self) -> str:
        return f"{_PREFIX}{self.name}"


def is_class_name(name: str) -> bool:
    """Return whether a plugin's name is that of a class, `module:Class`."""
    return _CLASS.fullmatch(name) is not None


def parse_plugin(text: str) -> str | None:
    """Return the plugin that a name stands for, without `plugin:`; None if it stands for none."""
    name = text.removeprefix(_PREFIX)
    if len(name) > _MOST_NAME:
        return None
    if is_class_name(name):
        return name
    return name if name != text and _NAME.fullmatch(name) else None


def check_choice(known: Sequence[str]) -> Callable[[str], str]:
    """Return a validator of values that are one of some names, or name a plugin."""
    listed = [f"'{name}'" for name in known]
    expected = f"{', '.join(listed[:-1])} or {listed[-1]}"

    def check(value: str) -> str:
        if value in known or parse_plugin(value) is not None:
            return value
        raise PydanticKnownError("literal_error", {"expected": expected})

    return check
