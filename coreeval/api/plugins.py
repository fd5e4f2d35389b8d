"""Lists plugins and checks that they fit their protocols."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.config.plugins import SPELLING, is_class_name, parse_plugin
from coreeval.errors import CoreEvalError, UsageError
from coreeval.tools.formatting import format_quantity
from coreeval.tools.plugins import PLUGIN_API, find_origin, list_installed
from coreeval.tools.trust import TrustRecord
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from coreeval.tools.plugin_origin import PluginOrigin

_COLUMNS: Final = parse_columns(
    "group name distribution version target api:integer allowed:boolean problem"
)


def list_plugins(plugin: str | None = None, *, check: bool = False) -> CommandResult:
    """Return the plugins that installed packages offer, or a single one.

    Args:
        plugin: Return only this plugin: `plugin:NAME`, or a class, `module:Class`, which is
            imported to find its group.
        check: Whether to import each plugin, which runs its code, and check it.

    Returns:
        A result whose table has a row for each plugin; `problem` says why it does not fit.

    Raises:
        UsageError: `plugin` is not a valid name of a plugin.
        PluginError: there is no such plugin, or it has no member of any protocol.
    """
    record = TrustRecord(workspace_for(Path.cwd()))
    found = [
        {
            **each.model_dump(exclude={"digest"}),
            "allowed": record.accepts_plugin(each.group, each.name, each.identity),
            "error": _find_error(each) if check else None,
        }
        for each in (list_installed() if plugin is None else _find_named(plugin))
    ]
    document = {"protocols": dict(PLUGIN_API), "checked": check, "plugins": found}
    rows = [{**each, "problem": (each["error"] or {}).get("message")} for each in found]
    bad = sum(each["error"] is not None for each in found)
    said = format_quantity(len(found), "plugin") + (f", {bad} of them unusable" if bad else "")
    return CommandResult(document, said, Table.from_dicts("plugins", _COLUMNS, rows))


def _find_named(plugin: str) -> "list[PluginOrigin]":
    from coreeval.plugins import find_group

    name = parse_plugin(plugin)
    if name is None:
        raise UsageError(f"{plugin!r} is not a plugin", where="PLUGIN", hint=SPELLING)
    if is_class_name(name):
        return [find_origin(find_group(name), name)]
    offered = [each for each in list_installed() if each.name == name]
    return offered or [find_origin("detectors", name)]  # this raises the error


def _find_error(origin: "PluginOrigin") -> dict[str, str] | None:
    """Import a plugin and return what is wrong with it, or None."""
    from coreeval.plugins import check

    try:
        check(origin.group, origin.name)
    except CoreEvalError as error:
        return error.as_dict()
    return None
