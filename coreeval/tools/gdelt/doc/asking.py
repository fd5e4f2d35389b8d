"""Asking DOC 2.0 for all terms of a fetch: the newest news first, until enough is known."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from coreeval.schema import Window
from coreeval.tools.gdelt.doc.answers import (
    Answer,
    Failed,
    Listed,
    Nothing,
    Rejected,
    Throttled,
    read,
)
from coreeval.tools.gdelt.doc.articles import articles
from coreeval.tools.gdelt.doc.filters import MOST_ROWS, parameters
from coreeval.tools.gdelt.doc.pace import Pace
from coreeval.tools.gdelt.doc.packing import SHORTEST_SLICE, Ask, packed
from coreeval.tools.gdelt.doc.tally import Tally
from coreeval.tools.gdelt.doc.wire import NoReply, Wire
from coreeval.tools.gdelt.rows import Article

THROTTLES = 30
"""Tries of a request that is throttled; nine of ten were seen to be (research: gdelt §0)."""
FAILURES = 3
"""Tries of a request that comes to nothing: one that always does is not asked for ever."""
DEEPEST = 3
"""How often the rest of a full list is asked for."""
_SECOND = timedelta(seconds=1)


@dataclass(kw_only=True)
class Asking:
    """The requests of one fetch, one after the other."""

    wire: Wire
    pace: Pace
    timeout_s: float
    deadline_s: float
    """Seconds for everything. What could not have its whole time-out is not begun."""
    found: Callable[[Article], None]
    """Told each article that comes."""
    wanted: Callable[[], Collection[str]]
    """Returns the terms that more articles are wanted for, in the order of their importance."""
    tally: Tally = field(default_factory=Tally)
    _queue: deque[Ask] = field(default_factory=deque)
    _until: float = 0.0

    async def ask(self, spans: Sequence[Window]) -> Tally:
        """Ask about each span, for what is still wanted then.

        Raises:
            KnowledgeError: the pace of requests cannot be kept.
        """
        self._until = asyncio.get_running_loop().time() + self.deadline_s
        kept_s = min(self.timeout_s, self.deadline_s / 2)
        for at, span in enumerate(spans):
            wanted = [term for term in self.wanted() if not self.tally.is_rejected(term)]
            self._queue.extend(Ask(terms=terms, span=span) for terms in packed(wanted))
            while self._queue:
                if not await self.pace.turn(self._left_s() - kept_s):
                    self._give_up(more=at + 1 < len(spans))
                    return self.tally
                ask = self._queue.popleft()
                self._take(ask, await self._answer(ask))
                if self.tally.rejects_all:
                    self.tally.gave_up = True
                    self._give_up(more=at + 1 < len(spans))
                    return self.tally
        return self.tally

    def _left_s(self) -> float:
        return self._until - asyncio.get_running_loop().time()

    def _give_up(self, *, more: bool) -> None:
        """Leave what waits, and what would be asked about older spans."""
        if not self.tally.requests:
            self.tally.trouble = self.pace.trouble()
        elif self.tally.only_rejected or self.tally.gave_up:
            self.tally.trouble = "rejected"
        if more:
            self.tally.left(self.wanted())
        self.tally.left(term for ask in self._queue for term in ask.terms)
        for ask in self._queue:
            if ask.rejected:
                self.tally.rejected_together(ask.terms, ask.rejected)
        self._queue.clear()

    async def _answer(self, ask: Ask) -> Answer:
        """Send one request, and tell the others whether the service is well."""
        self.tally.requests += 1
        timeout_s = min(self.timeout_s, self._left_s())
        answer: Answer
        try:
            answer = read(await self.wire.get(parameters(ask), timeout_s))
        except NoReply as error:
            answer = Failed(str(error))
        if isinstance(answer, Throttled):
            self.pace.failed("throttled", answer.retry_after_s)
        elif isinstance(answer, Failed):
            self.pace.failed("unavailable")
        else:
            self.pace.answered()
        return answer

    def _take(self, ask: Ask, answer: Answer) -> None:
        match answer:
            case Listed(rows):
                self.tally.answered += 1
                self._take_rows(ask, list(articles(rows, _origin(ask))), full=len(rows))
            case Nothing():
                self.tally.answered += 1
                if not ask.empty:
                    self._queue.append(replace(ask, empty=True))
            case Throttled():
                self.tally.throttled += 1
                self._again(replace(ask, throttled=ask.throttled + 1))
            case Failed(message):
                self.tally.failed += 1
                self.tally.last_failure = message
                self._again(replace(ask, failed=ask.failed + 1))
            case Rejected(message):
                self.tally.refusals += 1
                self.tally.refused_as.add(message)
                self._divide(ask, message)

    def _again(self, ask: Ask) -> None:
        """Put a request behind the others, unless it had its tries."""
        self.tally.trouble = "unavailable" if ask.failed else "throttled"
        if ask.throttled < THROTTLES and ask.failed < FAILURES:
            self._queue.append(ask)
        else:
            self.tally.lost(ask.terms, self.tally.trouble)

    def _divide(self, ask: Ask, message: str) -> None:
        """Ask for each term of a refused request alone; one that is refused alone is lost."""
        if len(ask.terms) == 1:
            self.tally.rejected[message] += 1
            self.tally.lost(ask.terms, "rejected")
            return
        alone = replace(ask, rejected=message)
        self._queue.extend(replace(alone, terms=(term,)) for term in ask.terms)

    def _take_rows(self, ask: Ask, listed: Sequence[Article], *, full: int) -> None:
        for article in listed:
            self.found(article)
        if full >= MOST_ROWS:
            self._queue.extend(self._rest(ask, listed))

    def _rest(self, ask: Ask, listed: Sequence[Article]) -> Iterator[Ask]:
        """Yield requests for what is older than the last row, in halves, for what still lacks news.

        So a name that fills every list does not stand in the way of a rare one beside it.
        """
        wanted = self.wanted()
        terms = tuple(term for term in ask.terms if term in wanted)
        oldest = min((article.crawled_at for article in listed), default=ask.span.start)
        end = min(oldest + _SECOND, ask.span.end - SHORTEST_SLICE)
        if ask.depth >= DEEPEST or end - ask.span.start < SHORTEST_SLICE:
            self.tally.cut |= set(terms)
            return
        middle = (len(terms) + 1) // 2
        for part in (terms[:middle], terms[middle:]):
            if part:
                span = Window(start=ask.span.start, end=end)
                yield Ask(terms=part, span=span, depth=ask.depth + 1)


def _origin(ask: Ask) -> str:
    """Name a request so that it can be repeated."""
    query = parameters(ask)
    return f"doc {query['startdatetime']}-{query['enddatetime']} {query['query']}"
