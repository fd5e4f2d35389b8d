"""Prompt caches that count as the providers' do, for a server that stands in for them.

What is served is a prompt as tokens, and when. A prompt can be found in a cache only once its
answer has begun: requests that are sent side by side are all written. Sources of the rules:
coreeval/models/prompt_cache.py; for vLLM https://docs.vllm.ai/en/latest/design/prefix_caching.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

Tokens = Sequence[Hashable]


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt as a cache sees it."""

    tokens: Tokens
    marks: Sequence[int]
    """Where the prefixes end that the request wants to be cached, in tokens."""
    key: str = ""
    """Leads requests to one machine."""


@dataclass(frozen=True)
class Served:
    """Tokens of a prompt that were found in a cache, and those that were put there."""

    cached: int
    written: int = 0


@dataclass(kw_only=True)
class BlockCache:
    """A cache that finds the longest beginning it has seen, in steps, without marks.

    OpenAI's before GPT-5.6: from 1,024 tokens on in steps of 128. A machine takes some 15 requests
    a minute of one key; of more, machines of their own caches take turns, which is our reading of
    "some may overflow". vLLM: 16 tokens in steps of 16, on one machine.
    """

    first: int
    step: int
    answers_after_s: float
    per_minute: int | None = None
    _ready: dict[tuple[str, int], dict[int, float]] = field(default_factory=dict)
    _asked: dict[str, deque[float]] = field(default_factory=dict)
    _number: dict[str, int] = field(default_factory=dict)

    def serve(self, prompt: Prompt, now: float) -> Served:
        """Count what is found of a prompt, and keep it."""
        ready = self._ready.setdefault((prompt.key, self._machine(prompt.key, now)), {})
        found, whole = 0, True
        for end, prefix in self._prefixes(prompt.tokens):
            whole = whole and ready.get(prefix, now + 1) <= now
            found = end if whole else found
            ready.setdefault(prefix, now + self.answers_after_s)
        return Served(found)

    def _machine(self, key: str, now: float) -> int:
        if self.per_minute is None:
            return 0
        asked = self._asked.setdefault(key, deque())
        while asked and asked[0] <= now - 60:
            asked.popleft()
        asked.append(now)
        machines = -(-len(asked) // self.per_minute)
        self._number[key] = self._number.get(key, -1) + 1
        return self._number[key] % machines

    def _prefixes(self, tokens: Tokens) -> Iterator[tuple[int, int]]:
        """Yield the end of each prefix that can be kept, and a hash of it."""
        start, prefix = 0, 0
        for end in count(self.first, self.step):
            if end > len(tokens):
                return
            prefix = hash((prefix, tuple(tokens[start:end])))
            start = end
            yield end, prefix


@dataclass(kw_only=True)
class MarkedCache:
    """A cache that keeps and finds prefixes only where a request marks their end.

    Anthropic's: some five minutes after its last use. OpenAI's from GPT-5.6 on: half an hour; it
    marks the end of the last message itself unless it is told not to.
    """

    fewest: int
    lasts_s: float
    answers_after_s: float
    _kept: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)
    """When each prefix can be found for the first time, and when it was used last."""

    def serve(self, prompt: Prompt, now: float) -> Served:
        """Count what is found of a prompt and what is written, and keep it."""
        found, last = 0, 0
        for end in sorted(prompt.marks):
            if end < self.fewest:
                continue
            name = prompt.key, hash(tuple(prompt.tokens[:end]))
            kept = self._kept.get(name)
            if kept is None or now - kept[1] > self.lasts_s:
                kept = now + self.answers_after_s, now
            elif kept[0] <= now:
                found = end
            self._kept[name] = kept[0], now
            last = end
        return Served(found, last - found)
