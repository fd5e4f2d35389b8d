import asyncio
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from filelock import FileLock

from coreeval.errors import (
    ConfigError,
    DatasetError,
    ReleaseError,
    ReviewOpen,
    RunError,
    RunLocked,
    RunStateError,
)
from coreeval.graph.run import lock_opened_run, open_run
from coreeval.graph.run_origin import list_changes
from coreeval.releases import create
from coreeval.releases.exports.export import export
from coreeval.releases.folders import create_export_folder
from coreeval.releases.release import Release, ReleasedArm, hash_texts, read_release
from coreeval.releases.review import load_review
from coreeval.releases.review.decisions import Decision, Verdict
from coreeval.releases.review.review import open_log
from coreeval.releases.sample_tables import load_originals
from coreeval.releases.verify import verify
from coreeval.runs.manifest import FollowedRelease, read_manifest, write_manifest
from coreeval.runs.quality import Findings, TargetFindings
from coreeval.schema import Evidence, Freshness, Outcome, ReplacedFact, Triple
from coreeval.tools import files
from coreeval.tools.clock import utc_now
from coreeval.tools.cutoffs import TargetDates, TargetFreshness
from coreeval.tools.files import read_parquet
from coreeval.tools.stores.run_events import NewsSearch
from coreeval.tools.stores.run_store import RunStore
from tests.releases.exports.conftest import OPEN
from tests.releases.kit import LABELS, NOW, SNIPPET, Made, make_run, news
from tests.releases.people import rewrite

ID = "emotion/test/{}"
FREE: dict[str, object] = {"licence": {"name": "CC0-1.0", "redistribute": True}}


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_run(tmp_path)


def bytes_of(release: Release) -> dict[str, bytes]:
    files = (path for path in release.path.rglob("*") if path.is_file())
    return {path.relative_to(release.path).as_posix(): path.read_bytes() for path in files}


def told(release: Release) -> str:
    """Return everything that can be read in a release, cells of tables included."""
    tables = [list(read_parquet(path)) for path in release.path.rglob("*.parquet")]
    texts = [path.read_text() for path in release.path.glob("*.*") if path.is_file()]
    return json.dumps(tables) + "\n".join(texts)


# -- what it holds ------------------------------------------------------------------------------


def test_a_release_has_a_row_for_every_sample_and_its_arms(made: Made) -> None:
    release = read_release(made.release().path)
    assert release.path == made.shelf / "2026.47"
    rows = {row.id: row for row in release.samples()}
    assert list(rows) == [ID.format(n) for n in range(1, len(LABELS) + 1)]
    updated = {row.id: row for row in release.arm("updated")}
    assert list(updated) == [ID.format(n) for n in (1, 2, 3)]
    assert updated[ID.format(2)].fields == {"text": "new tweet number 1"}
    for key, row in rows.items():
        digest = hash_texts(updated[key].fields) if key in updated else None
        assert row.updated_sha256 == digest
    second = rows[ID.format(2)]
    assert (second.oldest_evidence, second.newest_evidence) == (
        "2026-11-02T00:00:00+00:00",
        "2026-11-03T00:00:00+00:00",
    )
    assert rows[ID.format(5)].newest_evidence is None
    assert release.manifest.arms == {
        "updated": 3, "semantic": 3, "provenance": 4, "original": 6, "samples": 6
    }  # fmt: skip
    assert [fact.id for fact in release.facts()] == [ID.format(n) for n in (1, 2, 2, 3)]
    assert release.task.name == "emotion"


@pytest.mark.parametrize(
    ("outcome", "reason", "published"),
    [
        ("no_knowledge", "No outrage fits a title for Bo Li.", "no news on offer fits"),
        ("no_knowledge", "no_news, throttled for 'Bo Li'", "no news, throttled"),
        ("no_knowledge", "no_news, Bo Li for us", "no news on offer fits"),
        ("unsafe", "Bo Li: only a cruel text", "the news on offer may not be used"),
        ("unsafe", "self_harm: 'Bo Li'", "self harm"),
        ("unsafe", "facts_person: Bo Li fell", "judge of facts: harm to a real person"),
        ("rejected_label", "label: reads as Bo Li; lock: a", "judge of labels: different label"),
        ("rejected_form", "Bo Li: odd", ""),
        ("label_unrecoverable", "the original was labelled Bo Li (high confidence)", ""),
        ("failed", "openai:m declined: deployment of Bo Li: input was: he fell", ""),
    ],
)
def test_a_reason_is_published_in_words_of_the_code_alone(
    made: Made, outcome: Outcome, reason: str, published: str
) -> None:
    asyncio.run(rewrite(made, 3, outcome=outcome, reason=reason))
    found = {row.id: row.reason for row in made.release().samples()}
    assert found[ID.format(4)] == published
    assert found[ID.format(5)] == "no news"


