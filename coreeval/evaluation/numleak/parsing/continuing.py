"""Read the lines that continue a file: each value asked for, aligned by its date."""

from collections.abc import Callable, Sequence
from statistics import fmean

from coreeval.evaluation.numleak.parsing.rows import rows_of
from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.wording import declines
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Continued, Status
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series.excerpt import Excerpt, FileLine, values_said
from coreeval.evaluation.numleak.series.series import Series
from coreeval.models.answer_text import extract_final_answer


def continued(reply: Reply, series: Series, find: Callable[[], Excerpt | None]) -> list[Continued]:
    """Return each value that a continuation was to have, in the order of the file.

    Args:
        reply: The answer.
        series: What it is about.
        find: Finds its file.

    Raises:
        ValueError: the file is not there, or it is not known which lines were shown and asked for.
    """
    if reply.shown is None or reply.wanted is None:
        raise ValueError("a continuation without the numbers of lines shown and wanted")
    excerpt = find()
    if excerpt is None:
        raise ValueError(
            f"the file of {series.definition.id} is not here as its publisher writes it: "
            "--series NAME=FILE gives it"
        )
    first = Period.parse(reply.date, series.definition.frequency)
    at = excerpt.place_of(first)
    if at is None or at < reply.shown:
        raise ValueError(f"the file has no {reply.shown} lines before {first}")
    shown = _values(excerpt.lines[at - reply.shown : at], series)
    said = values_said(_rows(reply, excerpt, series), excerpt, series)
    status = _silence(reply)
    return [
        Continued(
            period=period,
            window=first,
            truth=series.values[period],
            estimate=said.get(period),
            status="parsed" if period in said else status,
            last=shown[-1],
            mean=fmean(shown),
            told=series.values[period] in shown,
        )
        for line in excerpt.lines[at : at + reply.wanted]
        for period, _ in line.places
    ]


def _values(lines: Sequence[FileLine], series: Series) -> list[float]:
    return [series.values[period] for line in lines for period, _ in line.places]


def _rows(reply: Reply, excerpt: Excerpt, series: Series) -> str:
    """Return an answer's lines as the file has them.

    The last line of one that was cut off is left out: a number in it may be cut as well.
    """
    said = extract_final_answer(reply.response or "")
    if reply.kind == "truncated":
        said = "\n".join(said.splitlines()[:-1])
    return rows_of(said, excerpt, series)


def _silence(reply: Reply) -> Status:
    """Return how a question ended as far as its values are not there."""
    if reply.kind == "refused" or (reply.response and declines(plain(reply.response))):
        return "refused"
    return "truncated" if reply.kind == "truncated" else "unparsed"
