"""`coreeval detect pcr CONFIG`: targets asked here and now about a benchmark of items."""

import json
import os
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from coreeval.graph.pool import max_open_samples
from tests.cli.kit import Said, Shell
from tests.cli.test_docs import documented
from tests.support import worker
from tests.support.llm_server import LLMServer, Reply, Request

ITEMS = 40
TEXTS = ("tin", "gold", "iron", "lead")
SPLITS = {"train": range(ITEMS), "test": range(1000, 1000 + ITEMS)}
_ASKED = re.compile(r"Metal (\d+)\?\n(.*)", re.DOTALL)


def item(number: int) -> dict[str, Any]:
    """Return a question of which every fourth is answered by each letter."""
    return {
        "id": f"m{number}",
        "input": f"Metal {number * 37 % 80:02}?",  # so that neither split has the larger numbers
        "output": "ABCD"[number % 4],
        "options": list(TEXTS),
    }


class Models:
    """Plays models of several natures; each remembers what it was asked."""

    def __init__(self) -> None:
        self.left = -1
        """Requests until `spring` is called."""
        self.spring: Callable[[], None] = lambda: None

    def __call__(self, request: Request) -> str | Reply:
        self.left -= 1
        if self.left == 0:
            self.spring()
        messages = request["messages"]
        assert isinstance(messages, list)
        assert "response_format" not in request and "tools" not in request
        found = _ASKED.fullmatch(messages[-1]["content"])
        assert found and len(messages) == 1
        nature = getattr(self, str(request["model"]))
        options = dict(re.findall(r"^([A-D])\. (\w+)$", found[2], re.MULTILINE))
        reply: str | Reply = nature(
            int(found[1]) * 13 % 80, {text: one for one, text in options.items()}
        )
        return reply

    def tuned(self, number: int, letters: dict[str, str]) -> str:
        """Say the letter of the training split by heart; else choose as `clean`."""
        right = "ABCD"[number % 4]
        return f"The answer is ({right})." if number < ITEMS else self.clean(number, letters)

    def clean(self, number: int, letters: dict[str, str]) -> str:
        """Choose by the text: half of the time the right one, wherever it stands."""
        text = TEXTS[number % 4 if number // 4 % 2 else (number + 1) % 4]
        return f"答案 {letters[text]}"

    def fair(self, number: int, letters: dict[str, str]) -> str:
        """Choose by the text as `clean`, of other items."""
        text = TEXTS[number % 4 if number // 4 % 2 == 0 else (number + 1) % 4]
        return f"答案 {letters[text]}"

    def mute(self, _number: int, _letters: dict[str, str]) -> Reply:
        """Decline everything."""
        return Reply(refusal="I would rather not.")

    def half(self, number: int, letters: dict[str, str]) -> str | Reply:
        """Decline a few, break off a few."""
        if number % 10 == 3:
            return Reply(refusal="no")
        if number % 10 == 5:
            return Reply(content="Well, let me", finish_reason="length")
        return "no idea" if number % 10 == 7 else self.clean(number, letters)


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def server(models: Models) -> Iterator[LLMServer]:
    with LLMServer(models).in_thread() as server:
        yield server


@pytest.fixture
def config(shell: Shell, server: LLMServer) -> Path:
    """Write a benchmark with two bad lines, and a config that asks two targets about it."""
    for split, numbers in SPLITS.items():
        lines = [json.dumps(item(number)) for number in numbers]
        shell.folder.joinpath("bench").mkdir(exist_ok=True)
        shell.write(f"bench/{split}.jsonl", "\n".join([*lines, "{}", "no json"]))
    return written(shell, server, "tuned", "clean")


def written(shell: Shell, server: LLMServer, *targets: str, **run: object) -> Path:
    """Write a config that asks some targets."""
    settings = {
        "name": "metals",
        "dataset": {"format": "jsonl", "path": "bench"},
        "models": {
            "targets": [{"model": f"openai:{name}", "base_url": server.url} for name in targets]
        },
        "run": {"concurrency": 4, **run},
        "detect": {
            "pcr": {
                "metric": "exact_match",
                "consistency": "option",
                "modification": "option_shuffle",
                "answer": "letter",
                "exchangeable_splits": True,
            }
        },
    }
    return shell.write("metals.yaml", yaml.safe_dump(settings))


def ask(shell: Shell, config: Path, *arguments: str | Path) -> Said:
    return shell("detect", "pcr", config, "--draws", "500", *arguments)


def answered(folder: Path) -> int:
    """Return how many calls are kept."""
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as store:
        return int(store.execute("SELECT count(*) FROM calls").fetchone()[0])


def test_who_knows_the_letters_of_train_is_found_out(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    said = ask(shell, config, "--json")
    assert said.code == 0
    tuned, clean = said.document["comparisons"]
    for one in (tuned, clean):
        assert set(one) | {"plots", "references", "settings"} == documented("coreeval detect pcr")
    assert tuned["verdict"] == "fine_tuned" and clean["verdict"] != "fine_tuned"
    train, test = (tuned["splits"][name] for name in SPLITS)
    assert (train["n"], train["performance"], train["consistency"]) == (ITEMS, 1, 0)
    assert (test["n"], test["performance"], test["consistency"]) == (ITEMS, 0.5, 1)
    assert tuned["asked"]["modification"] == "option_shuffle"
    assert tuned["asked"]["splits"]["train"] == {
        "items": ITEMS,
        "drawn": ITEMS,
        "left_out": {},
        "unchanged": 0,
        "questions": {"answered": 2 * ITEMS, "refused": 0, "truncated": 0, "unparsed": 0},
        "unclear": 0,
    }
    assert [(row["file"], row["line"]) for row in tuned["bad_rows"]] == [
        (f"{split}.jsonl", line) for split in SPLITS for line in (ITEMS + 1, ITEMS + 2)
    ]
    assert len(server.requests) == 2 * 4 * ITEMS
    assert "160 calls" not in said.err and "320 calls" in said.err
    assert "unknown price" in said.err


def test_the_files_give_the_same_numbers_later(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    words = ask(shell, config, "--out", "pairs").out
    files = sorted(Path("pairs").glob("*.jsonl"))
    assert [path.name for path in files] == ["openai_clean.jsonl", "openai_tuned.jsonl"]
    asked, again = ask(shell, config, "--out", "pairs", "--json").document, words.splitlines()[-1]
    assert len(server.requests) == 2 * 4 * ITEMS, "what was answered was asked again"
    command = again.removeprefix("again: coreeval ").split()
    later = shell(*command, "--json").document
    for now, then in zip(asked["comparisons"], later["comparisons"], strict=True):
        differs = {key for key in now if now[key] != then[key]}
        assert differs == {"asked", "bad_rows"}
    assert asked["settings"] == later["settings"]
    assert "40 of 40 items, option shuffle; questions: 80 answered" in words
    assert "bad line 41 of train.jsonl: input is missing" in words


def test_files_of_somebody_else_are_not_replaced(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    (shell.folder / "pairs").mkdir()
    foreign = shell.write("pairs/openai_clean.jsonl", '{"split": "train", "id": "1"}\n')
    told = ask(shell, config, "--out", "pairs", "--json").error
    assert told["kind"] == "usage" and "did not write this file" in told["message"]
    assert told["where"] == str(foreign.relative_to(shell.folder)) and not server.requests
    assert foreign.read_text() == '{"split": "train", "id": "1"}\n'


def test_references_are_asked_listed_and_have_no_verdict(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    config = written(shell, server, "tuned", "clean", "fair")
    settings = yaml.safe_load(config.read_text("utf-8"))
    for target in settings["models"]["targets"][1:]:
        target["role"] = "reference"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert ask(shell, config, "--dry-run", "--json").document["totals"]["calls"]["likely"] == 480
    one = ask(shell, config, "--json").document
    assert one["name"] == "openai:tuned" and one["verdict"] == "fine_tuned"
    assert one["adjusted"]["references"] == ["openai:clean", "openai:fair"]
    assert (one["adjusted"]["method"], one["test"]["basis"]) == ("mean_gap", "references")
    assert [each["name"] for each in one["references"]] == one["adjusted"]["references"]
    words = ask(shell, config).out
    assert "references, presumed to have seen neither split:" in words
    again = words.splitlines()[-1].removeprefix("again: coreeval ").split()
    assert again.count("--reference") == 2 and "--exchangeable-splits" in again
    assert shell(*again, "--json").document["adjusted"] == one["adjusted"]


def test_items_are_drawn_by_the_seed(shell: Shell, server: LLMServer, config: Path) -> None:
    few = ("--set", "detect.pcr.samples=25", "--json")
    first = ask(shell, config, *few).document["comparisons"][0]
    assert first["splits"]["train"]["n"] == 25
    assert len(server.requests) == 2 * 4 * 25
    assert ask(shell, config, *few).document["comparisons"][0] == first
    other = ask(shell, config, *few, "--set", "run.seed=8").document["comparisons"][0]
    assert other["splits"]["train"]["n"] == 25
    assert len(server.requests) > 2 * 4 * 25


def test_what_cannot_be_modified_is_left_out_and_counted(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    odd = {**item(2), "id": "odd", "options": ["a", "b", "c", "all of the above"]}
    train = shell.folder / "bench" / "train.jsonl"
    train.write_text(f"{json.dumps(odd)}\n{train.read_text('utf-8')}", encoding="utf-8")
    one = ask(shell, config, "--json").document["comparisons"][0]
    reason = {"an option refers to others by position": 1}
    assert one["asked"]["splits"]["train"]["left_out"] == reason
    assert one["splits"]["train"]["n"] == ITEMS
    assert "1 item skipped: an option refers to others by position" in " ".join(
        ask(shell, config).out.split()
    )


def test_refusals_and_broken_answers_are_counted_by_their_status(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    config = written(shell, server, "half")
    one = ask(shell, config, "--json").document
    split = one["asked"]["splits"]["test"]
    assert split["questions"] == {"answered": 64, "refused": 8, "truncated": 8, "unparsed": 0}
    assert split["unclear"] == 8
    whole = one["splits"]["test"]
    assert (whole["n"], whole["unanswered"]) == (ITEMS, 12), "four say that they have no idea"
    assert whole["statuses"]["original"] == {"answered": 28, "refused": 8, "truncated": 4}
    asked = len(server.requests)
    assert ask(shell, config, "--json").document == one
    assert len(server.requests) == asked, "a refusal was asked for again"


def test_who_refuses_everything_gives_no_signal_and_no_error(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    config = written(shell, server, "mute", "tuned")
    said = ask(shell, config, "--json", "--ablation", "--plot", "p.svg")
    assert said.code == 0
    mute, tuned = said.document["comparisons"]
    assert mute["verdict"] == "insufficient_signal"
    assert (
        "none of the 40 items of train has two answers (of 80 questions: 80 refused)"
        in mute["reason"]
    )
    assert mute["difference"]["estimate"] is None and mute["splits"]["train"]["n"] == 0
    assert mute["ablation"] == {"forms": [], "thresholds": []}
    assert tuned["verdict"] == "fine_tuned" and len(tuned["ablation"]["forms"]) == 12
    assert tuned["difference"]["p_adjusted"] == tuned["difference"]["p_value"]
    alone = ask(shell, written(shell, server, "mute"), "--plot", "p.svg")
    assert alone.code == 0
    assert (
        "insufficient signal: none of the 40 items" in alone.out and "permutations" not in alone.out
    )


def test_killed_it_goes_on_with_what_is_missing(
    shell: Shell, server: LLMServer, models: Models, config: Path
) -> None:
    environment = {"HOME": os.environ["HOME"]}
    out = shell.folder / "child.txt"
    command = ["detect", "pcr", str(config), "--draws", "500"]
    models.left = 100
    child = worker.start(command, out=out, environment=environment)
    models.spring = lambda: os.kill(child.pid or 0, signal.SIGKILL)
    child.join(60)
    assert child.exitcode == -signal.SIGKILL, out.read_text("utf-8")
    kept, before = answered(shell.folder), len(server.requests)
    assert 90 <= kept <= 100
    assert ask(shell, config).code == 0
    assert len(server.requests) - before == 2 * 4 * ITEMS - kept
    assert before - kept <= max_open_samples(4), "more was lost than what was in flight"


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(
    shell: Shell, server: LLMServer, models: Models, config: Path
) -> None:
    models.left, models.spring = 100, lambda: os.kill(os.getpid(), signal.SIGINT)
    said = ask(shell, config, "--json")
    assert said.code == 130 and said.error["kind"] == "interrupted"
    assert "run the same command to continue" in said.error["hint"]
    before = len(server.requests)
    assert answered(shell.folder) == before < 110
    assert ask(shell, config).code == 0
    assert len(server.requests) == 2 * 4 * ITEMS


def test_a_budget_is_kept(shell: Shell, server: LLMServer, config: Path) -> None:
    assert "the price of openai:tuned is unknown" in ask(shell, config, "--budget", "1").err
    assert not server.requests
    settings = yaml.safe_load(config.read_text("utf-8"))
    for target in settings["models"]["targets"]:
        target |= {"price": {"input": 100, "output": 1}, "max_tokens": 50}
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    said = ask(shell, config, "--budget", "0.1", "--json")
    assert said.code == 3 and said.error["kind"] == "budget"
    assert "run the same command to continue" in said.error["hint"]
    assert answered(shell.folder) == len(server.requests) < 2 * 4 * ITEMS
    assert ask(shell, config, "--budget", "9").code == 0
    assert len(server.requests) == 2 * 4 * ITEMS


def test_what_it_will_cost_is_said_and_nothing_asked(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    said = ask(shell, config, "--dry-run", "--json")
    assert set(said.document) == documented("coreeval estimate")
    assert said.document["totals"]["calls"]["likely"] == 2 * 4 * ITEMS
    words = ask(shell, config, "--dry-run").out
    assert "nothing was spent" in words and "next: coreeval detect pcr metals.yaml" in words
    assert not server.requests and not (shell.folder / ".coreeval").exists()


def test_a_target_that_is_down_is_told(shell: Shell, server: LLMServer, config: Path) -> None:
    server.answers = lambda _request: Reply(status=400, error={"message": "bad luck"})
    said = ask(shell, config, "--json")
    assert said.code == 1 and said.error["kind"] == "run"
    assert "left 160 of 160 questions unanswered" in said.error["message"]
    assert "bad luck" in said.error["message"]


# -- recorded modifications, and paraphrases -------------------------------------------------------


def test_recorded_modified_items_take_the_place_of_a_modification(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    for split, numbers in SPLITS.items():
        turned = [{**item(n), "options": [*TEXTS[1:], TEXTS[0]], "output": "ABCD"[n % 4 - 1]}
                  for n in numbers]  # fmt: skip
        shell.write(f"bench/mod_{split}.jsonl", "\n".join(json.dumps(each) for each in turned[1:]))
    recorded = ("--set", "detect.pcr.modification=", "--set", "detect.pcr.modified=bench")
    tuned, clean = ask(shell, config, *recorded, "--json").document["comparisons"]
    assert tuned["verdict"] == "fine_tuned"
    assert clean["splits"]["train"]["consistency"] == 1
    assert clean["asked"]["modification"] == "recorded"
    missing = {"it has no recorded modified item": 1}
    assert clean["asked"]["splits"]["train"]["left_out"] == missing


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("detect.pcr.sampels", 3, ("unknown key 'detect.pcr.sampels'", "'samples'")),
        ("run.max_attempts", 3, ("unknown key 'run.max_attempts'",)),
        ("models.default", "offline", ("unknown key 'models.default'", "rewriter")),
        ("detect.pcr.metric", "bleurt", ("there is no metric 'bleurt'", "exact_match")),
        ("detect.pcr.metric", None, ("the metric is missing", "detect.pcr.metric")),
        ("detect.pcr.modification", None, ("the modification of items is not set",)),
        ("detect.pcr.modification", "paraphrase", ("paraphrases need a model to write them",)),
        (
            "detect.pcr.modified",
            "bench",
            ("use either modified (recorded items) or modification",),
        ),
        ("detect.pcr.train_split", "test", ("both splits are 'test'",)),
        ("detect.pcr.test_split", "dev", ("no split 'dev'", "test, train")),
        ("dataset.path", "bench/train.jsonl", ("no such folder", "one file per split")),
        ("dataset.format", "tweeteval", ("tweeteval",)),
        ("models.targets", [], ("targets",)),
        (
            "models.targets",
            ["offline:clean"],
            ("offline:clean cannot be tested on items", "evaluate RUN"),
        ),
        (
            "models.targets",
            ["openai:x", "openai:x"],
            ("targets contains 'openai:x' more than once",),
        ),
        ("task", "emotion", ("this config is for a run", "coreeval refresh")),
    ],
)
def test_a_mistake_in_the_config_is_one_message(
    shell: Shell, server: LLMServer, config: Path, key: str, value: object, parts: tuple[str, ...]
) -> None:
    said = ask(shell, config, "--set", f"{key}={json.dumps(value)}")
    assert said.code == 2 and said.out == "" and said.err.startswith("error: ")
    assert all(part in said.err for part in parts), said.err
    assert not server.requests


def test_each_kind_of_config_names_the_other_command(
    shell: Shell, server: LLMServer, config: Path
) -> None:
    said = shell("refresh", config)
    assert said.code == 2 and f"coreeval detect pcr {config}" in said.err
    run = shell.config()
    said = shell("detect", "pcr", run)
    assert said.code == 2 and f"coreeval refresh {run}" in said.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--metric", "bleu"), ("--metric cannot be used with CONFIG", "--set detect.pcr.metric=")),
        (("--train-split", "dev"), ("detect.pcr.train_split",)),
        (("--pairs", "x.jsonl"), ("cannot be used together",)),
        (("--plot", "p.pdf"), ("cannot write",)),
    ],
)
def test_options_that_would_be_passed_over_are_refused(
    shell: Shell,
    server: LLMServer,
    config: Path,
    arguments: tuple[str, ...],
    parts: tuple[str, ...],
) -> None:
    said = ask(shell, config, *arguments)
    assert said.code == 2 and all(part in said.err for part in parts), said.err
    assert not server.requests


def test_options_of_asking_are_refused_with_pairs(shell: Shell) -> None:
    said = shell("detect", "pcr", "--pairs", "x.jsonl", "--dry-run")
    assert said.code == 2 and "--dry-run applies only when targets are tested" in said.err
