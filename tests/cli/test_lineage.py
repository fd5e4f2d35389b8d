"""A refresh that follows a release, and what differs between two, as their user sees it."""

import shutil
from pathlib import Path

import pytest

from coreeval.agents.roles import Team
from coreeval.agents.team import TeamInputs
from coreeval.errors import ReleaseError, RunError
from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress
from coreeval.graph.run import refresh, resume
from coreeval.releases.create import make_release
from coreeval.releases.release import Release, read_release
from coreeval.schema import Task
from coreeval.tools.files import read_parquet
from tests.cli.kit import Shell, config_text
from tests.cli.test_docs import documented

FIVE = ("--limit", "5")
NEW_TARGET: dict[str, object] = {
    "knowledge.window": {"start": "2026-01-01", "end": "2026-10-01"},
    "models.targets": [{"model": "openai:new", "cutoff": "2025-10-01"}],
    "detect": {"evaluate": False},
}
"""The first of the two accepted samples rests on news of September 2025, the other of October."""


@pytest.fixture(scope="module")
def release(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Return a release of the finished run, which has two accepted samples of five."""
    made = make_release(finished, version="1", out=tmp_path_factory.mktemp("shelf") / "1")
    assert made.manifest.counts["accepted"] == 2
    return made


def damaged(release: Release, folder: Path) -> Path:
    """Return a copy of a release in which a file was edited."""
    copy = Path(shutil.copytree(release.path, folder))
    (copy / "README.md").chmod(0o644)
    (copy / "README.md").write_text("edited by hand")
    return copy


def test_a_release_of_other_samples_than_its_parent_says_so(
    shell: Shell, finished: Path, release: Release
) -> None:
    follows = ("--parent", release.path)
    again = shell("release", finished, "--version", "2", "--out", "2", *follows)
    assert "based on 1" in again.out and "other samples" not in again.out
    ids = shell.write("ids.txt", "emotion/test/2\nemotion/test/6\n")
    run = shell("refresh", shell.config(), "--ids", ids, "--json").document["run"]
    said = shell("release", run, "--version", "3", *follows, "--allow-empty-arm")
    assert "4 of the 5 samples of the release before are missing, 1 are new" in said.out
    assert "--parent none" in said.out
    alone = shell("release", run, "--version", "4", "--parent", "none", "--allow-empty-arm")
    assert "other samples" not in alone.out


# -- refresh ------------------------------------------------------------------------------------


def test_accepted_samples_are_kept_and_the_arms_have_the_same_texts(
    shell: Shell, release: Release
) -> None:
    there = shell.folder / ".coreeval" / "releases" / "trial" / "1"
    shutil.copytree(release.path, there)
    said = shell("refresh", shell.config(), *FIVE, "--from", "latest", "--json")
    assert "kept from 1: 2 of 5 samples; to be renewed: 3 that were not accepted" in said.err
    document = said.document
    assert (document["kept"], document["counts"]["accepted"]) == (2, 2)
    assert document["parent"] == {
        "version": "1",
        "digest": release.digest,
        "path": str(there),
        "stale_after": None,
    }
    again = make_release(Path(document["run"]), version="2")
    for arm in ("updated", "semantic", "provenance"):
        assert [*read_parquet(again.file(arm))] == [*read_parquet(release.file(arm))]
    assert [row.kept_from for row in again.samples()] == ["1", "1", None, None, None]
    assert again.manifest.parent
    assert again.manifest.parent.digest == release.digest
    story = shell("trace", document["run"], "emotion/test/1").out
    assert "kept from release 1; its steps are in the run of that release" in story
    assert "source: 2025-09-10 marketscreener.com: " in story


def test_validate_and_estimate_say_what_would_be_kept(shell: Shell, release: Release) -> None:
    follow = ("--from", release.path)
    config = shell.config(NEW_TARGET)
    said = shell("validate", config, *follow, "--json")
    [check] = [one for one in said.document["checks"] if one["name"] == "release"]
    assert check["found"] == [
        "kept from 1: 1 of 24 samples; to be renewed: 19 that the release does not contain, "
        "3 that were not accepted, 1 with evidence from before a new target's cutoff"
    ]
    estimated = shell("estimate", config, *FIVE, *follow, "--json").document
    assert (estimated["samples"], estimated["to_pay"]) == (5, 4)
    words = shell("estimate", config, *FIVE, *follow).out
    assert "1 sample is kept from a release" in words
    assert words.rstrip().endswith(f"--from {release.path}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--stale-after", "90d"],
            "selects samples of a release to renew",
        ),
        (["--from", "{release}", "--stale-after", "90"], "'90' is not an age such as 90d"),
        (["--from", "{release}", "--stale-after", "0d"], "is not an age"),
        (["--from", "nowhere"], "this is not a release"),
        (["--from", "latest"], "'trial' has no release yet"),
        (["--from", "{damaged}"], "the parent release 1 has changed since it was made: README.md"),
        (["--from", "{release}", "--set", "name=other"], "is a release of 'trial'"),
        (["--from", "{release}", "--set", "dataset.split=val"], "the release has the split 'test'"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_written(
    shell: Shell, release: Release, arguments: list[str], told: str
) -> None:
    places = {"release": release.path, "damaged": damaged(release, shell.folder / "copy")}
    said = shell("refresh", shell.config(), *(each.format(**places) for each in arguments))
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert not (shell.folder / ".coreeval" / "runs").exists()


# -- resume -------------------------------------------------------------------------------------


def test_a_run_needs_the_release_until_it_has_its_samples_and_no_longer(
    shell: Shell, release: Release
) -> None:
    copy, aside = shell.folder / "copy", shell.folder / "aside"
    shutil.copytree(release.path, copy)

    def take_away(progress: Progress) -> None:
        if progress.stage == "plan" and copy.exists():  # it may be told again
            copy.rename(aside)

    def strike(task: Task, materials: TeamInputs) -> Team:
        raise RunError("no team today")

    config, gone = shell.config(), RunHooks(watch=take_away)
    with pytest.raises(ReleaseError, match=r"is not in its place[\s\S]*coreeval resume"):
        refresh(config, limit=5, run_dir="r", parent=copy, around=gone)
    aside.rename(copy)
    with pytest.raises(RunError, match="no team today"):
        resume("r", around=RunHooks(hire=strike))
    shutil.rmtree(copy)
    done = resume("r").manifest
    assert (done.status, done.kept, done.counts["accepted"]) == ("complete", 2, 2)


# -- diff ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(release: Release, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a release, and one that follows it and has lost a sample to a new target."""
    folder = tmp_path_factory.mktemp("two")
    config = folder / "trial.yaml"
    config.write_text(config_text(NEW_TARGET), "utf-8")
    done = refresh(config, limit=5, parent=release.path, stale_after="9999d")
    assert done.manifest.kept == 1
    [target] = done.manifest.after_cutoff
    assert (target.after, target.before) == (1, 0), "what is kept is held anew beside the targets"
    return release.path, make_release(done.run_dir, version="2").path


def test_a_diff_in_words_as_a_document_and_as_a_page(shell: Shell, two: tuple[Path, Path]) -> None:
    before, after = two
    said = shell("diff", before, after, "--page", "p.html", "--stale-after", "1d")
    assert said.code == 0
    assert said.out.startswith("trial 1 -> trial 2\n")
    assert "accepted -> no_knowledge: 1" in said.out
    assert "[-@user" in said.out
    assert "cutoff.openai:new: none -> 2025-10-01" in said.out
    assert "stale in trial 2, too old: 1" in said.out
    assert "<del>@user" in (shell.folder / "p.html").read_text("utf-8")
    document = shell("diff", before, after, "--json").document
    assert set(document) == documented("coreeval diff")
    assert document["samples"] == {"added": 0, "removed": 1, "changed": 0, "kept": 1}
    assert read_release(after).manifest.changelog.samples.model_dump() == document["samples"]


def test_a_diff_of_one_sample_and_of_the_same_thing(shell: Shell, two: tuple[Path, Path]) -> None:
    before, after = two
    one = shell("diff", before, after, "--sample", "emotion/test/1", "--json").document
    assert [each["id"] for each in one["changed"]] == ["emotion/test/1"]
    missing = shell("diff", before, after, "--sample", "emotion/test/2")
    assert (missing.code, missing.out) == (2, "")
    assert "'emotion/test/2' does not differ" in missing.err
    same = shell("diff", before, before, "--json").document
    assert (same["changed"], same["settings"], same["samples"]["kept"]) == ([], [], 2)
    assert shell("diff", before, shell.folder).code == 2


def test_a_diff_refuses_a_release_that_was_altered(shell: Shell, two: tuple[Path, Path]) -> None:
    before, after = two[0], shell.folder / "altered"
    shutil.copytree(two[1], after)
    card = after / "README.md"
    card.write_text(card.read_text("utf-8") + "altered", "utf-8")
    for sides in ((before, after), (after, before)):
        said = shell("diff", *sides, "--json")
        assert (said.code, said.error["kind"]) == (2, "release")
        assert "the release has changed since it was made: README.md" in said.error["message"]
