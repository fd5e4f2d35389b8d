from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import ReleaseError
from coreeval.releases.comparable import (
    Comparable,
    ComparableTitle,
    open_comparable,
    release_comparable,
)
from coreeval.releases.diff import (
    MOST_NAMED,
    MOST_SHOWN,
    Diff,
    SampleDiff,
    compare_digests,
    compare_in_full,
    render_diff_page,
    summarize_diff,
)
from coreeval.releases.release import ReleasedArm, hash_texts
from coreeval.releases.release_manifest import ArmRow, ChangeCounts, FactRow, SampleRow
from coreeval.tools.cutoffs import DateClaim, TargetDates
from coreeval.tools.text import DiffPiece, word_diff
from tests.releases.kit import Made, make_run

TEXT = "the <b>river</b> rose"


def sample(key: str, updated: str | None = TEXT, **more: object) -> SampleRow:
    usual = {
        "split": "test",
        "outcome": "accepted" if updated else "no_knowledge",
        "attempts": 1,
        "semantic_status": "unchanged",
        "label": 1,
        "label_text": "joy",
        "original_sha256": "0" * 64,
        "updated_sha256": hash_texts({"text": updated}) if updated else None,
        "oldest_evidence": "2026-11-02T00:00:00+00:00" if updated else None,
    }
    return SampleRow.model_validate({"id": key, **usual, **more})


def fact(key: str, tail: str = "rose", evidence: str = "e1") -> FactRow:
    empty = dict.fromkeys(("before_head", "before_relation", "before_tail"), "")
    return FactRow.model_validate(
        {
            **empty,
            "id": key,
            "field": "text",
            "after_head": "river",
            "after_relation": "did",
            "after_tail": tail,
            "evidence_id": evidence,
            "url": "https://example.org",
            "domain": "example.org",
            "published_at": "2026-11-02T00:00:00+00:00",
            "published_precision": "exact",
            "snippet": "",
            "snippet_sha256": "0" * 64,
        }
    )


def texts(of: dict[str, str], arm: ReleasedArm, shown: ReleasedArm) -> Iterable[ArmRow]:
    for key, text in of.items() if arm == shown else ():
        yield ArmRow(
            id=key, fields={"text": text}, label=1, label_text="joy", outcome="accepted",
            attempts=1, semantic_status="unchanged",
        )  # fmt: skip


def side(
    version: str,
    samples: list[SampleRow],
    *,
    facts: Iterable[FactRow] = (),
    updated: dict[str, str] | None = None,
    settings: dict[str, object] | None = None,
) -> Comparable:
    listed = list(facts)
    return Comparable(
        title=ComparableTitle(kind="release", name="weekly", version=version, path=version),
        settings=settings or {},
        cutoffs=(),
        samples=lambda: iter(samples),
        facts=lambda: iter(listed),
        arm=lambda name: iter(texts(updated or {}, name, "updated")),
    )


def by_id(diff: Diff) -> dict[str, SampleDiff]:
    return {one.id: one for one in diff.changed}


# -- the levels ---------------------------------------------------------------------------------


def test_samples_are_added_removed_changed_or_kept() -> None:
    old = side("1", [sample("kept"), sample("other"), sample("gone"), sample("never", None)])
    new = side("2", [sample("new"), sample("kept"), sample("other", "dry"), sample("never", None)])
    diff = compare_in_full(old, new)
    assert diff.samples == ChangeCounts(added=1, removed=1, changed=1, kept=1)
    stands = {one.id: one.updated for one in diff.changed}
    assert list(stands.items()) == [("new", "added"), ("other", "changed"), ("gone", "removed")]
    assert [(move.before, move.after, move.samples) for move in diff.outcomes] == [
        ("not there", "accepted", 1),
        ("accepted", "not there", 1),
    ]


def test_what_else_differs_of_a_sample_is_named() -> None:
    old = side("1", [sample("a"), sample("b")])
    new = side(
        "2",
        [
            sample("a", label_text="anger", original_sha256="1" * 64),
            sample("b", semantic_status="reworded", semantic_sha256="2" * 64),
        ],
    )
    found = by_id(compare_in_full(old, new))
    assert [change.name for change in found["a"].changes] == ["label_text", "original_sha256"]
    assert (found["a"].changes[0].before, found["a"].changes[0].after) == ("joy", "anger")
    assert [change.name for change in found["b"].changes] == ["semantic_status"]
    assert {one.updated for one in found.values()} == {"same"}


def test_fields_differ_word_by_word() -> None:
    old = side("1", [sample("a"), sample("b")], updated={"a": TEXT, "b": TEXT})
    new = side(
        "2", [sample("a", "the river fell"), sample("b")], updated={"a": "the fell", "b": TEXT}
    )
    [field] = by_id(compare_in_full(old, new))["a"].fields
    assert (field.arm, field.field) == ("updated", "text")
    assert "".join(piece.text for piece in field.pieces if piece.op != "added") == TEXT
    assert "".join(piece.text for piece in field.pieces if piece.op != "removed") == "the fell"


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("", "new", [("added", "new")]),
        ("old", "", [("removed", "old")]),
        ("same", "same", [("same", "same")]),
        ("don't go, Ann", "don't stay, Ann", [
            ("same", "don't "), ("removed", "go"), ("added", "stay"), ("same", ", Ann")]),
        ("a  b", "a b", [("removed", "a  "), ("added", "a "), ("same", "b")]),
        ("🌮 ja", "🌮 nein", [("same", "🌮 "), ("removed", "ja"), ("added", "nein")]),
    ],
)  # fmt: skip
def test_words_are_whole_and_nothing_is_lost(
    before: str, after: str, pieces: list[tuple[str, str]]
) -> None:
    found = word_diff(before, after)
    assert [(piece.op, piece.text) for piece in found] == pieces
    assert isinstance(found[0], DiffPiece)


