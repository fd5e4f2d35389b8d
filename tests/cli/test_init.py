"""`coreeval init --data`: a config and a task file for a table, which validate accepts."""

import json
import socket
from pathlib import Path

import pytest
import yaml

from coreeval.cli.init import CONFIG, TASK
from coreeval.config import load_config
from coreeval.tasks import BUILT_IN, explain_task, find_label, load_task
from tests.cli.kit import DEMO, Shell

CONFIG_PAGE = Path(__file__).parents[2] / "docs" / "config.md"
MODEL = ("--model", "openai:qwen3", "--base-url", "http://127.0.0.1:8000/v1")
ROWS = [
    ("7", "So glad the ferry sails again! #happy", "joy"),
    ("8", 'They "forgot" the bill, again', "anger"),
    ("9", "No tickets left @user", "anger"),
]


def csv_text(*names: str) -> str:
    """Return a table with these columns: an id, the text, the label."""
    cells = [names, *ROWS]
    return "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in cells)


def test_a_table_and_a_model_make_a_config_that_holds(shell: Shell) -> None:
    shell.write("my tweets.csv", csv_text("id", "The tweet", "emotion"))
    said = shell("init", "new", "--data", "my tweets.csv", *MODEL)
    assert said.code == 0
    assert "text:   The tweet" in said.out and "emotion: anger (2), joy (1)" in said.out
    assert "next: cd new && coreeval gdelt sync" in said.out
    assert "or: cd new && coreeval gdelt sync --from FILE" in said.out
    assert "demonstration" not in said.out
    config = load_config(shell.folder / "new" / CONFIG)
    task = load_task(config.task)
    assert (task.name, task.fields, task.text_kind) == ("my-tweets", ("text",), "tweet")
    assert [label.name for label in task.labels] == ["anger", "joy"]
    assert task.question == "What is the emotion of this tweet?"
    written = Path(config.task).read_text("utf-8")
    (bare,) = (note for note in explain_task(config.task) if "labels: " in note)
    assert bare.startswith("note: labels: 2 of 2 meanings only repeat the name, such as 'the")
    clear = written.replace("the emotion is anger", "the author is annoyed, or: outraged {#}")
    changed = load_task(str(shell.write("task.yaml", clear)))
    assert any("labels: 1 of 2 meanings" in note for note in explain_task("task.yaml"))
    assert changed.labels[0].meaning == "the author is annoyed, or: outraged {#}"
    assert config.models.default.model == config.models.targets[0].model == "openai:qwen3"
    checks = shell(
        "validate", f"new/{CONFIG}", "--set", f"knowledge.path={json.dumps(str(DEMO / 'news'))}",
        "--set", "knowledge.window={start: 2025-08-01, end: 2026-10-01}", "--json",
    ).document["checks"]  # fmt: skip
    held = {check["name"]: check for check in checks}
    assert held["benchmark"]["found"][0] == "3 samples, 0 bad rows"
    assert held["task and window"]["ok"] and held["news"]["ok"]


