"""The rules of providers' prompt caches, and which models require marks.

A provider has a prefix in its cache once the first answer to it has begun. Requests that are sent
side by side before that find nothing, so the first request of each prefix goes ahead of the others.

Their rules as of 2026-10-08, by provider:
https://developers.openai.com/api/docs/guides/prompt-caching and
https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from coreeval.config import ModelConfig
from coreeval.models.activity import pause_sample_clock

FEWEST_TOKENS = 1024
"""The fewest tokens of a prefix that OpenAI caches, and Anthropic for most models."""
FEWEST_TOKENS_OF_ANY = 512
"""The same for the models that cache the shortest prefixes."""
_FEWEST_TOKENS_OF_CLAUDE = (
    (re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-[5-9]-[1-9]\b"), 512),
    (re.compile(r"claude-(?:opus|fable|mythos)-5\b"), 512),
    (re.compile(r"claude-opus-4-7\b|claude-mythos-preview|claude-3-5-haiku"), 2048),
    (re.compile(r"claude-(?:opus-4-[56]|haiku-4-5)\b"), 4096),
)
_GPT = re.compile(r"(?:ft:)?gpt-(\d+)(?:\.(\d+))?(?![\d.]|o)")
_MARKS_FROM = (5, 6)
"""The version of GPT from which a cached prefix ends only where a request marks it."""


def find_fewest_tokens(config: ModelConfig) -> int | None:
    """Return the fewest tokens of a prefix that a model's provider caches.

    None for an endpoint whose rule is not known: one of the user's own, or of another provider.
    """
    if config.base_url is not None or config.provider not in ("openai", "anthropic"):
        return None
    if config.provider == "openai":
        return FEWEST_TOKENS
    fewest = (tokens for name, tokens in _FEWEST_TOKENS_OF_CLAUDE if name.match(config.name))
    return next(fewest, FEWEST_TOKENS)


def wants_breakpoints(config: ModelConfig) -> bool:
    """Return whether a model behind OpenAI's own endpoint caches up to marks only.

    GPT before 5.6 finds the longest prefix that it has seen, in steps of 128 tokens. Later models
    match a prefix only if a request marked its end, and charge more for writing it than for
    ordinary tokens. By default they mark the end of the last message, which is never repeated in
    our prompts.
    """
    if config.base_url is not None or config.provider != "openai":
        return False
    found = _GPT.match(config.name)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _MARKS_FROM


LONGEST_HOLD_S: Final = 30.0
"""How long requests wait at most for the first one with their prefix."""


class FirstRequests:
    """Sends the first request of each prefix alone, so that the others find it in the cache.

    Args:
        longest_s: Seconds after which the others are sent although the first has no answer yet.
    """

    def __init__(self, longest_s: float = LONGEST_HOLD_S) -> None:
        self._longest_s = longest_s
        self._ended: dict[Hashable, asyncio.Event] = {}

    @asynccontextmanager
    async def go_ahead(self, prefix: Hashable | None) -> AsyncIterator[None]:
        """Hold the request in the block until the first one with its prefix has ended, however.

        Args:
            prefix: What the prompt begins with; None if no cache keeps it.
        """
        if prefix is None:
            yield
            return
        ended = self._ended.get(prefix)
        if ended is None:
            ended = self._ended[prefix] = asyncio.Event()
        elif not ended.is_set():
            with pause_sample_clock():
                try:
                    async with asyncio.timeout(self._longest_s):
                        await ended.wait()
                except TimeoutError:
                    ended.set()
        try:
            yield
        finally:
            ended.set()
