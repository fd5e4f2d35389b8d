"""Items from the layouts of the CAP paper's benchmarks and from a user's own lines."""

import gzip
import json
import tarfile
from pathlib import Path

import pytest

from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.benchmarks.items import (
    LAYOUTS,
    BenchmarkItems,
    list_item_splits,
    load_defaults,
    load_items,
)
from coreeval.evaluation.metrics import CONSISTENCY, PERFORMANCE, THRESHOLD
from coreeval.evaluation.modifications import BY_RULE, NoTwin
from coreeval.schema import BadRow, Item
from tests.evaluation.benchmarks.kit import put, reasons
from tests.evaluation.recorded import CAP, beside

QUESTION = '"选择题。\n问题: 以下属于衍生工具的是____。\n 选项:[{}]\n 答案: "'
OPTIONS = {"A": "债券", "B": "股票, 'C 类", "C": "期货", "D": "存款"}


def fineval(answer: str = "C") -> dict[str, str]:
    shown = ", ".join(f"'{letter}':{text}" for letter, text in OPTIONS.items())
    return {"input": QUESTION.format(shown), "output": answer}


def listed(path: Path, *entries: object) -> Path:
    return put(path, json.dumps(entries, ensure_ascii=False))


def lines(path: Path, *entries: object) -> BenchmarkItems:
    put(path, "".join(f"{json.dumps(entry)}\n" for entry in entries))
    return load_items("jsonl", path, "test")


def test_fineval_has_its_options(tmp_path: Path) -> None:
    listed(
        tmp_path / "ori_dev.json", fineval(), {"input": "no options", "output": "A"}, fineval("E")
    )
    found = load_items("fineval", tmp_path, "dev")
    (item,) = found.items
    assert (item.id, item.split, item.output) == ("fineval/dev/1", "dev", "C")
    assert item.options == OPTIONS
    assert [row.line for row in found.bad_rows] == [2, 3]
    assert "is not one of the options A, B, C, D" in found.bad_rows[1].reason


def test_a_compressed_file_and_the_splits_there(tmp_path: Path) -> None:
    entry = {"input": "what grew in 2014?", "output": ""}
    put(tmp_path / "ori_train.json.gz", gzip.compress(json.dumps([entry]).encode()))
    put(tmp_path / "mod_train.json.gz", b"")
    listed(tmp_path / "ori_dev.json", entry)
    assert list_item_splits("finqa", tmp_path) == ["dev", "train"]
    (item,) = load_items("finqa", tmp_path, "train").items
    assert item == Item(id="finqa/train/1", split="train", input=entry["input"], output="")
    with pytest.raises(DatasetError, match="no file for the split 'test'") as caught:
        load_items("finqa", tmp_path, "test")
    assert "available splits: dev, train" in caught.value.hint


def test_questions_of_one_report_are_a_cluster(tmp_path: Path) -> None:
    asked = "Please answer.\nContext: {}\nQuestion: {}\nAnswer:".format
    entries = [{"input": asked(*each), "output": "1"} for each in ("ab", "ac", "db")]
    first, second, other = load_items(
        "finqa", listed(tmp_path / "train.json", *entries), "train"
    ).items
    assert first.cluster == second.cluster != other.cluster
    record = {"pre_text": ["x"], "post_text": [], "table": [], "filename": "ADI/2009/page_49.pdf",
              "qa": {"question": "how much?", "answer": "1"}}  # fmt: skip
    raw = listed(tmp_path / "raw.json", record)
    assert load_items("finqa", raw, "train").items[0].cluster == "ADI/2009/page_49.pdf"
    own = lines(tmp_path / "own.jsonl", {"input": "a?", "output": "b", "cluster": "page 7"})
    assert own.items[0].cluster == "page 7"


