"""Queries DOC 2.0 for all terms of a fetch, the newest news first.

GDELT counts requests by IP address, and repeated violations extend the penalty for minutes
(research: gdelt §1). So one small file stores the time of the last request and the number of
consecutive failures.
"""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from coreeval.config.user_files import read_bytes
from coreeval.errors import KnowledgeError
from coreeval.schema import NoEvidence, Value, Window
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
from coreeval.tools.gdelt.page_text import repair_title
from coreeval.tools.gdelt.rows import Article, host_of, parse_stamp, read_text_field
from coreeval.tools.gdelt.words import language_code

IN_A_ROW = 3
"""The number of failed requests in a row after which requests pause."""
MOST_DOUBLINGS = 2
"""The most times that the first pause is doubled: one minute, two, then four."""
LONGEST_PAUSE_S = 600.0
"""The longest pause, whether our own or requested by a Retry-After header."""
SHORTEST_SLEEP_S = 0.001
LOCK_S = 10.0
"""The longest wait for the file in seconds; no process holds it for more than a moment."""


class ThrottleRecord(Value):
    """The contents of the throttle file; times are seconds since 1970."""

    last: float = 0.0
    """The time of the last request."""
    failures: int = 0
    """The number of requests in a row that were throttled or failed."""
    trouble: NoEvidence = "throttled"
    """The reason that the last of them failed."""
    shut_until: float = 0.0
    """The time before which no request is sent."""


@dataclass(frozen=True, kw_only=True)
class RequestThrottle:
    """A throttle that grants turns to send requests, shared by processes with the same file."""

    file: Path
    spacing_s: float
    pause_s: float
    """The first pause in seconds after `IN_A_ROW` failures; it doubles `MOST_DOUBLINGS` times."""
    probe_s: float
    """The seconds that one request may try the service after a pause, while the others wait."""
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    """Returns a number from 0 to 1; pauses are up to a tenth longer, so that processes do not
    resume simultaneously."""

    async def turn(self, left_s: float) -> bool:
        """Wait for a turn and take it; return False immediately if there is none in the time left.

        The time left is reduced by the time waited, because the system clock may change meanwhile.

        Raises:
            KnowledgeError: the file cannot be written.
        """
        while True:
            with self._lock_record() as record:
                now = self.clock()
                wait_s = max(0.0, self._ready(record) - now)
                if wait_s > left_s:
                    return False
                if not wait_s:
                    self._write(self._next_record(record, now))
                    return True
            await self.sleep(max(wait_s, SHORTEST_SLEEP_S))
            left_s -= wait_s

    def note_answer(self) -> None:
        """Record that the service answered, even if it rejected the request."""
        with self._lock_record() as record:
            self._write(record.model_copy(update={"failures": 0, "shut_until": 0.0}))

    def note_failure(self, trouble: NoEvidence, retry_after_s: float | None = None) -> None:
        """Record a request that was throttled or failed; the third in a row pauses all requests."""
        with self._lock_record() as record:
            failures = record.failures + 1
            pause_s = max(retry_after_s or 0.0, self._pause_s(failures))
            shut_until = self.clock() + min(pause_s, LONGEST_PAUSE_S)
            if failures < IN_A_ROW:
                shut_until = max(shut_until, record.shut_until)
            self._write(
                record.model_copy(
                    update={"failures": failures, "trouble": trouble, "shut_until": shut_until}
                )
            )

    def trouble(self) -> NoEvidence:
        """Return the reason that the last unanswered request failed, in any process."""
        with self._lock_record() as record:
            return record.trouble

    def shut_until(self) -> float | None:
        """Return when the service may be queried again; None if there is no pause now."""
        with self._lock_record() as record:
            return record.shut_until if self.clock() < record.shut_until else None

    def _ready(self, record: ThrottleRecord) -> float:
        """Return the time of the next turn."""
        return max(record.last + self.spacing_s, record.shut_until)

    def _next_record(self, record: ThrottleRecord, now: float) -> ThrottleRecord:
        """Record a turn; after a pause it is a trial, and the others wait for its result."""
        trial = record.failures >= IN_A_ROW
        shut_until = now + self.probe_s if trial else record.shut_until
        return record.model_copy(update={"last": now, "shut_until": shut_until})

    def _pause_s(self, failures: int) -> float:
        if failures < IN_A_ROW:
            return 0.0
        doubled = self.pause_s * 2.0 ** min(failures - IN_A_ROW, MOST_DOUBLINGS)
        return doubled * (1 + self.jitter() / 10)

    @contextmanager
    def _lock_record(self) -> Iterator[ThrottleRecord]:
        """Lock the file and yield its record; an invalid one is replaced by a new one."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.file.with_suffix(".lock"), timeout=LOCK_S):
                yield self._read()
        except (OSError, Timeout) as error:
            raise KnowledgeError(
                f"the time of the last request to DOC 2.0 cannot be stored: {error}",
                where=str(self.file),
                hint="make this file's folder writable; CoreEval coordinates its requests there",
            ) from error

    def _read(self) -> ThrottleRecord:
        """Read the file; discard times too far ahead, written before the clock was set back."""
        try:
            record = ThrottleRecord.model_validate_json(read_bytes(self.file))
        except (FileNotFoundError, ValueError):
            return ThrottleRecord()
        now = self.clock()
        sound = record.last <= now and record.shut_until <= now + LONGEST_PAUSE_S
        return record if sound else ThrottleRecord()

    def _write(self, record: ThrottleRecord) -> None:
        """Write a new file and rename it, so that a kill leaves the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(record.model_dump_json(), encoding="utf-8")
        beside.replace(self.file)


