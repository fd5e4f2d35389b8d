"""What `coreeval takedown` says."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import Document, brief

if TYPE_CHECKING:
    from coreeval.releases.forgetting.found import Found
    from coreeval.tools.workspace import Workspace

_DONE = {"blanked": "blanked", "deleted": "deleted", "reopened": "open again"}


def takedown_document(
    names: Sequence[str],
    listed: Path,
    workspace: "Workspace",
    found: "Sequence[Found]",
    *,
    dry_run: bool,
    done: bool,
) -> Document:
    """Return the result as a document."""
    from coreeval.releases.forgetting.listed import missing_from

    rows = place_rows(found)
    return {
        "names": list(names),
        "list": str(listed),
        "listed": not missing_from(listed, names),
        "workspace": str(workspace.root),
        "dry_run": dry_run,
        "done": done,
        "places": [row for row in rows if row["action"] != "reported"],
        "left": [row for row in rows if row["action"] == "reported"],
        "resume": [each.to_do for each in found if each.kind == "results of the run"],
    }


def place_rows(found: "Sequence[Found]") -> list[Document]:
    """Return what was found as rows of a document."""
    return [
        {
            "kind": each.kind,
            "path": str(each.path),
            "count": each.count,
            "action": each.action,
            "to_do": each.to_do,
        }
        for each in found
    ]


def place_lines(rows: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each place."""
    for row in rows:
        said = _DONE.get(row["action"], "left")
        yield f"  {row['count']:>7,}  {row['kind']:<26}{said:<12}{brief(Path(row['path']))}"


def takedown_lines(document: Document) -> Iterator[str]:
    """Yield the result in words."""
    places, left, done = document["places"], document["left"], document["done"]
    names = ", ".join(document["names"])
    if not places:
        yield f"nothing that is kept here names {names}" + (
            ", but for what is left" if left else ""
        )
    else:
        yield f"{'taken out' if done else 'would be taken out'}: {names}"
        yield from place_lines(places)
    if left:
        yield "left as it is, and names them:"
        yield from place_lines(left)
        yield from (f"  to do: {to_do}" for to_do in dict.fromkeys(row["to_do"] for row in left))
    if document["resume"]:
        yield "runs whose results are no more what they were; what is open is asked anew:"
        yield from (f"  {each}" for each in document["resume"])
    listed = "on the list" if document["listed"] else "not on the list yet"
    yield f"{listed}: {brief(Path(document['list']))}"
    if not done:
        yield "nothing was changed"
