"""`coreeval docs`: the documentation pages, which are part of the package."""

import difflib
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.completion import complete_pages
from coreeval.cli.output import AsJson, Document, on_terminal, show
from coreeval.errors import UsageError


def docs(
    page: Annotated[
        str | None,
        typer.Argument(metavar="PAGE", help="A page from the list.", autocompletion=complete_pages),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the documentation pages, or show one."""
    if page is None:
        listed = [{"page": path.stem, "title": read_title(path)} for path in list_pages()]
        show({"pages": listed}, as_json, lambda: "\n".join(_list_lines(listed)))
        return
    path = find_page(page)
    text = path.read_text("utf-8")
    if on_terminal() and not as_json:
        _render(text)
        return
    document = {"page": path.stem, "title": read_title(path), "text": text}
    show(document, as_json, lambda: text.rstrip("\n"))


def list_pages() -> list[Path]:
    """Return the pages sorted by name, from the package or from the checkout next to it."""
    package = Path(str(resources.files("coreeval")))
    installed = package / "_docs"
    folder = installed if installed.is_dir() else package.parent / "docs"
    return sorted(folder.glob("*.md"))


def find_page(name: str) -> Path:
    """Return the file of a page; its name may have the form of a link, `docs/models.md`.

    Raises:
        UsageError: there is no such page.
    """
    pages = {path.stem: path for path in list_pages()}
    wanted = name.partition("#")[0].removeprefix("docs/").removesuffix(".md")
    if wanted in pages:
        return pages[wanted]
    near = difflib.get_close_matches(wanted.lower(), pages, n=1)
    raise UsageError(
        f"no page is called {name!r}",
        where="coreeval docs",
        hint=f"did you mean: coreeval docs {near[0]}"
        if near
        else "`coreeval docs` lists the pages",
    )


def read_title(path: Path) -> str:
    """Return the title of a page, from its first line."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("# ").strip()


def _list_lines(listed: Sequence[Document]) -> list[str]:
    width = max(len(each["page"]) for each in listed)
    rows = [f"{each['page']:<{width}}  {each['title']}" for each in listed]
    return [*rows, "read one: coreeval docs PAGE"]


def _render(text: str) -> None:
    """Print Markdown with headings, tables and code formatted for the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=sys.stdout).print(Markdown(text))
