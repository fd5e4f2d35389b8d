"""`coreeval.sample_graph`: the graph that refreshes one text, for use in your own graphs."""

from collections.abc import Sequence

from coreeval.config import ConfigLike
from coreeval.graph.sample_graph import StoryGraph, build_story_graph
from coreeval.tools.trust import retry_with_trust


def sample_graph(
    config: ConfigLike, *, overrides: Sequence[str] = (), trust_endpoints: bool = False
) -> StoryGraph:
    """Return a compiled LangGraph graph that writes recent news into texts of your own.

    It takes `{"text": ..., "label": ...}`, optionally with an `id`, and returns `outcome`,
    `updated` and `story`. It is asynchronous: `await graph.ainvoke(...)`, or add it as a node to
    your own graph. Model calls use the workspace's call store and the config's budget, as in a run;
    a text that has an outcome is not processed again.

    Args:
        config: The path of a YAML config, or a config in memory. A mapping needs no `dataset` and
            no `name`.
        overrides: `key.path=value` settings that override the config's.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.

    Raises:
        UsageError: the config, the task or the news cannot be used, or a variable would be sent to
            an unapproved endpoint (UntrustedEndpoint).
    """
    return retry_with_trust(lambda: build_story_graph(config, overrides), lambda _: trust_endpoints)