def test_a_note_says_that_nothing_answers_at_the_address(shell: Shell) -> None:
    shell.write("tweets.csv", csv_text("id", "tweet", "emotion"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        model = ("--model", "openai:qwen3", "--base-url", address)
        assert "answers" not in shell("init", "up", "--data", "tweets.csv", *model).out
    told = shell("init", "down", "--data", "tweets.csv", *model).out
    assert f"note: nothing answers at {address} yet; check it with: coreeval models check" in told


def test_labels_that_are_numbers_are_named(shell: Shell) -> None:
    rows = [{"headline": f"Shares rose {n} %", "direction": n % 2, "n": n} for n in range(9)]
    shell.write("data.jsonl", "\n".join(map(json.dumps, rows)))
    refused = shell("init", "--data", "data.jsonl", "--json")
    assert refused.code == 2 and not (shell.folder / CONFIG).exists()
    assert "--labels 0=NAME,1=NAME" in refused.error["hint"]
    said = shell("init", "--data", "data.jsonl", "--labels", "0=down,1=up", "--json")
    assert said.document == {"config": CONFIG, "task": TASK}
    task = load_task(str(shell.folder / TASK))
    assert [(label.id, label.name) for label in task.labels] == [(0, "down"), (1, "up")]
    assert task.fields == ("headline",)
    written = yaml.safe_load((shell.folder / CONFIG).read_text("utf-8"))
    assert written["dataset"]["columns"] == {"label": "direction"}
    assert written["models"] == {"default": "offline", "targets": []}


def test_spellings_of_one_number_are_one_label(shell: Shell) -> None:
    rows = "\n".join(f"Shares rose {n} %.,{('1', '1.0', '1e3', '-1')[n % 4]}" for n in range(9))
    shell.write("data.csv", f"text,label\n{rows}\n")
    refused = shell("init", "--data", "data.csv", "--json")
    assert refused.code == 2 and "--labels -1=NAME,1=NAME,1000=NAME" in refused.error["hint"]
    assert shell("init", "--data", "data.csv", "--labels", "1.0=up,1e3=down,-1=same").code == 0
    task = load_task(str(shell.folder / TASK))
    found = [find_label(task, said) for said in ("1", "1.0", "1e3")]
    assert [(label.id, label.name) for label in found if label] == [
        *((1, "up"), (1, "up"), (1000, "down"))
    ]


def test_columns_may_be_named(shell: Shell) -> None:
    rows = "\n".join(f"one {n}\ttwo {n}\t{'yes' if n % 2 else 'no'}\tlong {n}" for n in range(8))
    shell.write("pairs.tsv", f"a\tb\tsame\tnote\n{rows}\n")
    said = shell("init", "--data", "pairs.tsv", "--text", "a", "--text", "b", "--label", "same")
    assert said.code == 0 and "rules play the roles" in said.out
    task = load_task(str(shell.folder / TASK))
    assert task.fields == ("a", "b") and "a: $a\nb: $b" in task.templates[0]


def test_odd_names_stay_what_they_are(shell: Shell) -> None:
    names = ["yes: 'no' # \u2028 {x}", 'a "b" \U0001f600 $labels', "null"]
    rows = [{"the\ntext": f"Row {n}.", "what $ is it?": names[n % 3]} for n in range(9)]
    shell.write("odd.jsonl", "\n".join(map(json.dumps, rows)))
    said = shell("init", "--data", "odd.jsonl", "--label", "what $ is it?")
    assert said.code == 0 and "the text" in said.out
    task = load_task(str(shell.folder / TASK))
    assert {label.name for label in task.labels} == set(names)
    assert task.question == "What is the what is it of this text?"
    config = load_config(shell.folder / CONFIG)
    assert config.dataset.columns == {"text": "the\ntext", "label": "what $ is it?"}


WRONG = {
    "there is no such file": ("--data", "gone.csv"),
    "need --data": ("--label", "emotion"),
    "needs --model": ("--base-url", "http://127.0.0.1:8000/v1"),
    "does not read .parquet": ("--data", "t.parquet"),
    "the label column is unclear": ("--data", "t.csv"),
    "no column 'mood'": ("--data", "t.csv", "--label", "mood"),
    "has 3 values; a label column must have": ("--data", "three.csv", "--label", "id"),
    "no value 'calm'": ("--data", "t.csv", "--label", "mark", "--labels", "calm=x"),
    "the label is the only column": ("--data", "one.csv"),
    "the file has no rows": ("--data", "none.csv"),
    "'unclear' is what a judge says": ("--data", "bad.csv"),
    "already has a task file": ("--data", "good.csv"),
}


@pytest.mark.parametrize(("message", "options"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_used_is_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, message: str, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr("coreeval.evaluation.benchmarks.table_guess.MOST_LABELS", 2)
    shell.write("t.parquet", "PAR1")
    shell.write("t.csv", csv_text("id", "body", "mark"))
    shell.write("three.csv", csv_text("id", "body", "mark"))
    shell.write("one.csv", "label\na\nb\n")
    shell.write("none.csv", "text,label\n")
    shell.write("bad.csv", "text,label\na,unclear\nb,clear\n")
    shell.write("good.csv", "text,label\na,no\nb,yes\n")
    taken = shell.write(TASK, "mine")
    said = shell("init", *options, "--json")
    assert said.code == 2 and message in said.error["message"] + said.error["hint"]
    assert Path(taken).read_text("utf-8") == "mine" and not (shell.folder / CONFIG).exists()


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--data", "spelt.csv"), ("'Anger ' (line 2) and 'anger' (line 3)", "the same way")),
        (("--data", "latin.csv"), ("1 row cannot be read: line 3: the line is not UTF-8",)),
        (("--data", "semicolon.csv"), ("separated by semicolons (;)", "save it as CSV")),
        (("--data", "seplt.csv"), ("no such file", "did you mean 'spelt.csv'?")),
        (("--data", "empty.csv"), ("the file is empty", "to do: use a file with a header")),
        (("--model", "qwen3"), ("no model 'qwen3'", "provider:name")),
        (("--model", "opnai:qwen3"), ("opnai",)),
        (("--model", "openai:q", "--base-url", "127.0.0.1:8123/v1"),
         ("base_url", "such as http://127.0.0.1:8000/v1")),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_the_way_out(
    shell: Shell, options: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    shell.write("spelt.csv", "text,label\none,Anger \ntwo,anger\nthree,joy\n")
    (shell.folder / "latin.csv").write_bytes(b"tweet,feeling\nso good,joy\nna\xefve,anger\n")
    shell.write("semicolon.csv", "tweet;feeling\na;joy\nb;anger\n")
    shell.write("empty.csv", "")
    said = shell("init", *options)
    assert said.code == 2 and not (shell.folder / CONFIG).exists()
    for part in (*parts, "where: "):
        assert part in said.err


def test_rows_that_cannot_be_read_are_told_and_a_second_init_names_both_files(
    shell: Shell,
) -> None:
    (shell.folder / "some.csv").write_bytes(b"text,label\na,joy\nna\xefve,joy\nb,anger\n")
    said = shell("init", "--data", "some.csv")
    assert "some.csv: 2 rows; 1 row cannot be read: line 3: the line is not UTF-8" in said.out
    again = shell("init", "--data", "some.csv")
    assert again.code == 2
    assert "this folder already has a config and a task file" in again.err
    assert CONFIG in again.err and TASK in again.err and "delete both" in again.err


@pytest.mark.parametrize(
    ("header", "row", "task"),
    [
        ("Question,A,B,Answer", "Who?,I,You,B", "multiple_choice"),
        ("id,question,choices,answer_text", '1,Who?,"[""I"", ""You""]",I', ""),
        ("passage,question,answer", "It rained.,Did it rain?,yes", "reading_comprehension"),
        ("Question,Answers", "Who?,I", "question_answering"),
        ("article,highlights", "It rained all day.,It rained.", "summarization"),
        ("article,summary,label", "It rained all day.,It rained.,good", ""),
    ],
)
def test_a_table_of_items_gets_the_task_that_it_fits(
    shell: Shell, header: str, row: str, task: str
) -> None:
    shell.write("items.csv", f"{header}\n{row}\n{row.replace('Who', 'Which')}\n")
    said = shell("init", "new", "--data", "items.csv", *MODEL)
    if not task:
        assert "task:   " not in said.out
        return
    assert said.code == 0 and f"task:   {task}, from the columns" in said.out
    assert not (shell.folder / "new" / TASK).exists()
    config = load_config(shell.folder / "new" / CONFIG)
    assert config.task == task
    checks = shell("validate", f"new/{CONFIG}", "--json").document["checks"]
    (read,) = (check for check in checks if check["name"] == "benchmark")
    assert read["found"][0] == "2 samples, 0 bad rows"
    assert config.run.pipeline == "lean" and config.run.concurrency == 32


MAPPED = {"question": "q", "A": "opt_a", "B": "opt_b", "C": "opt_c", "answer": "correct"}


@pytest.mark.parametrize(
    ("header", "rows", "columns"),
    [
        ("q,opt_a,opt_b,opt_c,correct", ("x,y,z,B", "v,y,z,A", "x,w,,a"), MAPPED),
        ("q,opt_a,opt_b,opt_c,correct", ("x,y,z,y", "v,y,z,V", "x,w,,x"), MAPPED),
        ("stem,ending0,ending1,label", ("x,y,1", "v,y,0"),
         {"question": "stem", "A": "ending0", "B": "ending1", "answer": "label"}),
        ("frage,Choice 1,Choice 2,richtig", ("x,y,A", "v,y,B"),
         {"question": "frage", "A": "Choice 1", "B": "Choice 2", "answer": "richtig"}),
        ("Question,a,b,answer", ("x,y,A", "v,y,B"),
         {"question": "Question", "A": "a", "B": "b"}),
    ],
)  # fmt: skip
def test_columns_of_options_make_a_task_of_choices(
    shell: Shell, header: str, rows: tuple[str, ...], columns: dict[str, str]
) -> None:
    asked = (f"Which of them is number {n}?,{row}" for n, row in enumerate(rows))
    shell.write("mine.csv", "\n".join([header, *asked]))
    assert shell("init", "new", "--data", "mine.csv", *MODEL).code == 0
    config = load_config(shell.folder / "new" / CONFIG)
    assert config.task == "multiple_choice" and config.dataset.columns == columns
    checks = shell("validate", f"new/{CONFIG}", "--json").document["checks"]
    (read,) = (check for check in checks if check["name"] == "benchmark")
    assert read["found"][0] == f"{len(rows)} samples, 0 bad rows"


def test_the_column_of_the_right_option_is_named_if_several_may_be_it(shell: Shell) -> None:
    rows = "\n".join(f"What is {n}?,x,y,z,{n % 3},{'ABC'[n % 2]}" for n in range(9))
    shell.write("mine.csv", f"frage,opt_a,opt_b,opt_c,level,richtig\n{rows}\n")
    refused = shell("init", "--data", "mine.csv")
    assert refused.code == 2 and "may name the right one: level, richtig" in refused.err
    assert "--label COLUMN" in refused.err
    said = shell("init", "--data", "mine.csv", "--label", "richtig")
    assert "task:   multiple_choice" in said.out and "unused: level" in said.out
    assert load_config(shell.folder / CONFIG).dataset.columns["answer"] == "richtig"


def test_answers_that_count_from_one_are_refused(shell: Shell) -> None:
    shell.write("mine.csv", "sentence,option1,option2,answer\nOne _,x,y,1\nTwo _,x,y,2\n")
    refused = shell("init", "--data", "mine.csv")
    assert refused.code == 2 and "'answer' counts the options from 1" in refused.err
    assert "write the letter of the right option (A to B)" in refused.err


@pytest.mark.parametrize(
    "row", ["x,y,z,w,,{}", "x,y,z,w,v,{}", "x,y,z,w,,{}.0"], ids=["rare", "never right", "decimal"]
)
@pytest.mark.parametrize("odd", ["?", "", "7", "B"])
def test_answers_that_count_from_one_are_refused_whatever_a_few_others_are(
    shell: Shell, row: str, odd: str
) -> None:
    rows = [f"Which is {n}?,{row.format(1 + n % 3)}" for n in range(19)]
    rows.append(f"Which is odd?,x,y,z,w,v,{odd}")
    shell.write("mine.csv", "\n".join(["question,opt_a,opt_b,opt_c,opt_d,opt_e,answer", *rows]))
    refused = shell("init", "--data", "mine.csv")
    assert refused.code == 2 and "'answer' counts the options from 1" in refused.err


def test_answers_that_are_texts_of_options_may_be_small_numbers(shell: Shell) -> None:
    rows = "\n".join(f"{n}. What is {n} - {n - 2}?,2,{n},2" for n in range(20, 40))
    shell.write("mine.csv", f"question,opt_a,opt_b,answer\n{rows}\n")
    said = shell("init", "--data", "mine.csv")
    assert said.code == 0 and "task:   multiple_choice" in said.out


def test_a_task_of_labels_says_which_columns_it_leaves_out(shell: Shell) -> None:
    rows = "\n".join(f"Which?,x,y,{('good', 'bad')[n % 2]}" for n in range(6))
    shell.write("mine.csv", f"text,opt_a,opt_b,quality\n{rows}\n")
    said = shell("init", "--data", "mine.csv", "--label", "quality")
    assert "label:  quality" in said.out and "unused: opt_a, opt_b" in said.out
    pairs = "\n".join(f"a {n},b {n},{n % 2}" for n in range(6))
    shell.write("pairs.csv", f"sentence1,sentence2,label\n{pairs}\n")
    refused = shell("init", "pairs", "--data", "pairs.csv")
    assert "--labels 0=NAME,1=NAME" in refused.err  # two texts are not two options


def test_a_table_without_a_header_is_refused(shell: Shell) -> None:
    rows = "\n".join(f"What a day {n},{('joy', 'anger')[n % 2]}" for n in range(12))
    shell.write("mine.csv", rows)
    refused = shell("init", "--data", "mine.csv")
    assert refused.code == 2 and "no header: 'joy' in its first line is also a label" in refused.err
    assert "add a first line that names the columns" in refused.err
    assert shell("init", "--data", "mine.csv", "--label", "joy").code == 0


def test_a_dash_is_no_label_unless_other_labels_are_signs(shell: Shell) -> None:
    values = ("entailment", "neutral", "contradiction", "-")
    rows = "\n".join(f"a {n}\tb {n}\t{values[n % 4]}" for n in range(12))
    shell.write("snli.tsv", f"sentence1\tsentence2\tgold_label\n{rows}\n")
    said = shell("init", "--data", "snli.tsv", "--label", "gold_label")
    assert said.code == 0 and "no label: 3 rows with '-': a run skips them" in said.out
    assert {label.name for label in load_task(str(shell.folder / TASK)).labels} == {*values[:3]}
    shell.write("signs.csv", "text,label\na,+\nb,-\nc,neutral\n")
    refused = shell("init", "signs", "--data", "signs.csv")
    assert refused.code == 2 and "the label '-' (line 3) has no name" in refused.err
    assert "write a word in its place" in refused.err


@pytest.mark.parametrize("header", ["text,label,split", "question,answer,Split"])
def test_a_column_with_splits_is_told(shell: Shell, header: str) -> None:
    rows = "\n".join(f"What {n},{('x', 'y')[n % 2]},{('train', 'test')[n // 8]}" for n in range(12))
    shell.write("mine.csv", f"{header}\n{rows}\n")
    said = shell("init", "--data", "mine.csv")
    name = header.rpartition(",")[2]
    assert f"note: the column '{name}' has train (8), test (4), but all rows are read" in said.out
    shell.write("one.csv", f"{header}\n{rows}\n".replace("train", "test"))
    assert "note: the column" not in shell("init", "new", "--data", "one.csv").out


def test_questions_are_found_by_usual_names(shell: Shell) -> None:
    shell.write("mine.csv", "q,gold_answer,topic\nWho?,I,x\nWhere?,Here,x\n")
    said = shell("init", "--data", "mine.csv")
    assert "task:   question_answering" in said.out and "unused: topic" in said.out
    columns = load_config(shell.folder / CONFIG).dataset.columns
    assert columns == {"question": "q", "answers": "gold_answer"}


def test_rules_cannot_write_items_whatever_the_pipeline(shell: Shell) -> None:
    shell.write("mine.csv", "question,opt_a,opt_b,answer\nWhich?,x,y,A\nWho?,x,y,B\n")
    shell("init", "--data", "mine.csv")
    said = shell("validate", CONFIG)
    assert "the offline rules work on texts with labels" in said.out
    assert "share one call" not in said.out


def test_template_and_page_name_every_built_in_task(shell: Shell) -> None:
    shell("init")
    described = CONFIG_PAGE.read_text("utf-8").partition("| `task` |")[2].partition("\n")[0]
    for name in BUILT_IN:
        assert name in (shell.folder / CONFIG).read_text("utf-8").partition("\ndataset:")[0]
        assert f"`{name}`" in described
