"""What a run in another language than English leaves out: for `validate` and the card."""

from coreeval.agents.text.language_checks import list_unchecked
from coreeval.evaluation.comparability.verdict import list_unmeasured
from coreeval.languages import LANGUAGES
from coreeval.tools.gdelt.screen_words import list_unscreened


def list_left_out(language: str) -> list[str]:
    """Return what is not checked or measured of texts in a language; nothing for English."""
    return [*list_unchecked(language), *list_unscreened(language), *list_unmeasured(language)]


def describe_language(language: str) -> str:
    """Return one line on a language and on what is left out in it; empty for English."""
    left_out = list_left_out(language)
    if not left_out:
        return ""
    return f"language: {LANGUAGES[language]} ({language}); left out in it: {'; '.join(left_out)}"