def test_the_same_run_gives_the_same_bytes_but_for_the_moment(made: Made) -> None:
    one = bytes_of(made.release(out=made.folder / "a", parent=None))
    at = NOW + timedelta(days=1)
    two = bytes_of(made.release(out=made.folder / "b", parent=None, at=at))
    assert {name for name in one if one[name] != two[name]} == {"release.json", "release.sha256"}
    before, after = (json.loads(each["release.json"]) for each in (one, two))
    assert before.pop("created_at") < after.pop("created_at")
    assert before == after


def test_sha256sum_can_read_the_digest(made: Made) -> None:
    release = made.release()
    digest = hashlib.sha256((release.path / "release.json").read_bytes()).hexdigest()
    assert (release.path / "release.sha256").read_text() == f"{digest}  release.json\n"
    assert release.digest == digest


def test_files_are_read_only(made: Made) -> None:
    release = made.release()
    modes = {path.stat().st_mode & 0o777 for path in release.path.rglob("*") if path.is_file()}
    assert modes == {0o444}


def test_places_of_the_machine_and_keys_are_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-write-this-down")
    elsewhere = Path.home() / "prices.yaml"
    made = make_run(tmp_path, run={"prices": str(elsewhere)})
    of_a_file = Findings(targets=(TargetFindings(target=f"replay:{made.folder}/answers.jsonl"),))
    monkeypatch.setattr("coreeval.releases.create.read_published_findings", lambda *_: of_a_file)
    release = made.release()
    assert release.manifest.findings
    assert release.manifest.findings.targets[0].target == "replay:answers.jsonl"
    said = told(release)
    assert str(tmp_path) not in said
    assert str(Path.home()) not in said
    assert "sk-never" not in said
    config = yaml.safe_load((made.shelf / "2026.47" / "config.yaml").read_text())
    assert (config["dataset"]["path"], config["run"]["prices"]) == ("bench", "~/prices.yaml")


def test_the_card_can_be_read_by_a_program_and_says_what_it_rests_on(made: Made) -> None:
    card = (made.release().path / "README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["configs"][0] == {
        "config_name": "updated",
        "default": True,
        "data_files": [{"split": "test", "path": "updated/test-*.parquet"}],
    }
    assert head["license"] == "other"
    for said in (
        "2026-11-01 to 2026-11-20",
        "`0123456789ab`",
        "played by rules",
        "a person approved",
    ):
        assert said in card


# -- what may be passed on ----------------------------------------------------------------------


def test_originals_that_may_not_be_passed_on_are_loaded_and_checked(made: Made) -> None:
    release = made.release()
    assert "old tweet" not in told(release)
    assert list(release.arm("original")) == []
    samples = load_originals(release.path, made.benchmark)
    assert [sample.fields["text"] for sample in samples][:1] == ["old tweet number 0"]
    assert len(samples) == len(LABELS)


def test_another_benchmark_is_not_taken_for_the_originals(made: Made) -> None:
    release = made.release()
    texts = made.benchmark / "test_text.txt"
    texts.write_text(texts.read_text().replace("number 3", "number 33"))
    with pytest.raises(ReleaseError, match="emotion/test/4 has changed"):
        load_originals(release.path, made.benchmark)
    with pytest.raises(DatasetError):
        load_originals(release.path, made.folder / "nowhere")


def test_originals_are_there_where_their_owner_allows_it(tmp_path: Path) -> None:
    release = make_run(tmp_path, dataset=FREE).release()
    assert release.manifest.licence.source == "config: dataset.licence"
    originals = [row.fields["text"] for row in release.arm("original")]
    assert originals[0] == "old tweet number 0"
    assert [sample.fields["text"] for sample in load_originals(release.path)] == originals


