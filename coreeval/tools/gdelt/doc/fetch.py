"""Asking DOC 2.0 for all terms of a fetch: the newest news first, until enough is known."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from coreeval.schema import NoEvidence, Window
from coreeval.tools.gdelt.doc.queries import (
    MOST_ROWS,
    SHORTEST_SLICE,
    DocQuery,
    pack_terms,
    request_parameters,
)
from coreeval.tools.gdelt.doc.replies import (
    ArticleList,
    DocAnswer,
    DocRow,
    DocWire,
    EmptyAnswer,
    NoReply,
    RateLimitAnswer,
    Rejection,
    ServiceFailure,
    read_reply,
)
from coreeval.tools.gdelt.doc.throttle import RequestThrottle
from coreeval.tools.gdelt.page_text import repair_title
from coreeval.tools.gdelt.rows import Article, host_of, parse_stamp
from coreeval.tools.gdelt.words import language_code

MOST_REFUSED = 10
"""Requests that are refused for the same reason, and none answered, before asking ends (our choice:
80 s at the usual spacing; a service that is well has answered one of ten by then)."""


@dataclass
class FetchTally:
    """Counts that the reasons and the notes are made from."""

    requests: int = 0
    throttled: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Terms refused, by what the service said."""
    refusals: int = 0
    """Requests refused for what they ask, with one term or with several."""
    answered: int = 0
    """Requests answered with a list, empty ones included."""
    refused_as: set[str] = field(default_factory=set)
    """What the service said of refused requests."""
    gave_up: bool = False
    """Whether asking ended because the service refuses whatever it is asked."""
    together: Counter[str] = field(default_factory=Counter)
    """Terms refused beside others and not asked for alone in time, by what the service said."""
    last_failure: str = ""
    trouble: NoEvidence = "throttled"
    """What kept the service from answering last; asking slowly is trouble of the first kind."""
    fates: dict[str, NoEvidence] = field(default_factory=dict)
    """Terms that were not answered for the whole window, and why."""
    unasked: set[str] = field(default_factory=set)
    """Terms that were left for want of time."""
    cut: set[str] = field(default_factory=set)
    """Terms with more articles than could be listed."""

    @property
    def only_rejected(self) -> bool:
        """True if every request so far was refused for what it asks."""
        return self.requests > 0 and self.refusals == self.requests

    @property
    def rejects_all(self) -> bool:
        """True if so many requests were refused for one reason, and none answered, that all are."""
        return not self.answered and self.refusals >= MOST_REFUSED and len(self.refused_as) == 1

    def is_rejected(self, term: str) -> bool:
        """Tell whether a term was refused when it was asked for alone: asking again is no use."""
        return self.fates.get(term) == "rejected"

    def note_joint_rejection(self, terms: Iterable[str], message: str) -> None:
        """Note terms whose only request was refused: they are rejected, not short of time."""
        refused = set(terms)
        self.together[message] += len(refused)
        self.unasked -= refused
        self.note_lost(refused, "rejected")

    def note_lost(self, terms: Iterable[str], fate: NoEvidence) -> None:
        """Note terms without an answer."""
        self.fates.update(dict.fromkeys(terms, fate))

    def note_unasked(self, terms: Iterable[str]) -> None:
        """Note terms that there was no time for; one that was rejected stays so."""
        left = {term for term in terms if not self.is_rejected(term)}
        self.unasked |= left
        self.note_lost(left, self.trouble)


def to_articles(rows: Sequence[DocRow], origin: str) -> Iterator[Article]:
    """Yield what can be used: rows with a title, an address and the time when GDELT saw the page.

    Args:
        rows: As the service lists them.
        origin: Which request they answer; the row's number is added.
    """
    for number, row in enumerate(rows, start=1):
        crawled_at = parse_stamp(_text(row, "seendate"))
        title, url = repair_title(_text(row, "title")), _text(row, "url")
        if crawled_at and title and host_of(url):
            yield Article(
                url=url,
                title=title,
                crawled_at=crawled_at,
                language=language_code(_text(row, "language")),
                origin=f"{origin}:{number}",
            )


