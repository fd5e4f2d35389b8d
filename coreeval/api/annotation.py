"""Human ratings of texts, blind to the arm: the sheets, and their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from coreeval.api.arguments import LARGEST, require_integer, require_seed
from coreeval.api.places import SideLike, find_side
from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.releases import annotation_scores, annotation_sheets
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True, kw_only=True, repr=False)
class SheetExport(Result, annotation_sheets.SheetExport):
    """The sheets for raters: `files`, and `key_file`, which they must not see."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval annotate export --json` prints."""
        key = self.key
        return {
            "out": str(self.out),
            "study": key.study,
            "made_of": key.made_of.model_dump(),
            "items": len(key.items),
            "arms": dict(self.arms),
            "labels": dict(self.labels),
            "pool": self.pool,
            "asked": key.asked,
            "raters": list(key.raters),
            "seed": key.seed,
            "files": [str(file) for file in self.files],
            "key": str(self.key_file),
        }

    @property
    def summary(self) -> str:
        """The study, and the numbers of texts and raters, in a line."""
        texts = format_quantity(len(self.key.items), "text")
        return (
            f"study {self.key.study}: {texts} for {format_quantity(len(self.key.raters), 'rater')}"
        )

    @property
    def table(self) -> Table:
        """The number of texts by arm: `arm, texts`."""
        return Table("texts", parse_columns("arm texts:integer"), self.arms.items())


@dataclass(frozen=True, kw_only=True, repr=False)
class SheetScores(Result, annotation_scores.SheetScores):
    """The raters' results: `annotation` has means, agreement and disagreements."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval annotate score --json` prints."""
        return {
            "annotation": str(self.path),
            "sheets": [str(sheet) for sheet in self.sheets],
            "replaced": self.replaced,
            **self.annotation.model_dump(mode="json"),
        }

    @property
    def summary(self) -> str:
        """The study, and the numbers of rated texts and raters, in a line."""
        said = self.annotation
        raters = format_quantity(len(said.raters), "rater")
        return f"study {said.study}: {format_quantity(said.items, 'text')}, {raters}"

    @property
    def table(self) -> Table:
        """The mean rating of each criterion and arm with its 95 % interval."""
        rows: list[Row] = [
            (each.criterion, arm, mean.estimate, mean.ci_low, mean.ci_high, mean.n)
            for each in self.annotation.criteria
            for arm, mean in each.arms.items()
        ]
        return Table("mean ratings", _MEAN_COLUMNS, rows)


_MEAN_COLUMNS: Final = parse_columns(
    "criterion arm estimate:number ci_low:number ci_high:number n:integer"
)


def export_sheets(
    source: SideLike,
    *,
    out: Path | str,
    samples: int = annotation_sheets.DEFAULT_SAMPLES,
    raters: int = annotation_sheets.DEFAULT_RATERS,
    form: Literal["csv", "xlsx", "page"] = "csv",
    seed: int = annotation_sheets.DEFAULT_SEED,
    originals: Path | str | None = None,
) -> SheetExport:
    """Write one sheet per rater, and the key, which raters must not see.

    Args:
        source: A run or a release: a directory, a run's id or name, `latest`, or a `Run` or
            `Release`.
        out: A new or empty folder.
        samples: The number of texts per arm; fewer if there are not enough.
        raters: The number of raters, up to 99; each gets one sheet.
        form: The format of the sheets.
        seed: The seed of all random choices.
        originals: The path of the benchmark; needed if the release does not contain the
            benchmark's texts.

    Raises:
        RunStateError: there is no such run or release.
        UsageError: `out` is not empty, a number is out of range, or there are no texts to rate.
    """
    made = annotation_sheets.export_sheets(
        find_side(source),
        Path(out),
        samples=require_integer("samples", samples, 1, int(LARGEST)),
        raters=require_integer("raters", raters, 1, annotation_sheets.MOST_RATERS),
        form=form,
        seed=require_seed(seed),
        originals=None if originals is None else Path(originals),
    )
    return SheetExport(**vars(made))


def score_sheets(
    source: SideLike,
    sheets: Sequence[Path | str] | Path | str,
    *,
    key: Path | str | None = None,
    out: Path | str | None = None,
    originals: Path | str | None = None,
) -> SheetScores:
    """Score completed sheets; the result is included in the run's next release.

    Args:
        source: A run or a release: a directory, a run's id or name, `latest`, or a `Run` or
            `Release`.
        sheets: The folder of the export, or completed sheets.
        key: The key, if it is not in the folder of the sheets.
        out: The file to write; by default `annotation.json` in the run.
        originals: The path of the benchmark; needed if the release does not contain the
            benchmark's texts.

    Raises:
        RunStateError: there is no such run or release.
        UsageError: a sheet or the key cannot be read, or belongs to another run.
    """
    found = annotation_scores.score_sheets(
        find_side(source),
        [Path(sheets)] if isinstance(sheets, str | Path) else list(map(Path, sheets)),
        key=None if key is None else Path(key),
        out=None if out is None else Path(out),
        originals=None if originals is None else Path(originals),
    )
    return SheetScores(**vars(found))