@pytest.mark.parametrize(("dataset", "filled"), [({}, []), (FREE, ["old tweet number 3"])])
def test_no_original_stands_in_for_a_rejected_sample_unless_it_may(
    tmp_path: Path, dataset: dict[str, object], filled: list[str]
) -> None:
    release = make_run(tmp_path, dataset=dataset, run={"on_reject": "original"}).release()
    rows = [row for row in release.arm("updated") if row.outcome != "accepted"]
    assert [row.fields["text"] for row in rows] == filled


def test_a_licence_that_is_stated_after_the_run_is_taken_over(made: Made) -> None:
    assert not made.release("1").manifest.licence.redistribute
    source = made.folder / "weekly.yaml"
    config = yaml.safe_load(source.read_text())
    config["dataset"] |= FREE
    source.write_text(yaml.safe_dump(config))
    _, manifest, setup = open_run(made.files.root, None)
    assert not any(change.startswith("dataset.") for change in list_changes(manifest, setup))
    with lock_opened_run(made.files, manifest, setup):  # as `coreeval resume` does
        pass
    assert made.release("2").manifest.licence.redistribute


@pytest.mark.parametrize("now", [{"name": "CC0-1.0", "redistribute": False}, None])
def test_a_licence_that_is_withdrawn_after_the_run_is_obeyed_at_once(
    tmp_path: Path, now: dict[str, object] | None
) -> None:
    made = make_run(tmp_path, dataset=FREE, run={"on_reject": "original"})
    source = made.folder / "weekly.yaml"
    config = yaml.safe_load(source.read_text())
    config["dataset"]["licence"] = now
    moved = config | {"dataset": config["dataset"] | {"path": "elsewhere"}}
    source.write_text(yaml.safe_dump(moved))
    assert not made.release("0").manifest.licence.redistribute
    source.write_text(yaml.safe_dump(config))
    release = made.release("1")
    assert not release.manifest.licence.redistribute
    assert not any(row.fields for row in release.arm("original"))
    assert all(row.outcome == "accepted" for row in release.arm("updated"))
    stated = yaml.safe_load((release.path / "config.yaml").read_text())["dataset"]["licence"]
    assert not (stated and stated["redistribute"])
    source.write_text(yaml.safe_dump(config | {"name": "another", "models": "not ready"}))
    assert made.release("2").manifest.licence.redistribute, "the file is of another benchmark"
    source.write_text(yaml.safe_dump(config | {"models": "not ready"}))
    with pytest.raises(ConfigError):
        made.release("3")
    source.unlink()
    assert made.release("4").manifest.licence.redistribute


def test_without_snippets_the_news_is_known_by_its_digest(made: Made) -> None:
    release = made.release(snippets=False)
    assert SNIPPET not in told(release)
    first = next(release.facts())
    assert first.snippet_sha256 == hashlib.sha256(SNIPPET.encode()).hexdigest()
    assert first.url == "https://example.org/0"
    assert SNIPPET in told(made.release("2026.48"))


@pytest.mark.parametrize(
    ("entry", "gone"),
    [("ada roe", {1, 2}), (f"{1:016x}", {2, 3}), ("Nobody Known", set[int]())],
)
def test_the_takedown_list_takes_samples_out(made: Made, entry: str, gone: set[int]) -> None:
    listed = made.folder / "takedown.txt"
    listed.write_text(f"{entry}\n")
    release = made.release(takedown=listed)
    rows = {row.id: row for row in release.samples()}
    assert {key for key, row in rows.items() if row.withheld == "takedown"} == {
        ID.format(n) for n in gone
    }
    left = {ID.format(n) for n in (1, 2, 3) if n not in gone}
    assert {row.id for row in release.arm("updated")} == left
    assert {fact.id for fact in release.facts()} == left
    assert release.manifest.takedown.withheld == len(gone)
    assert release.manifest.quality.acceptance.estimate == len(left) / len(LABELS)
    assert all(rows[ID.format(n)].outcome == "accepted" for n in gone)


