"""What mkdocs cannot know of the pages: links to files beside docs/, link texts, and the gallery.

The pages are read in the repository and by `coreeval docs` too, so that they link files of the
repository by relative paths. On the site these lead to the repository's address, or are plain
text while the project has none. A link whose text is the name of a page shows the page's title.
"""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "build" / "gallery"
HOMEPAGE: str = runpy.run_path(str(ROOT / "coreeval" / "project.py"))["HOMEPAGE"]
_NAMED = re.compile(r"\[(?:docs/)?(?P<page>\w+)\.md\]\((?P=page)\.md(?P<anchor>#[\w-]+)?\)")
_INLINE_CODE = re.compile(r"(?<!<pre>)<code>[^<]*</code>")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
_OUTSIDE = re.compile(r"\[(?P<text>[^\]\n]+)\]\(\.\./(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the repository on each page, if the project has an address."""
    if HOMEPAGE:
        config.repo_url = HOMEPAGE
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the gallery.

    Raises:
        PluginError: it has not been built.
    """
    found = sorted(path for path in GALLERY.rglob("*") if path.is_file())
    if not found:
        raise PluginError("the gallery is missing: run make gallery")
    for path in found:
        place = f"gallery/{path.relative_to(GALLERY).as_posix()}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, config: MkDocsConfig, **_: object) -> str:
    """Resolve links to files beside docs/, and show titles in place of the names of pages."""
    titles = dict(_iter_titles(config.nav))

    def name(found: re.Match[str]) -> str:
        page = f"{found['page']}.md"
        return f"[{titles.get(page, page)}]({page}{found['anchor'] or ''})"

    return _OUTSIDE.sub(_resolve, _NAMED.sub(name, markdown))


def on_page_content(html: str, **_: object) -> str:
    """Keep each option of a command on one line: browsers break lines after a hyphen."""

    def keep(found: re.Match[str]) -> str:
        return _OPTION.sub(r'<span class="option">\g<0></span>', found[0])

    return _INLINE_CODE.sub(keep, html)


def _iter_titles(nav: object) -> Iterator[tuple[str, str]]:
    """Yield the pages of the navigation with their titles."""
    for entry in nav if isinstance(nav, list) else ():
        for title, inside in entry.items():
            if isinstance(inside, str):
                yield inside, title
            yield from _iter_titles(inside)


def _resolve(found: re.Match[str]) -> str:
    path = found["path"]
    if not (ROOT / path).exists():
        raise PluginError(f"{path} is linked, but is not there")
    if not HOMEPAGE:
        return found["text"]
    return f"[{found['text']}]({HOMEPAGE}/blob/main/{path}{found['anchor'] or ''})"
