"""`coreeval cassette export|show|replay`: a run as one file that anybody can replay offline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.options import RunArgument
from coreeval.cli.output import AsJson, Document, brief, command, one_line, show
from coreeval.errors import RunError
from coreeval.tools.formatting import format_size

cassette = typer.Typer(name="cassette", help="Record a run in a single file, and replay it.")
CassetteArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The cassette.", dir_okay=False, show_default=False),
]


@cassette.command("export")
def export(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", dir_okay=False, help="Output file.", show_default=False),
    ],
    texts: Annotated[
        bool | None,
        typer.Option(
            "--texts/--no-texts",
            help="Whether to include the benchmark's own texts; by default, only if their "
            "licence allows it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a finished run to a cassette, without any API keys."""
    with pause_garbage_collection():
        from coreeval.api.cassettes import export_cassette

    document = export_cassette(run, out=out, texts=texts).document
    show(document, as_json, lambda: "\n".join(export_lines(document)))


@cassette.command("show")
def shown(file: CassetteArgument, as_json: AsJson = False) -> None:
    """Show what a cassette contains, without running or unpacking it."""
    from coreeval.api.cassettes import read_cassette

    document = read_cassette(file).document
    show(document, as_json, lambda: "\n".join(show_lines(document)))


@cassette.command("replay")
def replay(
    file: CassetteArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", file_okay=False, help="A new or empty folder.", show_default=False
        ),
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Your copy of the benchmark, for a cassette without texts."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay the run in a cassette and compare its output byte for byte."""
    with pause_garbage_collection():
        from coreeval.api.cassettes import describe_replay
        from coreeval.api.progress import show_progress
        from coreeval.graph.cassettes.replay import replay as work
        from coreeval.graph.execute import RunHooks

    with show_progress() as watch:
        done = work(file, out, dataset=dataset, around=RunHooks(watch=watch))
    document = describe_replay(done).document
    show(document, as_json, lambda: "\n".join(replay_lines(document)))
    if not done.same:
        raise typer.Exit(RunError.exit_code)


SHOWN = 10
"""The most failed steps listed; `--json` has them all."""


# -- export ---------------------------------------------------------------------------------------


def export_lines(document: Document) -> Iterator[str]:
    """Yield what was recorded, whether it may be shared, and how to replay it."""
    path = Path(document["cassette"])
    yield (
        f"{brief(path)}: {document['samples']:,} samples, {document['answers']:,} answers, "
        f"{format_size(document['bytes'])}"
    )
    yield f"digest:  {document['digest']}"
    yield from _licence(document)
    yield from (f"note:    {note}" for note in document["notes"])
    more = () if document["texts"] else ("--dataset", "PATH")
    yield f"repeat:  {command('cassette', 'replay', path, '--out', 'DIR', *more)}"


def _licence(document: Document) -> Iterator[str]:
    licence = document["licence"]
    said = f"licence of the benchmark: {one_line(licence['name'])}"
    if not document["texts"]:
        yield "texts:   not included, so replaying needs the benchmark"
        if not licence["redistribute"]:
            yield f"         {said}; include the texts with --texts"
    elif not licence["redistribute"]:
        yield (
            "texts:   included, although their licence forbids sharing them; omit them with "
            "--no-texts"
        )
        yield f"         {said}"


# -- show -----------------------------------------------------------------------------------------


def show_lines(document: Document) -> Iterator[str]:
    """Yield the contents of a cassette."""
    made, window = document["made_with"], document["window"]
    yield f"{one_line(document['run'])}   task {one_line(document['task'])}"
    yield f"digest:   {document['digest']}"
    by = ", ".join(f"{name} {version}" for name, version in made.items() if version)
    yield f"made by:  {one_line(by)}"
    yield f"clock:    {one_line(document['now'])}; news from {_format_window(window)}"
    if document["control_window"]:
        yield f"control:  news from {_format_window(document['control_window'])}"
    yield from _benchmark(document)
    yield from _players(document)
    yield from _news(document)
    for file in document["files"]:
        name, digest = one_line(file["name"]), one_line(file["sha256"])
        yield f"dataset:  {name}   {file['rows']:,} rows   {digest}"