OLD = Triple(head="old", relation="was", tail="there")
NAMED, MET = {"text": "Bo Li is not in the original"}, OLD.model_copy(update={"tail": "Bo Li"})


def of_fact(before: Triple, after: Triple) -> dict[str, object]:
    """Return a change of the third sample to one with this fact."""
    fact = ReplacedFact(sample_id=ID.format(3), field="text", before=before, after=after,
                        evidence_id=f"{1:016x}", quote="Monday")  # fmt: skip
    return {"facts": (fact,)}


NAMING = pytest.mark.parametrize(
    ("number", "changes"),
    [
        (3, {"semantic": NAMED}),
        (5, {"semantic": NAMED}),
        (4, {"semantic": NAMED, "semantic_status": "reworded"}),
        (3, {"updated": NAMED}),
        (3, of_fact(MET, OLD)),
        (3, of_fact(OLD, MET)),
    ],
)


@NAMING
@pytest.mark.parametrize("snippets", [True, False])
def test_a_listed_person_is_in_no_new_text_or_fact(
    tmp_path: Path, number: int, changes: dict[str, object], snippets: bool
) -> None:
    made = make_run(tmp_path, run={"on_reject": "semantic"})
    asyncio.run(rewrite(made, number - 1, **changes))
    before = made.release("1", snippets=snippets)
    assert "Bo Li" in told(before)
    listed = made.folder / "takedown.txt"
    listed.write_text("BO LI\n")
    release = made.release("2", snippets=snippets, takedown=listed)
    assert "Bo Li" not in told(release)
    rows = {row.id: row for row in release.samples()}
    assert [key for key, row in rows.items() if row.withheld] == [ID.format(number)]
    assert release.manifest.takedown.withheld == 1
    assert rows[ID.format(number)].semantic_sha256 is None
    assert verify(release.path).ok


@NAMING
def test_an_earlier_release_with_a_listed_person_is_not_published(
    tmp_path: Path, number: int, changes: dict[str, object]
) -> None:
    made = make_run(tmp_path, dataset=OPEN, run={"on_reject": "semantic"})
    asyncio.run(rewrite(made, number - 1, **changes))
    first = made.release("1", snippets=False)
    (made.folder / ".coreeval" / "takedown.txt").write_text("BO LI\ntweet number\n")
    with pytest.raises(ReleaseError, match=f"in 1 sample: {ID.format(number)}\n") as told:
        export(first.path, to="csv", out=tmp_path / "out")
    assert "--version" in told.value.hint and not (tmp_path / "out").exists()
    export(made.release("2", snippets=False).path, to="csv", out=tmp_path / "out")


def test_a_release_without_originals_is_published_without_listed_facts_only(made: Made) -> None:
    asyncio.run(rewrite(made, 2, **of_fact(OLD, MET)))
    first, listed = made.release("1"), made.folder / ".coreeval" / "takedown.txt"
    for entry, number in (("BO LI", 1), ("Ada Roe", 2), (f"{1:016x}", 2)):
        listed.write_text(f"{entry}\n")
        with pytest.raises(ReleaseError, match=f"in {number} sample"):
            export(first.path, to="csv", out=made.folder / "out")
    listed.write_text("was\ntweet number\n")
    export(first.path, to="csv", out=made.folder / "out")


def test_what_the_original_itself_names_is_not_withheld(made: Made) -> None:
    listed = made.folder / "takedown.txt"
    listed.write_text("tweet number\n")
    asyncio.run(rewrite(made, 2, semantic={"text": "tweet number 2, reworded"}))
    assert made.release(takedown=listed).manifest.takedown.withheld == 0


def test_a_quotation_of_an_article_that_has_a_listed_name_is_withheld(tmp_path: Path) -> None:
    def article(number: int) -> Evidence:
        return news(number).model_copy(update={"depth": "article"})

    made = make_run(tmp_path, evidence=article)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        passages = {f"{1:016x}": "Bo Li was there on Monday."}
        shown = NewsSearch(asked=(), events=(), passages=passages)
        asyncio.run(store.events.add(ID.format(3), shown))
    assert "Bo Li" in told(made.release("1"))
    listed = made.folder / "takedown.txt"
    listed.write_text("Bo Li\n")
    assert "Bo Li" not in told(made.release("2", takedown=listed))


