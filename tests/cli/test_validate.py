"""`coreeval validate` lists everything at once and spends nothing."""

import json
import re

import pytest

from coreeval.tools.gdelt.local import LocalKnowledge
from tests.cli.kit import Shell


def test_a_good_config_says_what_comes_next(shell: Shell) -> None:
    said = shell("validate", shell.config({"models.targets": ["offline:classifier"]}))
    assert said.code == 0
    assert [line for line in said.out.splitlines() if line.startswith("NOT")] == []
    assert "24 samples, 0 bad rows" in said.out
    assert (
        "warning: the offline roles are a demonstration: they rewrote 7 of 300"
        " real tweets" in said.out
    )
    assert re.search(
        r"\n    1\d of 24 samples mention something that this news is about \(", said.out
    )
    assert said.out.endswith(
        "ready to run; warnings: 1; next: coreeval refresh trial.yaml --limit 20   "
        "# a first try; without --limit, all samples\n"
    )
    assert not (shell.folder / ".coreeval" / "calls.db").exists()


def test_thin_news_is_warned_of(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    changes = {"models.default": "openai:gpt-x", "detect.evaluate": False}
    with monkeypatch.context() as patch:
        patch.setattr(LocalKnowledge, "count_less_certain", lambda *_: {"crawl": 4972})
        held = shell("validate", shell.config(changes))
    assert "all checks passed; next: coreeval refresh trial.yaml --limit 20 " in held.out
    assert re.search(
        r"\n    \d+ articles on \d+ days of the window \(local\); 4,972 more are excluded, because "
        r"their publication time is less certain than knowledge.min_precision \(",
        held.out,
    )
    assert "    for more news, set knowledge.min_precision: crawl (4,972 more articles" in held.out
    window = {"start": "2025-08-01", "end": "2025-08-12"}
    thin = shell("validate", shell.config(changes | {"knowledge.window": window})).out
    assert re.search(
        r"warning: [1-9] of 24 samples mention something that this news is about", thin
    )
    assert "warning: 4 articles can serve at most 8 samples (knowledge.reuse: 2)" in thin
    assert "warning: there is news on 3 of the window's 11 days" in thin
    more = "download more: coreeval gdelt sync --since 2025-08-01 --until 2025-08-12 --feeds gal"
    assert "under knowledge:, write `window: {start: 2025-09-19, end: 2026-09-06}`" in thin
    assert more in thin and "ready to run; warnings: 3; next: " in thin


def test_several_mistakes_are_found_in_one_go(shell: Shell) -> None:
    config = shell.config({"dataset.path": "gone", "models.default": "openai:gpt-x"})
    checks = {
        check["name"]: check for check in shell("validate", config, "--json").document["checks"]
    }
    assert {name for name, check in checks.items() if not check["ok"]} == {"benchmark", "models"}
    assert checks["models"]["error"]["kind"] == "credential"
    assert checks["benchmark"]["error"]["where"].endswith("gone")
    assert checks["news"]["error"] is None


def test_a_task_file_is_explained_as_a_whole(shell: Shell) -> None:
    shell.write("mine.yaml", "name: mine\nfields: [headline]\nlables: []\n")
    said = shell("validate", shell.config({"task": "mine.yaml"}))
    assert said.code == 2
    assert "did you mean 'labels'?" in said.out
    for key in ("description", "question", "text_kind", "templates"):
        assert f"'{key}' is missing" in said.out


def test_an_impossible_window_is_a_line_like_any_other(shell: Shell) -> None:
    window = {"start": "2026-10-01", "end": "2026-01-01"}
    said = shell("validate", shell.config({"knowledge.window": window}), "--json")
    assert said.code == 2
    assert [check["ok"] for check in said.document["checks"]] == [True, False]


def test_an_automatic_start_says_what_it_rests_on(shell: Shell) -> None:
    window = {"start": "auto", "end": "2026-10-01"}
    targets = [{"model": "openai:gpt-x", "cutoff": "2025-08"}, "openai:gpt-5", "offline:classifier"]
    changes = {"knowledge.window": window, "models.targets": targets, "detect.evaluate": False}
    said = shell("validate", shell.config(changes))
    assert said.code == 0
    assert "news from 2025-09-01 to 2026-10-01 (end excluded)" in said.out
    assert "start (auto): training cutoff of openai:gpt-x, 2025-08 (config)\n" in said.out
    assert "gpt-5: all news in the window was published after its release, 2025-08-07" in said.out
    assert "offline:classifier: all" not in said.out
    estimated = shell("estimate", shell.config(changes)).out
    assert "start (auto): training cutoff of openai:gpt-x, 2025-08 (config)\n" in estimated


def test_a_window_that_targets_may_know_is_told(shell: Shell) -> None:
    targets = [{"model": "openai:gpt-x", "released": "2026-03-01"}, "openai:heard-of-nowhere"]
    changes = {"models.targets": targets, "detect.evaluate": False}
    said = shell("validate", shell.config(changes))
    assert said.code == 0
    assert "openai:gpt-x: the window starts before its release, 2026-03-01 (config)" in said.out
    assert "openai:heard-of-nowhere: its cutoff is unknown" in said.out
    unknown = shell("validate", shell.config(changes | {"knowledge.window": {"start": "auto"}}))
    assert unknown.code == 2
    assert "no cutoff for 'openai:heard-of-nowhere'" in unknown.out


def test_bad_rows_are_counted_and_the_first_ones_shown(shell: Shell) -> None:
    rows = ['{"text": "so angry", "label": "anger"}'] + ['{"text": "x", "label": "rage"}'] * 8
    path = shell.write("rows.jsonl", "\n".join(rows) + "\n")
    said = shell("validate", shell.config({"dataset": {"format": "jsonl", "path": str(path)}}))
    assert said.code == 2
    assert "FAILED benchmark" in said.out and "8 of 9 rows are not samples of the task" in said.out
    assert "1 sample, 8 bad rows" in said.out
    assert said.out.count("bad row: rows.jsonl line") == 5
    assert "and 3 more bad rows" in said.out
    path.write_text("\n".join(rows[:7]))
    said = shell("validate", shell.config({"dataset": {"format": "jsonl", "path": str(path)}}))
    assert "and 1 more bad row\n" in said.out


def test_a_few_bad_rows_are_pointed_at_and_most_rows_may_not_be_bad(shell: Shell) -> None:
    good, bad = '{"text": "so happy", "label": "joy"}\n', '{"text": "x", "label": "rage"}\n'
    dataset = {"format": "jsonl", "path": str(shell.write("rows.jsonl", good + bad))}
    said = shell("validate", shell.config({"dataset": dataset}))
    assert said.code == 0
    assert "warning: bad rows: 1; a run uses only the other rows" in said.out
    assert "ready to run; warnings: " in said.out
    shell.write("rows.jsonl", good + 2 * bad)
    said = shell("validate", shell.config({"dataset": dataset}))
    assert said.code == 2
    assert "2 of 3 rows are not samples of the task emotion" in said.out
    assert "dataset.columns" in said.out and "all checks passed" not in said.out


@pytest.mark.parametrize("target", ["offline:clasifier", "offline"])
def test_a_target_that_is_not_there(shell: Shell, target: str) -> None:
    said = shell("validate", shell.config({"models.targets": [target]}))
    assert said.code == 2
    assert f"no embedded target '{target}'" in said.out
    assert "offline:classifier" in said.out


def test_an_embedded_target_needs_a_train_split(shell: Shell) -> None:
    changes = {"models.targets": ["offline:classifier"], "dataset.train_split": "tarin"}
    said = shell("validate", shell.config(changes))
    assert said.code == 2
    assert "no split 'tarin'" in said.out


def test_the_key_may_be_in_a_file_beside_the_config(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIAL_KEY", "")  # so that what the file sets is taken back afterwards
    monkeypatch.delenv("TRIAL_KEY")
    model = {"model": "openai:gpt-x", "api_key_env": "TRIAL_KEY"}
    config = shell.config({"models.default": model})
    assert shell("validate", config).code == 2
    shell.write(".env", "TRIAL_KEY=sk-very-secret\n")
    said = shell("validate", config)
    assert said.code == 0
    assert "secret" not in said.out + said.err


def test_the_split_that_pcr_compares_is_checked(shell: Shell) -> None:
    changes = {"models.targets": ["offline:classifier"], "detect": {"pcr": {"samples": 10}}}
    said = shell("validate", shell.config(changes))
    assert said.code == 0
    assert "10 items of the 'train' split are drawn and reworded" in said.out
    changes["detect"] = {"pcr": {"train_split": "test"}}
    checks = shell("validate", shell.config(changes), "--json").document["checks"]
    (wrong,) = [check for check in checks if not check["ok"]]
    assert (wrong["name"], wrong["error"]["where"]) == ("pcr", "detect.pcr.train_split")
    assert "with itself" in wrong["error"]["message"]


def test_pcr_without_a_target_is_told(shell: Shell) -> None:
    said = shell("validate", shell.config({"detect": {"pcr": {}}}))
    assert said.code == 0
    assert "no targets" in said.out


def test_an_unknown_key_of_pcr_names_the_known_one(shell: Shell) -> None:
    said = shell("validate", shell.config({"detect": {"pcr": {"sample": 10}}}))
    assert said.code == 2
    assert "unknown key 'detect.pcr.sample'" in said.err and "'samples'" in said.err


def test_validate_says_where_spans_go(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    config = shell.config({"telemetry.content": True})
    assert "telemetry" not in shell("validate", config).out
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@127.0.0.1:9")
    said = shell("validate", config).out
    assert "spans are sent to http://127.0.0.1:9/v1/traces, with texts and prompts" in said
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    refused = shell("validate", config)
    assert (refused.code, "FAILED telemetry" in refused.out) == (2, True)


ROW = {"input": 1, "output": 2, "as_of": "2026-10-01", "source": "https://prices.example"}


def test_a_file_of_prices_is_read(shell: Shell) -> None:
    shell.write("prices.yaml", json.dumps({"offline:none": ROW}))
    config = shell.config({"run": {"prices": "prices.yaml"}})
    assert shell("validate", config).code == 0
    shell.write("prices.yaml", json.dumps({"offline:none": {"input": 1, "output": -2}}))
    checks = shell("validate", config, "--json").document["checks"]
    (wrong,) = [check for check in checks if not check["ok"]]
    assert wrong["name"] == "prices" and "prices.yaml" in wrong["error"]["where"]
    shell.folder.joinpath("prices.yaml").unlink()
    assert "FAILED prices" in shell("validate", config).out


def test_which_models_have_a_price_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAL_KEY", "sk-very-secret")
    shell.write("prices.yaml", json.dumps({"openai:priced": ROW}))
    models = {
        "default": {"model": "openai:priced", "api_key_env": "TRIAL_KEY"},
        "composer": {"model": "openai:unheard-of", "api_key_env": "TRIAL_KEY"},
    }
    said = shell("validate", shell.config({"models": models, "run": {"prices": "prices.yaml"}}))
    assert "openai:priced: priced" in said.out and "openai:unheard-of: no price" in said.out


def test_where_a_provider_of_embeddings_gets_texts_is_told_and_asked(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://models.example:11434")
    config = shell.config({"knowledge.embeddings": "ollama:nomic"})
    said = shell("validate", config)
    assert "texts without a key to http://models.example:11434" in said.out
    refused = shell("refresh", config, "--limit", "2")
    assert refused.code == 2
    assert "CoreEval would send texts without a key to http://models.example:11434" in refused.err


def test_a_budget_refuses_embeddings_that_it_cannot_count(shell: Shell) -> None:
    config = shell.config({"knowledge.embeddings": "ollama:nomic"})
    refused = shell("refresh", config, "--limit", "2", "--budget", "1")
    assert refused.code == 2
    assert "the budget cannot be enforced: the cost of embeddings by" in refused.err
    assert "--allow-unpriced" in refused.err
    told = shell("estimate", config).out
    assert "these figures and the budget exclude embeddings by" in told
    assert "up to 20,000 headlines of the local store" in told
    allowed = shell.config({"knowledge.embeddings": "ollama:nomic", "run.allow_unpriced": True})
    assert shell("validate", allowed, "--set", "run.budget_usd=1").code == 0


THREE_WAY = """
name: three-way
description: How a claim stands to a source.
fields: [source, claim]
text_kind: sentence
question: Does the source support the claim?
labels:
  - {id: 0, name: supported, meaning: the source says it}
  - {id: 1, name: refuted, meaning: the source denies it}
  - {id: 2, name: open, meaning: the source says nothing of it}
templates: ["$source / $claim: one of $labels"]
"""


@pytest.mark.parametrize(
    ("text", "says", "key"),
    [
        (
            THREE_WAY,
            "the offline label judge distinguishes two labels of a pair; three-way has 3",
            "models.label_judge",
        ),
        (
            THREE_WAY.replace("claim]", "claim, aside]").replace("$claim:", "$claim $aside:"),
            "work on texts of one or two fields; three-way has 3",
            "models.replacer",
        ),
    ],
)
def test_rules_that_cannot_play_a_task_are_refused_before_a_run(
    shell: Shell, text: str, says: str, key: str
) -> None:
    shell.write("mine.yaml", text)
    row = {"source": "Ford cut jobs.", "claim": "Ford hired.", "aside": "Sad.", "label": "refuted"}
    path = shell.write("rows.jsonl", json.dumps(row) + "\n")
    config = shell.config({"task": "mine.yaml", "dataset": {"format": "jsonl", "path": str(path)}})
    said = shell("validate", config)
    assert said.code == 2
    assert says in said.out and key in said.out
    refused = shell("refresh", config)
    assert refused.code == 2 and says in refused.err
    assert not (shell.folder / "runs").exists()


def test_what_is_left_out_in_another_language_is_said(shell: Shell) -> None:
    said = shell("validate", shell.config({"dataset.language": "fr"}))
    assert (
        "language: French (fr); checks and measures not "
        "available: statements and new facts" in said.out
    )
    assert "but the rules that play" in said.out
    wrong = shell("validate", shell.config({"dataset.language": "german"}))
    assert wrong.code == 2
    assert "de is German" in wrong.err


def test_an_old_price_and_a_small_limit_of_a_sample_are_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    prices = shell.write(
        "mine.yaml", "openai:x: {input: 1, output: 900, as_of: 2025-01-01, source: me}\n"
    )
    models = {"default": "offline", "composer": {"model": "openai:x", "max_tokens": 1000}}
    config = shell.config(
        {"models": models, "run.prices": str(prices), "run.max_usd_per_sample": 0.5}
    )
    said = shell("validate", config).out
    assert "openai:x: priced" in said
    assert "the price of openai:x was looked up on 2025-01-01" in said and "(mine.yaml)" in said
    assert "(composer) may cost 0.9003 USD, which is more than 0.5000" in said
    assert "(mine.yaml)" in shell("estimate", config, "--limit", "2").out


QUIZ = "name: quiz\nkind: choice\ndescription: Questions about the sky.\n"


def test_what_a_benchmark_of_choices_is_made_of_is_counted(shell: Shell) -> None:
    shell.write("quiz.yaml", QUIZ)
    lines = [
        "Which planet is red?,Mars,Venus,A",
        "Which is largest?,Earth,Jupiter,Mars,B",
        "Why?,A",
    ]
    path = shell.write("test.csv", "\n".join(lines) + "\n")
    changes = {"task": "quiz.yaml", "dataset": {"format": "mmlu", "path": str(path)}}
    checks = shell("validate", shell.config(changes), "--json").document["checks"]
    (benchmark,) = [check for check in checks if check["name"] == "benchmark"]
    assert benchmark["found"][:4] == [
        "2 samples, 1 bad row",
        "right option: A 1, B 1",
        "options per question: 2 to 3, median 2",
        "words per question: 3 to 4, median 3",
    ]
    assert "test.csv line 3: the line has 2 cells" in benchmark["found"][4]


def test_a_format_of_another_kind_is_refused(shell: Shell) -> None:
    path = shell.write("test.csv", "Which planet is red?,Mars,Venus,A\n")
    said = shell("validate", shell.config({"dataset": {"format": "mmlu", "path": str(path)}}))
    assert said.code == 2
    assert "mmlu is for tasks of the kind choice, but the task emotion has" in said.out
