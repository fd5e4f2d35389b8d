"""Sheets for raters: the samples of a run or a release, the sheets, the guideline, and the key.

Raters must not see the key.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final, Protocol

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.annotation.criteria import STUDIES, StudyDesign
from coreeval.evaluation.annotation.rating_study import (
    KEY_FILE,
    RATED_ARMS,
    KeyItem,
    NewsExcerpt,
    RatedArm,
    RatingCandidate,
    StudyItem,
    StudyKey,
    StudySource,
    draw_study,
    shuffle_for_rater,
    write_key,
)
from coreeval.evaluation.annotation.sheet_page import write_sheet_page
from coreeval.evaluation.annotation.sheets import (
    SheetForm,
    SheetItem,
    make_sheet_item,
    write_sheet_csv,
    write_sheet_xlsx,
)
from coreeval.releases.exports.material import ExportSample, Material, open_material
from coreeval.releases.folders import create_export_folder
from coreeval.releases.release import hash_texts, read_release
from coreeval.releases.review import load_review
from coreeval.releases.sample_tables import load_originals
from coreeval.releases.withheld import refuse_listed_samples
from coreeval.runs.copying import refuse_takedown
from coreeval.schema import Task


def load_pool(material: Material, originals: Path | None) -> list[RatingCandidate]:
    """Return the accepted samples; only they have an updated text and news.

    Samples that a person rejected are left out, as in a release.

    Args:
        material: The run or the release.
        originals: The benchmark, if the release may not redistribute its texts; None for the path
            in its config.

    Raises:
        UsageError: the originals are missing.
        ReleaseError: the release was made from other originals.
    """
    fetched = _originals(material, originals)
    evidence = _evidence(material)
    rejected = load_review(material.path).rejected if material.kind == "run" else frozenset()
    return [
        _candidate(
            material.task_of(sample.id, texts["original"]), sample, texts, evidence[sample.id]
        )
        for sample in material.samples()
        if sample.id not in rejected
        and (texts := _arm_texts(sample, fetched)).keys() >= {"original", "updated"}
    ]


def _originals(material: Material, place: Path | None) -> Mapping[str, dict[str, str]]:
    if material.kind == "run":
        return {}
    try:
        return {each.id: each.fields for each in load_originals(material.path, place)}
    except DatasetError as error:
        raise UsageError(
            f"the release does not contain the benchmark's own texts, and {error.message}",
            where=error.where or str(material.path),
            hint="pass the benchmark: --originals FOLDER_OR_FILE",
        ) from None


def _arm_texts(
    sample: ExportSample, fetched: Mapping[str, dict[str, str]]
) -> dict[RatedArm, dict[str, str]]:
    found = {arm: sample.texts(arm) for arm in RATED_ARMS}
    found["original"] = found["original"] or fetched.get(sample.id)
    return {arm: fields for arm, fields in found.items() if fields}


def _evidence(material: Material) -> Mapping[str, tuple[NewsExcerpt, ...]]:
    """Return the news behind each sample's facts, without duplicates, in order of publication."""
    found: dict[str, dict[str, NewsExcerpt]] = defaultdict(dict)
    for fact in material.facts():
        found[fact.id][fact.evidence_id] = NewsExcerpt(
            published_at=fact.published_at,
            domain=fact.domain,
            url=fact.url,
            snippet=fact.snippet,
        )
    ordered = {
        sample: sorted(by.values(), key=lambda one: (one.published_at, one.url))
        for sample, by in found.items()
    }
    return defaultdict(tuple, {sample: tuple(some) for sample, some in ordered.items()})


def _candidate(
    task: Task,
    sample: ExportSample,
    texts: dict[RatedArm, dict[str, str]],
    evidence: tuple[NewsExcerpt, ...],
) -> RatingCandidate:
    meanings = {label.name: label.meaning for label in task.labels}
    return RatingCandidate(
        sample=sample.id,
        label=sample.label_text,
        meaning=meanings.get(sample.label_text, ""),
        question=Template(task.question).safe_substitute(target=task.target or ""),
        texts=texts,
        evidence=evidence,
        group=None if STUDIES[task.kind].by_label else "",
    )


def iter_arm_texts(
    material: Material, originals: Path | None
) -> Iterator[tuple[str, Mapping[RatedArm, dict[str, str]]]]:
    """Yield each sample's id with its texts by arm.

    Raises:
        UsageError: the originals are missing.
    """
    fetched = _originals(material, originals)
    return ((sample.id, _arm_texts(sample, fetched)) for sample in material.samples())


SHEET_FOLDER: Final = "for-raters"
"""Folder that raters receive, or their own sheet from it; it does not contain the key."""
DEFAULT_SAMPLES: Final = 50
"""Default number of texts per arm, as in the paper's rating study (section 3.6)."""
DEFAULT_RATERS: Final = 3
MOST_RATERS: Final = 99
DEFAULT_SEED: Final = 7


