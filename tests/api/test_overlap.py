"""`coreeval.overlap`: the same hits as the command, from lists, frames, tables and files."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from coreeval.api.overlap import Texts, overlap
from coreeval.errors import DatasetError, UsageError
from tests.cli.kit import Shell
from tests.evaluation.overlap.kit import CHINESE, QUESTION, unrelated

OWN = (QUESTION, CHINESE, *unrelated(3))
OTHER = (CHINESE, f"{QUESTION} Why?", "so sad", "so")
KINDS: dict[str, tuple[Texts, Texts]] = {
    "lists of texts": (list(OWN), list(OTHER)),
    "tuples": (OWN, OTHER),
    "lists of dicts": ([{"text": text} for text in OWN], [{"text": text} for text in OTHER]),
    "series": (pd.Series(OWN), pd.Series(OTHER)),
    "frames": (pd.DataFrame({"text": OWN}), pd.DataFrame({"text": OTHER})),
    "arrow": (pa.table({"text": OWN}), pa.chunked_array([OTHER])),
    "generators": ((text for text in OWN), iter(OTHER)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_texts_in_memory_are_compared(kind: str) -> None:
    found = overlap(*KINDS[kind])
    assert found.counts == {"exact": 1, "normalised": 0, "near": 1, "contained": 0, "template": 0}
    assert found.pairs["kind"] == ("exact", "near")
    assert found.pairs["a_ids"] == (("2",), ("1",)) and found.pairs["b_ids"] == (("1",), ("2",))
    assert found.pairs[1]["b_text"] == f"{QUESTION} Why?"
    assert len(found.to_pandas()) == found.to_arrow().num_rows == 2


def test_files_and_rows_get_the_document_of_the_command(shell: Shell) -> None:
    rows = [{"id": f"q{n}", "body": text, "label": "x"} for n, text in enumerate(OWN)]
    others = [{"id": f"p{n}", "body": text} for n, text in enumerate(OTHER)] + [{"id": "none"}]
    for name, each in (("a", rows), ("b", others)):
        shell.write(f"{name}.jsonl", "".join(f"{json.dumps(row)}\n" for row in each))
    said = shell("detect", "overlap", "a.jsonl", "b.jsonl", "--field", "body", "--json").document
    assert overlap("a.jsonl", Path("b.jsonl"), fields=["body"]).document == said
    memory = overlap(rows, others, fields=["body"]).document
    assert (memory["hits"], memory["counts"]) == (said["hits"], said["counts"])
    assert memory["settings"] == said["settings"]
    assert memory["a"] == {**said["a"], "source": "<a>"}
    mixed = overlap(rows, "b.jsonl", fields=["body"]).document
    assert (mixed["hits"], mixed["b"]) == (said["hits"], said["b"])


def test_duplicates_within_one_list_are_found() -> None:
    found = overlap([QUESTION, CHINESE, QUESTION.upper()])
    assert found.counts["normalised"] == 1 and found.document["b"] is None
    assert found.pairs[0]["a_ids"] == ("1",) and found.pairs[0]["b_ids"] == ("3",)


def test_bad_rows_are_counted_and_shown() -> None:
    found = overlap([QUESTION, None, 7, " "], OTHER)  # type: ignore[arg-type]
    assert found.bad_rows["reason"] == ("text is missing", "text is not a text", "text is empty")
    assert set(found.bad_rows["source"]) == {"<a>"} and found.bad_rows["row"] == (2, 3, 4)
    assert "1 of 1 items of <a> are repeated" in repr(found)
    assert "3 bad rows are skipped; the first is row 2: text is missing" in repr(found)


def test_texts_of_others_are_escaped_in_a_notebook() -> None:
    hostile = f"<script>alert(1)</script> {QUESTION}"
    assert "<script>" not in overlap([hostile], [hostile])._repr_html_()
    assert "&lt;script&gt;" in overlap([hostile], [hostile])._repr_html_()


def test_a_page_and_a_table_are_written(tmp_path: Path) -> None:
    found = overlap(OWN, OTHER)
    assert QUESTION in found.write_page(str(tmp_path / "hits.html")).read_text(encoding="utf-8")
    assert "exact,1.0000" in found.write_csv(tmp_path / "hits.csv").read_text(encoding="utf-8")


def test_paraphrases_need_embeddings() -> None:
    with pytest.raises(UsageError, match="embeddings"):
        overlap(OWN, OTHER, embeddings="maxilm")


@pytest.mark.parametrize(
    ("given", "changes", "where"),
    [
        (list(OWN), {"threshold": 0.1}, "threshold"),
        (list(OWN), {"threshold": "high"}, "threshold"),
        (list(OWN), {"paraphrase_threshold": 2}, "paraphrase_threshold"),
        (list(OWN), {"fields": "text"}, "fields"),
        ([], {}, "a"),
        ([{"body": "x"}], {}, "a"),
        ({"text": "x"}, {}, "a"),
        (7, {}, "a"),
        ("notes.txt", {}, "notes.txt"),
    ],
)
def test_what_cannot_be_used_is_told(given: Texts, changes: dict[str, object], where: str) -> None:
    with pytest.raises(UsageError) as raised:
        overlap(given, **changes)  # type: ignore[arg-type]
    assert raised.value.where == where


def test_rows_without_any_text_are_an_error() -> None:
    with pytest.raises(
        DatasetError, match=r"none of the 2 rows contains a text; the first: text is empty"
    ):
        overlap(["", " "])
