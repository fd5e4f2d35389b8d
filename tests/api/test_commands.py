"""Functions of commands that have only a document: the same as the command, in a table."""

import json
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import coreeval
from coreeval.api import runs
from coreeval.api.tables import CommandResult, Result
from coreeval.errors import CoreEvalError, RunLocked, RunStateError, UntrustedEndpoint, UsageError
from coreeval.graph.prompt_lab import trial
from coreeval.runs.manifest import Evaluation, write_manifest
from coreeval.tools.files import hold_lock
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.workspace import workspace_for
from tests.api.documents import read_document
from tests.cli.kit import Shell
from tests.cli.test_annotate import first_run as rated_run
from tests.cli.test_calls import send_elsewhere
from tests.cli.test_export import hub
from tests.cli.test_gdelt_text import URL, shop
from tests.cli.test_prompts import served, server
from tests.cli.test_review import first_run as named_run
from tests.cli.test_schedule import weekly
from tests.releases.kit import Made
from tests.releases.people import copied
from tests.releases.test_annotation import fill
from tests.support.hub_server import TOKEN, HubServer
from tests.support.llm_server import LLMServer
from tests.support.news_site import BODY
from tests.tools.gdelt.file_samples import gkg_line, write

__all__ = ["hub", "named_run", "rated_run", "served", "server", "shop"]


def require_same(
    shell: Shell, result: Result, *command: str | Path, but: tuple[str, ...] = ()
) -> None:
    """Compare a result's document with that of a command, except for some of its keys."""
    said, document = shell(*command, "--json").document, read_document(result)
    for key in but:
        assert key in said and key in document
        del said[key], document[key]
    assert document == said
    assert repr(result).startswith(f"{result.summary}\n{result.table.title}: ")
    assert result.to_dicts() == result.table.to_dicts()
    assert result.to_arrow().num_rows == len(result.table)
    assert "<table" in result._repr_html_()


@pytest.fixture
def run(shell: Shell) -> coreeval.Run:
    return coreeval.refresh(shell.config(), limit=5)


