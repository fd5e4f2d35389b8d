"""Checks in a site's robots.txt whether its pages may be read for text mining.

RFC 9309: without a file everything is allowed; a file that cannot be reached forbids everything.
Besides the rules for CoreEval and for all agents, those for agents that collect texts for language
models are obeyed: a publisher that excludes them does not want this use.
"""

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ValidationError

from coreeval.schema import Value
from coreeval.tools.articles.article_text import WhyNoText
from coreeval.tools.json_cache import JsonCache

if TYPE_CHECKING:
    from protego import Protego

ROBOTS_LIFE_S: Final = 24 * 3600.0
"""The seconds for which a file is kept (RFC 9309 §2.4)."""
UNKNOWN_LIFE_S: Final = 3600.0
"""The seconds for which a file that could not be read is not requested again (own choice)."""
MOST_ROBOTS_BYTES: Final = 500 << 10
"""The number of bytes of a file that are read; the rest is ignored (RFC 9309 §2.5)."""
MINING_AGENTS: Final = ("GPTBot", "CCBot", "ClaudeBot", "Google-Extended")
"""Agents whose exclusion means that a publisher does not allow text mining."""
_RESERVED: Final = re.compile(
    r"^[ \t]*(?:content-signal[ \t]*:.*\bai-(?:train|input)\s*=\s*no\b"
    r"|content-usage[ \t]*:.*\btrain-ai\s*=\s*n\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines by which a publisher reserves the use of texts for language models."""
LONGEST_DELAY_S: Final = 300.0
"""The longest crawl delay that is obeyed; hosts with a longer one are skipped."""


class RobotsFile(Value):
    """A site's answer to the request for its robots.txt."""

    state: Literal["rules", "none", "unknown"]
    """Whether there are rules, there is no file, or the file could not be read."""
    text: str = ""
    read_at: float = 0.0


@dataclass(frozen=True)
class RobotsRules:
    """The rules of a site.

    Args:
        state: The state of the file.
        parsed: The rules, if there is a file.
        agent: The name by which robots.txt files address CoreEval.
        reserved: Whether a line of the file reserves text mining.
    """

    state: Literal["rules", "none", "unknown"]
    parsed: "Protego | None"
    agent: str
    reserved: bool = False

    def objection(self, url: str) -> tuple[WhyNoText, str] | None:
        """Return why a page must not be read, with the excluded agent; None if it may be."""
        if self.state == "unknown":
            return "robots_unknown", ""
        if self.parsed is None:
            return None
        for agent in (self.agent, "*"):
            if not self.parsed.can_fetch(url, agent):
                return "forbidden", f"User-agent: {agent}"
        shut_out = [each for each in MINING_AGENTS if not self.parsed.can_fetch(url, each)]
        if shut_out or self.reserved:
            line = f"User-agent: {shut_out[0]}" if shut_out else "Content-Signal or Content-Usage"
            return "opted_out", f"robots.txt, {line}"
        if self.delay_s() > LONGEST_DELAY_S:
            return "host_busy", f"Crawl-delay: {self.delay_s():g}"
        return None

    def delay_s(self) -> float:
        """Return the seconds between two requests that the site requests; 0 if it requests none."""
        if self.parsed is None:
            return 0.0
        asked = (self.parsed.crawl_delay(agent) for agent in (self.agent, "*"))
        return max((float(delay) for delay in asked if delay), default=0.0)


@dataclass(frozen=True)
class RobotsFiles:
    """The robots.txt files of sites, each read once a day.

    Args:
        cache: The cache of the files.
        agent: The name by which they address CoreEval.
        clock: Returns the seconds since 1970.
    """

    cache: JsonCache
    agent: str
    clock: Callable[[], float] = time.time

    async def rules(self, origin: str, read: Callable[[], Awaitable[RobotsFile]]) -> RobotsRules:
        """Return the rules of a site.

        Args:
            origin: The site's scheme, host and port.
            read: Reads the site's robots.txt.
        """
        file = self._kept(origin)
        if file is None:
            file = (await read()).model_copy(update={"read_at": self.clock()})
            life_s = UNKNOWN_LIFE_S if file.state == "unknown" else ROBOTS_LIFE_S
            self.cache.put(_key(origin), file.model_dump(mode="json"), expire_s=life_s)
        return self._parse(file)

    def _kept(self, origin: str) -> RobotsFile | None:
        try:
            file = RobotsFile.model_validate(self.cache.get(_key(origin)))
        except ValidationError:
            return None
        life_s = UNKNOWN_LIFE_S if file.state == "unknown" else ROBOTS_LIFE_S
        return file if 0 <= self.clock() - file.read_at < life_s else None

    def _parse(self, file: RobotsFile) -> RobotsRules:
        from protego import Protego

        parsed = Protego.parse(file.text) if file.state == "rules" else None
        return RobotsRules(file.state, parsed, self.agent, bool(_RESERVED.search(file.text)))


def _key(origin: str) -> str:
    return f"robots {origin}"


def decode_robots(body: bytes) -> str:
    """Return the text of a robots.txt without a truncated last line."""
    if len(body) >= MOST_ROBOTS_BYTES:
        body = body[:MOST_ROBOTS_BYTES].rpartition(b"\n")[0]
    return body.decode("utf-8", errors="replace").removeprefix("\ufeff")
