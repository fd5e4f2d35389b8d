"""The project's address: what shows it takes it from here, and shows nothing while it is empty."""

from typing import Final

HOMEPAGE: Final[str] = ""
"""The repository's address on GitHub, without a slash at the end; empty until there is one."""


def make_user_agent(purpose: str) -> str:
    """Return the User-Agent header of requests that need no contact address of the user."""
    return f"coreeval ({purpose}; +{HOMEPAGE})" if HOMEPAGE else f"coreeval ({purpose})"


def name_in_markdown() -> str:
    """Return the project's name, linked if the project has an address."""
    return f"[CoreEval]({HOMEPAGE})" if HOMEPAGE else "CoreEval"


def find_issues_page() -> str:
    """Return the address at which bugs are reported; empty while there is none."""
    return f"{HOMEPAGE}/issues" if HOMEPAGE else ""
