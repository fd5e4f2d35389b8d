"""`coreeval plugins`: which plugins are installed, and whether they fit their protocols."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, plain, show
from coreeval.errors import CoreEvalError, PluginError

if TYPE_CHECKING:
    from coreeval.tools.plugin_origin import PluginOrigin


def plugins(
    check: Annotated[
        bool,
        typer.Option("--check", help="Import each plugin, which runs its code, and check it."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the plugins that installed packages offer."""
    from coreeval.tools.plugins import PLUGIN_API, list_installed
    from coreeval.tools.trust import TrustRecord
    from coreeval.tools.workspace import workspace_for

    record = TrustRecord(workspace_for(Path.cwd()))
    found = [
        {
            **each.model_dump(exclude={"digest"}),
            "allowed": record.accepts_plugin(each.group, each.name, each.identity),
            "error": _find_error(each) if check else None,
        }
        for each in list_installed()
    ]
    document: Document = {"protocols": dict(PLUGIN_API), "checked": check, "plugins": found}
    show(document, as_json, lambda: "\n".join(_lines(document)))
    if any(each["error"] for each in found):
        raise typer.Exit(PluginError.exit_code)


def _find_error(origin: "PluginOrigin") -> dict[str, str] | None:
    """Return what is wrong with a plugin, or None; it is imported."""
    from coreeval.plugins import check

    try:
        check(origin.group, origin.name)
    except CoreEvalError as error:
        return error.as_dict()
    return None


def _lines(document: Document) -> Iterator[str]:
    listed = document["plugins"]
    if not listed:
        yield "no installed package offers plugins"
    for each in listed:
        name = f"{each['group']}  plugin:{each['name']}"
        state = "allowed here" if each["allowed"] else ""
        checked = "fits" if document["checked"] else ""
        told = each["error"]["message"] if each["error"] else checked
        words = [name, f"{each['distribution']} {each['version']}", each["target"], state, told]
        yield plain("  ".join(word for word in words if word))
    yield ""
    versions = ", ".join(f"{group} {version}" for group, version in document["protocols"].items())
    yield f"protocols of this version: {versions}; coreeval docs plugins shows them"
