"""The adapter to gdeltdoc: its Filters make the query, and nothing of it touches the network.

gdeltdoc's own client is not used: it sends the query unencoded (`AT&T` is cut at the `&`), has no
timeout, and reads a notice of throttling as the number 5 (research: gdelt §6).
"""

from collections.abc import Mapping
from datetime import UTC

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.doc.packing import LANGUAGE, Ask, block

MOST_ROWS = 250
"""DOC 2.0 lists no more, and has no second page (research: gdelt §1)."""
_FIXED = {"mode": "artlist", "format": "json", "sort": "datedesc"}
"""Newest first: when a list is full, what is missing is older than its last row."""


def require_gdeltdoc() -> None:
    """Look for the package before anything is asked.

    Raises:
        KnowledgeError: it is not installed.
    """
    try:
        import gdeltdoc  # type: ignore[import-untyped] # noqa: F401 - it takes a second
    except ImportError as error:
        raise KnowledgeError(
            f"the doc backend needs the package gdeltdoc: {error}",
            where="knowledge.backends",
            hint="pip install 'coreeval[doc]', or leave doc out of the backends",
        ) from error


def parameters(ask: Ask) -> Mapping[str, str]:
    """Return the parameters of a request, not yet encoded.

    The terms are given as they are to be sent. Filters' `keyword` would quote a lone word (refused
    below five letters), leave a dash unquoted, and put parentheses round a list of one (refused).
    """
    from gdeltdoc import Filters

    filters = Filters(
        near=f"{block(ask.terms)} ",
        language=LANGUAGE,
        start_date=ask.span.start.astimezone(UTC),
        end_date=ask.span.end.astimezone(UTC),
        num_records=MOST_ROWS,
    )
    others = [part for part in filters.query_params if part.startswith("&")]
    query = [part for part in filters.query_params if not part.startswith("&")]
    # Filters puts its operators before `near`; DOC 2.0 does not mind the order.
    pairs = (other[1:].partition("=") for other in others)
    return {"query": "".join(query).strip(), **{key: value for key, _, value in pairs}, **_FIXED}