def test_facts_are_the_same_where_their_new_triple_and_evidence_are() -> None:
    old = side("1", [sample("a")], facts=[fact("a"), fact("a", evidence="e2")])
    new = side("2", [sample("a")], facts=[fact("a"), fact("a", "fell")])
    diff = compare_in_full(old, new)
    assert diff.facts == ChangeCounts(added=1, removed=1, kept=1)
    assert [
        (one.op, one.fact.after_tail, one.fact.evidence_id) for one in diff.changed[0].facts
    ] == [
        ("removed", "rose", "e2"),
        ("added", "fell", "e1"),
    ]


def test_settings_differ_by_key() -> None:
    old = side("1", [], settings={"models.composer.model": "a", "task": "emotion", "gone": 1})
    new = side("2", [], settings={"models.composer.model": "b", "task": "emotion"})
    assert [(one.name, one.before, one.after) for one in compare_in_full(old, new).settings] == [
        ("models.composer.model", "a", "b"),
        ("gone", 1, None),
    ]


def test_what_went_stale_is_told_by_age_and_by_new_targets() -> None:
    day = DateClaim(date="2026-11-10", source="config", confidence="given")
    target = TargetDates(target="openai:new", cutoff=day)
    rows = [
        sample("a"),
        sample("b", oldest_evidence="2026-11-12T00:00:00+00:00"),
        sample("c", None),
    ]
    old, new = side("1", rows), side("2", rows)
    assert compare_in_full(old, new).stale == ()
    oldest = datetime(2026, 11, 11, tzinfo=UTC)
    assert [(one.id, one.why) for one in compare_in_full(old, new, oldest=oldest).stale] == [
        ("a", "age")
    ]
    [stale] = compare_in_full(old, replace(new, cutoffs=(target,))).stale
    assert (stale.id, stale.why, stale.target) == ("a", "cutoff", "openai:new")
    known = replace(old, cutoffs=(target,))
    assert compare_in_full(known, replace(new, cutoffs=(target,))).stale == (), "the parent had it"


# -- what can be compared -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_run(tmp_path_factory.mktemp("made"))


def test_a_run_and_its_release_have_the_same_samples_texts_and_facts(made: Made) -> None:
    release = made.release()
    diff = compare_in_full(open_comparable(made.files.root), open_comparable(release.path))
    assert (diff.changed, diff.outcomes) == ((), ())
    assert diff.samples.kept == 3
    assert (str(diff.before), str(diff.after)) == ("weekly/20261120T030000Z", "weekly 2026.47")
    assert {change.name for change in diff.settings} <= {"knowledge.takedown"}


def test_a_diff_counts_what_the_release_counts(made: Made, tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("Ada Roe\n")
    first = made.release("1", parent=None)
    second = made.release("2", takedown=listed)
    diff = compare_in_full(release_comparable(first), release_comparable(second))
    assert diff.samples == second.manifest.changelog.samples != ChangeCounts()
    assert diff.facts == second.manifest.changelog.facts
    assert {one.updated for one in diff.changed} == {"removed"}
    assert "withheld" in {change.name for one in diff.changed for change in one.changes}


def test_what_is_neither_a_release_nor_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="neither a release"):
        open_comparable(tmp_path)


# -- the changelog ------------------------------------------------------------------------------


def test_a_changelog_names_what_differs_by_id_and_quotes_no_text(made: Made) -> None:
    old = side("1", [sample("kept"), sample("a`|b")], settings={"task": "x|y", "counts.total": 2})
    new = side("2", [sample("kept"), *(sample(str(n)) for n in range(MOST_NAMED + 2))],
               updated={"0": TEXT}, settings={"task": "y" * 200, "counts.total": 3})  # fmt: skip
    told = summarize_diff(compare_digests(old, new))
    assert f"- added ({MOST_NAMED + 2}): `0`, `1`, " in told
    assert "`199` and 2 more\n- removed (1): `a'|b`" in told
    assert "| task | x\\|y | " + "y" * 80 + " … |" in told
    assert "counts.total" not in told
    assert "river" not in told
    assert summarize_diff(compare_digests(new, new)) == ""


def test_a_release_tells_in_its_changelog_what_it_is_to_its_parent(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    first = made.release("first", parent=None)
    second = made.release("second", parent=first.path, snippets=False)
    assert "the first release" in (first.path / "CHANGELOG.md").read_text()
    told = (second.path / "CHANGELOG.md").read_text()
    assert told.startswith("# weekly second, changes since first\n")
    assert "| snippets | true | false |" in told


# -- the page -----------------------------------------------------------------------------------


def test_the_page_escapes_what_it_shows_and_needs_nothing_beside_itself() -> None:
    old = side("<i>1", [sample("a")], facts=[fact("a", "<script>alert(1)</script>")])
    new = side("2", [sample("a", "dry")], updated={"a": TEXT}, settings={"k": "<img src=x>"})
    page = render_diff_page(compare_in_full(old, new))
    assert "&lt;script&gt;alert(1)" in page
    assert "<ins>the &lt;b&gt;river&lt;/b&gt; rose</ins>" in page
    for foreign in ("<script", "<img", "<b>", "<i>1", "<link", "@import", "url("):
        assert foreign not in page


def test_a_page_of_very_many_samples_says_how_many_it_leaves_out() -> None:
    rows = [sample(str(n)) for n in range(MOST_SHOWN + 3)]
    page = render_diff_page(compare_in_full(side("1", []), side("2", rows)))
    assert page.count("<section>") == MOST_SHOWN
    assert "3 more samples are not shown here" in page
