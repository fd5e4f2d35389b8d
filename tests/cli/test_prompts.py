"""`coreeval prompts`: what a role is shown, and what a model's answers are worth."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from coreeval import tasks
from coreeval.cli import main
from coreeval.config import ROLES, ModelConfig, load_config
from coreeval.graph.prompt_lab.trial import parse_model
from coreeval.prompts import load_prompts
from coreeval.tools.stores.call_store import open_calls
from tests.cli.kit import CONFIG, Shell
from tests.cli.test_docs import documented
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer, Reply, Request
from tests.support.wire import Prompted

SPOILT = "Zuzu Quark says 4711"
"""What the careless model writes into a text: a name and a number of which no news tells."""


class Models:
    """The rules' answers under three names: as they are, spoilt, and refused."""

    def __init__(self, answers: OfflineAnswers) -> None:
        self._answers = answers

    async def __call__(self, request: Request) -> str | Reply:
        if request["model"] == "silent":
            return Reply(content=None, refusal="I would rather not.")
        answer = await self._answers(request)
        careless = request["model"] == "careless" and Prompted(request).shape == "composition"
        if not careless or not isinstance(answer, str):
            return answer
        said = json.loads(answer)
        said["fields"] = {name: f"{text} {SPOILT}" for name, text in said["fields"].items()}
        return json.dumps(said)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLMServer]:
    """Serve the six roles of the demo's emotion benchmark."""
    folder = tmp_path_factory.mktemp("served")
    config = folder / "any.yaml"
    config.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    answers = OfflineAnswers(load_config(config), folder)
    with LLMServer(Models(answers)).in_thread() as server:
        yield server
    answers.close()


@pytest.fixture
def served(shell: Shell, server: LLMServer) -> Path:
    """Return a config whose roles the server plays; requests are counted anew."""
    server.requests.clear()
    return shell.config({"models": {"default": {"model": "openai:good", "base_url": server.url}}})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: LLMServer) -> Path:
    """Return a run of the served roles on four samples, in a folder with its config and calls."""
    folder = tmp_path_factory.mktemp("run")
    models = {"default": {"model": "openai:good", "base_url": server.url}}
    config = folder / "trial.yaml"
    config.write_text(yaml.safe_dump(CONFIG | {"models": models}), encoding="utf-8")
    assert main(["refresh", str(config), "--limit", "4", "--run-dir", str(folder / "run")]) == 0
    return folder / "run"


# -- list and show ----------------------------------------------------------------------------


def test_the_list_has_each_role_with_its_version_and_variables(shell: Shell) -> None:
    document = shell("prompts", "list", "--json").document
    known = load_prompts()
    assert {one["role"] for one in document["prompts"]} == set(ROLES)
    assert [one["name"] for one in document["prompts"]] == list(known.by_name)
    for one in document["prompts"]:
        prompt = known[one["name"]]
        assert one["version"] == prompt.version
        assert set(one["variables"]) == prompt.variables
        assert set(one["lines"]) == set(tasks.BUILT_IN)
        assert one["words"] < one["tokens"] < 3 * one["words"]
    words = shell("prompts", "list").out
    assert all(f"{one['name']} " in words and one["version"] in words
               for one in document["prompts"])  # fmt: skip


def test_the_list_of_a_config_has_its_task_only(shell: Shell) -> None:
    document = shell("prompts", "list", "--config", shell.config(), "--json").document
    assert {tuple(one["lines"]) for one in document["prompts"]} == {("emotion",)}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_shown_on_the_bundled_samples(shell: Shell, role: str) -> None:
    said = shell("prompts", "show", role, "--task", "mrpc", "--json")
    assert (said.code, said.err) == (0, "")
    document = said.document
    assert [message["role"] for message in document["messages"]] == ["system", "user"]
    alone = role in {"extractor", "label_judge"}
    assert document["inputs"] == ("sample" if alone else "offline")
    assert document["schema"]["schema"]["type"] == "object"
    assert "$" not in document["messages"][1]["content"].partition("\n")[0]
    first = document["sample"]["fields"]["sentence1"]
    if role != "fact_judge":
        assert json.dumps(first, ensure_ascii=False) in document["messages"][1]["content"]


def test_the_words_say_where_the_inputs_come_from(shell: Shell) -> None:
    said = shell("prompts", "show", "composer", "--task", "emotion", "--schema").out
    assert "made by the offline rules" in said
    assert "-- system ---" in said
    assert '"used_replacements"' in said.partition("-- schema of the answer: composition")[2]
    assert "-- schema" not in shell("prompts", "show", "extractor", "--task", "emotion").out


