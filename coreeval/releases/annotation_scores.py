"""Reads filled rating sheets, scores them, and stores the result in the run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunError, UsageError
from coreeval.evaluation.annotation.criteria import STUDIES, RatedText
from coreeval.evaluation.annotation.rating_scores import score_ratings
from coreeval.evaluation.annotation.rating_study import KEY_FILE, StudyKey, read_key
from coreeval.evaluation.annotation.ratings import Annotation, RatingCollection, collect_ratings
from coreeval.evaluation.annotation.sheets import READERS, read_sheets, refuse_shifted_rows
from coreeval.releases.annotation_sheets import SHEET_FOLDER, iter_arm_texts
from coreeval.releases.exports.material import Material, open_material
from coreeval.releases.release import MANIFEST, hash_texts, read_release
from coreeval.releases.review.review import resolve_run
from coreeval.runs.manifest import read_manifest
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import write_json
from coreeval.tools.outputs import refuse_foreign_output
from coreeval.tools.text import join_fields
from coreeval.tools.workspace import RunFiles


@dataclass(frozen=True, kw_only=True)
class SheetScores:
    """Scores of rating sheets, and their file."""

    annotation: Annotation
    path: Path
    sheets: tuple[Path, ...]
    replaced: str | None
    """The other study whose result was overwritten; None if there was none."""


def score_sheets(
    place: Path,
    given: Sequence[Path],
    *,
    key: Path | None = None,
    out: Path | None = None,
    originals: Path | None = None,
    now: Clock = utc_now,
) -> SheetScores:
    """Score filled rating sheets and write annotation.json.

    Args:
        place: The run whose texts were rated, or a release made from it.
        given: Sheets, or folders with sheets.
        key: The key file that identifies each item; by default the one next to the sheets.
        out: The file to write; by default annotation.json of the run.
        originals: The benchmark, if the release may not redistribute its texts.
        now: The clock that dates the result.

    Raises:
        UsageError: no sheets, no key, a sheet that cannot be read, sheets without any rating, a row
            with the text of another item, or ratings of texts other than those at `place`.
        ReleaseError: `place` is neither a run nor a release, or is damaged.
        RunStateError: the run has not ended.
        RunError: the result cannot be written.
    """
    sheets = _list_sheets(given)
    known = read_key(key or _find_key(sheets))
    target = out or RunFiles(resolve_run(place)).annotation
    if out:
        refuse_foreign_output(out, '{\n  "version": 1,\n  "study": ')
    material = open_material(place)
    design = STUDIES[material.task.kind]
    rows = list(read_sheets(sheets, design.columns))
    texts = _texts(material, known, originals)
    refuse_shifted_rows(rows, texts)
    collected = collect_ratings(rows, list(texts), design=design, texts=texts)
    _refuse_empty_sheets(collected, known, sheets)
    found = score_ratings(
        collected,
        known,
        {item: join_fields(text.fields) for item, text in texts.items()},
        run=_run_name(place),
        at=now().isoformat(timespec="seconds"),
        design=design,
    )
    before = _read_study(target)
    _write(target, found)
    replaced = before if before != found.study else None
    return SheetScores(annotation=found, path=target, sheets=tuple(sheets), replaced=replaced)


def _write(path: Path, found: Annotation) -> None:
    try:
        write_json(path, found.model_dump(mode="json"))
    except OSError as error:
        raise RunError(
            f"the result cannot be written: {error.strerror or error}",
            where=str(error.filename or path),
            hint="check the disk, or choose another file: --out FILE",
        ) from None


def _read_study(path: Path) -> str | None:
    """Return the study of a result file; None if the file cannot be read."""
    try:
        content = read_bytes(path, most_bytes=MOST_DATA_BYTES)
        return Annotation.model_validate_json(content).study
    except (OSError, ValidationError):
        return None


def _run_name(place: Path) -> str:
    if (place / MANIFEST).exists():
        return read_release(place).manifest.run
    return read_manifest(RunFiles(place).manifest).run


def _list_sheets(given: Sequence[Path]) -> list[Path]:
    """Return the sheets to read; a folder means the sheets in it and in its `for-raters`."""
    found = [sheet for path in given for sheet in (_files_in(path) if path.is_dir() else [path])]
    if not found:
        raise UsageError(
            "no sheets were found",
            where=", ".join(map(str, given)),
            hint="pass completed sheets in CSV or XLSX; HTML sheets save their ratings as CSV",
        )
    return list(dict.fromkeys(found))


def _files_in(folder: Path) -> Iterator[Path]:
    folders = (folder, folder / SHEET_FOLDER)
    files = (file for each in folders if each.is_dir() for file in sorted(each.iterdir()))
    forms = (file for file in files if file.suffix.casefold() in READERS)
    return (file for file in forms if not file.name.startswith((".", "~")))


def _find_key(sheets: Sequence[Path]) -> Path:
    """Return the key in the first sheet's folder, or in the folder above it."""
    folder = sheets[0].absolute().parent
    found = (each / KEY_FILE for each in (folder, folder.parent) if (each / KEY_FILE).exists())
    return next(found, folder / KEY_FILE)


def _refuse_empty_sheets(
    collected: RatingCollection, key: StudyKey, sheets: Sequence[Path]
) -> None:
    if collected.raters:
        return
    others = [each for each in collected.problems if each.kind == "unknown_item"]
    where = ", ".join(map(str, sheets))
    if others:
        raise UsageError(
            f"the sheets are from a different study than the key ({key.study}): the key has no "
            f"item {others[0].item!r}",
            where=where,
            hint="pass the key written with these sheets: --key FILE",
        )
    raise UsageError("the sheets contain no ratings", where=where, hint="complete the sheets first")


def _texts(material: Material, key: StudyKey, originals: Path | None) -> dict[str, RatedText]:
    """Return the text of each item; raise UsageError if it is not the text that was rated."""
    wanted = {each.sample for each in key.items}
    known = {
        sample: texts for sample, texts in iter_arm_texts(material, originals) if sample in wanted
    }
    found: dict[str, RatedText] = {}
    for each in key.items:
        fields = known.get(each.sample, {}).get(each.arm)
        if fields is None or hash_texts(fields) != each.text_sha256:
            raise UsageError(
                f"the rated texts are not those of this {material.kind}: the {each.arm} text of "
                f"{each.sample!r} is {'different' if fields else 'missing'}",
                where=str(material.path),
                hint=f"use the {key.made_of.kind} that was rated: "
                f"{key.made_of.name} {key.made_of.version}",
            )
        found[each.item] = RatedText(fields, each.label)
    return found
