"""The checks and measures that a run lacks in languages other than English."""

from coreeval.agents.text.language_checks import list_unchecked
from coreeval.evaluation.comparability.verdict import list_unmeasured
from coreeval.languages import LANGUAGES
from coreeval.tools.gdelt.screen_words import list_unscreened


def list_left_out(language: str) -> list[str]:
    """Return the checks and measures that texts in a language lack; empty for English."""
    return [*list_unchecked(language), *list_unscreened(language), *list_unmeasured(language)]


def describe_language(language: str) -> str:
    """Return one line on a language and its missing checks; empty for English."""
    left_out = list_left_out(language)
    if not left_out:
        return ""
    return (
        f"language: {LANGUAGES[language]} ({language}); checks and measures not available: "
        f"{'; '.join(left_out)}"
    )
