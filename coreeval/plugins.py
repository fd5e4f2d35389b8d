"""Protocols for plugins: detectors, dataset formats, news, roles, targets and exports.

A plugin is a class without arguments that has the members of its protocol, and the protocol's
version as `plugin_api`. A package offers it as an entry point of `coreeval.GROUP`:

    [project.entry-points."coreeval.detectors"]
    half = "my_package:HalfDetector"

A config or a command names it as `plugin:half`, or by its class, `my_package:HalfDetector`. The
page `coreeval docs plugins` has an example of each. Names of other modules may change at any time;
the names in this module change only with the version of their protocol:

    PLUGIN_API["detectors"]
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from coreeval.agents.plugin_role import RolePlugin, RoleSettings
    from coreeval.agents.roles import (
        Composer,
        CompositionRequest,
        Extractor,
        FactJudge,
        LabelJudge,
        Replacer,
        Rewriter,
    )
    from coreeval.config import DatasetConfig
    from coreeval.config.plugins import PluginGroup
    from coreeval.errors import PluginError, PluginFailed, UnallowedPlugin
    from coreeval.evaluation.benchmarks.plugin_format import FormatPlugin, FormatRow
    from coreeval.evaluation.detectors.base import (
        DetectorInputs,
        DetectorQuestion,
        MemoryFinding,
        SampleTexts,
        TextAnswer,
    )
    from coreeval.evaluation.detectors.plugin_detector import DetectorPlugin
    from coreeval.models.plugin_target import TargetAnswer, TargetPlugin, TargetRequest
    from coreeval.releases.exports.export import ExportPlugin
    from coreeval.releases.exports.material import ExportSample, Material
    from coreeval.schema import (
        Composition,
        Defect,
        EntityQuery,
        Evidence,
        Extraction,
        FactVerdict,
        LabelVerdict,
        Plan,
        Rewrite,
        Sample,
        Task,
        Window,
    )
    from coreeval.tools.gdelt.plugin_source import KnowledgePlugin, KnowledgeSettings, NewsArticle
    from coreeval.tools.plugin_origin import PluginOrigin
    from coreeval.tools.plugins import GROUPS, PLUGIN_API

__all__ = [
    "GROUPS",
    "PLUGIN_API",
    "Composer",
    "Composition",
    "CompositionRequest",
    "DatasetConfig",
    "Defect",
    "DetectorInputs",
    "DetectorPlugin",
    "DetectorQuestion",
    "EntityQuery",
    "Evidence",
    "ExportPlugin",
    "ExportSample",
    "Extraction",
    "Extractor",
    "FactJudge",
    "FactVerdict",
    "FormatPlugin",
    "FormatRow",
    "KnowledgePlugin",
    "KnowledgeSettings",
    "LabelJudge",
    "LabelVerdict",
    "Material",
    "MemoryFinding",
    "NewsArticle",
    "Plan",
    "PluginError",
    "PluginFailed",
    "PluginGroup",
    "PluginOrigin",
    "Replacer",
    "Rewrite",
    "Rewriter",
    "RolePlugin",
    "RoleSettings",
    "Sample",
    "SampleTexts",
    "TargetAnswer",
    "TargetPlugin",
    "TargetRequest",
    "Task",
    "TextAnswer",
    "UnallowedPlugin",
    "Window",
    "allow",
    "check",
    "find_group",
]

_HOMES: Final[Mapping[str, str]] = {
    name: home
    for home, names in {
        "agents.plugin_role": "RolePlugin RoleSettings",
        "agents.roles": "Composer CompositionRequest Extractor FactJudge LabelJudge Replacer "
        "Rewriter",
        "config": "DatasetConfig",
        "config.plugins": "PluginGroup",
        "tools.plugin_origin": "PluginOrigin",
        "errors": "PluginError PluginFailed UnallowedPlugin",
        "evaluation.benchmarks.plugin_format": "FormatPlugin FormatRow",
        "evaluation.detectors.base": "DetectorInputs DetectorQuestion MemoryFinding SampleTexts "
        "TextAnswer",
        "evaluation.detectors.plugin_detector": "DetectorPlugin",
        "models.plugin_target": "TargetAnswer TargetPlugin TargetRequest",
        "releases.exports.export": "ExportPlugin",
        "releases.exports.material": "ExportSample Material",
        "schema": "Composition Defect EntityQuery Evidence Extraction FactVerdict LabelVerdict "
        "Plan Rewrite Sample Task Window",
        "tools.gdelt.plugin_source": "KnowledgePlugin KnowledgeSettings NewsArticle",
        "tools.plugins": "GROUPS PLUGIN_API",
    }.items()
    for name in names.split()
}
PROTOCOLS: Final[Mapping["PluginGroup", str]] = {
    "detectors": "DetectorPlugin",
    "formats": "FormatPlugin",
    "knowledge": "KnowledgePlugin",
    "roles": "RolePlugin",
    "targets": "TargetPlugin",
    "exports": "ExportPlugin",
}
"""The name in this module of each group's protocol."""


