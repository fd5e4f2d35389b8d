"""What the user is told about a fetch, a sentence each."""

from collections.abc import Iterator
from datetime import UTC, datetime

from coreeval.schema import Precision
from coreeval.tools.gdelt.doc.filters import MOST_ROWS
from coreeval.tools.gdelt.doc.tally import Tally

NOT_EXACT = (
    "DOC 2.0 was not asked: it tells no publication times, and knowledge.min_precision: exact"
    " accepts no others."
)


def notes(tally: Tally, *, shut_until: float | None, gaps: tuple[str, ...]) -> Iterator[str]:
    """Yield what went wrong or was left out; nothing where all went well."""
    if gaps:
        yield f"DOC 2.0 holds no news for {', '.join(gaps)}."
    alone = _left_alone(shut_until)
    if tally.throttled:
        yield f"DOC 2.0 refused {tally.throttled} of {_requests(tally.requests)}{alone}."
    if tally.failed:
        yield (
            f"DOC 2.0 did not answer {tally.failed} of {_requests(tally.requests)}"
            f" ({tally.last_failure}){'' if tally.throttled else alone}."
        )
    if tally.unasked and not tally.requests and alone:
        yield f"DOC 2.0 was not asked, because it failed before{alone}."
    if tally.unasked:
        why = "" if tally.gave_up else " in time"
        yield f"{_terms(len(tally.unasked))} not put to DOC 2.0 for the whole window{why}."
    yield from _rejections(tally)
    if tally.cut:
        yield (
            f"{_terms(len(tally.cut))} not searched for to the end, because DOC 2.0 lists"
            f" {MOST_ROWS} articles at a time: older ones are missing."
        )


def _rejections(tally: Tally) -> Iterator[str]:
    if tally.only_rejected or tally.gave_up:
        end = ", all for one reason, and was asked no more" if tally.gave_up else ""
        yield f"DOC 2.0 rejected {tally.refusals} of {_requests(tally.requests)}{end}."
    late = "" if tally.gave_up else " in time"
    for message, count in tally.together.most_common():
        yield f"{_terms(count)} rejected beside others, and not asked for alone{late}: {message}"
    for message, count in tally.rejected.most_common():
        yield f"DOC 2.0 rejected {count} of the terms asked for: {message}"


def less_certain(count: int, precision: Precision) -> str:
    """Say what a less certain publication time would add."""
    articles = (
        "1 matching article of DOC 2.0 was"
        if count == 1
        else (f"{count:,} matching articles of DOC 2.0 were")
    )
    return (
        f"{articles} left out: it tells when GDELT saw a page, and"
        f" knowledge.min_precision: {precision} asks for a better publication time."
    )


def _left_alone(shut_until: float | None) -> str:
    if shut_until is None:
        return ""
    return f"; it is left alone until {datetime.fromtimestamp(shut_until, tz=UTC):%H:%M:%S} UTC"


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _terms(count: int) -> str:
    return "1 term was" if count == 1 else f"{count} terms were"
