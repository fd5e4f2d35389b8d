"""A run that follows a release asks models only about the samples that it makes anew."""

from collections import Counter

from coreeval.graph.forecast.history import earlier
from coreeval.graph.run import refresh, retry
from coreeval.releases.making import make_release
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


def test_kept_samples_do_not_count_as_free_ones_in_later_estimates(finished: Lab) -> None:
    release = make_release(finished.files.root, version="1", out=finished.folder / "released")
    refresh(finished.config, limit=SAMPLES, parent=release.path)
    known = earlier(finished.workspace, "emotion")
    assert set(known.calls["extractor"]) == {1}
    assert len(known.calls["extractor"]) == SAMPLES - finished.manifest.counts["accepted"]