def test_an_original_finqa_record_gets_report_and_question(tmp_path: Path) -> None:
    record = {
        "id": "ADI/2009/page_49.pdf-1",
        "pre_text": ["sales rose in 2009 .", "."],
        "post_text": ["see note 2 ."],
        "table_ori": [["", "2009", "2008"], ["sales", "$ 380", "$ 350"]],
        "qa": {"question": "how much were sales in 2009?", "answer": "", "exe_ans": 380.0},
    }
    bad = {**record, "id": "x", "qa": {}}
    none = {**record, "id": "ADI/none", "qa": {"question": "what was left?", "exe_ans": 0}}
    found = load_items("finqa", listed(tmp_path / "some.json", record, bad, none), "train")
    item, nothing = found.items
    assert nothing.output == "0"
    assert (item.id, item.output) == ("ADI/2009/page_49.pdf-1", "380.0")
    assert "sales rose in 2009 .\n||2009|2008|\n|sales|$ 380|$ 350|\nsee note 2 ." in item.input
    assert item.input.endswith("Question: how much were sales in 2009?\nAnswer:")
    assert reasons(found.bad_rows) == [(2, "qa has no question")]


def test_ectsum_as_its_authors_publish_it(tmp_path: Path) -> None:
    for name, call, summary in (("B_q1", "Hello.\nSales rose.", "sales up\n"), ("A_q1", " ", "x")):
        put(tmp_path / f"val/ects/{name}.txt", call)
        put(tmp_path / f"val/gt_summaries/{name}.txt", summary)
    put(tmp_path / "val/ects/C_q1.txt", "No summary of this one.")
    found = load_items("ectsum", tmp_path, "val")
    (item,) = found.items
    assert (item.id, item.output) == ("B_q1", "sales up")
    assert "Call: Hello. Sales rose.\nSummary:" in item.input
    assert [row.line for row in found.bad_rows] == [1, 3]
    assert list_item_splits("ectsum", tmp_path) == ["val"]


def test_own_lines_with_options_in_the_input_and_below_it(tmp_path: Path) -> None:
    found = lines(
        tmp_path / "own.jsonl",
        {"id": 7, "input": "Which is owed? (A) bond (B) share", "output": "A",
         "options": {"A": "bond", "B": "share"}},
        {"input": "Which is owned?\n", "output": "B", "options": ["bond", "share"]},
        {"input": "What rose?", "output": "sales"},
    )  # fmt: skip
    assert [item.id for item in found.items] == ["7", "jsonl/test/2", "jsonl/test/3"]
    assert found.items[0].input == "Which is owed? (A) bond (B) share"
    assert found.items[1].input == "Which is owned?\nA. bond\nB. share"
    assert found.items[1].options == {"A": "bond", "B": "share"}
    assert found.items[2].options == {}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"output": "x"}, "input is missing"),
        ({"input": "x"}, "output is missing"),
        (
            {"input": "x \ud83d", "output": "x"},
            "input contains an incomplete character (a lone surrogate)",
        ),
        ({"input": 3, "output": "x"}, "input must be a text, not int"),
        ({"input": " ", "output": "x"}, "input is empty"),
        ({"id": "", "input": "q", "output": "x"}, "the id is empty"),
        (
            {"id": "\ud800", "input": "q", "output": "x"},
            "the id contains an incomplete character (a lone surrogate)",
        ),
        ({"id": "x" * 1_001, "input": "q", "output": "x"}, "the id has more than 1,000"),
        ({"id": "1", "input": "q", "output": "x"}, "the id '1' occurs twice"),
        ({"input": "q", "output": "C", "options": ["a", "b"]}, "is not one of"),
        (
            {"input": "q", "output": "A", "options": ["a"]},
            "options must contain at least two non-blank texts",
        ),
        (
            {"input": "q", "output": "A", "options": ["a", " "]},
            "options must contain at least two non-blank texts",
        ),
        (
            {"input": "q", "output": "A", "options": ["a"] * 27},
            "options is neither a list of at most 26",
        ),
        ({"input": "q", "output": "A", "options": "a, b"}, "options is neither a list"),
        ({"input": "q", "output": "a", "options": {"a": "x", "b": "y"}}, "single capital letters"),
        (["x"], "the value is not a JSON object"),
    ],
)
def test_a_line_that_is_no_item(tmp_path: Path, entry: object, reason: str) -> None:
    good = {"id": "1", "input": "q", "output": ""}
    found = lines(tmp_path / "own.jsonl", good, entry)
    assert len(found.items) == 1
    (row,) = found.bad_rows
    assert (row.file, row.line) == ("own.jsonl", 2)
    assert reason in row.reason


