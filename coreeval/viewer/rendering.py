"""Renders templates with their filters.

Redacted pages have lengths and hashes in place of texts, prompts and answers.
"""

import unicodedata
from datetime import datetime
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from coreeval.tools.text import find_unseen

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
