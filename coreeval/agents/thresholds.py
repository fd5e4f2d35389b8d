"""Every number that a check compares with, in one place, each with where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from coreeval.schema import Task


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What the checks tolerate for one kind of text."""

    length_share: float
    """Words more or fewer than the original, as a share; fitted to 70 accepted texts (pilot §7)."""
    length_words: int
    """Words more or fewer that always pass, so that short texts can change (pilot §7)."""
    copied_original: float
    """Most of D-hat's word trigrams that the original may hold, locks masked (pilot §7)."""
    function_words: float
    """Share of function words under which a text may read like a headline: half of all headlines
    are under 0.20, and 3 to 7 % of originals fall below it (`benchmarks/voice.py`)."""
    headline_run: int
    """Most words in a row that one headline may have too (own choice: a name with its verb; a news
    sentence has longer names)."""
    function_fall: float = 0.15
    """How far it must also lie under the original's share (own choice: about one deviation)."""
    style_words: int = 6
    """Fewest content words of which a style can be told (own choice)."""
    figures: int = 1
    """Figures that a personal text without any may gain: 3 to 5 % of tweets have more than one
    (`benchmarks/voice.py`)."""
    line_breaks: int = 1
    """Written line breaks more or fewer (own choice)."""
    copied_title: float = 0.55
    """Most of D-hat's word trigrams that one headline may hold; seen up to 0.53 (pilot §7)."""
    copied_rewrite: float = 0.6
    """Most of D^s's word trigrams that the original may hold, locks masked (pilot §7)."""
    hashtags: int = 1
    """Hashtags more or fewer (pilot §7)."""
    emoji: int = 1
    """Emoji more or fewer (pilot §7)."""
    latin_share: float = 0.5
    """Share of Latin letters under which a text is in another script: a plain majority."""
    judged_trigrams: int = 4
    """Fewest trigrams of which a share is taken; with fewer, two chance hits decide."""


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
"""By `Task.text_kind`."""


def thresholds_of(task: Task) -> Thresholds:
    """Return the checks' thresholds for a task."""
    return THRESHOLDS[task.text_kind]
