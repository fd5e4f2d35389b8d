"""Renders templates with their filters.

Redacted pages have lengths and hashes in place of texts, prompts and answers.
"""

import hashlib
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from coreeval.schema import Evidence, ReplacedFact, Result, Sample, TrainEnd, Value, Verdict
from coreeval.tools.stores.run_queries import ListRow
from coreeval.tools.text import DiffPiece, find_unseen
from coreeval.viewer.history import (
    ArmDiff,
    CallHistory,
    PromptMessage,
    SampleHistory,
    StepHistory,
    StepInput,
)

_RELATIVE_PARTS = {"", ".", ".."}
"""Parts of a path that browsers or servers resolve."""


def build_run_url(key: str, page: str = "", **query: str) -> str:
    """Return the address of a run's page: "" is the run itself."""
    return "/run/" + quote(key) + (f"/{page}" if page else "") + _encode_query(query)


def build_sample_url(key: str, sample_id: str, query: str = "") -> str:
    """Return the address of a sample, with the encoded filter that it was found by."""
    if _RELATIVE_PARTS & set(sample_id.split("/")):
        return f"/run/{quote(key)}/sample/?" + "&".join([urlencode({"id": sample_id}), query])
    return f"/run/{quote(key)}/sample/{quote(sample_id)}" + (f"?{query}" if query else "")


def read_sample_id(request: Request) -> str:
    """Return the id of the sample that an address names."""
    return str(request.path_params["id"] or request.query_params.get("id", ""))


def build_compare_url(a: str, b: str) -> str:
    """Return the address where two runs or releases stand side by side."""
    return "/compare" + _encode_query({"a": a, "b": b})


def _encode_query(values: dict[str, str]) -> str:
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


UNKNOWN = "\N{EN DASH}"


def format_number(value: float | None) -> str:
    """Return a count with its thousands set apart; a dash for what is not known."""
    return UNKNOWN if value is None else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def format_percent(share: float | None) -> str:
    """Return a share of one as a percentage with one digit."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def format_usd(value: float | None) -> str:
    """Return US dollars with as many digits as say something."""
    if value is None:
        return "not known"
    return f"${value:,.2f}" if value == 0 or value >= 1 else f"${value:.4f}"


def format_seconds(value: float | None) -> str:
    """Return a time span in the unit that fits it."""
    if value is None:
        return UNKNOWN
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    if value < 120:
        return f"{value:.{1 if value < 10 else 0}f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def format_time(stamp: str | datetime) -> str:
    """Return a moment to the minute, UTC; empty for none."""
    moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) and stamp else stamp
    return f"{moment:%Y-%m-%d %H:%M}" if isinstance(moment, datetime) else ""


def format_name(name: str) -> str:
    """Return a name of ours as words: `rejected_facts` is "rejected facts"."""
    return name.replace("_", " ")


def isolate_text(text: str) -> Markup:
    """Return a text for a page: it reads in its own direction, and what it hides is marked."""
    return Markup("<bdi>{}</bdi>").format(mark_unseen(text))


def mark_unseen(text: str) -> Markup:
    """Return a text, escaped, with a visible mark for each character that has no shape."""
    parts, done = [], 0
    for match in find_unseen(text):
        parts += [escape(text[done : match.start()]), _mark_character(match.group())]
        done = match.end()
    return Markup("").join([*parts, escape(text[done:])])


def _mark_character(character: str) -> Markup:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character").lower()
    return Markup('<span class="unseen" title="{}">{}</span>').format(name, code)


def keep_web_url(url: str) -> str | None:
    """Return an address of the web; None for any other, which could do something."""
    return url if url.startswith(("https://", "http://")) else None


def make_environment() -> Environment:
    """Return the environment: everything is escaped, and a missing value is an error."""
    environment = Environment(
        loader=PackageLoader("coreeval.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "marked": mark_unseen,
        "number": format_number,
        "percent": format_percent,
        "seconds": format_seconds,
        "shown": isolate_text,
        "usd": format_usd,
        "web_link": keep_web_url,
        "when": format_time,
        "words": format_name,
    }
    environment.globals |= {
        "compare_url": build_compare_url,
        "run_url": build_run_url,
        "sample_url": build_sample_url,
    }
    return environment


def render_page(
    request: Request, template: str, *, status: int = 200, **context: object
) -> HTMLResponse:
    """Return a page made from a template; `hide_texts` and `here` are there besides."""
    state = request.app.state
    text = state.templates.get_template(template).render(
        **context, hide_texts=state.hide_texts, here=request.url.path
    )
    return HTMLResponse(text, status)


def wants_fragment(request: Request) -> bool:
    """Tell whether htmx asks for a part of a page, not a reader for all of it."""
    asked = request.headers
    return "hx-request" in asked and "hx-history-restore-request" not in asked


KEPT_FIELDS: Mapping[type[Value], frozenset[str]] = {
    Sample: frozenset({"id", "split", "label_text"}),
    Result: frozenset(
        {"sample_id", "outcome", "rung", "semantic_status", "original_label", "kept_from"}
    ),
    TrainEnd: frozenset({"status"}),
    ReplacedFact: frozenset({"sample_id", "field", "evidence_id"}),
    Evidence: frozenset({"id", "url", "domain", "published_precision", "language", "origin"}),
    Verdict: frozenset({"name"}),
    StepHistory: frozenset({"node"}),
    StepInput: frozenset({"source", "evidence"}),
    CallHistory: frozenset(
        {"key", "role", "model", "prompt", "prompt_version", "parameters", "method",
         "model_returned", "finish_reason", "started_at"}
    ),
    PromptMessage: frozenset({"role"}),
    ArmDiff: frozenset({"before", "after", "field"}),
    DiffPiece: frozenset({"op"}),
    ListRow: frozenset(
        {"sample", "label", "outcome", "cause", "rung", "semantic_status", "kept_from", "ended_at"}
    ),
}  # fmt: skip
"""Of each kind of value the words that are names, dates or addresses; all others are texts."""
KEPT_DETAILS = frozenset(
    {"decision", "mode", "modality", "policy", "route", "check", "kind", "rung", "type", "flag",
     "outcome", "field", "evidence", "evidence_id", "evidence_ids", "original_label",
     "semantic_status", "why_none", "supported", "defect"}
)  # fmt: skip
"""The same of what a step made."""
V = TypeVar("V", bound=Value)


def redact_text(text: str) -> str:
    """Return what stands for a text: its length and the beginning of its hash."""
    return f"[{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}]"


def redact_history(history: SampleHistory) -> SampleHistory:
    """Return the history with every text, prompt, answer and reason replaced by its mark."""
    return _redact_value(history).model_copy(update={"hidden": True})


def redact_row(row: ListRow) -> ListRow:
    """Return a row of a list without the excerpt and the reason."""
    return _redact_value(row)


def _redact_value(value: V) -> V:
    shown = KEPT_FIELDS.get(type(value), frozenset())
    changed = {
        name: _redact_any(getattr(value, name), KEPT_DETAILS if name == "did" else frozenset())
        for name in type(value).model_fields
        if name not in shown
    }
    return value.model_copy(update=changed)


def _redact_any(value: Any, codes: frozenset[str]) -> Any:  # noqa: ANN401 - any field of a value
    if isinstance(value, Value):
        return _redact_value(value)
    if isinstance(value, str):
        return redact_text(value) if value else ""
    if isinstance(value, Mapping):
        return {
            name: inner if name in codes else _redact_any(inner, codes)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_redact_any(inner, codes) for inner in value)
    return value
