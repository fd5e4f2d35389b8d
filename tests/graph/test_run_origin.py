"""A run that follows a release asks models only about the samples that it makes anew."""

import json
import shutil
from collections import Counter
from contextlib import closing

import pytest

from coreeval.config import RunConfig, load_config
from coreeval.errors import ReleaseError
from coreeval.graph.bundled import demo_data
from coreeval.graph.estimate.history import load_past_runs
from coreeval.graph.evaluate import evaluate
from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress
from coreeval.graph.run import refresh, resume, retry
from coreeval.prompts import load_prompts
from coreeval.releases.create import make_release
from coreeval.releases.gates.check import check_release
from coreeval.releases.gates.limits import Gates
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from tests.graph.kit import SAMPLES, Lab, Undisturbed


def test_no_model_is_asked_about_a_kept_sample(finished: Lab, undisturbed: Undisturbed) -> None:
    before = finished.manifest
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    finished.workspace.calls.unlink()
    done = refresh(
        finished.config, limit=SAMPLES, run_dir=finished.folder / "next", parent=release.path
    )
    accepted = before.counts["accepted"]
    assert (done.manifest.kept, done.manifest.counts) == (accepted, before.counts)
    asked, usual = Counter(finished.asked_shapes()), Counter(undisturbed.shapes)
    assert done.manifest.cost.billed_calls == asked.total() < usual.total()
    assert asked["extraction"] == SAMPLES - accepted
    renewed = {key: one for key, one in finished.results("next").items() if not one.kept_from}
    assert renewed == {key: undisturbed.results[key] for key in renewed}
    assert len(renewed) == SAMPLES - accepted
    assert finished.arms("next") == undisturbed.arms
    assert retry(done.run_dir).manifest.kept == accepted


def test_the_report_bounds_kept_labels_as_the_release_did(finished: Lab) -> None:
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    done = refresh(finished.config, limit=SAMPLES, parent=release.path)
    files = RunFiles(done.run_dir)
    report = json.loads(files.report_json.read_text())
    assert report["kept"] == report["counts"]["accepted"] and not report["attempts"]
    bound = release.manifest.quality.label_noise.bound
    assert bound and report["quality"]["label_noise"]["bound"] == bound
    assert "were carried over from release 1" in files.report_html.read_text()

    shutil.rmtree(release.path)
    evaluate(done.run_dir, targets=["offline:classifier"])
    without = json.loads(files.report_json.read_text())
    assert without["quality"]["label_noise"]["bound"] is None
    assert any("no upper bound on the share of wrong labels" in each for each in without["limits"])


def test_kept_samples_do_not_count_as_free_ones_in_later_estimates(finished: Lab) -> None:
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    refresh(finished.config, limit=SAMPLES, parent=release.path)
    known = load_past_runs(finished.workspace, "emotion", RunConfig())
    assert set(known.calls["extractor"]) == {1}
    assert len(known.calls["extractor"]) == SAMPLES - finished.manifest.counts["accepted"]


def test_a_renewal_that_finds_nothing_newer_keeps_the_sample_and_says_so(finished: Lab) -> None:
    """All evidence is older than a day, and the news store has no newer articles."""
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    done = refresh(
        finished.config,
        limit=SAMPLES,
        run_dir=finished.folder / "next",
        parent=release.path,
        stale_after="1d",
    )
    accepted = finished.manifest.counts["accepted"]
    assert (done.manifest.kept, done.manifest.counts["accepted"]) == (accepted, accepted)
    assert finished.arms("next")["updated"] == finished.arms()["updated"]
    second = make_release(done.run_dir, version="2", out=finished.folder / "second")
    assert second.manifest.still_stale == accepted
    card = (second.path / "README.md").read_text("utf-8")
    assert f"Updated samples that are still stale: {accepted}." in card
    assert release.manifest.still_stale is None
    assert "still stale" not in (release.path / "README.md").read_text("utf-8")
    gates = Gates.model_validate({"still_stale": {"max": 0.1}})
    (found,) = check_release(second.path, gates, chain=False).gates
    assert found.score is not None and found.score.estimate == 1.0
    assert found.stops


@pytest.mark.parametrize("told", ["kept from 1:", "assemble"])
def test_a_renewal_stops_without_its_release_and_finds_it_in_the_present_workspace(
    finished: Lab, told: str
) -> None:
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    aside = finished.folder / "aside"

    def take_away(progress: Progress) -> None:
        if (progress.note or progress.stage).startswith(told) and release.path.exists():
            release.path.rename(aside)

    run, around = finished.folder / "next", RunHooks(watch=take_away)
    with pytest.raises(ReleaseError, match="is not in its place"):
        refresh(
            finished.config,
            limit=SAMPLES,
            run_dir=run,
            parent=release.path,
            stale_after="1d",
            around=around,
        )
    inside = finished.workspace.releases / finished.manifest.name / "first"
    inside.parent.mkdir(parents=True)
    aside.rename(inside)
    done = resume(run).manifest
    accepted = finished.manifest.counts["accepted"]
    assert (done.kept, done.counts["accepted"]) == (accepted, accepted)
    assert json.loads(RunFiles(run).report_json.read_text())["quality"]["label_noise"]["bound"]
    finished.write(run={"seed": 8, "allow_unpriced": True})
    anew = resume(run, if_changed="anew").manifest
    assert anew.parent and anew.parent.path == str(inside)


