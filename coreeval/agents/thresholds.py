"""All thresholds of the checks, each with its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from coreeval.schema import Task


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The tolerances of the checks for one kind of text."""

    length_share: float
    """The most words gained or lost, as a share of the original; fitted to 70 accepted texts (pilot
    §7).
    """
    length_words: int
    """The number of words gained or lost that always passes, so that short texts can change (pilot
    §7).
    """
    copied_original: float
    """The largest share of D-hat's word trigrams that may be in the original, locks masked (pilot
    §7).
    """
    function_words: float
    """The share of function words below which a text may read like a headline: half of all
    headlines are under 0.20, and 3 to 7 % of originals fall below it (`benchmarks/voice.py`)."""
    headline_run: int
    """The most consecutive words that one headline may share (own choice: a name with its verb; a
    news sentence has longer names)."""
    function_fall: float = 0.15
    """The least difference by which the share must also be below the original's (own choice: about
    one deviation)."""
    style_words: int = 6
    """The fewest content words from which a style can be recognised (own choice)."""
    shared_words: float = 0.3
    """The most by which the share of a pair's second field whose words are in the first may differ
    from the original's (own choice: two of seven words)."""
    shared_words_free: int = 2
    """The number of shared words gained or lost that always passes (own choice)."""
    figures: int = 1
    """The most figures added to a personal text without figures: 3 to 5 % of tweets have more than
    one (`benchmarks/voice.py`)."""
    line_breaks: int = 1
    """The most line breaks gained or lost (own choice)."""
    copied_title: float = 0.55
    """The largest share of D-hat's word trigrams in one headline; observed up to 0.53 (pilot
    §7)."""
    copied_form: float = 0.6
    """The largest share of a new question's word trigrams that may be in the original, locks masked
    (own choice: "what was the percentage change in ... from ... to ..." is form)."""
    copied_rewrite: float = 0.6
    """The largest share of D^s's word trigrams that may be in the original, locks masked (pilot
    §7)."""
    hashtags: int = 1
    """The most hashtags gained (pilot §7)."""
    emoji: int = 1
    """The most emoji gained or lost (pilot §7)."""
    latin_share: float = 0.5
    """The share of Latin letters below which a text is in another script: a simple majority."""
    judged_trigrams: int = 4
    """The fewest trigrams for which a share is computed; with fewer, two chance matches decide."""


THRESHOLDS: Mapping[Literal["tweet", "sentence"], Thresholds] = MappingProxyType(
    {
        "tweet": Thresholds(
            length_share=0.25,
            length_words=4,
            copied_original=0.35,
            function_words=0.25,
            headline_run=5,
        ),
        "sentence": Thresholds(
            length_share=0.40,
            length_words=4,
            copied_original=0.20,
            function_words=0.22,
            headline_run=8,
        ),
    }
)
"""Thresholds by `Task.text_kind`."""


def thresholds_of(task: Task) -> Thresholds:
    """Return the checks' thresholds for a task."""
    return THRESHOLDS[task.text_kind]
