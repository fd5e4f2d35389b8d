"""Renders templates with their filters.

Filters format figures, and show text from benchmarks, news and models: escaped, isolated, and with
a mark for each invisible character. Functions build the addresses of pages; a sample id comes from
the benchmark and may contain any character.
"""

import re
import unicodedata
from datetime import datetime
from functools import partial
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from coreeval.meanings import describe_cause, describe_reason
from coreeval.tools.formatting import (
    format_count,
    format_duration,
    format_name,
    format_percent,
    format_points,
    format_usd,
)
from coreeval.tools.text import find_unseen

_RELATIVE_PARTS = {"", ".", ".."}
"""Parts of a path that browsers or servers resolve."""


def build_run_url(key: str, page: str = "", **query: str) -> str:
    """Return the address of a page of a run; "" is its main page."""
    return "/run/" + quote(key) + (f"/{page}" if page else "") + _encode_query(query)


def build_sample_url(key: str, sample_id: str, query: str = "") -> str:
    """Return the address of a sample, with the encoded filter of its list."""
    return _build_sample_address(key, "sample", sample_id, query)


def build_story_url(key: str, sample_id: str) -> str:
    """Return the address of a sample's history as JSON."""
    return _build_sample_address(key, "story", sample_id)


def _build_sample_address(key: str, page: str, sample_id: str, query: str = "") -> str:
    if _RELATIVE_PARTS & set(sample_id.split("/")):
        return f"/run/{quote(key)}/{page}/?" + "&".join([urlencode({"id": sample_id}), query])
    return f"/run/{quote(key)}/{page}/{quote(sample_id)}" + (f"?{query}" if query else "")


def read_sample_id(request: Request) -> str:
    """Return the sample id in an address."""
    return str(request.path_params["id"] or request.query_params.get("id", ""))


def build_compare_url(a: str, b: str) -> str:
    """Return the address of the comparison of two runs or releases."""
    return "/compare" + _encode_query({"a": a, "b": b})


def build_benchmark_url(name: str) -> str:
    """Return the address of the page of a benchmark's releases."""
    return "/benchmark/" + quote(name, safe="")


def _encode_query(values: dict[str, str]) -> str:
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


UNKNOWN = "\N{EN DASH}"


def format_time(stamp: str | datetime) -> str:
    """Return a time in UTC to the minute; empty if there is none."""
    moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) and stamp else stamp
    return f"{moment:%Y-%m-%d %H:%M}" if isinstance(moment, datetime) else ""


def isolate_text(text: str) -> Markup:
    """Return a text for a page, isolated in its own direction, with hidden characters marked."""
    return Markup("<bdi>{}</bdi>").format(mark_unseen(text))


def mark_unseen(text: str) -> Markup:
    """Return an escaped text with a visible mark for each invisible character."""
    parts, done = [], 0
    for match in find_unseen(text):
        parts += [escape(text[done : match.start()]), _mark_character(match.group())]
        done = match.end()
    return Markup("").join([*parts, escape(text[done:])])


def _mark_character(character: str) -> Markup:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character").lower()
    return Markup('<span class="unseen" title="{}">{}</span>').format(name, code)


_FOLDERS = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:)?[/\\](?:[^/\\:\n]+[/\\])+")


def _name_side(key: str) -> str:
    """Return the display name of a run or release, given its key."""
    if key.startswith("release:"):
        return key.replace("release:", "release ", 1)
    name, dot, start = key.rpartition(".")
    return f"{name}/{start}" if dot else key


def hide_folders(text: str) -> str:
    """Return a note of the program without folders: `/home/me/x` becomes `…/x`."""
    return _FOLDERS.sub("\N{HORIZONTAL ELLIPSIS}/", text)


def keep_web_url(url: str) -> str | None:
    """Return a web address unchanged; None for any other address, which could be harmful."""
    return url if url.startswith(("https://", "http://")) else None


def make_environment() -> Environment:
    """Return the template environment, which escapes everything and rejects missing values."""
    environment = Environment(
        loader=PackageLoader("coreeval.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cause": describe_cause,
        "hide_folders": hide_folders,
        "marked": mark_unseen,
        "number": partial(format_count, undefined=UNKNOWN),
        "reason": describe_reason,
        "percent": partial(format_percent, undefined=UNKNOWN),
        "points": format_points,
        "seconds": partial(format_duration, undefined=UNKNOWN),
        "shown": isolate_text,
        "side": _name_side,
        "usd": format_usd,
        "web_link": keep_web_url,
        "when": format_time,
        "words": format_name,
    }
    environment.globals |= {
        "benchmark_url": build_benchmark_url,
        "compare_url": build_compare_url,
        "run_url": build_run_url,
        "sample_url": build_sample_url,
        "story_url": build_story_url,
    }
    return environment


def render_page(
    request: Request, template: str, *, status: int = 200, **context: object
) -> HTMLResponse:
    """Return a page rendered from a template, with the values that all templates use."""
    state = request.app.state
    text = state.templates.get_template(template).render(
        **context,
        hide_texts=state.hide_texts,
        bundle=state.bundle,
        form=state.form,
        here=request.url.path,
    )
    return HTMLResponse(text, status)


def wants_fragment(request: Request) -> bool:
    """Return whether htmx requested only a part of a page."""
    asked = request.headers
    return "hx-request" in asked and "hx-history-restore-request" not in asked
