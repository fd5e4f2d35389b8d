"""`coreeval annotate export|score`: people rate texts of all arms, blind to the arm."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coreeval.cli.options import LARGEST_COUNT, LARGEST_SEED, PlaceArgument
from coreeval.cli.output import AsJson, brief, command, one_line, show
from coreeval.tools.formatting import NOT_MEASURED, format_estimate, format_number, format_quantity
from coreeval.tools.tables import Row, Table, text_lines, texts

if TYPE_CHECKING:
    from coreeval.api.annotation import SheetExport, SheetScores
    from coreeval.evaluation.annotation.ratings import (
        Annotation,
        CriterionResult,
        Disagreement,
        RatingProblem,
        Reliability,
    )


SHOWN = 10
"""The most problems and disagreements listed; `--json` has them all."""
TEXT = 100
"""The most characters shown of a text in a disagreement."""
TROUBLE = {
    "unknown_item": "rows with items that the key does not contain",
    "no_rater": "rows without a rater's name",
    "not_a_rating": "values that are not allowed",
    "double": "duplicate ratings by one rater, counted once",
    "contradiction": "conflicting ratings of one item by one rater, not counted",
    "missing": "ratings missing",
    "empty": "raters without any rating",
}


def export_lines(made: "SheetExport", place: Path) -> Iterator[str]:
    """Yield the files written and the next step."""
    key = made.key
    arms = ", ".join(f"{count} {arm}" for arm, count in made.arms.items())
    yield f"{made.summary}: {arms}"
    labels = ", ".join(f"{count} {label}" for label, count in made.labels.items())
    yield one_line(f"  labels: {labels}")
    if made.arms.get("updated", 0) < key.asked:
        yield (
            f"  {key.asked} texts per arm were requested, but only {made.pool} samples were "
            "accepted, and each of them is shown in one arm only"
        )
    yield f"for raters: {brief(made.files[0].parent)} (one sheet each, and the guideline)"
    yield f"keep:       {brief(made.key_file)} (the arm of each text; not for raters)"
    yield f"then:       {command('annotate', 'score', place, made.out)}"


def score_lines(found: "SheetScores") -> Iterator[str]:
    """Yield means, agreement, disagreements and everything that was wrong."""
    said = found.annotation
    raters = ", ".join(
        f"{one_line(each.name)} ({format_quantity(each.ratings, 'rating')})" for each in said.raters
    )
    yield f"{found.summary}: {raters}"
    yield from _problems(said.problems)
    yield ""
    yield from _means(said.criteria)
    yield ""
    yield from _agreement(said)
    yield from _notes(said.criteria)
    yield from _disagreements(said.disagreements)
    before = f", replacing study {found.replaced}" if found.replaced else ""
    yield f"written: {brief(found.path)}{before}"


def _problems(problems: Sequence["RatingProblem"]) -> Iterator[str]:
    for kind, count in Counter(each.kind for each in problems).items():
        yield f"  {TROUBLE[kind]}: {count}"
    told = [each for each in problems if each.kind != "double"]
    for each in told[:SHOWN]:
        parts = (each.where, each.rater, each.item, each.criterion, each.said and f"{each.said!r}")
        yield one_line(f"    {each.kind.replace('_', ' ')}: {', '.join(filter(None, parts))}")
    if len(told) > SHOWN:
        yield f"    and {len(told) - SHOWN} more; --json lists them all"


def _means(criteria: Sequence["CriterionResult"]) -> Iterator[str]:
    arms = list(dict.fromkeys(arm for each in criteria for arm in each.arms))
    columns = (texts("mean", 12), *(texts(arm, 22) for arm in arms), texts("updated - original"))
    means = [
        (each.criterion, *(format_estimate(each.arms.get(arm), ".2f") for arm in arms),
         format_estimate(each.difference, "+.2f"))
        for each in criteria
    ]  # fmt: skip
    sizes: Row = ("texts", *(criteria[0].arms[arm].n for arm in arms))
    yield from text_lines(Table(columns, [*means, sizes]))


def _agreement(said: "Annotation") -> Iterator[str]:
    if len(said.raters) < 2:
        yield (
            "agreement cannot be computed from only one rater; have another rater rate the same "
            "texts"
        )
        return
    columns = (texts("agreement", 12), texts("pairs that agree", 22), texts("Fleiss kappa", 34),
               texts("Krippendorff alpha"))  # fmt: skip
    whole = [_reliability_row(each.criterion, each.reliability) for each in said.criteria]
    updated = [_reliability_row(each.criterion, each.of_updated) for each in said.criteria]
    yield from text_lines(Table(columns, [*whole, ("on the updated texts only",), *updated]))


def _reliability_row(criterion: str, found: "Reliability") -> Row:
    pairs = format_number(found.agreement.estimate, ".1%", NOT_MEASURED)
    chances = (
        f"{format_estimate(score, '.3f', ends='.2f', undefined='not defined')}, n = {score.n}"
        for score in (found.kappa, found.alpha)
    )
    return (criterion, pairs, *chances)


def _notes(criteria: Sequence["CriterionResult"]) -> Iterator[str]:
    for each in criteria:
        yield from (f"  {each.criterion}: {note}" for note in each.notes)


def _disagreements(found: Sequence["Disagreement"]) -> Iterator[str]:
    if not found:
        return
    yield ""
    texts = format_quantity(len({each.item for each in found}), "text")
    yield f"raters disagree about {texts}; the largest disagreements:"
    for each in found[:SHOWN]:
        ratings = ", ".join(f"{rater} {value}" for rater, value in each.ratings.items())
        about = f"{each.item} ({each.arm} of {each.sample}, {each.label}) {each.criterion}"
        text = one_line(each.text)
        yield one_line(f"  {about}: {ratings}")
        yield f"    {text[:TEXT]}{'…' if len(text) > TEXT else ''}"
    if len(found) > SHOWN:
        yield f"  and {len(found) - SHOWN} more; --json lists them all"


annotate = typer.Typer(
    name="annotate",
    help="Collect human ratings of texts; raters are not told the arms.",
)
OriginalsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Path of the benchmark; needed if the release does not contain the benchmark's texts.",
    ),
]


@annotate.command("export")
def export(
    place: PlaceArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", file_okay=False, help="A new or empty folder.", show_default=False
        ),
    ],
    samples: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=LARGEST_COUNT,
            help="Number of texts per arm; fewer if there are not enough.",
        ),
    ] = 50,
    raters: Annotated[
        int, typer.Option(metavar="N", min=1, max=99, help="Number of raters; each gets one sheet.")
    ] = 3,
    form: Annotated[
        Literal["csv", "xlsx", "page"], typer.Option("--format", help="Format of the sheets.")
    ] = "csv",
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed for all random choices.")
    ] = 7,
    originals: OriginalsOption = None,
    as_json: AsJson = False,
) -> None:
    """Write one sheet per rater, and the key, which raters must not see."""
    from coreeval.api.annotation import export_sheets

    made = export_sheets(
        place,
        out=out,
        samples=samples,
        raters=raters,
        form=form,
        seed=seed,
        originals=originals,
    )
    show(made.document, as_json, lambda: "\n".join(export_lines(made, place)))


@annotate.command("score")
def score(
    place: PlaceArgument,
    sheets: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|FILES...",
            help="The folder that `annotate export` wrote, or completed sheets (CSV, XLSX, or the "
            "CSV "
            "that a page saved).",
            exists=True,
            show_default=False,
        ),
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="The path of key.json, if it is not in the sheets' folder.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Output file; RUN/annotation.json by default."
        ),
    ] = None,
    originals: OriginalsOption = None,
    as_json: AsJson = False,
) -> None:
    """Score completed sheets: means per arm, agreement and disagreements.

    The result is included in the run's next release.
    """
    from coreeval.api.annotation import score_sheets

    found = score_sheets(place, sheets, key=key, out=out, originals=originals)
    show(found.document, as_json, lambda: "\n".join(score_lines(found)))
