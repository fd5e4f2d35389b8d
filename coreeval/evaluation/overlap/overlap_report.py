"""An overlap as a document, as rows of a table, and as one self-contained page.

Foreign text is escaped.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from coreeval.evaluation.overlap.minhash import FINE
from coreeval.evaluation.overlap.passages import LEAST, LEAST_ALIKE, SEED, SEED_UNSPACED
from coreeval.evaluation.overlap.search import (
    KINDS,
    BenchmarkOverlap,
    BenchmarkTexts,
    Hit,
    HitKind,
    TextEntry,
)
from coreeval.evaluation.overlap.shingles import RUN, RUN_UNSPACED, WIDTH, WIDTH_UNSPACED
from coreeval.evaluation.overlap.templates import TEMPLATE
from coreeval.tools.files import replacing, write_text
from coreeval.tools.outputs import PAGE, refuse_foreign_output
from coreeval.tools.pages import open_templates
from coreeval.tools.text import DiffPiece, word_diff

Json = Mapping[str, Any]
LONGEST = 4000
"""The most characters of a text to compare word by word; the document has the whole text."""
ENGLISH = "minilm"
"""Prefix of the names of embeddings that were trained on English only."""
OTHER_SCRIPT = 0.1
"""The share of texts in scripts other than Latin above which a note gives a warning."""
_OTHER_LETTER = re.compile(r"[\u0370-\u1dff\u2c00-\ua71f\ua800-\ufaff\U00020000-\U0003ffff]")
"""A letter of a script other than Latin."""
_COLUMNS = ("kind", "similarity", "same_answer", "a_ids", "b_ids", "a_answers", "b_answers",
            "a_text", "b_text", "longer", "start", "end")  # fmt: skip
HITS: Final = ",".join(_COLUMNS)
"""The first line of a file of hits."""


def overlap_document(overlap: BenchmarkOverlap) -> dict[str, Any]:
    """Return an overlap as printed by `--json`; docs/json.md lists the keys."""
    sides = [overlap.a] if overlap.b is None else [overlap.a, overlap.b]
    told = [_side_document(overlap, place, texts) for place, texts in enumerate(sides)]
    return {
        "a": told[0],
        "b": told[1] if len(told) > 1 else None,
        "counts": {
            kind: sum(hit.kind == kind for hit in overlap.hits) for kind in list_kinds(overlap)
        },
        "hits": [_hit_document(hit) for hit in overlap.hits],
        "notes": _notes(overlap),
        "settings": _settings_document(overlap),
    }


def list_kinds(overlap: BenchmarkOverlap) -> tuple[HitKind, ...]:
    """Return the kinds of hits that were searched for; paraphrases only with embeddings."""
    return tuple(kind for kind in KINDS if kind != "paraphrase" or overlap.search.embeds)


def _settings_document(overlap: BenchmarkOverlap) -> Json:
    search = overlap.search
    return {
        "threshold": search.threshold,
        "shingle": {"characters": WIDTH, "unspaced": WIDTH_UNSPACED},
        "minhash": {"bands": FINE.bands, "rows": FINE.rows},
        "boilerplate": {"characters": RUN, "unspaced": RUN_UNSPACED},
        "contained": {
            "threshold": max(search.threshold, LEAST_ALIKE),
            "letters": LEAST,
            "seed": {"letters": SEED, "unspaced": SEED_UNSPACED},
        },
        "template": {"threshold": TEMPLATE},
        "paraphrase": search.embeds
        and {"embeddings": search.embeds.name, "threshold": search.paraphrase},
    }


def _side_document(overlap: BenchmarkOverlap, place: int, texts: BenchmarkTexts) -> Json:
    items = {kind: overlap.items((kind,))[place] for kind in list_kinds(overlap)}
    return {
        "source": texts.name,
        "items": len(texts.entries),
        "in_hits": overlap.items()[place],
        "in_hits_by_kind": items,
        "short": overlap.short[place],
        "bad_rows": [row.model_dump() for row in texts.bad_rows],
    }


def _hit_document(hit: Hit) -> Json:
    return {
        "kind": hit.kind,
        "similarity": round(hit.similarity, 4),
        "same_answer": hit.same_answer,
        "a": [_entry_document(each) for each in hit.a],
        "b": [_entry_document(each) for each in hit.b],
        "a_text": hit.texts[0],
        "b_text": hit.texts[1],
        "within": hit.within and asdict(hit.within),
    }


def _entry_document(entry: TextEntry) -> Json:
    return {"id": entry.id, "answer": entry.answer}


def _notes(overlap: BenchmarkOverlap) -> list[str]:
    notes = []
    if sum(overlap.short):
        said = " and ".join(str(number) for number in overlap.short)
        notes.append(f"{said} texts are so short that they were compared only as a whole")
    if overlap.crowded:
        notes.append(
            f"very many texts are similar: in {overlap.crowded} groups, each text was compared "
            "only with the first text, so some near hits within these groups may be missing"
        )
    return [*notes, *_language_notes(overlap)]


def _language_notes(overlap: BenchmarkOverlap) -> Iterator[str]:
    """Yield a note for each benchmark in a language that the embeddings do not cover."""
    embeds = overlap.search.embeds
    if embeds is None or not embeds.name.startswith(ENGLISH):
        return
    for texts in (overlap.a, overlap.b):
        entries = texts.entries if texts else ()
        foreign = sum(_OTHER_LETTER.search(entry.text) is not None for entry in entries)
        if texts and foreign > OTHER_SCRIPT * len(entries):
            yield (
                f"MiniLM was trained on English: paraphrases of the {foreign} texts of "
                f"{texts.name} that use another script may be missing or wrong"
            )


def write_overlap_csv(path: Path, overlap: BenchmarkOverlap) -> Path:
    """Write one row per hit; the ids and answers of several items are on separate lines."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    for hit in overlap.hits:
        ids = ["\n".join(each.id for each in side) for side in (hit.a, hit.b)]
        answers = ["\n".join(each.answer or "" for each in side) for side in (hit.a, hit.b)]
        same = "" if hit.same_answer is None else str(hit.same_answer).lower()
        where = [hit.within.side, hit.within.start, hit.within.end] if hit.within else [""] * 3
        rows.writerow([hit.kind, f"{hit.similarity:.4f}", same, *ids, *answers, *hit.texts, *where])
    refuse_foreign_output(path, HITS)
    with replacing(path) as draft:
        draft.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


