"""`coreeval cassette export|show|replay`: a run as one file that anybody can repeat offline."""

from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.arguments import RunArgument
from coreeval.cli.loading import loading
from coreeval.cli.output import AsJson, show
from coreeval.errors import RunError

cassette = typer.Typer(name="cassette", help="A run as one file, and the run repeated from it.")
CassetteArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The cassette.", dir_okay=False, show_default=False),
]


@cassette.command("export")
def export(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", dir_okay=False, help="What to write.", show_default=False),
    ],
    texts: Annotated[
        bool | None,
        typer.Option(
            "--texts/--no-texts",
            help="Whether the benchmark's own texts go into it; else as their licence has it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a finished run as a cassette; nothing in it is a key."""
    with loading():
        from coreeval.cli.cassette_words import export_document, export_lines
        from coreeval.graph.cassettes.record import record

    document = export_document(record(run, out, texts=texts))
    show(document, as_json, lambda: "\n".join(export_lines(document)))


@cassette.command("show")
def shown(file: CassetteArgument, as_json: AsJson = False) -> None:
    """Show what a cassette holds; nothing is run or unpacked."""
    from coreeval.cli.cassette_words import show_document, show_lines
    from coreeval.releases.cassettes.opening import open_cassette

    document = show_document(open_cassette(file))
    show(document, as_json, lambda: "\n".join(show_lines(document)))


@cassette.command("replay")
def replay(
    file: CassetteArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", file_okay=False, help="An empty or a new folder.", show_default=False
        ),
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Your copy of the benchmark, for one without texts."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the run of a cassette, and compare what comes out byte for byte."""
    with loading():
        from coreeval.cli.cassette_words import replay_document, replay_lines
        from coreeval.cli.progress import watching
        from coreeval.graph.cassettes.replay import replay as work
        from coreeval.graph.execute import RunHooks

    with watching() as watch:
        done = work(file, out, dataset=dataset, around=RunHooks(watch=watch))
    document = replay_document(done)
    show(document, as_json, lambda: "\n".join(replay_lines(document)))
    if not done.same:
        raise typer.Exit(RunError.exit_code)