def test_what_is_shown_is_what_is_sent(shell: Shell, served: Path, server: LLMServer) -> None:
    for role in ROLES:
        shown = shell("prompts", "show", role, "--config", served, "--json").document
        server.requests.clear()
        assert shell("prompts", "try", served, "--role", role, "--limit", "1").code == 0
        assert [request["messages"] for request in server.requests] == [shown["messages"]]
        form = server.requests[0]["response_format"]
        assert isinstance(form, dict)
        assert form["json_schema"]["schema"] == shown["schema"]["schema"]


@pytest.mark.parametrize("role", ROLES)
def test_a_run_gives_the_very_messages_that_it_sent(shell: Shell, run: Path, role: str) -> None:
    document = shell("prompts", "show", role, "--run", run, "--json").document
    assert (document["inputs"], document["sent"]) == ("run", True)
    assert "the run sent exactly these messages" in shell("prompts", "show", role, "--run", run).out


def test_of_several_attempts_the_last_is_shown(shell: Shell, run: Path) -> None:
    rows = shell("trace", run, "--json").document["samples"]
    again = [row["sample"] for row in rows if row["attempts"] > 1]
    assert again
    for sample in again:
        said = shell("prompts", "show", "composer", "--run", run, "--sample", sample, "--json")
        feedback = said.document["messages"][1]["content"].partition("<feedback>")[2]
        assert said.document["sent"] is True
        assert '"defects": []' not in feedback
        assert '"message"' in feedback


def test_another_wording_on_what_a_run_recorded(shell: Shell, run: Path) -> None:
    own = shell.folder / "own"
    own.mkdir()
    text = load_prompts()["composer"].text
    (own / "composer.md").write_text(text.replace("Voice\n", "The voice\n"), encoding="utf-8")
    shown = shell("prompts", "show", "composer", "--run", run, "--prompts", own, "--json").document
    assert shown["sent"] is False
    assert "\nThe voice\n" in shown["messages"][0]["content"]
    back = shell("prompts", "show", "composer", "--run", run, "--prompts", "built-in", "--json")
    assert back.document["sent"] is True


def test_calls_that_are_gone_are_not_known(shell: Shell, run: Path) -> None:
    copy = Path(shutil.copytree(run, shell.folder / "copy"))
    manifest = json.loads((copy / "manifest.json").read_text("utf-8"))
    manifest["workspace"] = str(shell.folder / "nowhere")
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    said = shell("prompts", "show", "extractor", "--run", copy, "--json")
    assert said.document["sent"] is None
    assert not (shell.folder / "nowhere").exists()


def test_looking_at_a_run_changes_nothing(shell: Shell, run: Path) -> None:
    before = (run / "manifest.json").read_bytes()
    stories = [shell("trace", run, f"emotion/test/{n}", "--json").document for n in range(1, 5)]
    for role in ROLES:
        shell("prompts", "show", role, "--run", run)
    assert (run / "manifest.json").read_bytes() == before
    again = [shell("trace", run, f"emotion/test/{n}", "--json").document for n in range(1, 5)]
    assert again == stories


# -- try --------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_tried_once_and_then_for_nothing(
    shell: Shell, served: Path, server: LLMServer, role: str
) -> None:
    first = shell("prompts", "try", served, "--role", role, "--limit", "2", "--json")
    assert (first.code, first.err) == (0, "")
    (sums,) = first.document["totals"]
    assert (sums["samples"], sums["valid"], sums["asked"], sums["known"]) == (2, 2, 2, 0)
    assert sums["paid_tokens"] == sums["prompt_tokens"] + sums["completion_tokens"] > 0
    again = shell("prompts", "try", served, "--role", role, "--limit", "2", "--json").document
    (more,) = again["totals"]
    assert (more["asked"], more["known"], more["paid_tokens"]) == (0, 2, 0)
    assert more["prompt_tokens"] == sums["prompt_tokens"]
    assert len(server.requests) == 2
    for one, before in zip(again["samples"], first.document["samples"], strict=True):
        (trial,), (paid,) = one["trials"], before["trials"]
        assert trial["answer"] == paid["answer"]
        assert trial["looked"] == paid["looked"]
        assert trial["looked"]["verdict"]


def test_two_models_are_held_against_each_other(shell: Shell, served: Path) -> None:
    asked = ("--model", "openai:good", "--model", "openai:careless", "--limit", "2")
    document = shell("prompts", "try", served, "--role", "composer", *asked, "--json").document
    good, careless = document["totals"]
    found = {"names", "numbers"}
    assert found <= set(careless["checks"])
    assert not found & set(good["checks"])
    assert careless["clean"] == 0 < good["clean"]
    assert [one["model"]["model"] for one in document["contenders"]] == list(asked[1:4:2])
    for one in document["samples"]:
        assert SPOILT in one["trials"][1]["answer"]["fields"]["text"]
        assert SPOILT not in one["trials"][0]["said"]
    words = shell("prompts", "try", served, "--role", "composer", *asked).out
    assert "A: openai:good" in words
    assert "B: openai:careless" in words
    assert f"found numbers{'0':>18}{'2':>9}" in words


