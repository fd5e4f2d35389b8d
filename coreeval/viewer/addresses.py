"""Addresses of the pages; ids of samples are the benchmark's and may hold any character."""

from urllib.parse import quote, urlencode

from starlette.requests import Request

_HOLLOW = {"", ".", ".."}
"""Parts of a path that browsers or servers resolve."""


def run_url(key: str, page: str = "", **query: str) -> str:
    """Return the address of a run's page: "" is the run itself."""
    return "/run/" + quote(key) + (f"/{page}" if page else "") + _query(query)


def sample_url(key: str, sample_id: str, query: str = "") -> str:
    """Return the address of a sample, with the encoded filter that it was found by."""
    if _HOLLOW & set(sample_id.split("/")):
        return f"/run/{quote(key)}/sample/?" + "&".join([urlencode({"id": sample_id}), query])
    return f"/run/{quote(key)}/sample/{quote(sample_id)}" + (f"?{query}" if query else "")


def sample_of(request: Request) -> str:
    """Return the id of the sample that an address names."""
    return str(request.path_params["id"] or request.query_params.get("id", ""))


def compare_url(a: str, b: str) -> str:
    """Return the address where two runs or releases stand side by side."""
    return "/compare" + _query({"a": a, "b": b})


def _query(values: dict[str, str]) -> str:
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""
