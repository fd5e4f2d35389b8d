"""`coreeval view`: runs as pages in a browser."""

import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.completion import complete_runs_and_releases, unless_completing
from coreeval.cli.options import find_run_or_release
from coreeval.cli.output import AsJson, brief, show
from coreeval.errors import RunStateError, UsageError
from coreeval.tools.extras import require_extra

if TYPE_CHECKING:
    from coreeval.tools.workspace import Workspace

PORT = 7317


def _find_runs(places: list[Path] | None) -> list[Path] | None:
    """Return the directories of runs; for a bundle, a release is returned unchanged."""
    return places and [find_run_or_release(place) for place in places]


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="Directories or ids of runs, or `latest`; by default, all runs in this workspace.",
            show_default=False,
            callback=unless_completing(_find_runs),
            autocompletion=complete_runs_and_releases,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free port.")
    ] = PORT,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; any address other than loopback requires a token."
        ),
    ] = "127.0.0.1",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
    hide_texts: Annotated[
        bool,
        typer.Option(
            "--hide-texts", help="Replace texts, prompts and answers with their lengths and hashes."
        ),
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Write the pages of one run or release to files that any browser can open.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """View runs in a browser, from a local server. Ctrl-C stops the server."""
    if bundle:
        _write_bundle(runs or [], bundle, hide_texts, as_json)
        return
    workspace = _workspace(runs or [])
    with require_extra("view", "coreeval view"), pause_garbage_collection():
        from coreeval.viewer.app import create_app, open_server_socket, serve

    server_socket = open_server_socket(host, port)
    app = create_app(
        runs or [],
        workspace=workspace,
        token=server_socket.token,
        hide_texts=hide_texts,
        allowed_hosts=server_socket.allowed_hosts,
    )
    document = {
        "address": server_socket.address,
        "runs": [str(run) for run in app.state.catalog.run_paths],
    }

    def announce() -> None:
        show(document, as_json, lambda: f"pages:   {server_socket.address}\nend:     Ctrl-C")
        if not no_browser and _has_screen():
            threading.Thread(
                target=webbrowser.open, args=(server_socket.address,), daemon=True
            ).start()

    serve(app, server_socket, ready=announce)


def _write_bundle(places: list[Path], folder: Path, hide_texts: bool, as_json: bool) -> None:
    """Write the bundle of a run or release, and describe its contents."""
    with require_extra("view", "coreeval view"), pause_garbage_collection():
        from coreeval.viewer.app import create_app
        from coreeval.viewer.bundle import plan_bundle, write_bundle

    if len(places) != 1:
        raise UsageError(
            "a bundle contains one run or release",
            where="--bundle",
            hint=f"coreeval view RUN --bundle {folder}",
        )
    plan = plan_bundle(places[0], hide_texts=hide_texts)
    files = write_bundle(create_app([plan.run], hide_texts=hide_texts, bundle=plan), folder)
    document = {
        "bundle": str(folder),
        "run": str(plan.run),
        "release": plan.release or None,
        "files": len(files),
        "samples": len(plan.samples),
        "total": plan.total,
    }
    lines = (
        f"written: {brief(folder / 'index.html')}",
        f"samples: {len(plan.samples):,} of {plan.total:,} have a page",
    )
    show(document, as_json, lambda: "\n".join(lines))


def _workspace(runs: list[Path]) -> "Workspace | None":
    """Return the workspace to show if no run is given.

    Raises:
        RunStateError: a directory is not a run, or there is no workspace.
    """
    from coreeval.runs.manifest import read_manifest
    from coreeval.tools.workspace import RunFiles, workspace_for

    for run in runs:
        files = RunFiles(run)
        read_manifest(files.manifest)
        files.require_store()
    if runs:
        return None
    workspace = workspace_for(Path.cwd())
    if not workspace.root.is_dir():
        raise RunStateError(
            "no runs found",
            where=str(workspace.root),
            hint="change to the folder of your config, name a run, or make one: coreeval demo",
        )
    return workspace


def _has_screen() -> bool:
    """Return whether a browser can open a window; without one it would take over the terminal."""
    desktop = sys.platform in {"darwin", "win32"}
    return desktop or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