# -- side by side ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideBySide:
    """The two texts of a hit in pieces: those in both, and those in only one of them."""

    left: tuple[DiffPiece, ...]
    right: tuple[DiffPiece, ...]


def side_by_side(hit: Hit) -> SideBySide:
    """Return a word-by-word diff of the texts of a hit's first items, or of the passage."""
    one, other = map(_cut, hit.texts)
    pieces = word_diff(one, other)
    return SideBySide(
        left=tuple(piece for piece in pieces if piece.op != "added"),
        right=tuple(piece for piece in pieces if piece.op != "removed"),
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


MOST_HITS = 500
"""The most hits on a page; browsers cannot handle very many."""
MOST_IDS = 5
"""The most items of a hit that are named on each side."""


def write_overlap_page(path: Path, overlap: BenchmarkOverlap) -> Path:
    """Write the page by replacing the file atomically."""
    refuse_foreign_output(path, PAGE)
    write_text(path, render_overlap_page(overlap))
    return path


def render_overlap_page(overlap: BenchmarkOverlap) -> str:
    """Render the overlap as an HTML page."""
    templates = open_templates("coreeval.evaluation.overlap", lstrip_blocks=True)
    document = overlap_document(overlap)
    return templates.get_template("page.html.jinja").render(
        document
        | {
            "sides": [side for side in (document["a"], document["b"]) if side],
            "views": [_hit_view(hit) for hit in overlap.hits[:MOST_HITS]],
            "left": max(0, len(overlap.hits) - MOST_HITS),
        }
    )


def _hit_view(hit: Hit) -> dict[str, object]:
    pieces = side_by_side(hit)
    return {
        "kind": hit.kind,
        "similarity": hit.similarity,
        "same_answer": hit.same_answer,
        "within": hit.within,
        "columns": [
            {
                "pieces": shown,
                "items": [each for each in side[:MOST_IDS]],
                "more": max(0, len(side) - MOST_IDS),
            }
            for side, shown in ((hit.a, pieces.left), (hit.b, pieces.right))
        ],
    }
