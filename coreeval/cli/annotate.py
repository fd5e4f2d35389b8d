"""`coreeval annotate export|score`: people rate texts of all arms, blind to the arm."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coreeval.cli.annotate_words import export_lines, score_lines
from coreeval.cli.output import AsJson, Document, show

if TYPE_CHECKING:
    from coreeval.releases.annotation.exporting import Sheets
    from coreeval.releases.annotation.scored import Scored

annotate = typer.Typer(name="annotate", help="Let people rate the texts, blind to the arm.")
PlaceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN_OR_RELEASE",
        help="The directory of a run that has ended, or of a release.",
        file_okay=False,
        show_default=False,
    ),
]
OriginalsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", help="The benchmark, for a release that may not pass its texts on."
    ),
]


@annotate.command("export")
def export(
    place: PlaceArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", file_okay=False, help="An empty or a new folder.", show_default=False
        ),
    ],
    samples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Texts of each arm, if there are as many.")
    ] = 50,
    raters: Annotated[int, typer.Option(metavar="N", min=1, max=99, help="Sheets.")] = 3,
    form: Annotated[
        Literal["csv", "xlsx", "page"], typer.Option("--format", help="Of the sheets.")
    ] = "csv",
    seed: Annotated[int, typer.Option(help="Of all that is left to chance.")] = 7,
    originals: OriginalsOption = None,
    as_json: AsJson = False,
) -> None:
    """Write a sheet for each rater, and the key that raters must not have."""
    from coreeval.releases.annotation.exporting import export_sheets

    made = export_sheets(
        place,
        out,
        samples=samples,
        raters=raters,
        form=form,
        seed=seed,
        originals=originals,
    )
    show(_exported(made), as_json, lambda: "\n".join(export_lines(made, place)))


def _exported(made: "Sheets") -> Document:
    return {
        "out": str(made.out),
        "study": made.key.study,
        "made_of": made.key.made_of.model_dump(),
        "items": len(made.key.items),
        "arms": made.arms,
        "labels": made.labels,
        "pool": made.pool,
        "asked": made.key.asked,
        "raters": list(made.key.raters),
        "seed": made.key.seed,
        "files": [str(file) for file in made.files],
        "key": str(made.key_file),
    }


@annotate.command("score")
def score(
    place: PlaceArgument,
    sheets: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|FILES...",
            help="The folder that export wrote, or filled sheets: CSV, XLSX, the pages' CSV.",
            exists=True,
            show_default=False,
        ),
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="key.json, if it is not beside the sheets."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="What is written; by default RUN/annotation.json."
        ),
    ] = None,
    originals: OriginalsOption = None,
    as_json: AsJson = False,
) -> None:
    """Score filled sheets: means by arm, agreement, and where raters disagree.

    The result goes into the next release of the run.
    """
    from coreeval.releases.annotation.scored import score_sheets

    found = score_sheets(place, sheets, key=key, out=out, originals=originals)
    show(_scored(found), as_json, lambda: "\n".join(score_lines(found)))


def _scored(found: "Scored") -> Document:
    return {
        "annotation": str(found.path),
        "sheets": [str(sheet) for sheet in found.sheets],
        "replaced": found.replaced,
        **found.annotation.model_dump(mode="json"),
    }
