"""The package's metadata that depend on the project's address: its URLs and the README.

A package index cannot follow relative links. If the project has an address, they become absolute
and lead to the tag of the version; if not, only their text stays, and images are left out.
"""

import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_MARKDOWN = re.compile(
    r"^```.*?^```"  # a code block
    r"|`[^`\n]*`"
    r"|(?P<image>!?)\[(?P<text>(?:`[^`\n]*`|!\[[^\]]*\]\([^)\s]*\)|[^\[\]])*)\]\((?P<target>[^)\s]+)\)"
    r'|<img\b[^>]*\bsrc="(?P<source>[^"]*)"[^>]*>',
    re.DOTALL | re.MULTILINE,
)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.IGNORECASE)


class ProjectMetadata(MetadataHookInterface):
    """Adds `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the two fields to the metadata."""
        root = Path(self.root)
        homepage = runpy.run_path(str(root / "coreeval" / "project.py"))["HOMEPAGE"]
        text = (root / "README.md").read_text("utf-8")
        readme = resolve_links(text, homepage, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
        metadata["urls"] = list_urls(homepage)


def list_urls(homepage: str) -> dict[str, str]:
    """Return the project's URLs by label; none without an address."""
    if not homepage:
        return {}
    return {
        "Homepage": homepage,
        "Documentation": f"{homepage}/tree/main/docs",
        "Changelog": f"{homepage}/blob/main/CHANGELOG.md",
        "Issues": f"{homepage}/issues",
    }


def resolve_links(text: str, homepage: str, tag: str) -> str:
    """Return Markdown without relative links and images.

    Args:
        text: The Markdown.
        homepage: The repository's address; if it is empty, links become their text.
        tag: The tag at which the links are to lead.
    """

    def resolve(found: re.Match[str]) -> str:
        if found["source"] is not None:
            return _resolve_tag(found[0], found["source"], homepage, tag)
        if found["target"] is None:
            return found[0]
        label = resolve_links(found["text"], homepage, tag)
        return _resolve_link(found["image"], label, found["target"], homepage, tag)

    return _MARKDOWN.sub(resolve, text)


def _resolve_tag(tag_text: str, source: str, homepage: str, tag: str) -> str:
    if _ABSOLUTE.match(source):
        return tag_text
    return tag_text.replace(source, f"{homepage}/raw/{tag}/{source}") if homepage else ""


def _resolve_link(image: str, label: str, target: str, homepage: str, tag: str) -> str:
    if not _ABSOLUTE.match(target):
        if not homepage:
            return "" if image else label
        target = f"{homepage}/{'raw' if image else 'blob'}/{tag}/{target}"
    return f"{image}[{label}]({target})" if label or image else ""
