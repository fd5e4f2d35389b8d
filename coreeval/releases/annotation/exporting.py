"""Writes the sheets of raters, and the key that they must not have."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from coreeval.errors import UsageError
from coreeval.evaluation.annotation.rating_study import (
    CRITERIA,
    INSTRUCTIONS,
    KEY_FILE,
    SOURCE,
    KeyItem,
    StudyItem,
    StudyKey,
    StudySource,
    draw_study,
    shuffle_for_rater,
    write_key,
)
from coreeval.evaluation.annotation.sheets import (
    SheetForm,
    SheetItem,
    make_sheet_item,
    write_sheet_csv,
    write_sheet_page,
)
from coreeval.releases.annotation.pool import pool_of
from coreeval.releases.exports.material import Material, open_material
from coreeval.releases.exports.place import appearing
from coreeval.releases.release import texts_sha256

SHEETS: Final = "for-raters"
"""The folder that raters are given, or their own sheet of it; the key is not in it."""
SAMPLES: Final = 50
"""Texts of each arm: the paper had as many rated (section 3.6)."""
RATERS: Final = 3
SEED: Final = 7


class Writer(Protocol):
    """Writes one rater's sheet."""

    def __call__(self, path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
        """Write it."""


def _write_xlsx(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    from coreeval.evaluation.annotation.sheets import write_sheet_xlsx

    write_sheet_xlsx(path, items, study=study, rater=rater)


_WRITERS: Final[dict[SheetForm, tuple[str, Writer]]] = {
    "csv": (".csv", write_sheet_csv),
    "xlsx": (".xlsx", _write_xlsx),
    "page": (".html", write_sheet_page),
}


@dataclass(frozen=True, kw_only=True)
class Sheets:
    """What was written."""

    out: Path
    key: StudyKey
    files: tuple[Path, ...]
    pool: int
    """Samples that could have been drawn."""

    @property
    def key_file(self) -> Path:
        """What each item is: not for raters."""
        return self.out / KEY_FILE

    @property
    def arms(self) -> dict[str, int]:
        """Items by arm."""
        return dict(sorted(Counter(each.arm for each in self.key.items).items()))

    @property
    def labels(self) -> dict[str, int]:
        """Items by label."""
        return dict(sorted(Counter(each.label for each in self.key.items).items()))


def export_sheets(
    place: Path,
    out: Path,
    *,
    samples: int = SAMPLES,
    raters: int = RATERS,
    form: SheetForm = "csv",
    seed: int = SEED,
    originals: Path | None = None,
) -> Sheets:
    """Write a sheet for each rater, the guideline, and the key.

    Args:
        place: A run that has ended, or a release.
        out: An empty or a new folder; it appears when it is whole.
        samples: Originals that are wanted, and as many updated texts.
        raters: How many sheets.
        form: Of the sheets.
        seed: Of all that is left to chance.
        originals: The benchmark, where a release may not pass its texts on.

    Raises:
        UsageError: there is something at `out`, or nothing that could be rated.
        ReleaseError: `place` is neither run nor release, or damaged.
        RunStateError: the run has not come to its end.
        RunError: the sheets cannot be written.
    """
    material = open_material(place)
    pool = pool_of(material, originals)
    study, items = draw_study(pool, blocks=samples, seed=seed)
    if not items:
        raise UsageError(
            f"no two of {len(pool)} accepted samples have the same label: nothing can be compared",
            where=str(place),
            hint="annotate a run with more accepted samples",
        )
    names = tuple(f"rater-{number}" for number in range(1, raters + 1))
    key = _key(material, study, items, names, seed=seed, asked=samples)
    with appearing(out) as draft:
        files = _write(draft, key, [make_sheet_item(each) for each in items], form)
    return Sheets(out=out, key=key, files=tuple(out / each for each in files), pool=len(pool))


def _key(
    material: Material,
    study: str,
    items: Sequence[StudyItem],
    raters: tuple[str, ...],
    *,
    seed: int,
    asked: int,
) -> StudyKey:
    return StudyKey(
        study=study,
        made_of=StudySource(kind=material.kind, name=material.name, version=material.version),
        seed=seed,
        asked=asked,
        raters=raters,
        scale=SOURCE,
        items=tuple(
            KeyItem(
                item=each.item,
                sample=each.candidate.sample,
                arm=each.arm,
                label=each.candidate.label,
                text_sha256=texts_sha256(each.candidate.texts[each.arm]),
            )
            for each in items
        ),
    )


def _write(draft: Path, key: StudyKey, items: Sequence[SheetItem], form: SheetForm) -> list[str]:
    """Write all files into a folder and return their paths in it."""
    suffix, write = _WRITERS[form]
    folder = draft / SHEETS
    folder.mkdir()
    for rater in key.raters:
        own = shuffle_for_rater(rater, items, seed=key.seed)
        write(folder / f"{rater}{suffix}", own, study=key.study, rater=rater)
    (folder / "guideline.md").write_text(_guideline(), encoding="utf-8")
    write_key(draft / KEY_FILE, key)
    return [*(f"{SHEETS}/{rater}{suffix}" for rater in key.raters), f"{SHEETS}/guideline.md"]


def _guideline() -> str:
    lines = ["# How to rate", "", *(f"- {line}" for line in INSTRUCTIONS)]
    for each in CRITERIA:
        anchors = (f"- **{value}**: {meaning}" for value, meaning in each.anchors.items())
        lines += ["", f"## {each.name.capitalize()}", "", each.asks, "", *anchors]
    return "\n".join([*lines, "", SOURCE, ""])