@pytest.mark.parametrize("more", ["", "task: another\nunknown: 1\n"])
def test_a_list_that_the_config_names_since_the_run_takes_samples_out(
    made: Made, more: str
) -> None:
    (made.folder / "listed.txt").write_text("Ada Roe\n")
    config = made.folder / "weekly.yaml"
    config.write_text(f"knowledge: {{takedown: listed.txt}}\n{more}")
    assert made.release("1").manifest.takedown.withheld == 2
    config.write_text("- [")
    with pytest.raises(ConfigError, match="not YAML"):
        made.release("2")
    config.unlink()
    assert made.release("2", parent=None).manifest.takedown.withheld == 0


def test_a_list_that_the_parent_respected_is_not_forgotten(made: Made) -> None:
    listed = made.folder / "takedown.txt"
    listed.write_text("Ada Roe\n")
    made.release("1", takedown=listed)
    with pytest.raises(ReleaseError, match="takedown list of 1 entries"):
        made.release("2")
    assert made.release("2", takedown=listed).manifest.takedown.entries == 1


def test_what_a_person_rejected_is_in_neither_new_arm(made: Made) -> None:
    decide(made, {"Ada Roe opened it": "rejected", "new tweet number 1": "approved"})
    release = made.release()
    rows = {row.id: row for row in release.samples()}
    first = rows[ID.format(1)]
    assert (first.outcome, first.withheld) == ("accepted", "review")
    assert (first.updated_sha256, first.semantic_sha256) == (None, None)
    arms: tuple[ReleasedArm, ...] = ("updated", "semantic")
    for arm in arms:
        assert ID.format(1) not in {row.id for row in release.arm(arm)}
    assert ID.format(1) not in {fact.id for fact in release.facts()}
    assert ID.format(2) in {row.id for row in release.arm("updated")}
    assert release.manifest.review.rejected == 1


def test_after_cutoff_counts_only_the_samples_of_the_release(made: Made) -> None:
    target = "openai:one"
    for number, after in ((0, True), (1, False), (2, True)):
        fresh = Freshness(earliest=NOW, precision="exact", after_cutoff={target: after})
        asyncio.run(rewrite(made, number, freshness=fresh))
    run = read_manifest(made.files.manifest)
    counts = (TargetFreshness(target=target, after=2, before=1),)
    dated = {"cutoffs": (TargetDates(target=target),), "after_cutoff": counts}
    write_manifest(made.files.manifest, run.model_copy(update=dated))
    assert made.release("1").manifest.after_cutoff == counts
    decide(made, {"Ada Roe opened it": "rejected"})
    release = made.release("2")
    assert release.manifest.after_cutoff == (TargetFreshness(target=target, after=1, before=1),)
    assert f"| {target} | 1 of 2 |" in (release.path / "README.md").read_text()


def test_a_release_that_requires_review_waits_for_it(made: Made) -> None:
    listed = {each.sample: each.new["text"] for each in load_review(made.files.root).open}
    assert listed
    with pytest.raises(ReviewOpen):
        made.release(require_review=True)
    assert not (made.shelf / "2026.47").exists()
    decide(made, dict.fromkeys(listed.values(), "approved"))
    review = made.release(require_review=True).manifest.review
    assert (review.required, review.listed, review.approved) == (True, len(listed), len(listed))


def decide(made: Made, verdicts: dict[str, Verdict]) -> None:
    """Record decisions about new texts."""
    by_text = {each.new["text"]: each for each in load_review(made.files.root).samples}
    log = open_log(read_manifest(made.files.manifest))
    log.append(
        [
            Decision(
                sample=by_text[text].sample,
                digest=by_text[text].digest,
                verdict=verdict,
                by="Jo",
                at=NOW.isoformat(),
            )
            for text, verdict in verdicts.items()
            if text in by_text
        ]
    )


# -- its place among others ---------------------------------------------------------------------


