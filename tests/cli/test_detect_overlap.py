"""`coreeval detect overlap`: two benchmarks in, hits out, in words, as documents and as a page."""

import json
from pathlib import Path

from tests.cli.kit import DEMO, Said, Shell
from tests.cli.test_docs import documented
from tests.evaluation.overlap.kit import CHINESE, QUESTION, unrelated


def overlap(shell: Shell, *arguments: str | Path) -> Said:
    """Run the command on two files of the current folder."""
    return shell("detect", "overlap", *arguments)


def items(shell: Shell, name: str, *texts: str) -> Path:
    """Write items, the answer of each its number."""
    rows = [{"input": text, "output": str(number)} for number, text in enumerate(texts)]
    return shell.write(name, "".join(f"{json.dumps(row)}\n" for row in rows))


def test_one_document_with_the_documented_keys(shell: Shell) -> None:
    items(shell, "a.jsonl", QUESTION, CHINESE)
    items(shell, "b.jsonl", CHINESE, f"{QUESTION} Why?", "so sad", "so")
    written = ("--csv", "hits.csv", "--page", "hits.html")
    said = overlap(shell, "a.jsonl", "b.jsonl", *written, "--json")
    assert said.code == 0 and said.err == ""
    found = said.document
    assert set(found) == documented("coreeval detect overlap")
    assert found["counts"] == {
        "exact": 1, "normalised": 0, "near": 1, "contained": 0, "template": 0,
    }  # fmt: skip
    assert found["b"]["in_hits"] == 2 and found["b"]["short"] == 2
    exact, near = found["hits"]
    assert exact["a"] == [{"id": "jsonl/a/2", "answer": "1"}] and exact["same_answer"] is False
    assert 0.4 < near["similarity"] < 1 and near["b_text"].endswith("Why?")
    assert all((shell.folder / found[kind]).stat().st_size for kind in ("csv", "page"))


def test_words_show_hits_in_two_columns(shell: Shell) -> None:
    items(shell, "a.jsonl", QUESTION, CHINESE)
    items(shell, "b.jsonl", QUESTION.replace("year", "quarter"), CHINESE.replace("总", ""), "")
    out = overlap(shell, "a.jsonl", "b.jsonl").out
    assert "A  a.jsonl: 2 items, 2 of them repeated (100.0%)" in out
    assert "skipped: b.jsonl, line 3: input is empty" in out
    assert (
        "hits: 0 exact, 0 normalised, 2 near, 0 contained, 0 template (near: resemblance 0.4" in out
    )
    assert "[-year-]" in out and "{+quarter+}" in out and "[-总-]" in out
    assert "same answer" in out
    widths = {line.index("|") for line in out.splitlines() if " | " in line and line.isascii()}
    assert widths == {52}
    assert "and 1 more hits" in overlap(shell, "a.jsonl", "b.jsonl", "--show", "1").out


def test_a_text_that_would_steer_the_terminal_is_plain(shell: Shell) -> None:
    bad = f"\x1b[31m{QUESTION}\n\n\n{unrelated(1)[0]}"
    items(shell, "a.jsonl", bad, f"{bad} twice")
    said = overlap(shell, "a.jsonl")
    assert said.code == 0 and "\x1b" not in said.out and "near" in said.out


def test_the_splits_of_a_benchmark(shell: Shell) -> None:
    place = f"tweeteval:{DEMO / 'emotion'}"
    found = overlap(shell, f"{place}@train", f"{place}@test", "--task", "emotion", "--json")
    assert found.code == 0 and found.document["a"]["items"] > found.document["b"]["items"] > 0


def test_a_threshold_below_chance_is_refused(shell: Shell) -> None:
    items(shell, "a.jsonl", QUESTION)
    for wrong in ("0.1", "1"):
        said = overlap(shell, "a.jsonl", "--threshold", wrong, "--json")
        assert said.code == 2 and said.error["where"] == "--threshold"


def test_a_benchmark_against_itself_is_refused(shell: Shell) -> None:
    said = overlap(shell, "a.jsonl", "a.jsonl", "--json")
    assert said.code == 2 and "omit B to find duplicates within A" in said.error["hint"]
