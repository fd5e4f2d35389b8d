"""Where the news store is, if the command line does not say."""

from pathlib import Path


def store_here() -> Path:
    """Return the store of the workspace of this folder."""
    from coreeval.tools.workspace import workspace_for

    return workspace_for(Path.cwd()).news
