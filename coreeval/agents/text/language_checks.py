"""The checks that support only some languages, and those skipped for other languages.

A check first consults its `LanguageCheck`; the same entries report to users what was not checked.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from coreeval.agents.text.vocabulary import VOCABULARIES
from coreeval.languages import ENGLISH


@dataclass(frozen=True)
class LanguageCheck:
    """A check that needs words of the language."""

    about: str
    """A phrase for what is checked."""
    languages: Collection[str] = (ENGLISH,)
    """The supported languages."""

    def knows(self, language: str) -> bool:
        """Return whether texts in a language are checked."""
        return language in self.languages


WORDS: Final = LanguageCheck(
    "statements and new facts whose words are not in the news", tuple(VOCABULARIES)
)
DATES: Final = LanguageCheck("weekdays and months that are not in the news", tuple(VOCABULARIES))
LANGUAGE: Final = LanguageCheck(
    "texts in a different language from the original", tuple(VOCABULARIES)
)
NAMES: Final = LanguageCheck("names that are not in the news", (ENGLISH, "es"))
"""German is not supported: all its nouns have a capital, so names do not stand out."""
CONDUCT: Final = LanguageCheck("actions of named people that the news does not report")
HARM: Final = LanguageCheck("harm that moves from one person to another")
HEDGES: Final = LanguageCheck("possibilities that are turned into facts (might, reportedly)")
PROFANITY: Final = LanguageCheck("coarse words that are not in the original")
HEADLINE_STYLE: Final = LanguageCheck("texts that read like a headline (judged by function words)")
SAFETY_LISTS: Final = LanguageCheck(
    "self-harm, sexual violence and hostility, by CoreEval's word lists (the extractor flags them)"
)
CHECKS: Final = (
    WORDS, DATES, LANGUAGE, NAMES, CONDUCT, HARM, HEDGES, PROFANITY, HEADLINE_STYLE, SAFETY_LISTS,
)  # fmt: skip


def list_unchecked(language: str) -> list[str]:
    """Return what code does not check for texts in a language; nothing for English."""
    return [check.about for check in CHECKS if not check.knows(language)]
