"""The protocol for plugins that play roles, and the player that uses a plugin."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, signature
from typing import Final, Protocol, cast

from pydantic import JsonValue

from coreeval.config import ModelConfig
from coreeval.config.plugins import PluginUse, parse_plugin
from coreeval.schema import (
    Composition,
    Extraction,
    FactVerdict,
    LabelVerdict,
    Plan,
    Rewrite,
    RoleName,
    Task,
    Value,
)
from coreeval.tools.plugins import Plugin, load_plugin

_RETURNS: Final[Mapping[RoleName, type[Value]]] = {
    "extractor": Extraction,
    "replacer": Plan,
    "rewriter": Rewrite,
    "composer": Composition,
    "fact_judge": FactVerdict,
    "label_judge": LabelVerdict,
}
"""The result of a player."""


class RoleSettings(Value):
    """The settings of a role's player from a config."""

    role: RoleName
    task: Task
    seed: int
    """The seed of the run: the same input should give the same answer."""
    options: dict[str, JsonValue]
    """The model's `extra` in the config."""


class RolePlugin(Protocol):
    """A player of a role: a plugin of the group `roles`.

    Optional: `roles`, the names of the roles that it can play (by default, all).
    """

    plugin_api: int

    def build(self, settings: RoleSettings) -> Callable[..., Awaitable[object]]:
        """Return the player for a task: an async function with the signature of its role.

        The signatures are `Extractor`, `Replacer`, `Rewriter`, `Composer`, `FactJudge` and
        `LabelJudge`. Calls of a player to models are neither stored nor counted against the budget.
        """
        ...


class PluginPlayer:
    """A role played by a plugin.

    Args:
        plugin: The plugin.
        settings: The role and its task.
    """

    def __init__(self, plugin: Plugin, settings: RoleSettings) -> None:
        self._plugin = plugin
        self._role = settings.role
        with plugin.guard("build"):
            self._play = cast(RolePlugin, plugin.loaded).build(settings)
        if not callable(self._play):
            raise plugin.fail(f"must return an async function from build, not {self._play!r}")

    async def __call__(self, *given: object, **named: object) -> object:
        """Return the plugin's result.

        Raises:
            PluginFailed: it failed, or returned an invalid result for the role.
        """
        with self._plugin.guard(f"the role {self._role}"):
            said = await self._play(*given, **self._select_named(named))
        wanted = _RETURNS[self._role]
        if not isinstance(said, wanted):
            what = f"must return {wanted.__name__} as {self._role}, not {type(said).__name__}"
            raise self._plugin.fail(what)
        return said

    def _select_named(self, named: Mapping[str, object]) -> dict[str, object]:
        """Return the named arguments that the plugin takes, as later versions may add some."""
        known = signature(self._play).parameters.values()
        if any(one.kind is Parameter.VAR_KEYWORD for one in known):
            return dict(named)
        names = {one.name for one in known}
        return {name: value for name, value in named.items() if name in names}


def open_plugin_role(role: RoleName, model: ModelConfig, task: Task, seed: int) -> PluginPlayer:
    """Return the player of a role that a config assigns to a plugin.

    Raises:
        PluginError: there is no such plugin, or it does not play this role.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    name = parse_plugin(model.model) or model.name
    plugin = load_plugin(PluginUse("roles", name, f"models.{role}"), RolePlugin)
    plays = getattr(plugin.loaded, "roles", None)
    if plays is not None and role not in plays:
        raise plugin.refuse(f"it plays {', '.join(map(str, plays))}, not {role}")
    settings = RoleSettings(role=role, task=task, seed=seed, options=model.extra)
    return PluginPlayer(plugin, settings)
