"""`coreeval plugins`: lists installed plugins, and checks that they fit their protocols."""

from collections.abc import Iterator
from typing import Annotated

import typer

from coreeval.cli.output import AsJson, Document, plain, show
from coreeval.errors import PluginError


def plugins(
    plugin: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLUGIN]",
            help="Show only this plugin: plugin:NAME, or module:Class, which is imported.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Import each plugin, which runs its code, and check it."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the plugins that installed packages offer."""
    from coreeval.api.plugins import list_plugins

    document: Document = list_plugins(plugin, check=check).document
    show(document, as_json, lambda: "\n".join(_lines(document)))
    if any(each["error"] for each in document["plugins"]):
        raise typer.Exit(PluginError.exit_code)


def _lines(document: Document) -> Iterator[str]:
    listed = document["plugins"]
    if not listed:
        yield "no installed package offers plugins"
    for each in listed:
        name = f"{each['group']}  plugin:{each['name']}"
        state = "allowed here" if each["allowed"] else ""
        checked = "fits" if document["checked"] else ""
        told = each["error"]["message"] if each["error"] else checked
        package = f"{each['distribution']} {each['version']}".strip()
        words = [name, package, each["target"], state, told]
        yield plain("  ".join(word for word in words if word))
    yield ""
    versions = ", ".join(f"{group} {version}" for group, version in document["protocols"].items())
    yield f"protocols of this version: {versions}; `coreeval docs plugins` describes them"