def test_a_release_follows_the_one_that_none_follows_whatever_the_clock_said(made: Made) -> None:
    first = made.release("1")
    second = made.release("2", at=NOW + timedelta(days=1))
    third = made.release("3", parent=first.path, at=NOW + timedelta(hours=1))
    assert third.manifest.parent is not None
    assert (third.manifest.parent.digest, third.manifest.parent.path) == (first.digest, "../1")
    fourth = made.release("4", parent=second.path, at=NOW + timedelta(days=2))
    fifth = made.release("5", at=NOW + timedelta(days=3))
    assert fifth.manifest.parent is not None
    assert fifth.manifest.parent.digest == fourth.digest
    assert verify(fifth.path).chain == ("4", "2", "1")


def test_what_is_new_since_the_parent_is_counted(made: Made) -> None:
    first = made.release("1")
    assert first.manifest.changelog.samples.model_dump() == {
        "added": 3, "removed": 0, "changed": 0, "kept": 0
    }  # fmt: skip
    listed = made.folder / "takedown.txt"
    listed.write_text("Ada Roe\n")
    second = made.release("2", takedown=listed).manifest.changelog
    assert (second.samples.kept, second.samples.removed) == (1, 2)
    assert (second.facts.kept, second.facts.removed, second.facts.added) == (1, 3, 0)
    assert "| samples | 0 | 2 |" in (made.shelf / "2" / "CHANGELOG.md").read_text()


def test_a_release_may_stand_elsewhere_and_still_know_its_parent(made: Made) -> None:
    made.release("1")
    second = made.release("2", out=made.folder / "public" / "two")
    assert verify(second.path).chain == ("1",)


def test_a_run_finds_the_release_that_it_follows_in_a_project_that_was_moved(made: Made) -> None:
    first = made.release("1")
    manifest = read_manifest(made.files.manifest)
    moved = FollowedRelease(version="1", digest=first.digest, path=str(made.folder / "gone"))
    write_manifest(made.files.manifest, manifest.model_copy(update={"parent": moved}))
    found = made.release("2").manifest.parent
    assert found and found.version == "1"
    lost = moved.model_copy(update={"digest": "f00d"})
    write_manifest(made.files.manifest, manifest.model_copy(update={"parent": lost}))
    with pytest.raises(ReleaseError, match=r"release 1, .* is not in its place") as caught:
        made.release("3")
    assert "--parent DIR" in caught.value.hint


def test_a_run_that_was_made_from_a_release_follows_it(made: Made) -> None:
    first = made.release("1")
    made.release("2")
    manifest = read_manifest(made.files.manifest)
    followed = FollowedRelease(version="1", digest=first.digest, path=str(first.path))
    write_manifest(made.files.manifest, manifest.model_copy(update={"parent": followed}))
    third = made.release("3").manifest
    assert third.parent is not None
    assert third.parent.version == "1"
    listed = made.folder / "takedown.txt"
    listed.write_text("Ada Roe\n")
    made.release("listed", takedown=listed, parent=made.shelf / "2")
    with pytest.raises(ReleaseError, match="release listed applied a takedown list of 1 entries"):
        made.release("4")
    other = followed.model_copy(update={"digest": "f00d"})
    write_manifest(made.files.manifest, manifest.model_copy(update={"parent": other}))
    with pytest.raises(ReleaseError, match="not release 1, from which the run was made"):
        made.release("4")


# -- what is refused ----------------------------------------------------------------------------

Wrong = Callable[[Made], Any]


def _edited(made: Made) -> None:
    file = made.release("1").path / "README.md"
    file.chmod(0o644)
    file.write_text("mine")
    made.release("2")


