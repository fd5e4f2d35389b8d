"""Who is listed and why, what a decision is about, and that a rejected text is never released."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from coreeval.errors import ReviewOpen, RunCorrupt, RunLocked, RunStateError, UsageError
from coreeval.releases.create import make_release
from coreeval.releases.release import read_release
from coreeval.releases.review import load_review
from coreeval.releases.review.decisions import ReviewEntry, Verdict
from coreeval.releases.review.notes import add_note
from coreeval.releases.review.review import Choice, record_choices, resolve_run
from coreeval.releases.verify import verify
from coreeval.runs.manifest import FollowedRelease, read_manifest, write_manifest
from coreeval.schema import NamedEntity
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from tests.releases.kit import NOW, Made
from tests.releases.people import (
    PERSON,
    extract,
    judged,
    person,
    replace,
    rewrite,
    sample_id,
)


@pytest.fixture
def made(people: Made) -> Made:
    return people


def listed(made: Made) -> dict[str, ReviewEntry]:
    return {each.sample: each for each in load_review(made.files.root).samples}


def why(made: Made, number: int) -> dict[str, str]:
    found = listed(made).get(sample_id(number))
    return {each.reason: each.detail for each in found.why} if found else {}


def note(made: Made, *steps: StepRecord) -> None:
    """Add to what the run noted."""
    store = RunStore.open(made.files.store, now=lambda: NOW)
    for step in steps:
        store.history.record(step)
    store.close()


def decide(made: Made, number: int, verdict: Verdict, by: str = "Ada") -> None:
    choice = Choice(sample=sample_id(number), verdict=verdict)
    record_choices(made.files.root, [choice], by=by, now=lambda: NOW)


# -- who is listed ------------------------------------------------------------------------------


def test_those_who_are_named_and_the_sensitive_are_listed_and_no_others(made: Made) -> None:
    found = load_review(made.files.root).samples
    assert [each.sample for each in found] == [sample_id(0), sample_id(1)]
    first = found[0]
    assert (first.original, first.new) == (
        {"text": "old tweet number 0"},
        {"text": "Ada Roe opened it"},
    )
    assert [(each.name, each.new, each.known) for each in first.names] == [
        ("Ada Roe", True, "plan")
    ]
    assert first.facts[0].url == "https://example.org/0"
    assert first.facts[0].told == "new 0 | is | here (before: old | was | there)"
    assert "crime_or_accusation: 'theft'" in why(made, 1)["flag"]


async def test_a_last_name_or_an_account_is_enough_and_a_common_word_is_not(made: Made) -> None:
    await rewrite(made, 2, updated={"text": "Roe thanked @cityhall and @user for the li"})
    note(made, replace(2, person("Ada Roe"), person("Bo Li", role="source")))
    names = {each.name: each.known for each in listed(made)[sample_id(2)].names}
    assert names == {"Ada Roe": "plan", "@cityhall": "mention"}


async def test_whom_the_original_names_is_listed_as_not_new(made: Made) -> None:
    await rewrite(made, 2, updated={"text": "tweet with a new bridge"})
    entity = {**PERSON, "span": "tweet", "query_name": "Tweety Pie"}
    note(made, extract(2, entities=[entity]))
    assert why(made, 2) == {"person": "names tweet (as the original does)"}


async def test_whom_only_gdelt_lists_counts_in_the_spelling_of_a_name(made: Made) -> None:
    store = RunStore.open(made.files.store, now=lambda: NOW)
    [fact] = store.facts(sample_id(2))
    item = store.history.evidence([fact.evidence_id])[fact.evidence_id].model_copy(
        update={
            "id": "e" * 16,
            "entities": tuple(
                NamedEntity(name=name, type="person") for name in ("Tim Cook", "Eve Moor")
            ),
        }
    )
    await store.history.add_evidence([item])
    store.close()
    facts = (fact.model_copy(update={"evidence_id": item.id}),)
    await rewrite(made, 2, updated={"text": "they cook at Moor"}, facts=facts)
    found = listed(made)[sample_id(2)]
    assert [(each.name, each.known) for each in found.names] == [("Eve Moor", "news")]
    assert found.beside == ("Tim Cook",)
    assert "according to GDELT" in found.why[0].detail


def test_the_last_plan_counts_and_whom_it_is_about_without_a_name_is_listed(made: Made) -> None:
    note(
        made,
        replace(2, person("Cy Poe", "negative")),
        replace(2, person("Di Ash"), attempt=2),
    )
    assert why(made, 2) == {"unnamed": "the text is about Di Ash without naming them"}
    note(made, replace(2, person("Cy Poe", "negative"), attempt=3))
    assert set(why(made, 2)) == {"negative", "unnamed"}
    assert next(iter(listed(made))) == sample_id(2), "the gravest come first"


async def test_doubts_about_the_work(made: Made) -> None:
    note(
        made,
        judged(2, "checks", "length: short; harm: text says 'thief' beside 'X'", passed=False),
        judged(2, "original_label", "joy (high confidence)", passed=True, attempt=0),
        judged(2, "label_preserved", "joy (low confidence, by 'yay')", passed=True, attempt=2),
        replace(2, statements=[{"translation": "It rose."}]),
    )
    await rewrite(made, 2, attempts=3)
    assert why(made, 2) == {
        "harm": "attempt 1: harm: text says 'thief' beside 'X'",
        "translated": "the news is in another language",
        "label": "the text is less clear than the original: joy (low confidence, by 'yay')",
        "attempts": "accepted after 3 attempts",
    }


def test_a_judge_as_unsure_of_the_original_says_nothing_of_the_new_text(made: Made) -> None:
    note(
        made,
        judged(2, "original_label", "unclear (low confidence)", passed=True, attempt=0),
        judged(2, "label_preserved", "joy (low confidence)", passed=True),
    )
    assert why(made, 2) == {}


async def test_an_unsafe_sample_is_listed_only_where_it_was_reworded(made: Made) -> None:
    assert why(made, 5) == {}
    await rewrite(
        made, 5, semantic_status="reworded", semantic={"text": "said otherwise"}, reason="self_harm"
    )
    found = listed(made)[sample_id(5)]
    assert (found.arm, found.new) == ("semantic", {"text": "said otherwise"})
    assert why(made, 5) == {"semantic_only": "only reworded: self_harm"}


@pytest.mark.parametrize("waited", [True, False])
async def test_kept_samples_are_asked_about_unless_a_person_was_asked(
    made: Made, waited: bool
) -> None:
    for number in (0, 1):
        decide(made, number, "approved")
    parent = made.release("1", require_review=waited)
    followed = FollowedRelease(version="1", digest=parent.digest, path=str(parent.path))
    manifest = read_manifest(made.files.manifest)
    write_manifest(made.files.manifest, manifest.model_copy(update={"parent": followed}))
    await rewrite(made, 2, kept_from="1")
    assert (sample_id(2) in listed(made)) is not waited
    if not waited:
        assert set(why(made, 2)) == {"kept"}


async def test_a_release_does_not_vouch_for_itself(made: Made) -> None:
    followed = release_as_reviewed_elsewhere(made)
    manifest = read_manifest(made.files.manifest)
    write_manifest(made.files.manifest, manifest.model_copy(update={"parent": followed}))
    await rewrite(made, 2, kept_from="1")
    assert set(why(made, 2)) == {"kept"}
    with pytest.raises(ReviewOpen, match="3 of 3"):
        made.release("2", require_review=True, parent=None)


def release_as_reviewed_elsewhere(made: Made) -> FollowedRelease:
    """Release the run unreviewed, and have the release say the opposite."""
    parent = made.release("1")
    parent.path.chmod(0o755)
    said = json.loads((parent.path / "release.json").read_text())
    said["review"] |= {"required": True, "pending": 0}
    (parent.path / "release.json").unlink()
    (parent.path / "release.json").write_text(json.dumps(said))
    (parent.path / "release.sha256").unlink()
    (parent.path / "release.sha256").write_text(f"{parent.digest}  release.json\n")
    assert verify(parent.path).ok and read_release(parent.path).manifest.review.required
    return FollowedRelease(version="1", digest=parent.digest, path=str(parent.path))


# -- decisions ----------------------------------------------------------------------------------


def test_later_decisions_win_and_earlier_ones_stay_on_record(made: Made) -> None:
    decide(made, 0, "approved")
    decide(made, 0, "rejected", by="  Bo ")
    review = load_review(made.files.root)
    assert review.rejected == {sample_id(0)}
    said = review.samples[0].decision
    assert said and (said.verdict, said.by, said.at) == ("rejected", "Bo", NOW.isoformat())
    log = (made.folder / ".coreeval" / "reviews" / "weekly.jsonl").read_text()
    assert [json.loads(line)["verdict"] for line in log.splitlines()] == ["approved", "rejected"]


async def test_a_decision_is_about_a_text(made: Made) -> None:
    decide(made, 0, "rejected")
    await rewrite(made, 0, updated={"text": "Ada Roe closed it"})
    review = load_review(made.files.root)
    assert (review.rejected, review.samples[0].decision) == (frozenset(), None)
    await rewrite(made, 0, updated={"text": "Ada Roe opened it"})
    assert load_review(made.files.root).rejected == {sample_id(0)}


def test_what_is_said_twice_is_recorded_once(made: Made) -> None:
    choice = Choice(sample=sample_id(0), verdict="approved")
    first = record_choices(made.files.root, [choice, choice], by="Ada")
    again = record_choices(made.files.root, [choice], by="Bo")
    assert (len(first.new), first.unchanged, again.new, again.unchanged) == (1, 1, (), 1)
    remark = Choice(sample=sample_id(0), verdict="approved", note="asked her")
    assert record_choices(made.files.root, [remark], by="Bo").new[0].note == "asked her"


def test_a_decision_holds_for_the_same_text_in_another_run(made: Made) -> None:
    decide(made, 0, "rejected")
    later = Path(shutil.copytree(made.files.root, made.folder / "later"))
    assert load_review(later).rejected == {sample_id(0)}


def test_two_do_not_write_at_once(made: Made) -> None:
    decide(made, 0, "approved")
    lock = FileLock(made.folder / ".coreeval" / "reviews" / "weekly.lock")
    with lock, pytest.raises(RunLocked, match="another process is recording decisions"):
        decide(made, 1, "approved")
    assert len(load_review(made.files.root).open) == 1


@pytest.mark.parametrize(
    ("choices", "by", "told"),
    [
        ([("emotion/test/1", "approved")], " ", "needs a name"),
        ([("emotion/test/01", "approved")], "Ada", "did you mean 'emotion/test/1'"),
        ([("emotion/test/6", "approved")], "Ada", "no new text"),
        ([("emotion/test/1", "approved"), ("emotion/test/1", "rejected")], "Ada", "both"),
        ([("emotion/test/1", "approved"), ("nobody", "rejected")], "Ada", "'nobody'"),
    ],
)
def test_nothing_is_recorded_where_anything_is_wrong(
    made: Made, choices: list[tuple[str, Verdict]], by: str, told: str
) -> None:
    said = [Choice(sample=key, verdict=verdict) for key, verdict in choices]
    with pytest.raises(UsageError) as error:
        record_choices(made.files.root, said, by=by)
    assert told in str(error.value)
    assert len(load_review(made.files.root).open) == 2


def test_a_damaged_log_holds_everything_up(made: Made) -> None:
    decide(made, 0, "rejected")
    log = made.folder / ".coreeval" / "reviews" / "weekly.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:30])
    with pytest.raises(RunCorrupt, match="line 2 is not a valid decision"):
        load_review(made.files.root)
    with pytest.raises(RunCorrupt):
        decide(made, 1, "approved")
    assert log.read_bytes() == whole + whole[:30]


# -- releases -----------------------------------------------------------------------------------


def test_a_release_waits_for_every_listed_sample(made: Made) -> None:
    decide(made, 0, "approved")
    with pytest.raises(ReviewOpen) as error:
        made.release("1", require_review=True)
    assert "1 of 2 listed samples" in error.value.message
    assert "coreeval review" in error.value.hint
    assert (error.value.exit_code, (made.shelf / "1").exists()) == (1, False)
    decide(made, 1, "approved")
    state = made.release("1", require_review=True).manifest.review
    assert (state.required, state.listed, state.approved, state.pending) == (True, 2, 2, 0)


def test_a_rejected_sample_is_in_no_arm_of_the_next_release(made: Made) -> None:
    before = made.release("1")
    decide(made, 0, "rejected")
    decide(made, 2, "rejected")
    after = made.release("2", at=datetime(2026, 11, 21, tzinfo=UTC))
    gone = {sample_id(0), sample_id(2)}
    for arm in ("updated", "semantic"):
        ids = {row.id for row in after.arm(arm)}
        assert ids and not ids & gone
        assert gone & {row.id for row in before.arm(arm)}
    assert not gone & {fact.id for fact in after.facts()}
    rows = {row.id: row for row in after.samples()}
    assert {(rows[key].outcome, rows[key].withheld) for key in gone} == {("accepted", "review")}
    assert "Ada Roe opened it" not in (after.path / "README.md").read_text()


@pytest.mark.parametrize("there", [False, True])
def test_a_rejected_sample_stays_out_after_the_project_was_renamed(
    made: Made, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    decide(made, 0, "rejected")
    run, renamed = made.folder / "data" / "run", made.folder / "renamed"
    renamed.mkdir()
    run.parent.mkdir()
    made.files.root.rename(run)
    (made.folder / ".coreeval").rename(renamed / ".coreeval")
    if there:
        (made.folder / ".coreeval").mkdir()  # such as the workspace of a new project of this name
    monkeypatch.chdir(renamed)
    assert load_review(run).rejected == {sample_id(0)}
    released = make_release(run, version="1", out=made.folder / "out", now=lambda: NOW)
    assert sample_id(0) not in {row.id for row in released.arm("updated")}
    home = made.folder / ".coreeval"
    home.mkdir(exist_ok=True)
    choice = Choice(sample=sample_id(0), verdict="approved")
    with pytest.raises(UsageError, match=r"Ada rejected .* in another workspace") as refused:
        record_choices(run, [choice], by="Bo", now=lambda: NOW + timedelta(days=1))
    assert str(refused.value.where).startswith(str(renamed))
    assert load_review(run).rejected
    (renamed / ".coreeval").rename(renamed / "aside")
    assert record_choices(run, [choice], by="Bo", now=lambda: NOW).new
    (run.parent / ".coreeval").write_text("a file")
    assert not load_review(run).rejected


@pytest.mark.parametrize("year", ["2020", "2999"])
@pytest.mark.parametrize("theirs", ["manifest", "beside"])
def test_approvals_in_a_workspace_of_somebody_else_override_no_rejection(
    made: Made, monkeypatch: pytest.MonkeyPatch, year: str, theirs: str
) -> None:
    """Somebody sends a run in a folder with a workspace in which everything is approved."""
    run, mine = made.folder / "inbox" / "run", made.folder / "mine" / ".coreeval"
    decide(made, 0, "approved", by="sender")
    run.parent.mkdir()
    made.files.root.rename(run)
    (made.folder / ".coreeval").rename(run.parent / ".coreeval")
    (log,) = run.parent.glob(".coreeval/reviews/*.jsonl")
    log.write_text(log.read_text().replace(f'"at": "{NOW:%Y}', f'"at": "{year}'))
    assert f'"at": "{year}' in log.read_text()
    mine.mkdir(parents=True)
    monkeypatch.setenv("COREEVAL_HOME", str(mine))
    monkeypatch.chdir(mine.parent)
    assert {each.decision for each in load_review(run).samples} == {None}
    choice = Choice(sample=sample_id(0), verdict="rejected")
    record_choices(run, [choice], by="Ada", now=lambda: NOW)
    if theirs == "manifest":
        monkeypatch.delenv("COREEVAL_HOME")
        assert read_manifest(run / "manifest.json").workspace == str(run.parent / ".coreeval")
    assert load_review(run).rejected == {sample_id(0)}
    released = make_release(run, version="1", out=made.folder / "out", now=lambda: NOW)
    assert sample_id(0) not in {row.id for row in released.arm("updated")}


def test_a_release_counts_the_accepted_samples_that_are_withheld_once(made: Made) -> None:
    """One is rejected and listed, one only listed; the third was never accepted."""
    decide(made, 1, "rejected")
    decide(made, 4, "rejected")
    listed = made.folder / "list.txt"
    listed.write_text(f"{1:016x}\n")
    manifest = made.release("1", takedown=listed).manifest
    said = (made.shelf / "1" / "README.md").read_text("utf-8")
    withheld = manifest.takedown.withheld
    assert (manifest.counts["accepted"], manifest.review.rejected, withheld) == (3, 2, 2)
    assert manifest.published == 1
    told = (
        "excluded by the takedown list or by a person: 2. The list excluded\n  2 samples, accepted"
    )
    assert told in said


def test_a_release_leads_to_the_run_that_it_was_made_of(made: Made) -> None:
    release = made.release("1")
    with pytest.raises(UsageError, match="is not in its workspace"):
        resolve_run(release.path)
    home = made.folder / ".coreeval" / "runs" / release.manifest.run
    home.parent.mkdir(parents=True)
    made.files.root.rename(home)
    assert resolve_run(release.path) == home
    with pytest.raises(UsageError, match="neither a run nor a release"):
        resolve_run(made.folder)


def test_no_decision_or_note_creates_a_workspace_where_the_project_was(made: Made) -> None:
    workspace = made.folder / ".coreeval"
    workspace.rename(made.folder / "renamed")
    (away := made.folder.parent / f"{made.folder.name}-away").mkdir()
    run = Path(shutil.move(made.files.root, away))
    choice = Choice(sample=sample_id(0), verdict="rejected")
    for say in (
        lambda: record_choices(run, [choice], by="Ada", now=lambda: NOW),
        lambda: add_note(run, sample_id(0), "odd", [], by="Ada", now=lambda: NOW),
    ):
        with pytest.raises(RunStateError, match="workspace of this run") as caught:
            say()
        assert caught.value.where == str(workspace)
        assert "COREEVAL_HOME" in caught.value.hint
    assert not workspace.exists()