def __getattr__(name: str) -> object:
    """Import a name on first use; together, their modules take a second."""
    if name not in _HOMES:
        raise AttributeError(f"module 'coreeval.plugins' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"coreeval.{_HOMES[name]}"), name)


def allow(group: "PluginGroup", name: str) -> "PluginOrigin":
    """Allow the code of a plugin to run in this process, for a script that uses it in a config.

    Args:
        group: The group of the plugin, such as `formats`.
        name: The name of an entry point, or `module:Class`.

    Raises:
        PluginError: there is no such plugin.
    """
    from coreeval.config.plugins import PluginUse
    from coreeval.tools.plugins import allow_plugin

    return allow_plugin(PluginUse(group, name.removeprefix("plugin:")))


def check(group: "PluginGroup", name: str) -> "PluginOrigin":
    """Import a plugin and check that it fits its protocol, for the tests of a plugin's package.

    Args:
        group: The group of the plugin.
        name: The name of an entry point, or `module:Class`.

    Raises:
        PluginError: there is no such plugin, or it does not fit.
    """
    from coreeval.config.plugins import PluginUse
    from coreeval.tools.plugins import load_plugin

    allow(group, name)
    use = PluginUse(group, name.removeprefix("plugin:"))
    origin = load_plugin(use, _load_protocol(group)).origin
    if group == "detectors":
        from coreeval.evaluation.detectors.plugin_detector import open_plugin_detector

        open_plugin_detector(use.name)
    elif group == "formats":
        from coreeval.evaluation.benchmarks.plugin_format import open_plugin_format

        open_plugin_format(use.name)
    return origin


def find_group(name: str) -> "PluginGroup":
    """Return the likely group of a class: it has the most members of that group's protocol.

    The class is imported, which runs its code.

    Args:
        name: The class, `module:Class`.

    Raises:
        PluginError: it cannot be imported, or has no member of any protocol.
    """
    from typing_extensions import get_protocol_members

    from coreeval.tools.plugins import GROUPS, import_object, refuse_plugin

    origin = allow(GROUPS[0], name)
    found = import_object(origin)
    shares: dict[PluginGroup, float] = {}
    for group in GROUPS:
        wanted = get_protocol_members(_load_protocol(group)) - {"plugin_api"}
        shares[group] = sum(hasattr(found, member) for member in wanted) / len(wanted)
    best = max(shares, key=lambda group: shares[group])
    if not shares[best]:
        raise refuse_plugin(origin, "it has no method of any protocol", "any group")
    return best


def _load_protocol(group: "PluginGroup") -> type[object]:
    protocol = __getattr__(PROTOCOLS[group])
    assert isinstance(protocol, type), "a protocol is a class"
    return protocol