REFUSED: list[tuple[Wrong, str, str]] = [
    (lambda made: made.release(""), "is not a valid version", "2026.47"),
    (lambda made: made.release("../1"), "is not a valid version", "2026.47"),
    (lambda made: (made.release(), made.release()), "already", "another --version"),
    (lambda made: made.release(parent=made.folder), "no release", "coreeval release"),
    (lambda made: (made.release("1"), made.release("2", at=NOW - timedelta(hours=1))),
     "before the parent release 1 was made", "clock"),
    (_edited, "parent release 1 has changed since it was made: README.md",
     "restore the published release"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message", "hint"), REFUSED)
def test_what_cannot_be_released_is_refused_with_what_to_do(
    made: Made, wrong: Wrong, message: str, hint: str
) -> None:
    with pytest.raises(ReleaseError, match=message) as caught:
        wrong(made)
    assert hint in caught.value.hint


def test_an_unfinished_run_is_refused_and_names_resume(tmp_path: Path) -> None:
    made = make_run(tmp_path, status="interrupted")
    with pytest.raises(ReleaseError, match=r"unfinished \(interrupted\)") as caught:
        made.release()
    assert "coreeval resume" in caught.value.hint


def test_a_run_with_open_samples_is_unfinished_whatever_its_manifest_says(made: Made) -> None:
    with RunStore.open(made.files.store, now=utc_now) as store:
        assert store.forget("accepted") == 3
    with pytest.raises(
        ReleaseError, match=r"\(interrupted\): 3 of 6 samples are pending"
    ) as caught:
        made.release()
    assert "coreeval resume" in caught.value.hint
    with pytest.raises(RunStateError, match=r"\(interrupted\): 3 of 6 samples are pending"):
        export(made.files.root, to="csv", out=made.folder / "out")


def test_a_run_that_is_changed_just_before_its_release_is_refused(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold_lock(lock: Path, busy: RunLocked) -> AbstractContextManager[None]:
        before = read_manifest(made.files.manifest)
        write_manifest(
            made.files.manifest, before.model_copy(update={"status": "interrupted"})
        )  # as a takedown does
        return files.hold_lock(lock, busy)

    monkeypatch.setattr(create, "hold_lock", hold_lock)
    with pytest.raises(ReleaseError, match=r"unfinished \(interrupted\)"):
        made.release()
    assert not (made.shelf / "2026.47").exists()


def test_a_parent_of_another_benchmark_is_refused(made: Made, tmp_path: Path) -> None:
    other = made.release("1")
    config = made.files.manifest.read_text()
    made.files.manifest.write_text(config.replace('"name": "weekly"', '"name": "daily"'))
    with pytest.raises(ReleaseError, match="of 'weekly', but this is one of 'daily'"):
        made.release("2", parent=other.path)
    assert made.release("2").manifest.parent is None


def test_a_task_that_has_changed_since_the_run_is_refused(made: Made) -> None:
    manifest = json.loads(made.files.manifest.read_text())
    manifest["fingerprints"]["task"] = "another"
    made.files.manifest.write_text(json.dumps(manifest))
    with pytest.raises(RunStateError, match="task has changed"):
        made.release()


def test_a_run_that_is_worked_on_is_not_released(made: Made) -> None:
    with FileLock(made.files.lock), pytest.raises(RunLocked):
        made.release()


# -- disk full, killed --------------------------------------------------------------------------


def test_a_full_disk_leaves_nothing_and_the_next_try_works(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "release.json")

    with monkeypatch.context() as patch:
        patch.setattr(create, "write_json", full)
        with pytest.raises(RunError, match="No space left") as caught:
            made.release()
    assert "same command again" in caught.value.hint
    assert [path.name for path in made.shelf.iterdir()] == [".release.lock"]
    assert verify(made.release().path).ok


def test_a_release_leaves_an_export_in_progress_alone(made: Made) -> None:
    with create_export_folder(made.shelf / "export") as draft:
        (draft / "samples.csv").write_text("id\n")
        made.release()
    assert (made.shelf / "export" / "samples.csv").read_text() == "id\n"
    assert {path.name for path in made.shelf.iterdir()} == {".release.lock", "2026.47", "export"}


def test_a_kill_leaves_no_release_and_the_next_try_clears_up(made: Made) -> None:
    program = f"""
        import os, signal
        from pathlib import Path
        from coreeval.releases import create
        create.write_json = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        create.make_release(Path({str(made.files.root)!r}), version="2026.47")
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL
    left = {path.name for path in made.shelf.iterdir()}
    assert len(left) == 3 and ".release.lock" in left  # the draft, and its lock
    own = made.shelf / ".novel.draft"
    own.mkdir()
    (own / "chapter").write_text("the only copy")
    (made.shelf / ".coreeval-draft-link").symlink_to(own)
    assert verify(made.release().path).ok
    assert (own / "chapter").read_text() == "the only copy"
    assert {path.name for path in made.shelf.iterdir()} == {
        ".release.lock",
        "2026.47",
        ".novel.draft",
        ".coreeval-draft-link",
    }