def test_answers_are_counted_exported_and_deleted(
    shell: Shell, run: coreeval.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(coreeval.count_calls().table) == 0
    with LLMServer(lambda _: "joy").in_thread() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        target = json.dumps({"model": "openai:one", "base_url": server.url})
        coreeval.evaluate(run, targets=[target], trust_endpoints=True)
    counted = coreeval.count_calls()
    require_same(shell, counted, "calls", "stats")
    (row,) = counted.to_dicts()
    assert (
        row["model"] == "openai:one" and row["calls"] == row["valid"] == counted.document["calls"]
    )
    assert counted.summary.endswith(f"calls.db: {row['calls']} calls")
    assert counted.document["cached_share"] == 0.0
    assert coreeval.count_calls(".coreeval").document["calls"] == row["calls"]

    made = coreeval.export_calls("openai:one", out="a.jsonl", run=run)
    require_same(shell, made, "calls", "export", "--model", "openai:one", "--out", "a.jsonl",
                 "--run", run.run_dir)  # fmt: skip
    assert made.to_dicts()[0] == {"what": "answers", "calls": row["calls"]}
    assert len(Path("a.jsonl").read_text().splitlines()) == row["calls"]
    assert coreeval.export_calls("openai:one", out="b.jsonl").document["answers"] == row["calls"]

    with pytest.raises(UsageError, match="no call store found"):
        coreeval.export_calls("openai:one", out="b.jsonl", run=run, workspace="nowhere")
    other = coreeval.refresh(shell.config(), limit=1)
    with pytest.raises(UsageError, match="there is no answer from"):
        coreeval.export_calls("openai:one", out="b.jsonl", run=other)
    assert coreeval.delete_run(other) == ()

    assert coreeval.delete_run(run) == ()
    assert coreeval.delete_calls().document["calls"] == 0, "they are too young"
    shown = coreeval.delete_calls(older_than=0)
    require_same(shell, shown, "calls", "gc", "--older-than", "0", "--dry-run")
    assert shown.document["calls"] == row["calls"] and not shown.document["deleted"]
    assert shown.summary == f"not deleted: {row['calls']} calls"
    assert sum(each["calls"] for each in shown.to_dicts()) == row["calls"]  # type: ignore[misc]
    assert coreeval.delete_calls(older_than=0, keep_runs=True).document["calls"] == 0
    gone = coreeval.delete_calls(older_than=0, dry_run=False)
    assert gone.document["deleted"] and gone.summary.startswith("deleted: ")
    assert coreeval.count_calls().document["calls"] == 0


async def test_open_batches_are_kept_unless_they_are_to_go(shell: Shell) -> None:
    shell.config()
    await send_elsewhere(shell.folder, 40, "sent", answered=False)
    kept = read_document(coreeval.delete_calls(older_than=0, keep_runs=True))
    assert (kept["batches"], kept["reservations"]) == (0, 0)
    await send_elsewhere(shell.folder, 1, "sent", answered=False)
    young = coreeval.delete_calls(older_than=0).document
    assert (young["batches"], young["open_batches_kept"]) == (1, 1)
    assert coreeval.delete_calls(older_than=0, open_batches=True).document["batches"] == 2


def test_a_workspace_without_answers_is_named(shell: Shell) -> None:
    with pytest.raises(UsageError, match="no call store found"):
        coreeval.count_calls("nowhere")


def test_a_run_goes_into_a_cassette_and_out_again(shell: Shell, finished: Path) -> None:
    made = coreeval.export_cassette(finished, out="a", texts=True)
    require_same(shell, made, "cassette", "export", finished, "--out", "a", "--texts")
    assert made.summary.endswith("/a: 5 samples")
    assert {"kind": "sample", "lines": 5} in made.to_dicts()
    read = coreeval.read_cassette("a")
    require_same(shell, read, "cassette", "show", "a")
    assert read.table["role"][0] == "extractor" and read.table["answers"][0] == 0
    again = coreeval.replay_cassette("a", out="b", progress=False)
    require_same(shell, again, "cassette", "replay", "a", "--out", "c", but=("run", "seconds"))
    assert again.document["same"] and again.summary.startswith(f"{again.document['run']}: the same")
    assert all(row["equal"] for row in again.to_dicts())


def test_a_cassette_without_texts_needs_the_benchmark(shell: Shell, finished: Path) -> None:
    assert not coreeval.export_cassette(finished, out="a").document["texts"]
    with pytest.raises(CoreEvalError, match="texts"):
        coreeval.replay_cassette("a", out="b", progress=False)


def _write_news(folder: Path) -> None:
    folder.mkdir()
    for day, title in enumerate(
        ("Ferry Board opens a quay", "Sailors sue the Ferry Board"), start=9
    ):
        line = gkg_line(title=title, url=f"https://a.example/{day}")
        write(folder / f"{day}.csv", line)


async def test_news_is_brought_into_a_store_and_found_under_a_running_loop(shell: Shell) -> None:
    _write_news(shell.folder / "news")
    brought = coreeval.sync_news(source="news", store="s", progress=False)
    require_same(shell, brought, "gdelt", "sync", "--from", "news", "--store", "t",
                 but=("store", "seconds"))  # fmt: skip
    assert brought.summary == f"s: {brought.document['articles']} articles"
    covered = coreeval.measure_news_coverage("s")
    require_same(shell, covered, "gdelt", "coverage", "--store", "s")
    assert sum(row["articles"] for row in covered.to_dicts()) == 2  # type: ignore[misc]
    found = coreeval.query_news("Ferry Board", store="s", limit=1)
    require_same(shell, found, "gdelt", "query", "Ferry Board", "--store", "s", "--limit", "1")
    assert len(found.table) == 1 and "Ferry Board" in str(found.table["title"][0])
    other = coreeval.query_news("Quay Company", aliases=["Ferry Board"], store="s")
    assert len(other.table) == 2 and other.summary == "Quay Company: 2 articles in s"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no news source was chosen"),
        ({"days": 1, "since": "last"}, "no news source was chosen"),
        ({"days": 1, "until": "2026-10-05"}, "--until needs --since"),
        ({"since": "soon"}, "'soon' is not a day"),
        ({"source": "news", "languages": "en,xx1"}, "xx1"),
        ({"days": 30, "feeds": "gkg"}, "this downloads about 12.6 GB"),
    ],
)
def test_what_cannot_be_brought_is_refused(
    shell: Shell, given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        coreeval.sync_news(**given)  # type: ignore[arg-type]
    assert not (shell.folder / ".coreeval").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_precision": "sure"}, "'sure' is not a precision"),
        ({"source": "web"}, "'web' is not a source"),
        ({"start": "2026-07-01", "end": "2026-06-01"}, "before it begins"),
    ],
)
def test_a_query_that_is_not_valid_is_refused(
    shell: Shell, given: dict[str, str], message: str
) -> None:
    _write_news(shell.folder / "news")
    coreeval.sync_news(source="news", store="s", progress=False)
    with pytest.raises(UsageError, match=message):
        coreeval.query_news("Ferry", store="s", **given)  # type: ignore[arg-type]