class SheetWriter(Protocol):
    """Function that writes one rater's sheet."""

    def __call__(
        self,
        path: Path,
        items: Sequence[SheetItem],
        *,
        study: str,
        rater: str,
        design: StudyDesign,
    ) -> None:
        """Write the sheet."""


_WRITERS: Final[dict[SheetForm, tuple[str, SheetWriter]]] = {
    "csv": (".csv", write_sheet_csv),
    "xlsx": (".xlsx", write_sheet_xlsx),
    "page": (".html", write_sheet_page),
}


@dataclass(frozen=True, kw_only=True)
class SheetExport:
    """The files and figures of an export of sheets."""

    out: Path
    key: StudyKey
    files: tuple[Path, ...]
    pool: int
    """Number of samples in the draw."""

    @property
    def key_file(self) -> Path:
        """Return the path of the key, which identifies each item and must not reach raters."""
        return self.out / KEY_FILE

    @property
    def arms(self) -> dict[str, int]:
        """Return the number of items per arm."""
        return dict(sorted(Counter(each.arm for each in self.key.items).items()))

    @property
    def labels(self) -> dict[str, int]:
        """Return the number of items per label."""
        return dict(sorted(Counter(each.label for each in self.key.items).items()))


def export_sheets(
    place: Path,
    out: Path,
    *,
    samples: int = DEFAULT_SAMPLES,
    raters: int = DEFAULT_RATERS,
    form: SheetForm = "csv",
    seed: int = DEFAULT_SEED,
    originals: Path | None = None,
) -> SheetExport:
    """Write a sheet for each rater, the guideline and the key.

    Args:
        place: A run that has ended, or a release.
        out: An empty or new folder; it appears once it is complete.
        samples: The number of originals, and of updated texts.
        raters: The number of sheets.
        form: The file format of the sheets.
        seed: The seed of every random choice.
        originals: The benchmark, if the release may not redistribute its texts.

    Raises:
        UsageError: `out` is not empty, or there is nothing to rate.
        ReleaseError: `place` is neither a run nor a release, or is damaged.
        RunStateError: the run has not ended, or a takedown has changed it meanwhile.
        RunError: the sheets cannot be written.
    """
    with create_export_folder(out) as draft, refuse_takedown(place):
        material = open_material(place)
        if material.kind == "release":
            refuse_listed_samples(read_release(place))
        pool = load_pool(material, originals)
        study, items = draw_study(pool, blocks=samples, seed=seed)
        if not items:
            raise UsageError(
                f"no two of {len(pool)} accepted samples have the same label, so nothing can be "
                "compared",
                where=str(place),
                hint="annotate a run with more accepted samples",
            )
        names = tuple(f"rater-{number}" for number in range(1, raters + 1))
        key = _build_key(material, study, items, names, seed=seed, asked=samples)
        shown = [make_sheet_item(each) for each in items]
        files = _write_files(draft, key, shown, form, STUDIES[material.task.kind])
    return SheetExport(out=out, key=key, files=tuple(out / each for each in files), pool=len(pool))


def _build_key(
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
        scale=STUDIES[material.task.kind].source,
        items=tuple(
            KeyItem(
                item=each.item,
                sample=each.candidate.sample,
                arm=each.arm,
                label=each.candidate.label,
                text_sha256=hash_texts(each.candidate.texts[each.arm]),
            )
            for each in items
        ),
    )


def _write_files(
    draft: Path,
    key: StudyKey,
    items: Sequence[SheetItem],
    form: SheetForm,
    design: StudyDesign,
) -> list[str]:
    """Write all files into a folder and return their paths relative to it."""
    suffix, write = _WRITERS[form]
    folder = draft / SHEET_FOLDER
    folder.mkdir()
    for rater in key.raters:
        own = shuffle_for_rater(rater, items, seed=key.seed)
        write(folder / f"{rater}{suffix}", own, study=key.study, rater=rater, design=design)
    (folder / "guideline.md").write_text(_guideline(design), encoding="utf-8")
    write_key(draft / KEY_FILE, key)
    return [
        *(f"{SHEET_FOLDER}/{rater}{suffix}" for rater in key.raters),
        f"{SHEET_FOLDER}/guideline.md",
    ]


def _guideline(design: StudyDesign) -> str:
    lines = ["# How to rate", "", *(f"- {line}" for line in design.instructions)]
    for each in design.criteria:
        anchors = [f"- **{value}**: {meaning}" for value, meaning in each.shown_anchors.items()]
        lines += ["", f"## {each.name.capitalize()}", "", each.asks]
        lines += ["", *anchors] if anchors else []
    return "\n".join([*lines, "", design.source, ""])
