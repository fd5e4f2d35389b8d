"""A role that a plugin plays: built for a task, and checked in what it says."""

import asyncio

import pytest

from coreeval.agents.plugin_role import PluginPlayer, open_plugin_role
from coreeval.config import ModelConfig
from coreeval.config.plugins import PluginUse
from coreeval.errors import PluginError, PluginFailed
from coreeval.schema import Extraction, Rewrite, RoleName, Sample
from coreeval.tasks import load_task
from coreeval.tools.plugins import allow_plugin
from tests.support.plugins import Site, site

__all__ = ["site"]
SAMPLE = Sample(id="1", split="test", fields={"text": "It rained."}, label=3, label_text="sadness")
SAYS = "Rewrite(fields={'text': f'{settings.options} {settings.seed}'}, reworded=True)"


def _open(site: Site, said: str, more: str = "", role: RoleName = "rewriter") -> PluginPlayer:
    """Return the player of a plugin that says an expression."""
    site.write(
        "role_of",
        f"from coreeval.plugins import Rewrite\nclass Role:\n    plugin_api = 1\n    {more}\n"
        "    def build(self, settings):\n"
        "        async def play(sample, extraction, *, feedback=(), previous=None):\n"
        f"            return {said}\n"
        "        return play if settings.task.name == 'emotion' else None\n",
    )
    allow_plugin(PluginUse("roles", "role_of:Role"))
    model = ModelConfig(model="plugin:role_of:Role", extra={"tone": "dry"})
    return open_plugin_role(role, model, load_task("emotion", None, None), 7)


def test_it_plays_with_the_settings_of_the_config(site: Site) -> None:
    player = _open(site, SAYS)
    said = asyncio.run(player(SAMPLE, Extraction(), feedback=()))
    assert said == Rewrite(fields={"text": "{'tone': 'dry'} 7"}, reworded=True)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("1 / 0", "failed in the role rewriter: ZeroDivisionError"),
        ("{'text': 'x'}", "must return Rewrite as rewriter, not dict"),
    ],
)
def test_a_player_that_fails(site: Site, said: str, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        asyncio.run(_open(site, said)(SAMPLE, Extraction()))


def test_a_role_that_it_does_not_play(site: Site) -> None:
    assert _open(site, SAYS, "roles = ('rewriter',)")
    with pytest.raises(PluginError, match="it plays composer, not rewriter"):
        _open(site, SAYS, "roles = ('composer',)")


def test_a_build_that_returns_no_player(site: Site) -> None:
    _open(site, SAYS)
    model = ModelConfig(model="role_of:Role".join(["plugin:", ""]))
    with pytest.raises(PluginFailed, match="must return an async function from build"):
        open_plugin_role("rewriter", model, load_task("mrpc", None, None), 7)


def test_a_player_gets_the_arguments_that_it_names(site: Site) -> None:
    player = _open(site, SAYS)
    assert asyncio.run(player(SAMPLE, Extraction(), feedback=(), added_later=1))
