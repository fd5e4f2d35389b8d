"""`coreeval detect overlap`: which items do two benchmarks share, or does one have twice?"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.tools.embeddings import Embedder


def overlap(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A benchmark: a config, or [FORMAT:]PATH[@SPLIT].",
            show_default=False,
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="[B]",
            help="Another; without it, what A has twice is looked for.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Built-in task or task file: what the fields are."),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="Compare this field only; repeatable."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Least resemblance of a near hit, between 0 and 1.")
    ] = 0.4,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Look for paraphrases too: minilm, minilm:PATH or provider:name.",
            show_default=False,
        ),
    ] = None,
    paraphrase: Annotated[
        float,
        typer.Option(
            "--paraphrase-threshold", min=0.0, max=1.0, help="Least cosine of two paraphrases."
        ),
    ] = 0.75,
    most: Annotated[
        int, typer.Option("--show", metavar="N", min=0, help="Most hits that are shown.")
    ] = 10,
    table: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", dir_okay=False, help="Write all hits as a table."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write one page with the hits (HTML)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find items that two benchmarks share: the same, nearly so, or inside a longer text."""
    if not 0.2 <= threshold < 1:
        hint = "0.2 to 0.99; below it texts are alike by chance, docs/overlap.md"
        raise UsageError(f"{threshold} is no threshold", where="--threshold", hint=hint)
    if a == b:
        hint = "leave B out to find what it has twice"
        raise UsageError("A and B are the same", where="coreeval detect overlap", hint=hint)
    from coreeval.cli.overlap_words import overlap_lines
    from coreeval.evaluation.overlap.overlap_report import (
        overlap_document,
        write_overlap_csv,
        write_overlap_page,
    )
    from coreeval.evaluation.overlap.search import OverlapSearch, find_overlap
    from coreeval.evaluation.overlap.sources import ReadOptions, read_texts

    how = ReadOptions(task=task, fields=tuple(field or ()))
    first, second = read_texts(a, how), None if b is None else read_texts(b, how)
    with _embeddings(embeddings) as embeds:
        search = OverlapSearch(threshold=threshold, embeds=embeds, paraphrase=paraphrase)
        found = find_overlap(first, second, search=search)
    document = {
        **overlap_document(found),
        "csv": table and str(write_overlap_csv(table, found)),
        "page": page and str(write_overlap_page(page, found)),
    }
    show(document, as_json, lambda: "\n".join(overlap_lines(found, document, most)))


@contextmanager
def _embeddings(model: str | None) -> "Iterator[Embedder | None]":
    """Open embeddings, which the workspace's cache remembers; None if none are asked for."""
    if model is None:
        yield None
        return
    from coreeval.tools.embeddings import EmbeddingCache, open_embeddings
    from coreeval.tools.json_cache import JsonCache
    from coreeval.tools.workspace import workspace_for

    embeds = open_embeddings(model)
    with JsonCache(workspace_for(Path.cwd()).cache / "embeddings") as cache:
        yield EmbeddingCache(embeds, cache)
