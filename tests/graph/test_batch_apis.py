"""Whole runs through the batch APIs of both providers, over the wire and from a schedule."""

import pytest
from starlette.testclient import TestClient

from coreeval.graph.execute import RunHooks
from coreeval.graph.run import refresh, resume
from coreeval.runs.status import read_status
from coreeval.viewer.app import create_app
from tests.cli.kit import Shell
from tests.graph.kit import Lab, Undisturbed
from tests.graph.test_batch_rounds import FEW, PRICE
from tests.support.batch_server import digest_of
from tests.support.wire import Prompted
from tests.viewer.test_run_pages import HERE, words_of

IN_BATCHES = {"concurrency": 4, "batch": {"live_below": 0}, "budget_usd": 50.0}
MOST_LOOKS = 30


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")


def finish(lab: Lab) -> list[str]:
    """Refresh a few samples to the end; return what was said."""
    notes = list[str]()
    around = RunHooks(waits=True, first_look_s=0.01, watch=lambda told: notes.append(told.note))
    done = refresh(lab.config, limit=FEW, run_dir=lab.files.root, around=around)
    assert done.manifest.status == "complete"
    return notes


def test_a_run_at_anthropic_comes_to_the_same_in_batches(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    model = {
        "model": "anthropic:scripted",
        "base_url": lab.server.anthropic_url,
        "price": PRICE,
        "structured": "function_calling",
    }
    lab.write(models={"default": model}, run=IN_BATCHES)
    finish(lab)
    assert lab.results() == {name: undisturbed.results[name] for name in lab.results()}
    assert lab.server.requests == [] and set(lab.server.paid_ids.values()) == {1}
    assert {each.speech for each in lab.server.batches.values()} == {"anthropic"}
    cost, batches = lab.manifest.cost, read_status(lab.files.root).batches
    assert batches and cost.billed_calls == len(lab.server.paid_ids)
    assert cost.billed_usd == pytest.approx(sum(each.usd or 0 for each in batches.batches))
    assert cost.unknown_usd == 0 < batches.saved_usd


def test_roles_are_asked_in_batches_and_a_target_without_them_live_in_the_same_run(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    role = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICE}
    elsewhere = f"{lab.server.anthropic_url}/elsewhere/v1"  # which has no files
    target = {"model": "openai:target", "base_url": elsewhere, "price": PRICE}
    lab.write(
        models={"default": role, "targets": [target]}, run=IN_BATCHES, detect={"evaluate": True}
    )
    notes = finish(lab)
    assert [note for note in notes if "calls are sent individually, at full price" in note]
    mine, theirs = lab.results(), undisturbed.results
    assert mine == {
        name: theirs[name].model_copy(update={"freshness": one.freshness})  # has the target's dates
        for name, one in mine.items()
    }
    live, batched = lab.server.requests, lab.server.batches.values()
    assert {Prompted(each).shape for each in live} == {"LabelAnswer"}
    bodies = [item.body for batch in batched for item in batch.items]
    assert {each["model"] for each in bodies} == {"scripted"}
    assert not {digest_of(each) for each in live} & {digest_of(each) for each in bodies}
    assert set(lab.server.paid_bodies.values()) == {1}
    cost = lab.manifest.cost
    assert (cost.unknown_usd, cost.billed_calls) == (0, len(live) + len(bodies))


def test_status_and_the_page_of_a_run_show_what_it_waits_for(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    model = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICE}
    lab.write(models={"default": model}, run=IN_BATCHES)
    root, shell = lab.files.root, Shell(lab.folder, capsys)
    assert refresh(lab.config, limit=FEW, run_dir=root).manifest.status == "waiting"
    key = f"{root.parent.name}.{root.name}"
    client = TestClient(create_app([root]), base_url=HERE)
    reserved = lab.manifest.cost.unknown_usd
    text, page = shell("status", root).out, words_of(client.get(f"/run/{key}").text)
    assert ", waiting since 20" in text and "waiting since 20" in page
    assert f"{reserved:.4g} of 50 USD, of which {reserved:.4g} USD is reserved for calls" in text
    assert "batches: 1 open (3 calls), 0 ended" in text
    assert "1 batch is open with 3 calls." in page
    assert "openai:scripted: 0 of 3 calls done, validating" in text

    finish_waiting(lab)
    text, page = shell("status", root).out, words_of(client.get(f"/run/{key}").text)
    ended = len(lab.server.batches)
    assert ", ended 20" in text and f"batches: {ended} ended; saved so far: 0." in text
    assert "reserved" not in text and "No batch is open." in page


def finish_waiting(lab: Lab) -> None:
    done = resume(lab.files.root, around=RunHooks(waits=True, first_look_s=0.01))
    assert done.manifest.status == "complete"


def test_a_schedule_looks_until_its_batches_have_come_and_releases(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = {each: ['echo "$COREEVAL_OUTCOME" >> told'] for each in ("success", "failure", "gate")}
    model = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICE}
    lab.write(
        models={"default": model},
        run=IN_BATCHES,
        schedule={"cron": "0 3 * * MON", "hooks": hooks},
    )
    shell = Shell(lab.folder, capsys)
    assert shell("schedule", "install", lab.config, "--accept-hooks").code == 0
    told, codes, endings = lab.folder / "told", list[int](), list[str]()
    while not codes or (codes[-1] == 5 and len(codes) < MOST_LOOKS):
        assert not told.exists()
        said = shell("schedule", "due", lab.config, "--json")
        codes.append(said.code)
        endings.append(said.document["schedules"][0]["ending"])
    assert codes == [5] * (len(codes) - 1) + [0] and len(codes) > 2, said
    assert endings == ["waiting"] * (len(codes) - 1) + ["released"]
    assert told.read_text() == "released\n"
    assert set(lab.server.paid_ids.values()) == {1} and lab.server.requests == []
    [release] = lab.workspace.releases.glob("survival/*/release.json")
    assert shell("verify", release.parent).code == 0
    assert shell("schedule", "due", lab.config).code == 0
    assert told.read_text() == "released\n"
