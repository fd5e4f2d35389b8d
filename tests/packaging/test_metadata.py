"""The package's metadata: what an index shows of the README, addresses, and the citation."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from coreeval import project
from hatch_build import list_urls, resolve_links

ROOT = Path(__file__).parents[2]
ADDRESS = "https://example.org/coreeval"
_RELATIVE = re.compile(r"\]\((?![a-z]+:|#)")


@pytest.mark.parametrize(
    ("text", "without", "with_address"),
    [
        ("[a](docs/a.md#b)", "a", f"[a]({ADDRESS}/blob/v1/docs/a.md#b)"),
        ("[`a`](a.md).", "`a`.", f"[`a`]({ADDRESS}/blob/v1/a.md)."),
        ("[a](https://b.c)", "[a](https://b.c)", "[a](https://b.c)"),
        ("[a](#b)", "[a](#b)", "[a](#b)"),
        ("x ![a](b.png) y", "x  y", f"x ![a]({ADDRESS}/raw/v1/b.png) y"),
        (
            "[![a](b.png)](c.md)",
            "",
            f"[![a]({ADDRESS}/raw/v1/b.png)]({ADDRESS}/blob/v1/c.md)",
        ),
        ("[![a](b.png)](https://c.d)", "", f"[![a]({ADDRESS}/raw/v1/b.png)](https://c.d)"),
        ('<img alt="a" src="b.png">', "", f'<img alt="a" src="{ADDRESS}/raw/v1/b.png">'),
        ("```\n[a](b)\n```", "```\n[a](b)\n```", "```\n[a](b)\n```"),
        ("`[a](b)`", "`[a](b)`", "`[a](b)`"),
    ],
)
def test_relative_links_become_text_or_absolute(text: str, without: str, with_address: str) -> None:
    assert resolve_links(text, "", "v1") == without
    assert resolve_links(text, ADDRESS, "v1") == with_address


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    """Return what a build takes from pyproject.toml and hatch_build.py."""
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    return {"readme": core.readme, "urls": core.urls, "version": core.version}


def test_an_index_finds_no_relative_link_in_the_readme(metadata: dict[str, Any]) -> None:
    readme = metadata["readme"]
    assert readme.startswith("# CoreEval\n")
    assert not _RELATIVE.search(readme)
    assert _RELATIVE.search((ROOT / "README.md").read_text("utf-8"))
    assert not _RELATIVE.search(resolve_links(readme, ADDRESS, "v1"))


def test_addresses_are_those_of_the_constant(metadata: dict[str, Any]) -> None:
    assert metadata["urls"] == list_urls(project.HOMEPAGE)
    assert list_urls("") == {}
    assert all(url.startswith(ADDRESS) for url in list_urls(ADDRESS).values())


def test_the_citation_agrees_with_the_package(metadata: dict[str, Any]) -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "type", "license"} <= cited.keys()
    assert cited["version"] == metadata["version"]
    assert cited["authors"] == [{"name": "The CoreEval authors"}]
    assert cited.get("repository-code", "") == project.HOMEPAGE
    for work in cited["references"]:
        assert {"type", "title", "authors", "year"} <= work.keys()
        assert all(one["given-names"] and one["family-names"] for one in work["authors"])