def test_a_record_with_a_key_twice_is_no_item(tmp_path: Path) -> None:
    good = '{"input": "Which?", "output": "A", "meta": {"a": 1, "a": 2}}'
    bad = '{"input": "Which?", "output": "A", "output": "B"}'
    nested = '{"input": "Which?", "output": "A", "options": {"A": "x", "B": "y", "B": "z"}}'
    (tmp_path / "test.json").write_text(f"[{good}, {bad}]")
    (tmp_path / "test.jsonl").write_text("\n".join((good, bad, nested)))
    for benchmark, wrong in (("alphafin", [2]), ("jsonl", [2, 3])):
        found = load_items(benchmark, tmp_path, "test")
        assert [row.line for row in found.bad_rows] == wrong
        assert all("occurs twice in an object" in row.reason for row in found.bad_rows)
        assert len(found.items) == 1


def test_broken_lines_cost_only_themselves(tmp_path: Path) -> None:
    good = b'{"input": "q", "output": "x"}\n'
    path = put(tmp_path / "own.jsonl", good + b"\n{\n\xff\xfe\n" + good)
    found = load_items("jsonl", path, "test")
    assert [item.id for item in found.items] == ["jsonl/test/1", "jsonl/test/5"]
    assert [row.line for row in found.bad_rows] == [3, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "contains no JSON list"),
        ("[", "is not valid JSON"),
        ("[]", "none of"),
        ('[{"input": ""}]', "output is missing|input is empty"),
    ],
)
def test_a_file_without_items(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        load_items("alphafin", put(tmp_path / "eval.json", content), "eval")


def test_an_unknown_benchmark_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_items("fineva", tmp_path, "dev")
    assert caught.value.hint == f"available: {', '.join(LAYOUTS)}"


@beside
@pytest.mark.parametrize(
    ("benchmark", "sizes", "empty"),
    [
        ("fineval", {"dev": 170, "val": 1151}, {}),
        ("finqa", {"dev": 500, "test": 500, "train": 500}, {"train": 5, "dev": 7, "test": 8}),
        ("alphafin", {"eval": 500, "train": 500}, {}),
        ("ectsum", {"test": 100, "train": 100, "val": 100}, {}),
    ],
)
def test_the_papers_own_files(benchmark: str, sizes: dict[str, int], empty: dict[str, int]) -> None:
    folder = CAP / benchmark
    assert list_item_splits(benchmark, folder) == sorted(sizes)
    for split, size in sizes.items():
        found = load_items(benchmark, folder, split)
        assert (len(found.items), found.bad_rows) == (size, ())
        assert sum(not item.output.strip() for item in found.items) == empty.get(split, 0)


@beside
def test_the_files_of_the_benchmarks_authors(tmp_path: Path) -> None:
    found = load_items("finqa", CAP.parent / "finqa_raw" / "finqa_sample20.json", "train")
    assert (len(found.items), found.bad_rows) == (20, tuple[BadRow, ...]())
    with tarfile.open(CAP.parent / "ectsum" / "val.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    texts = load_items("ectsum", tmp_path, "val")
    assert (len(texts.items), texts.bad_rows) == (249, ())


def test_every_default_names_what_there_is() -> None:
    assert load_defaults().keys() == LAYOUTS.keys() - {"jsonl"}
    for chosen in load_defaults().values():
        assert chosen.performance in PERFORMANCE
        assert chosen.consistency in {*CONSISTENCY, "cosine"}
        assert chosen.modification in {*BY_RULE, "paraphrase"}
        assert chosen.threshold == THRESHOLD


@beside
def test_the_splits_are_those_of_the_papers_files() -> None:
    for name, chosen in load_defaults().items():
        assert {chosen.train_split, chosen.test_split} <= {*list_item_splits(name, CAP / name)}


@pytest.mark.timeout(20)
def test_options_that_never_end_are_read_in_bounded_time(tmp_path: Path) -> None:
    torn = "['A':1, 'B':2, 'C':3, " * 20_000  # 500 of them took minutes
    found = load_items("fineval", listed(tmp_path / "a.json", fineval(), {"input": torn}), "test")
    assert (len(found.items), len(found.bad_rows)) == (1, 1)
    item = lines(tmp_path / "b.jsonl", {"input": "A. x " * 50_000, "output": "A"}).items[0]
    unshown = item.model_copy(update={"options": {"A": "x", "B": "gold"}})
    reason = "the input does not show the options"
    assert BY_RULE["option_shuffle"](unshown, seed=1) == NoTwin(id=item.id, reason=reason)