def _text(row: DocRow, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


THROTTLES = 30
"""Tries of a request that is throttled; nine of ten were seen to be (research: gdelt §0)."""
FAILURES = 3
"""Tries of a request that comes to nothing: one that always does is not asked for ever."""
DEEPEST = 3
"""How often the rest of a full list is asked for."""
_SECOND = timedelta(seconds=1)


@dataclass(kw_only=True)
class DocFetch:
    """The requests of one fetch, one after the other."""

    wire: DocWire
    pace: RequestThrottle
    timeout_s: float
    deadline_s: float
    """Seconds for everything. What could not have its whole time-out is not begun."""
    found: Callable[[Article], None]
    """Told each article that comes."""
    wanted: Callable[[], Collection[str]]
    """Returns the terms that more articles are wanted for, in the order of their importance."""
    tally: FetchTally = field(default_factory=FetchTally)
    _queue: deque[DocQuery] = field(default_factory=deque)
    _until: float = 0.0

    async def ask(self, spans: Sequence[Window]) -> FetchTally:
        """Ask about each span, for what is still wanted then.

        Raises:
            KnowledgeError: the pace of requests cannot be kept.
        """
        self._until = asyncio.get_running_loop().time() + self.deadline_s
        kept_s = min(self.timeout_s, self.deadline_s / 2)
        for at, span in enumerate(spans):
            wanted = [term for term in self.wanted() if not self.tally.is_rejected(term)]
            self._queue.extend(DocQuery(terms=terms, span=span) for terms in pack_terms(wanted))
            while self._queue:
                if not await self.pace.turn(self._remaining_s() - kept_s):
                    self._give_up(more=at + 1 < len(spans))
                    return self.tally
                ask = self._queue.popleft()
                self._take(ask, await self._answer(ask))
                if self.tally.rejects_all:
                    self.tally.gave_up = True
                    self._give_up(more=at + 1 < len(spans))
                    return self.tally
        return self.tally

    def _remaining_s(self) -> float:
        return self._until - asyncio.get_running_loop().time()

    def _give_up(self, *, more: bool) -> None:
        """Leave what waits, and what would be asked about older spans."""
        if not self.tally.requests:
            self.tally.trouble = self.pace.trouble()
        elif self.tally.only_rejected or self.tally.gave_up:
            self.tally.trouble = "rejected"
        if more:
            self.tally.note_unasked(self.wanted())
        self.tally.note_unasked(term for ask in self._queue for term in ask.terms)
        for ask in self._queue:
            if ask.rejected:
                self.tally.note_joint_rejection(ask.terms, ask.rejected)
        self._queue.clear()

    async def _answer(self, ask: DocQuery) -> DocAnswer:
        """Send one request, and tell the others whether the service is well."""
        self.tally.requests += 1
        timeout_s = min(self.timeout_s, self._remaining_s())
        answer: DocAnswer
        try:
            answer = read_reply(await self.wire.get(request_parameters(ask), timeout_s))
        except NoReply as error:
            answer = ServiceFailure(str(error))
        if isinstance(answer, RateLimitAnswer):
            self.pace.note_failure("throttled", answer.retry_after_s)
        elif isinstance(answer, ServiceFailure):
            self.pace.note_failure("unavailable")
        else:
            self.pace.note_answer()
        return answer

    def _take(self, ask: DocQuery, answer: DocAnswer) -> None:
        match answer:
            case ArticleList(rows):
                self.tally.answered += 1
                self._take_rows(ask, list(to_articles(rows, _origin(ask))), full=len(rows))
            case EmptyAnswer():
                self.tally.answered += 1
                if not ask.empty:
                    self._queue.append(replace(ask, empty=True))
            case RateLimitAnswer():
                self.tally.throttled += 1
                self._again(replace(ask, throttled=ask.throttled + 1))
            case ServiceFailure(message):
                self.tally.failed += 1
                self.tally.last_failure = message
                self._again(replace(ask, failed=ask.failed + 1))
            case Rejection(message):
                self.tally.refusals += 1
                self.tally.refused_as.add(message)
                self._divide(ask, message)

    def _again(self, ask: DocQuery) -> None:
        """Put a request behind the others, unless it had its tries."""
        self.tally.trouble = "unavailable" if ask.failed else "throttled"
        if ask.throttled < THROTTLES and ask.failed < FAILURES:
            self._queue.append(ask)
        else:
            self.tally.note_lost(ask.terms, self.tally.trouble)

    def _divide(self, ask: DocQuery, message: str) -> None:
        """Ask for each term of a refused request alone; one that is refused alone is lost."""
        if len(ask.terms) == 1:
            self.tally.rejected[message] += 1
            self.tally.note_lost(ask.terms, "rejected")
            return
        alone = replace(ask, rejected=message)
        self._queue.extend(replace(alone, terms=(term,)) for term in ask.terms)

    def _take_rows(self, ask: DocQuery, listed: Sequence[Article], *, full: int) -> None:
        for article in listed:
            self.found(article)
        if full >= MOST_ROWS:
            self._queue.extend(self._rest(ask, listed))

    def _rest(self, ask: DocQuery, listed: Sequence[Article]) -> Iterator[DocQuery]:
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
                yield DocQuery(terms=part, span=span, depth=ask.depth + 1)


def _origin(ask: DocQuery) -> str:
    """Name a request so that it can be repeated."""
    query = request_parameters(ask)
    return f"doc {query['startdatetime']}-{query['enddatetime']} {query['query']}"
