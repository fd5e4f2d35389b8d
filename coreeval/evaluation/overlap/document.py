"""An overlap as a document, as rows of a table, and its hits side by side."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coreeval.evaluation.overlap.boilerplate import RUN, RUN_UNSPACED
from coreeval.evaluation.overlap.hits import KINDS, Hit, Kind, Overlap
from coreeval.evaluation.overlap.minhash import FINE
from coreeval.evaluation.overlap.passages import LEAST_ALIKE
from coreeval.evaluation.overlap.seeds import LEAST, SEED, SEED_UNSPACED
from coreeval.evaluation.overlap.shingles import WIDTH, WIDTH_UNSPACED
from coreeval.evaluation.overlap.templates import TEMPLATE
from coreeval.evaluation.overlap.texts import Entry, Texts
from coreeval.tools.files import replacing
from coreeval.tools.text import DiffPiece, word_diff

Json = Mapping[str, Any]
LONGEST = 4000
"""Characters of a text whose words are compared for people; the document has it whole."""
ENGLISH = "minilm"
"""Embeddings that were trained on English only; their names begin so."""
OTHER_SCRIPT = 0.1
"""Share of a benchmark's texts in scripts without blanks from which a note says so."""
_OTHER_LETTER = re.compile(r"[\u0370-\u1dff\u2c00-\ua71f\ua800-\ufaff\U00020000-\U0003ffff]")
"""A letter of a script other than Latin."""
_COLUMNS = ("kind", "similarity", "same_answer", "a_ids", "b_ids", "a_answers", "b_answers",
            "a_text", "b_text", "longer", "start", "end")  # fmt: skip


def overlap_document(overlap: Overlap) -> dict[str, Any]:
    """Return all of an overlap, as `--json` prints it; docs/json.md lists the keys."""
    sides = [overlap.a] if overlap.b is None else [overlap.a, overlap.b]
    told = [_side(overlap, place, texts) for place, texts in enumerate(sides)]
    return {
        "a": told[0],
        "b": told[1] if len(told) > 1 else None,
        "counts": {
            kind: sum(hit.kind == kind for hit in overlap.hits) for kind in searched(overlap)
        },
        "hits": [_hit(hit) for hit in overlap.hits],
        "notes": _notes(overlap),
        "settings": _settings(overlap),
    }


def searched(overlap: Overlap) -> tuple[Kind, ...]:
    """Return the kinds that were looked for: paraphrases only if there are embeddings."""
    return tuple(kind for kind in KINDS if kind != "paraphrase" or overlap.search.embeds)


def _settings(overlap: Overlap) -> Json:
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


def _side(overlap: Overlap, place: int, texts: Texts) -> Json:
    items = {kind: overlap.items((kind,))[place] for kind in searched(overlap)}
    return {
        "source": texts.name,
        "items": len(texts.entries),
        "in_hits": overlap.items()[place],
        "in_hits_by_kind": items,
        "short": overlap.short[place],
        "bad_rows": [row.model_dump() for row in texts.bad_rows],
    }


def _hit(hit: Hit) -> Json:
    return {
        "kind": hit.kind,
        "similarity": round(hit.similarity, 4),
        "same_answer": hit.same_answer,
        "a": [_entry(each) for each in hit.a],
        "b": [_entry(each) for each in hit.b],
        "a_text": hit.texts[0],
        "b_text": hit.texts[1],
        "within": hit.within
        and {"side": hit.within.side, "start": hit.within.start, "end": hit.within.end},
    }


def _entry(entry: Entry) -> Json:
    return {"id": entry.id, "answer": entry.answer}


def _notes(overlap: Overlap) -> list[str]:
    notes = []
    if sum(overlap.short):
        said = " and ".join(str(number) for number in overlap.short)
        notes.append(f"too short to be compared but as a whole: {said} texts")
    if overlap.crowded:
        notes.append(
            f"very many texts are alike: in {overlap.crowded} groups of them each was compared "
            "with the first only, so near hits among them are missing"
        )
    return [*notes, *_language_notes(overlap)]


def _language_notes(overlap: Overlap) -> Iterator[str]:
    """Yield which benchmark the embeddings do not know the language of."""
    embeds = overlap.search.embeds
    if embeds is None or not embeds.name.startswith(ENGLISH):
        return
    for texts in (overlap.a, overlap.b):
        entries = texts.entries if texts else ()
        foreign = sum(_OTHER_LETTER.search(entry.text) is not None for entry in entries)
        if texts and foreign > OTHER_SCRIPT * len(entries):
            yield (
                f"MiniLM was trained on English: paraphrases of the {foreign} texts of "
                f"{texts.name} in another script may be missing or wrong"
            )


def write_csv(path: Path, overlap: Overlap) -> Path:
    """Write a row for each hit; ids and answers of several items are a line each."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    for hit in overlap.hits:
        ids = ["\n".join(each.id for each in side) for side in (hit.a, hit.b)]
        answers = ["\n".join(each.answer or "" for each in side) for side in (hit.a, hit.b)]
        same = "" if hit.same_answer is None else str(hit.same_answer).lower()
        where = [hit.within.side, hit.within.start, hit.within.end] if hit.within else [""] * 3
        rows.writerow([hit.kind, f"{hit.similarity:.4f}", same, *ids, *answers, *hit.texts, *where])
    with replacing(path) as draft:
        draft.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


# -- side by side ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideBySide:
    """The two texts of a hit, in pieces: `same`, and what only the one or the other has."""

    left: tuple[DiffPiece, ...]
    right: tuple[DiffPiece, ...]


def side_by_side(hit: Hit) -> SideBySide:
    """Return the texts of a hit's first items, or the passage, word against word."""
    one, other = map(_cut, hit.texts)
    pieces = word_diff(one, other)
    return SideBySide(
        left=tuple(piece for piece in pieces if piece.op != "added"),
        right=tuple(piece for piece in pieces if piece.op != "removed"),
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
