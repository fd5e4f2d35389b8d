"""The project's address, for everything that shows it; nothing is shown while it is empty."""

from typing import Final

HOMEPAGE: Final[str] = ""
"""The repository's address on GitHub, without a trailing slash; empty until there is one."""


def make_user_agent(purpose: str) -> str:
    """Return the User-Agent header for requests that need no contact address of the user."""
    return f"coreeval ({purpose}; +{HOMEPAGE})" if HOMEPAGE else f"coreeval ({purpose})"


def name_in_markdown() -> str:
    """Return the project's name, linked if the project has an address."""
    return f"[CoreEval]({HOMEPAGE})" if HOMEPAGE else "CoreEval"


def find_issues_page() -> str:
    """Return the address for bug reports; empty until there is one."""
    return f"{HOMEPAGE}/issues" if HOMEPAGE else ""