def test_two_wordings_are_held_against_each_other(
    shell: Shell, served: Path, server: LLMServer
) -> None:
    own = shell.folder / "own"
    own.mkdir()
    text = load_prompts()["label_judge"].text
    (own / "label_judge.md").write_text(f"Be quick.\n{text}", encoding="utf-8")
    said = shell("prompts", "try", served, "--role", "label_judge", "--limit", "2",
                 "--prompts", "built-in", "--prompts", own, "--json").document  # fmt: skip
    one, other = said["contenders"]
    assert one["prompt"]["version"] != other["prompt"]["version"]
    system = [request["messages"][0]["content"] for request in server.requests]  # type: ignore[index]
    assert sorted(text.startswith("Be quick.") for text in system) == [False, False, True, True]
    few, more = (column["prompt_tokens"] for column in said["totals"])
    assert few < more


def test_the_judges_are_asked_about_a_composed_text(shell: Shell, served: Path) -> None:
    document = shell("prompts", "try", served, "--role", "composer", "--sample", "emotion/test/1",
                     "--model", "openai:good", "--model", "openai:careless",
                     "--judge", "--json").document  # fmt: skip
    (one,) = document["samples"]
    good, careless = one["trials"]
    assert set(good["judged"]) == {"facts_supported", "label_preserved"}
    assert good["judged"]["label_preserved"]["findings"] == []
    assert careless["judged"]["facts_supported"]["findings"]
    assert document["totals"][1]["checks"]["facts_supported"] == 1
    assert {call["role"] for call in good["calls"]} == {"composer", "fact_judge", "label_judge"}


def test_what_a_run_recorded_is_tried(shell: Shell, run: Path, server: LLMServer) -> None:
    config = run.parent / "trial.yaml"
    server.requests.clear()
    said = shell("prompts", "try", config, "--role", "fact_judge", "--run", run, "--limit", "1")
    assert said.code == 0
    assert "judged text: " in said.out
    assert "1 from the store" in said.out
    assert server.requests == []
    asked = ("--role", "fact_judge", "--run", run, "--model", "openai:other", "--limit", "1")
    document = shell("prompts", "try", config, *asked, "--json").document
    assert (document["inputs"], document["totals"][0]["asked"]) == ("run", 1)


def test_a_model_that_gives_no_answer(shell: Shell, served: Path) -> None:
    asked = ("--role", "extractor", "--model", "openai:silent", "--limit", "1")
    said = shell("prompts", "try", served, *asked)
    assert said.code == 1
    assert "no valid answer in 4 draws" in " ".join(said.out.split())
    document = shell("prompts", "try", served, *asked, "--json").document
    (trial,) = document["samples"][0]["trials"]
    assert (trial["valid"], trial["answer"], trial["looked"]) == (False, None, None)
    assert trial["said"] == "I would rather not."
    assert document["totals"][0]["valid"] == 0


def test_what_a_trial_paid_is_kept_in_its_own_name(shell: Shell, served: Path) -> None:
    shell("prompts", "try", served, "--role", "extractor", "--limit", "1")
    store = open_calls(shell.folder / ".coreeval" / "calls.db")
    try:
        assert {record.paid_by for record in store.records()} == {"prompts try"}
    finally:
        store.close()


def test_another_model_does_not_have_the_price_of_the_usual_one() -> None:
    usual = ModelConfig.model_validate({"model": "openai:a", "price": {"input": 1, "output": 2}})
    assert parse_model("openai:a", usual).price == usual.price
    assert parse_model("openai:b", usual).price is None


def test_all_trials_in_a_workspace_share_the_budget(shell: Shell, server: LLMServer) -> None:
    price = {"input": 90.0, "output": 90.0}
    model = {"model": "openai:good", "base_url": server.url, "price": price, "max_tokens": 1000}
    config = shell.config({"models": {"default": model}, "run": {"budget_usd": 1.0}})
    limits = [shell("prompts", "try", config, "--role", "extractor", "--limit", n) for n in "19"]
    assert [each.code for each in limits] == [0, 3]
    assert "the budget of 1.0000 USD does not cover the next call" in limits[1].err
    store = open_calls(shell.folder / ".coreeval" / "calls.db", "prompts try")
    try:
        assert 0 < store.ledger.spent().billed_usd <= 1.0
    finally:
        store.close()