MOST_REFUSED = 10
"""The number of requests refused for the same reason, with none answered, after which no more are
sent (our choice: 80 s at the usual spacing; a working service has answered one of ten by then)."""


@dataclass
class FetchTally:
    """The counts from which reasons and notes are derived."""

    requests: int = 0
    throttled: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """The number of rejected terms, by the service's message."""
    refusals: int = 0
    """The number of requests refused for their content, with one term or several."""
    answered: int = 0
    """The number of requests answered with a list, including empty ones."""
    unusable: int = 0
    """The number of rows in such lists without a usable title, address or time."""
    refused_as: set[str] = field(default_factory=set)
    """The service's messages about refused requests."""
    gave_up: bool = False
    """Whether requests ended because the service refuses all of them."""
    together: Counter[str] = field(default_factory=Counter)
    """The number of terms refused together with others and not retried alone in time, by the
    service's message."""
    last_failure: str = ""
    trouble: NoEvidence = "throttled"
    """The reason for the last missing answer; "throttled" also means our slow pace."""
    fates: dict[str, NoEvidence] = field(default_factory=dict)
    """The terms that were not answered for the whole window, and the reasons."""
    unasked: set[str] = field(default_factory=set)
    """The terms that were not requested for lack of time."""
    cut: set[str] = field(default_factory=set)
    """The terms with more articles than could be listed."""

    @property
    def only_rejected(self) -> bool:
        """True if every request so far was rejected for its content."""
        return self.requests > 0 and self.refusals == self.requests

    @property
    def rejects_all(self) -> bool:
        """True if at least `MOST_REFUSED` requests were refused alike, and none was answered."""
        return not self.answered and self.refusals >= MOST_REFUSED and len(self.refused_as) == 1

    def is_rejected(self, term: str) -> bool:
        """Return whether a term was rejected when sent alone, so that repeating it is useless."""
        return self.fates.get(term) == "rejected"

    def note_joint_rejection(self, terms: Iterable[str], message: str) -> None:
        """Record terms whose only request was refused as rejected, not as out of time."""
        refused = set(terms)
        self.together[message] += len(refused)
        self.unasked -= refused
        self.note_lost(refused, "rejected")

    def note_lost(self, terms: Iterable[str], fate: NoEvidence) -> None:
        """Record terms without an answer."""
        self.fates.update(dict.fromkeys(terms, fate))

    def note_unasked(self, terms: Iterable[str]) -> None:
        """Record terms that were not requested in time; rejected terms stay rejected."""
        left = {term for term in terms if not self.is_rejected(term)}
        self.unasked |= left
        self.note_lost(left, self.trouble)


def to_articles(rows: Sequence[DocRow], origin: str) -> Iterator[Article]:
    """Yield usable articles: rows with a title, an address and the time when GDELT saw the page.

    Args:
        rows: The rows as the service lists them.
        origin: The request that they answer; the row's number is appended.
    """
    for number, row in enumerate(rows, start=1):
        crawled_at = parse_stamp(read_text_field(row, "seendate"))
        title, url = repair_title(read_text_field(row, "title")), read_text_field(row, "url")
        if crawled_at and title and host_of(url):
            yield Article(
                url=url,
                title=title,
                crawled_at=crawled_at,
                language=language_code(read_text_field(row, "language")),
                origin=f"{origin}:{number}",
            )


THROTTLES = 30
"""The most tries of a throttled request; nine of ten tries were throttled (research: gdelt §0)."""
FAILURES = 3
"""The most tries of a failing request, so that it is not repeated forever."""
DEEPEST = 3
"""The most times that the rest of a full list is requested."""
_SECOND = timedelta(seconds=1)


@dataclass(kw_only=True)
class DocFetch:
    """The requests of one fetch, sent one after the other."""

    wire: DocWire
    pace: RequestThrottle
    timeout_s: float
    deadline_s: float
    """The seconds for all requests; a request is not sent if less than its timeout is left."""
    found: Callable[[Article], None]
    """Called with each article that arrives."""
    wanted: Callable[[], Collection[str]]
    """Returns the terms for which more articles are wanted, the most important first."""
    tally: FetchTally = field(default_factory=FetchTally)
    _queue: deque[DocQuery] = field(default_factory=deque)
    _until: float = 0.0

    async def ask(self, spans: Sequence[Window]) -> FetchTally:
        """Send requests for each span, for the terms that still need articles.

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
        """Drop the queued requests and, if `more`, those for older spans."""
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
        """Send one request, and record for other processes whether the service works."""
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
                listed = list(to_articles(rows, _origin(ask)))
                self.tally.unusable += len(rows) - len(listed)
                self._take_rows(ask, listed, full=len(rows))
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
        """Put a request at the end of the queue, unless it has used all its tries."""
        self.tally.trouble = "unavailable" if ask.failed else "throttled"
        if ask.throttled < THROTTLES and ask.failed < FAILURES:
            self._queue.append(ask)
        else:
            self.tally.note_lost(ask.terms, self.tally.trouble)

    def _divide(self, ask: DocQuery, message: str) -> None:
        """Send each term of a refused request alone; a term that is refused alone is lost."""
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
        """Yield requests for articles older than the last row, in halves, for terms that lack news.

        This way, a name that fills every list does not block a rare name in the same request.
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
    """Return a description of a request by which it can be repeated."""
    query = request_parameters(ask)
    return f"doc {query['startdatetime']}-{query['enddatetime']} {query['query']}"