def test_a_renewal_without_newer_news_costs_no_more_than_an_extraction(finished: Lab) -> None:
    """Every question is paid anew: the call store is gone, as on another machine."""
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    newest = min(row.newest_evidence for row in release.samples() if row.newest_evidence)
    over, asked = [f"knowledge.window.end={newest}"], dict[str | None, Counter[str]]()
    for stale_after in (None, "1d"):
        finished.workspace.calls.unlink()
        finished.forget()
        done = refresh(
            finished.config,
            limit=SAMPLES,
            overrides=over,
            parent=release.path,
            stale_after=stale_after,
        )
        asked[stale_after] = Counter(finished.asked_shapes())
        assert done.manifest.kept == finished.manifest.counts["accepted"]
    assert asked["1d"] - asked[None] == {"extraction": done.manifest.kept}


PRIVATE = {"name": "private", "redistribute": False}
PUBLIC = {"name": "CC-BY-4.0", "redistribute": True}


def _set(lab: Lab, name: str, path: str, licence: dict[str, object], budget_usd: float) -> None:
    dataset = {"format": "tweeteval", "path": path, "split": "test", "licence": licence}
    run = {"budget_usd": budget_usd, "allow_unpriced": True}
    lab.write(name=name, dataset=dataset, run=run)


def _read_terms(lab: Lab) -> tuple[str, float | None, float | None]:
    """Return the licence and budget of a run's config, and the budget in its manifest."""
    config = load_config(lab.files.config)
    assert config.dataset.licence
    return config.dataset.licence.name, config.run.budget_usd, lab.manifest.cost.budget_usd


@pytest.mark.parametrize("go_on", ["evaluate", "retry", "keep"])
@pytest.mark.parametrize("other", ["name", "dataset"])
def test_a_config_file_that_is_of_another_benchmark_by_now_changes_no_terms_of_a_run(
    lab: Lab, go_on: str, other: str
) -> None:
    data = str(demo_data() / "emotion")
    _set(lab, "survival", data, PRIVATE, 2.0)
    lab.refresh()
    name, path = ("own", data) if other == "name" else ("survival", str(lab.folder / "own"))
    _set(lab, name, path, PUBLIC, 500.0)
    heard = list[Progress]()
    around = RunHooks(watch=heard.append)
    if go_on == "evaluate":
        evaluate(lab.files.root, targets=["offline:classifier"], around=around)
    elif go_on == "retry":
        retry(lab.files.root, around=around)
    else:
        resume(lab.files.root, if_changed="keep", around=around)
    assert _read_terms(lab) == ("private", 2.0, 2.0)
    told = any("now describes another benchmark" in one.note for one in heard)
    assert told == (go_on != "keep")


@pytest.mark.parametrize("keep", [False, True])
def test_the_licence_and_budget_of_a_run_can_be_changed_in_its_file_unless_it_keeps_its_own(
    lab: Lab, keep: bool
) -> None:
    data = str(demo_data() / "emotion")
    _set(lab, "survival", data, PRIVATE, 2.0)
    lab.refresh()
    _set(lab, "survival", data, PUBLIC, 500.0)
    resume(lab.files.root, if_changed="keep" if keep else "refuse")
    assert _read_terms(lab) == (("private", 2.0, 2.0) if keep else ("CC-BY-4.0", 500.0, 500.0))


def test_prompts_that_changed_after_a_run_are_not_named_as_those_that_made_its_texts(
    lab: Lab,
) -> None:
    prompt = lab.folder / "prompts" / "extractor.md"
    prompt.parent.mkdir()
    prompt.write_text(load_prompts(None).by_name["extractor"].text)
    lab.write(prompts="prompts")
    made_with = lab.refresh().manifest.prompts
    prompt.write_text(f"{prompt.read_text()}\nAlso report verbs.\n")
    evaluate(lab.files.root, targets=["offline:classifier"])
    retry(lab.files.root)
    lab.resume()
    assert lab.manifest.prompts == made_with
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        outcome = next(store.sample_results()).result.outcome
        store.forget(outcome)
    lab.resume()
    assert lab.manifest.prompts["extractor"] != made_with["extractor"]
