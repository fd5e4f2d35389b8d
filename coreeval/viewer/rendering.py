"""Templates, and what each of them can use."""

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from coreeval.viewer import addresses, formats, untrusted


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
        "marked": untrusted.marked,
        "number": formats.number,
        "percent": formats.percent,
        "seconds": formats.seconds,
        "shown": untrusted.shown,
        "usd": formats.usd,
        "web_link": untrusted.web_link,
        "when": formats.when,
        "words": formats.words,
    }
    environment.globals |= {
        "compare_url": addresses.compare_url,
        "run_url": addresses.run_url,
        "sample_url": addresses.sample_url,
    }
    return environment


def page(request: Request, template: str, *, status: int = 200, **context: object) -> HTMLResponse:
    """Return a page made from a template; `hide_texts` and `here` are there besides."""
    state = request.app.state
    text = state.templates.get_template(template).render(
        **context, hide_texts=state.hide_texts, here=request.url.path
    )
    return HTMLResponse(text, status)


def wants_part(request: Request) -> bool:
    """Tell whether htmx asks for a part of a page, not a reader for all of it."""
    asked = request.headers
    return "hx-request" in asked and "hx-history-restore-request" not in asked
