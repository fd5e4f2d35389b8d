"""The sources of facts and their licences: in provenance, card, release.json and on the screen."""

from pathlib import Path

import pytest

from coreeval.cli.release import _words
from coreeval.config import load_config
from coreeval.releases.carry_over import CarryOver
from coreeval.releases.release import Release, read_facts
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.runs.arms import PROVENANCE, write_arms
from coreeval.runs.card import write_card
from coreeval.runs.manifest import read_manifest
from coreeval.runs.sources import count_sources, describe_sources
from coreeval.schema import Evidence
from coreeval.tools.clock import utc_now
from coreeval.tools.files import ParquetColumns, read_parquet, write_parquet
from coreeval.tools.gdelt.current_events import fact_url
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kit import Made, make_run, news
from tests.releases.test_carry_over import kept_by, samples, terms

SENTENCE = "The river rose again, officials say."


def half_from_wikipedia(number: int) -> Evidence:
    """Return GDELT's news, or a fact of Wikipedia's."""
    item = news(number)
    if number == 0:
        return item
    day = item.published_at.date()
    return item.model_copy(
        update={
            "url": fact_url(day, SENTENCE),
            "domain": "en.wikipedia.org",
            "title": SENTENCE,
            "snippet": "",
            "source": "current_events",
            "licence": "CC BY-SA 4.0",
            "depth": "description",
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_run(tmp_path_factory.mktemp("facts"), evidence=half_from_wikipedia)


@pytest.fixture(scope="module")
def release(made: Made) -> Release:
    return made.release()


def test_provenance_says_where_a_fact_is_from(release: Release) -> None:
    found = {(fact.source, fact.licence, fact.evidence_depth, fact.snippet)
             for fact in release.facts()}  # fmt: skip
    assert ("current_events", "CC BY-SA 4.0", "description", SENTENCE) in found
    assert ("gdelt", "") in {(source, licence) for source, licence, _, _ in found}


def test_the_manifest_counts_the_sources(release: Release) -> None:
    told = {(one.source, one.licence): one for one in release.manifest.sources}
    wikipedia = told["current_events", "CC BY-SA 4.0"]
    assert wikipedia.share_alike
    assert wikipedia.licence_url == "https://creativecommons.org/licenses/by-sa/4.0/"
    assert not told["gdelt", ""].share_alike
    facts = sum(one.facts for one in release.manifest.sources)
    assert facts == release.manifest.arms["provenance"]


def test_the_card_says_what_share_alike_asks(release: Release) -> None:
    card = (release.path / "README.md").read_text("utf-8")
    assert "under CC BY\\-SA 4.0" in card or "under CC BY-SA 4.0" in card
    assert "https://creativecommons.org/licenses/by-sa/4.0/" in card
    assert "share-alike" in card and "gdeltproject.org" in card


def test_the_command_says_it_too(release: Release, tmp_path: Path) -> None:
    said = "\n".join(_words(release, tmp_path))
    assert "share-alike" in said and "facts are from current_events: CC BY-SA 4.0" in said


def test_without_such_facts_nobody_is_told(tmp_path: Path) -> None:
    plain = make_run(tmp_path).release()
    assert [one.source for one in plain.manifest.sources] == ["gdelt"]
    assert "share-alike" not in (plain.path / "README.md").read_text("utf-8")
    assert "share-alike" not in "\n".join(_words(plain, tmp_path))


def test_the_card_of_a_run_says_it(made: Made, release: Release, tmp_path: Path) -> None:
    with RunStore.open(made.files.require_store(), now=utc_now) as store:
        rows = write_arms(store, release.task, tmp_path, split="test", on_reject="drop")
    config, manifest = load_config(made.files.config), read_manifest(made.files.manifest)
    write_card(tmp_path, release.task, config, manifest, rows)
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "share-alike" in card and "Portal:Current events" in card


def test_a_dataset_without_facts_has_no_source() -> None:
    assert count_sources([]) == ()
    assert "No fact was replaced" in describe_sources(())


def test_a_kept_fact_keeps_its_source(made: Made, release: Release) -> None:
    kept = kept_by(CarryOver(release, terms()), samples(made))
    sources = {
        item.evidence.source: item.evidence for one in kept.values() for item in one.excerpts
    }
    assert sources["current_events"].licence == "CC BY-SA 4.0"
    assert sources["current_events"].depth == "description"


def test_facts_of_an_older_release_can_be_read(release: Release, tmp_path: Path) -> None:
    before = {name: "strings" if name == "after_cutoff" else "string" for name in PROVENANCE[:-4]}
    rows = [
        {name: row[name] for name in before} for row in read_parquet(release.file("provenance"))
    ]
    columns: ParquetColumns = before  # type: ignore[assignment]
    write_parquet(tmp_path / "old.parquet", columns, iter(rows))
    facts = list(read_facts(tmp_path / "old.parquet"))
    assert {(fact.source, fact.licence, fact.evidence_depth) for fact in facts} == {
        ("gdelt", "", "")
    }


def test_an_older_manifest_can_be_read(release: Release) -> None:
    said = release.manifest.model_dump(mode="json")
    del said["sources"]
    assert ReleaseManifest.model_validate(said).sources == ()