def _format_window(window: Document) -> str:
    return f"{window['start'][:10]} to {window['end'][:10]} (end excluded)"


def _benchmark(document: Document) -> Iterator[str]:
    told = (
        "with their texts" if document["texts"] else "without texts: replaying needs the benchmark"
    )
    yield f"samples:  {document['lines']['sample']:,} {told}"
    if document["lines"]["bad_row"]:
        yield f"          {document['lines']['bad_row']:,} bad rows"
    for why, count in sorted(document["stated"].items()):
        reason = f"kept from release {document['parent']}" if why == "kept" else f"ended as {why}"
        yield f"          {count:,} {one_line(reason)}: their recorded results are used"


def _players(document: Document) -> Iterator[str]:
    for role, model in document["models"].items():
        answers = document["answers"].get(role, 0)
        who, prompt = str(model.get("model", "")), document["prompts"].get(role, "")
        ruled = who.partition(":")[0] in ("offline", "spacy")
        told = f"rules ({who})" if ruled else f"{answers:,} answers of {who}, prompt {prompt}"
        yield f"role:     {one_line(role):<12} {one_line(told)}"


def _news(document: Document) -> Iterator[str]:
    chars = document["snippet_chars"]
    much = "in full, as shown to the rules" if chars is None else f"at most {chars} characters"
    lines = document["lines"]
    yield (
        f"news:     {lines['evidence']:,} articles, offered in "
        f"{lines['offer']:,} searches; snippets: {much}"
    )
    if document["takedown"]:
        yield f"takedown: {document['takedown']:,} entries"


# -- replay ---------------------------------------------------------------------------------------


def replay_lines(document: Document) -> Iterator[str]:
    """Yield which files are equal, and explain those that are not."""
    for file in document["files"]:
        told = "equal" if file["equal"] else "DIFFERS"
        yield f"{told:<9}{file['rows']:>8,} rows   {one_line(file['name'])}"
        if not file["equal"]:
            yield f"         {_why(file)}"
    yield from map(_shift_line, document["shifts"])
    yield from _missing_lines(document["missing"])
    if document["changed"]:
        yield f"changed since the recording: {one_line(', '.join(document['changed']))}"
    if document["versions"] and not document["same"]:
        yield from (
            one_line(
                f"recorded with {each['name']} {each['recorded']}, replayed with "
                f"{each['here'] or 'none'}"
            )
            for each in document["versions"]
        )
    told = "identical bytes" if document["equal"] else "bytes DIFFER"
    told += "" if document["same"] or not document["equal"] else ", but outcomes DIFFER"
    yield (
        f"{told}: {document['samples']:,} samples replayed with {document['answers']:,} recorded "
        f"answers in {document['seconds']:.1f} s"
    )
    if document["stated"]:
        yield (
            "         recorded results used for carried-over or failed samples: "
            f"{document['stated']:,}"
        )
    yield f"run:     {brief(Path(document['run']))}"


def _why(file: Document) -> str:
    if not file["recorded"]:
        return "the recorded run does not have this file"
    if not file["found"]:
        return "this file was not written"
    difference = file["difference"]
    if difference is None:
        return "the rows are identical; only pyarrow's encoding differs"
    columns = f", {', '.join(difference['columns'])}" if difference["columns"] else ""
    return one_line(
        f"first difference in row {difference['row']}, {difference['id']}{columns}: "
        f"{difference['why']}"
    )


def _shift_line(shift: Document) -> str:
    found, recorded = f"{shift['found']:,}", f"{shift['recorded']:,}"
    return (
        f"ended as {shift['outcome']}{_pass(shift)}: {found} in the replay, {recorded} in the "
        "recorded run"
    )


def _pass(told: Document) -> str:
    return " (control)" if told["stage"] == "control" else ""


def _missing_lines(missing: list[Document]) -> Iterator[str]:
    for one in missing[:SHOWN]:
        yield one_line(f"went wrong: {one['sample']}{_pass(one)}, {one['node']}: {one['reason']}")
    if len(missing) > SHOWN:
        yield f"went wrong: {len(missing) - SHOWN:,} more steps; --json lists them all"
