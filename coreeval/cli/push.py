"""`coreeval push`: a release to the Hugging Face hub."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, brief, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.releases.exports.hub import Pushed

SHOWN = 20
"""Files that are listed; `--json` has them all."""


def push(
    release: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", help="The release's directory.", file_okay=False, show_default=False
        ),
    ],
    to: Annotated[
        str,
        typer.Option(metavar="OWNER/NAME", help="The dataset on the hub.", show_default=False),
    ],
    public: Annotated[
        bool, typer.Option("--public", help="Let everyone see a repository that is created.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be uploaded; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish a release on the Hugging Face hub, in one commit."""
    from coreeval.config.env_file import load_env_file

    load_env_file(Path.cwd())
    try:
        from coreeval.releases.exports.hub import push as work
    except ImportError:
        raise UsageError(
            "the hub needs the package huggingface_hub, which is not installed",
            hint="pip install 'coreeval[hf]'",
        ) from None
    done = work(release, to=to, public=public, dry_run=dry_run)
    show(_document(done, dry_run), as_json, lambda: "\n".join(_words(done, dry_run)))


def _document(done: "Pushed", dry_run: bool) -> Document:
    manifest = done.release.manifest
    return {
        "release": str(done.release.path),
        "version": manifest.version,
        "digest": done.release.digest,
        "repository": done.repository,
        "url": done.url,
        "uploaded": list(done.uploaded),
        "removed": list(done.removed),
        "kept": done.kept,
        "commit": done.commit,
        "dry_run": dry_run,
    }


def _words(done: "Pushed", dry_run: bool) -> Iterator[str]:
    manifest = done.release.manifest
    name = f"{manifest.name} {manifest.version}"
    changed = [
        *(f"  + {path}" for path in done.uploaded),
        *(f"  - {path}" for path in done.removed),
    ]
    if dry_run:
        yield f"would bring {done.repository} to {name}: {len(changed)} files differ"
    elif changed:
        yield f"brought {done.repository} to {name}: {len(changed)} files, {done.kept} were there"
    else:
        yield f"{done.repository} has {name} already"
    yield from changed[:SHOWN]
    if len(changed) > SHOWN:
        yield f"  and {len(changed) - SHOWN} more; --json lists them all"
    yield f"release: {brief(done.release.path)}"
    yield f"on the hub: {done.url} (tag {manifest.version})"
