"""What is assumed where nothing has been recorded yet; every figure says where it comes from.

Calls: what the sample graph asks (docs/pipeline.md) and how samples ended in the quality trials
(docs/quality.md: 5.4 to 7.7 calls a sample, 2.2 to 2.8 of them label readings). Answers: those of
the bundled rules on the demo's 120 samples, at 3.5 characters a token, with the drafts that only a
model writes; the high end is a talkative model's; those about series: NumLeak's records, from a
bare number to a refusal in a few sentences. Speed: an answer comes at 150, 60 or 20 tokens a
second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coreeval.graph.forecast.ranges import Range, between, exactly
from coreeval.schema import Arm, RoleName

CHARACTERS_PER_TOKEN = between(3.0, 4.0, 4.8)
"""English prompts with JSON in them, over the tokenisers in use."""
CACHED_FROM = 1024
"""Tokens from which providers keep the beginning of a prompt for the next one."""
ASKED_AGAIN = between(1.0, 1.02, 1.15)
"""Calls for each answer: some answers cannot be read and are asked for again."""
RETRY_PROMPT = between(1.0, 1.02, 1.1)
"""Length of what varies in a prompt, in that of a first attempt: a retry shows the last try."""


@dataclass(frozen=True)
class Attempts:
    """Calls of a role for each sample: of first attempts, and of all later ones."""

    first: Range
    again: Range


_CALLS: Mapping[RoleName, Attempts] = {
    "extractor": Attempts(exactly(1), exactly(0)),
    "replacer": Attempts(between(0.4, 0.9, 1), between(0, 0.1, 1)),
    "rewriter": Attempts(between(0.9, 1.05, 2), exactly(0)),
    "composer": Attempts(between(0.2, 0.8, 1), between(0, 0.3, 1)),
    "fact_judge": Attempts(between(0.15, 0.75, 1), between(0, 0.2, 1)),
    "label_judge": Attempts(between(1.6, 2.7, 3), between(0, 0.1, 1)),
}
ARMS: Mapping[Arm, Range] = {
    "original": exactly(1),
    "semantic": between(0.5, 0.9, 1),
    "updated": between(0.15, 0.7, 1),
}
"""Share of the samples that each arm has."""
REWORDING: Mapping[RoleName, Range] = {
    "extractor": exactly(1),
    "rewriter": _CALLS["rewriter"].first,
    "label_judge": between(1.5, 1.9, 2),
}
"""Calls of a role for each train item: what comes before the news for a sample."""
AFTER_NEWS: tuple[RoleName, ...] = ("replacer", "composer", "fact_judge", "label_judge")
"""Roles that are asked about a sample once news of it was found."""
_ANSWERS: Mapping[str, Range] = {
    "extractor": between(150, 300, 700),
    "replacer": between(150, 350, 900),
    "rewriter": between(40, 80, 200),
    "composer": between(80, 220, 600),
    "fact_judge": between(80, 200, 600),
    "label_judge": between(25, 45, 120),
    "target": between(8, 12, 60),
    "target_text": between(2, 100, 600),
    "target_series": between(3, 30, 150),
    "target_series_prose": between(80, 250, 500),
    "target_utility": between(60, 250, 900),
    "utility_judge": between(20, 45, 120),
    "paraphraser": between(80, 300, 1500),
}
"""Tokens of an answer."""
_THOUGHTLESS = {None, "none", "minimal"}


def calls_of(role: RoleName, max_attempts: int) -> Range:
    """Return how often a role is asked about a sample."""
    attempts = _CALLS[role]
    planned = attempts.first + attempts.again if max_attempts > 1 else attempts.first
    return planned * ASKED_AGAIN


def answer_of(role: str, *, max_tokens: int, effort: str | None) -> Range:
    """Return how many tokens an answer of a role has.

    A model that is told to think may think up to the limit: thoughts are paid as answers.
    """
    usual = _ANSWERS[role]
    if effort in _THOUGHTLESS:
        return usual.at_most(max_tokens)
    return between(usual.low, 3 * usual.likely, max(3 * usual.likely, max_tokens)).at_most(
        max_tokens
    )


def seconds_of(answer: Range) -> Range:
    """Return how long a call takes whose answer has so many tokens."""
    return between(0.5 + answer.low / 150, 1.5 + answer.likely / 60, 5 + answer.high / 20)