def test_the_extractor_s_spans_are_held_against_the_text(
    shell: Shell, served: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"entities": [], "triples": [], "sensitive": [], "queries": [], "siblings": [],
            "structures": [], "need": "", "deixis_only": False}  # fmt: skip
    locks = [{"span": span, "field": "text", "why": "label_carrier"}
             for span in ("Absolutely fuming", "raging")]  # fmt: skip
    monkeypatch.setattr(server, "answers", lambda _: json.dumps(said | {"locked": locks}))
    asked = ("--role", "extractor", "--sample", "emotion/test/1", "--model", "openai:lax", "--json")
    document = shell("prompts", "try", served, *asked).document
    (trial,) = document["samples"][0]["trials"]
    found = {(one["check"], one["message"].partition(": ")[2].split("'")[1])
             for one in trial["looked"]["findings"]}  # fmt: skip
    assert found == {("span", "raging"), ("lock_missed", "@user"), ("lock_missed", "😡")}
    assert [lock["span"] for lock in trial["answer"]["locked"]] == ["Absolutely fuming"]
    assert "raging" in trial["said"]


def test_samples_that_do_not_come_to_the_role_are_told(shell: Shell, served: Path) -> None:
    document = shell("prompts", "try", served, "--role", "composer", "--limit", "3", "--json")
    missed = document.document["passed_over"]
    assert missed
    assert all(
        one["reason"].startswith("with rules, the sample ends earlier as ") for one in missed
    )


def test_the_keys_are_the_documented_ones(shell: Shell, served: Path) -> None:
    given: dict[str, list[str | Path]] = {
        "list": ["--config", served],
        "show": ["extractor", "--config", served],
        "try": [served, "--role", "extractor", "--limit", "1"],
    }
    for name, arguments in given.items():
        document = shell("prompts", name, *arguments, "--json").document
        assert set(document) == documented(f"coreeval prompts {name}")


# -- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["show", "compser", "--task", "rte"], "no role 'compser'", "did you mean 'composer'?"),
        (["show", "composer", "--task", "emotoin"], "no built-in task", "did you mean 'emotion'?"),
        (["show", "composer"], "no task was chosen", "--task T"),
        (["show", "composer", "--task", "own.yaml"], "task file not found", "built in"),
        (
            ["show", "extractor", "--task", "irony", "--sample", "irony/tset/3"],
            "no sample 'irony/tset/3'",
            "did you mean 'irony/test/3'?",
        ),
        (["show", "composer", "--run", "nothing"], "no run 'nothing'", "coreeval refresh"),
        (["list", "--prompts", "nowhere"], "no such folder of prompts", ""),
    ],
)
def test_mistakes_are_told(shell: Shell, arguments: list[str], message: str, hint: str) -> None:
    said = shell("prompts", *arguments, "--json")
    assert said.code == 2
    assert message in said.error["message"]
    assert hint in said.error["hint"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--role", "composer"], "which have no prompt"),
        (["--role", "extractor", "--model", "openai:gpt-x"], "OPENAI_API_KEY is not set"),
        (["--role", "extractor", "--model", "nobody"], "there is no model 'nobody'"),
        (["--role", "extractor", "--model", "{modl: x}"], "this is not a model"),
        (["--role", "extractor", "--judge"], "--judge applies only to the composer: the"),
        (["--role", "composer", "--judge"], "the fact_judge is played by rules here"),
        (["--role", "composer", "--sample", "a", "--limit", "1"], "cannot be used together"),
    ],
)
def test_who_cannot_be_tried(shell: Shell, arguments: list[str], message: str) -> None:
    said = shell("prompts", "try", shell.config(), *arguments, "--json")
    assert said.code == 2
    assert message in said.error["message"]


def test_a_sample_that_does_not_come_to_the_role(shell: Shell) -> None:
    said = shell("prompts", "show", "composer", "--task", "emotion", "--sample", "emotion/test/3")
    assert said.code == 2
    assert "with rules, the sample ends earlier as " in said.err


def test_a_text_that_leaves_the_rewriter_nothing_to_do(shell: Shell) -> None:
    quoted = "“The #optimist proclaims that this is so, and the #pessimist fears it.” ~ J B Cabell"
    row = json.dumps({"id": "one", "text": quoted, "label": "joy"})
    data = {"format": "jsonl", "path": str(shell.write("rows.jsonl", row))}
    config = shell.config({"dataset": data})
    said = shell("prompts", "show", "rewriter", "--config", config)
    assert said.code == 2
    assert "with rules, the role is not called: nearly every word is" in said.err


def test_a_run_of_another_task(shell: Shell, run: Path) -> None:
    config = shell.config({"task": "irony"})
    said = shell("prompts", "show", "composer", "--config", config, "--run", run)
    assert said.code == 2
    assert "the run uses the task emotion, but the config uses irony" in said.err


def test_without_a_command_nothing_is_guessed(shell: Shell) -> None:
    said = shell("prompts", "--json")
    assert said.code == 2