async def test_the_text_of_an_article_is_whole_or_an_excerpt(shop: Shell) -> None:
    whole = coreeval.find_article_texts([URL], source=["texts.jsonl"])
    require_same(shop, whole, "gdelt", "text", URL, "--from", "texts.jsonl", "--full")
    assert whole.table["text"][0].endswith(BODY[-1])  # type: ignore[union-attr]
    assert whole.summary == "1 of 1 text found"
    cut = coreeval.find_article_texts([URL, "https://x.example/y"], source=["."], full=False)
    assert len(cut.table["text"][0]) <= 300  # type: ignore[arg-type]
    assert cut.table["reason"] == (None, "not_found")
    assert cut.summary == "1 of 2 texts found"
    with pytest.raises(UsageError, match="no source of texts"):
        coreeval.find_article_texts([URL])
    with pytest.raises(UsageError, match="not the address of a web page"):
        coreeval.find_article_texts(["herald"], source=["texts.jsonl"])


def test_a_person_is_taken_out_only_if_that_is_asked_for(shop: Shell) -> None:
    Path("named").mkdir()
    shutil.copy("texts.jsonl", "named")
    coreeval.find_article_texts(["https://herald.example/2026/captain"], source=["a.warc.gz"])
    shown = coreeval.take_down("Ola Tveitli", progress=False)
    require_same(shop, shown, "takedown", "Ola Tveitli", "--dry-run")
    assert shown.document["places"] and not shown.document["listed"]
    assert shown.document["left"] == []
    assert (
        shown.summary.endswith("name Ola Tveitli; nothing was changed")
        or "names Ola" in shown.summary
    )
    done = coreeval.take_down(
        "Tveitli, Ola", aliases=["Ola Tveitli"], dry_run=False, progress=False
    )
    assert done.document["done"] and done.document["listed"]
    assert len(done.table) == len(shown.table) and done.summary.endswith("; taken out")
    assert coreeval.take_down("Ola Tveitli", progress=False).document["places"] == []


def test_a_takedown_needs_a_place_to_search(shell: Shell) -> None:
    with pytest.raises(UsageError, match="no workspace found"):
        coreeval.take_down("Ola Tveitli", progress=False)


async def test_models_are_checked_under_a_running_loop(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = shell.config({"models": {"default": "offline", "targets": ["offline:classifier"]}})
    found = coreeval.check_models(config)
    require_same(shell, found, "models", "check", config)
    assert found.document["ok"] and found.summary == "2 models can be used"
    gone = {"model": "openai:gone", "base_url": "http://192.0.2.1/v1", "api_key_env": "OTHER_KEY"}
    monkeypatch.setenv("OTHER_KEY", "k")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    bad = shell.config({"models": {"default": "offline", "targets": [gone]}})
    with pytest.raises(UntrustedEndpoint):
        coreeval.check_models(bad)
    assert any(": not used before; " in note for note in coreeval.validate(bad).notes)
    refused = coreeval.check_models(bad, trust_endpoints=True)
    assert any(note.endswith(": remembered") for note in coreeval.validate(bad).notes)
    assert refused.summary == "1 of 2 models cannot be used" and not refused.document["ok"]
    assert refused.table["problem"][0] == "" and refused.table["problem"][1]


async def test_a_prompt_is_tried_on_two_models(
    shell: Shell, served: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = ["openai:good", "openai:two"]
    asked = coreeval.try_prompt(served, role="extractor", models=models, limit=2)
    words = ("--role", "extractor", "--model", models[0], "--model", models[1], "--limit", "2")
    require_same(shell, asked, "prompts", "try", served, *words, but=("samples", "totals"))
    totals = read_document(asked)["totals"]
    assert asked.summary.startswith(f"extractor: {sum(each['valid'] for each in totals)} of 4")
    assert {str(name).partition(",")[0] for name in asked.table["contender"]} == set(models)
    assert len(set(asked.table["sample"])) == 2
    assert sum(map(bool, asked.table["valid"])) >= 2


async def test_a_takedown_that_ends_before_a_prompt_is_tried_stops_it(
    served: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace_for(served.parent)
    coreeval.try_prompt(served, role="extractor", limit=1)
    server.requests.clear()

    def list_name(path: Path, payer: str) -> CallStore:
        place.takedown.write_text("Jane Doe\n")
        return open_calls(path, payer)

    monkeypatch.setattr(trial, "open_calls", list_name)
    with pytest.raises(RunStateError, match="takedown list has changed"):
        coreeval.try_prompt(served, role="extractor", limit=1)
    assert not server.requests


async def test_prompts_are_listed_and_shown(shell: Shell) -> None:
    listed = coreeval.list_prompts()
    require_same(shell, listed, "prompts", "list")
    assert "composer" in listed.table["role"] and listed.summary.endswith(" prompts")
    config = shell.config()
    own = coreeval.list_prompts(config)
    require_same(shell, own, "prompts", "list", "--config", config)
    shown = coreeval.render_prompt("composer", task="emotion")
    require_same(shell, shown, "prompts", "show", "composer", "--task", "emotion")
    assert shown.table["role"][0] == "system" and shown.table["content"][0]
    with pytest.raises(UsageError, match="played by rules here"):
        coreeval.try_prompt(config, role="extractor")
    with pytest.raises(UsageError, match="cannot be used together"):
        coreeval.try_prompt(config, role="extractor", samples=["a"], limit=2)
    with pytest.raises(UsageError, match="no task was chosen"):
        coreeval.render_prompt("composer")
    with pytest.raises(UsageError, match="the config or the run defines"):
        coreeval.render_prompt("composer", task="emotion", config=config)


def test_a_prompt_is_that_of_a_run(shell: Shell, finished: Path) -> None:
    shown = coreeval.render_prompt("composer", run=finished)
    require_same(shell, shown, "prompts", "show", "composer", "--run", finished)
    assert shown.document["inputs"] == "run"


def test_what_is_due_is_done_once(shell: Shell) -> None:
    config = weekly(shell)
    plan = coreeval.explain_schedules([config])
    require_same(shell, plan, "schedule", "due", "--explain", config, but=("now",))
    assert len(plan.table) == 5 and plan.summary.startswith("trial: At 03:00 on Monday in Europe")
    done = coreeval.run_due([config], progress=False)
    assert done.summary == "trial: released" and done.results[0].ending == "released"
    (row,) = done.to_dicts()
    assert row["exit_code"] == 0 and row["problem"] == "" and row["version"]
    again = coreeval.run_due([config], progress=False)
    require_same(shell, again, "schedule", "due", config)
    assert again.summary == "trial: nothing"


def test_hooks_need_consent(shell: Shell) -> None:
    config = weekly(shell, hooks={"success": ["true"]})
    (refused,) = coreeval.run_due([config], progress=False).to_dicts()
    assert refused["ending"] == "failed" and "hook" in str(refused["problem"])
    digests = shell("schedule", "install", config, "--accept-hooks", "--json").document["accepted"]
    done = coreeval.run_due([config], accepted=digests["digests"], progress=False)
    assert done.summary == "trial: released"


def test_sheets_go_to_raters_and_are_scored(shell: Shell, rated_run: Made) -> None:
    copied(rated_run, shell.folder)
    made = coreeval.export_sheets("run", out="out", samples=2, raters=2)
    require_same(shell, made, "annotate", "export", "run", "--out", "again", "--samples", "2",
                 "--raters", "2", but=("out", "files", "key"))  # fmt: skip
    assert made.key_file.is_file() and made.summary.endswith(" texts for 2 raters")
    assert sum(row["texts"] for row in made.to_dicts()) == len(made.key.items)  # type: ignore[misc]
    fill(Path("out"), {})
    found = coreeval.score_sheets("run", "out", out="found.json")
    words = ("run", "out", "--out", "found.json")
    require_same(shell, found, "annotate", "score", *words, but=("scored_at",))
    assert found.path == Path("found.json") and found.summary.endswith(" texts, 2 raters")
    assert set(found.table["arm"]) == set(made.arms) and None not in found.table["estimate"]
    sheets = [file for file in made.files if file.suffix == ".csv"]
    key = made.key_file.rename(shell.folder / "key.json")
    again = coreeval.score_sheets("run", sheets, key=key, out="again.json")
    assert again.annotation.criteria == found.annotation.criteria


def test_a_person_decides_about_samples(shell: Shell, named_run: Made) -> None:
    copied(named_run, shell.folder)
    listed = coreeval.review("run", csv="list.csv", html="list.html")
    require_same(shell, listed, "review", "run", "--csv", "list.csv", "--html", "list.html")
    assert Path("list.csv").is_file() and Path("list.html").is_file()
    first, second = listed.table["sample"]
    assert listed.table["verdict"] == (None, None) and "person" in listed.table["reasons"][0]  # type: ignore[operator]
    assert listed.summary == "2 samples are listed: 2 open, 0 approved"
    decided = coreeval.review("run", reject=[str(first)], by="A", note="no")
    assert decided.recorded and decided.recorded.new[0].note == "no"
    assert decided.document["rejected"] == 1 and decided.table["sample"] == (second,)
    everything = coreeval.review("run", decided=True)
    row = next(row for row in everything.to_dicts() if row["sample"] == first)
    assert (row["verdict"], row["by"]) == ("rejected", "A")
    rest = coreeval.review("run", rest="approve", by="B")
    assert rest.document["pending"] == 0 and rest.document["approved"] == 1
    assert [each.verdict for each in rest.recorded.new] == ["approved"]  # type: ignore[union-attr]
    assert len(coreeval.review("run", only=["person"], decided=True).table) <= 2
    changed = coreeval.review("run", approve=[str(first)], by="C")
    assert changed.document["rejected"] == 0 and changed.document["approved"] == 2
    coreeval.review("run", decided=True, csv="decided.csv")
    sheet = Path("decided.csv").read_text("utf-8-sig")
    Path("decided.csv").write_text(
        sheet.replace(f'"{second}","approved"', f'"{second}","rejected"')
    )
    filled = coreeval.review("run", from_csv="decided.csv", by="D", note="as on paper")
    assert filled.recorded and filled.recorded.new[0].note == "as on paper"
    assert filled.document["rejected"] == 1
    for output in ("csv", "html"):
        with pytest.raises(UsageError, match="this is a folder, not a file"):
            coreeval.review("run", **{output: "."})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not a reason"):
        coreeval.review("run", only=["whim"])
    for given in ({"by": "A"}, {"note": "x"}):
        with pytest.raises(UsageError, match="no decision was made"):
            coreeval.review("run", **given)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_a_release_is_pushed(
    shell: Shell, run: coreeval.Run, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    release = coreeval.make_release(run, version="1")
    dry = coreeval.push(release, to="me/trial", dry_run=True)
    require_same(shell, dry, "push", release.path, "--to", "me/trial", "--dry-run")
    assert set(dry.table["change"]) == {"uploaded"} and "me/trial" not in hub.repositories
    done = coreeval.push(release, to="me/trial")
    assert done.document["commit"] == hub.repositories["me/trial"].tags["1"]
    assert done.summary.startswith("trial 1 on me/trial: ")
    assert len(coreeval.push(release, to="me/trial").table) == 0


def test_runs_are_tagged_and_deleted(run: coreeval.Run) -> None:
    assert coreeval.tag_run(run, add=["old", "good"]) == ("good", "old")
    assert coreeval.tag_run(run, remove=["good"]) == ("old",)
    assert len(coreeval.list_runs(tag="old")) == 1
    assert coreeval.delete_run("latest") == ()
    assert not run.run_dir.exists()


def test_answers_of_a_target_that_was_just_added_are_deleted(
    run: coreeval.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_target(lock: Path, taken: RunLocked) -> AbstractContextManager[None]:
        added = Evaluation(added=({"model": "openai:one"},), asked=("openai:one",))
        write_manifest(
            run.run_dir / "manifest.json", run.manifest.model_copy(update={"evaluation": added})
        )
        (run.run_dir / "numleak").mkdir()
        (run.run_dir / "numleak" / "openai_one-1.jsonl").touch()
        return hold_lock(lock, taken)

    monkeypatch.setattr(runs, "hold_lock", add_target)
    assert coreeval.delete_run(run) == ()
    assert not run.run_dir.exists()


def test_a_detector_asks_the_targets(
    shell: Shell, run: coreeval.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with LLMServer(lambda _: "joy").in_thread() as server:
        target = json.dumps({"model": "openai:one", "base_url": server.url})
        coreeval.evaluate(run, targets=[target], trust_endpoints=True)
        found = coreeval.detect(run, "recitation", progress=False)
        require_same(shell, found, "detect", "recitation", run.run_dir)
        with pytest.raises(UsageError, match="the price of openai:one is unknown") as unpriced:
            coreeval.detect(run, "recitation", budget_usd=1)
    assert "run.allow_unpriced: true (--allow-unpriced, if the command" in unpriced.value.hint
    (row,) = found.to_dicts()
    assert row["target"] == "openai:one" and row["verdict"] and row["reason"]
    assert found.summary == f"openai:one: {row['verdict']}"
    with pytest.raises(UsageError, match="did you mean 'recitation'") as refused:
        coreeval.detect(run, "recitatoin")
    assert refused.value.where == "detector"
    with pytest.raises(UsageError, match="not a valid probe"):
        coreeval.detect(run, "recitation", probe="no")


@pytest.fixture
def half(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.syspath_prepend(str(shell.folder))
    shell.write(
        "half_made.py",
        "class Nothing:\n    plugin_api = 1\n"
        "class Writer(Nothing):\n    def write(self, material, out):\n        return {}\n"
        "class Reader(Nothing):\n    def rows(self, file):\n        return []\n",
    )
    yield "half_made"


def test_a_class_is_checked_against_its_protocol(shell: Shell, half: str) -> None:
    found = coreeval.list_plugins(f"{half}:Writer", check=True)
    require_same(shell, found, "plugins", "--check", f"{half}:Writer")
    (row,) = found.to_dicts()
    assert (row["group"], row["problem"]) == ("exports", None)
    assert found.summary == "1 plugin"
    said = shell("plugins", "--check", f"{half}:Reader")
    assert said.code == 2 and "cannot be used for formats: it lacks" in said.out
    assert "formats  plugin:half_made:Reader  half_made:Reader  the plugin" in said.out
    assert (
        coreeval.list_plugins(f"{half}:Reader", check=True).summary
        == "1 plugin, 1 of them unusable"
    )
    none = shell("plugins", "--check", f"{half}:Nothing", "--json")
    assert none.code == 2 and "cannot be used for any group" in none.error["message"]
    for name, message in (("half", "'half' is not a plugin"), ("plugin:half", "no installed")):
        with pytest.raises(CoreEvalError, match=message):
            coreeval.list_plugins(name)


def test_a_result_of_a_command_is_immutable() -> None:
    result = CommandResult({"a": 1}, "one", coreeval.Table("rows", {"a": "integer"}, [(1,)]))
    assert (result.document, result.summary, result.to_dicts()) == ({"a": 1}, "one", [{"a": 1}])
    with pytest.raises(AttributeError):
        result.summary = "two"  # type: ignore[misc]
