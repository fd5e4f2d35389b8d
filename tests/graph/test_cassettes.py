"""A run repeated from a cassette gives identical bytes; what cannot be repeated is named."""

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from coreeval.agents.queries import BY_MEANING
from coreeval.config import ModelConfig, load_config
from coreeval.errors import CassetteError, DatasetError, RunStateError, UsageError
from coreeval.graph.bundled import demo_data
from coreeval.graph.cassettes.contents import describe_players, redact_manifest, select_settings
from coreeval.graph.cassettes.record import record
from coreeval.graph.cassettes.replay import ReplayResult, replay
from coreeval.graph.run import resume, retry
from coreeval.releases.cassettes.format import (
    AnswerLine,
    CassetteLine,
    FinalResult,
    NewsQuery,
    OfferLine,
    PromptLine,
    SampleLine,
)
from coreeval.releases.cassettes.read import Cassette, open_cassette
from coreeval.releases.create import make_release
from coreeval.runs.manifest import read_manifest, write_manifest
from coreeval.schema import Result
from coreeval.tools.cutoffs import (
    DateClaim,
    TargetDates,
    TargetFreshness,
    find_model_dates,
    load_built_in_cutoffs,
)
from coreeval.tools.workspace import Workspace
from tests.graph.kit import CONCURRENCY, KEY, Lab, Undisturbed, config_of
from tests.graph.test_failures import UNLUCKY, is_unlucky
from tests.support.cassettes import Change, lines_of, remade
from tests.support.llm_server import Reply, Request

HERE = Path(__file__).parents[2]


@dataclass
class Deck:
    """Cassettes in a folder, and what comes of them."""

    folder: Path
    original: Cassette

    def play(self, change: Change | None = None) -> ReplayResult:
        """Repeat the recorded run, or one that differs in some lines."""
        cassette = self.folder / "changed.cassette"
        if change:
            remade(self.original, cassette, change)
        return replay(cassette if change else self.original.path, self.folder / "again")


@pytest.fixture(scope="module")
def recorded(undisturbed: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> Cassette:
    path = tmp_path_factory.mktemp("cassettes") / "a.cassette"
    record(undisturbed.lab.files.root, path, texts=True)
    return open_cassette(path)


@pytest.fixture
def deck(recorded: Cassette, undisturbed: Undisturbed, tmp_path: Path) -> Iterator[Deck]:
    undisturbed.lab.forget()
    yield Deck(tmp_path, recorded)
    assert undisturbed.lab.server.requests == []


def test_a_repeated_run_has_the_same_bytes(deck: Deck, undisturbed: Undisturbed) -> None:
    done = deck.play()
    assert done.same and done.equal and not done.changed and not done.versions
    assert [file.name.partition("/")[0] for file in done.files] == [
        "provenance",
        "semantic",
        "updated",
    ]
    for file in done.files:
        original = undisturbed.lab.files.dataset / file.name
        assert (done.run / "dataset" / file.name).read_bytes() == original.read_bytes()
    manifest = read_manifest(done.run / "manifest.json")
    assert (manifest.status, manifest.cassette) == ("complete", deck.original.digest)
    assert manifest.counts == undisturbed.lab.manifest.counts
    assert manifest.cost.billed_usd == 0
    with pytest.raises(RunStateError, match="replays a cassette"):
        resume(done.run)
    with pytest.raises(
        CassetteError,
        match="a cassette is replayed into a new or empty folder",
    ):
        deck.play()


@pytest.mark.parametrize(
    "settings", [{"pipeline": "lean"}, {"arms": ["updated"]}, {"label_batch": 1}]
)
def test_a_run_is_repeated_by_the_settings_that_it_had(
    lab: Lab, settings: dict[str, object]
) -> None:
    lab.write(run={"concurrency": CONCURRENCY, **settings})
    lab.refresh(limit=8)
    record(lab.files.root, lab.folder / "a.cassette", texts=True)
    done = replay(lab.folder / "a.cassette", lab.folder / "again")
    assert done.same and not done.changed and not done.missing


def test_a_repeated_run_goes_on_if_it_was_stopped_after_its_samples(deck: Deck) -> None:
    done = deck.play()
    path = done.run / "manifest.json"
    write_manifest(path, read_manifest(path).model_copy(update={"status": "interrupted"}))
    assert resume(done.run).manifest.status == "complete"
    with pytest.raises(RunStateError, match="replays a cassette"):
        resume(done.run)


def test_recording_twice_gives_the_same_bytes(
    recorded: Cassette, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    again = record(undisturbed.lab.files.root, tmp_path / "b", texts=True).packed
    assert again.path.read_bytes() == recorded.path.read_bytes()


def test_nothing_of_the_machine_or_a_key_is_in_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    secret = {"extra": {"top_p": 1, "user": "sk-beside"}, "api_key_env": "OPENAI_API_KEY"}
    model = {"model": "openai:scripted", "base_url": lab.server.url, **secret}
    lab.write(models={"default": model})
    lab.refresh(limit=2)
    assert lab.server.keys[-1] == f"Bearer {KEY}"
    made = record(lab.files.root, lab.folder / "a", texts=True).packed
    inside = gzip.decompress(made.path.read_bytes()).decode()
    for secret_text in (KEY, "sk-", "API_KEY", "Bearer", str(lab.folder), str(HERE), "/home/"):
        assert secret_text not in inside, secret_text
    assert made.head.models["composer"]["extra"] == {"top_p": 1}


def test_texts_that_may_not_be_passed_on_come_from_the_reviewer(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    path = tmp_path / "a.cassette"
    made = record(undisturbed.lab.files.root, path)
    assert not made.packed.head.texts and made.licence.name.startswith("TweetEval")
    cassette = open_cassette(path)
    samples = [line.sample for line in cassette.lines(SampleLine)]
    assert all(sample.fields == {} for sample in samples)
    assert all("messages" not in line.answer for line in cassette.lines(AnswerLine))
    with pytest.raises(UsageError, match="no texts of the benchmark"):
        replay(path, tmp_path / "again")
    with pytest.raises(DatasetError, match="emotion/test/1 has another text"):
        replay(path, tmp_path / "again", dataset=other_texts(tmp_path))
    assert not (tmp_path / "again").exists()
    assert replay(path, tmp_path / "again", dataset=demo_data() / "emotion").equal


def test_a_licence_that_is_withdrawn_after_the_run_keeps_texts_out(lab: Lab) -> None:
    dataset = config_of(lab.server.url)["dataset"]
    assert isinstance(dataset, dict)
    lab.write(dataset=dataset | {"licence": {"name": "CC-BY-4.0", "redistribute": True}})
    lab.refresh(limit=2)
    assert record(lab.files.root, lab.folder / "a").packed.head.texts
    lab.write(dataset=dataset | {"licence": {"name": "closed", "redistribute": False}})
    made = record(lab.files.root, lab.folder / "b")
    assert not made.packed.head.texts and made.licence.name == "closed"


def other_texts(folder: Path) -> Path:
    """Return a copy of the benchmark in which every text is another one."""
    copy = folder / "other"
    copy.mkdir()
    for file in (demo_data() / "emotion").iterdir():
        said = file.read_text("utf-8")
        changed = said.replace("\n", " indeed\n") if file.name.endswith("text.txt") else said
        (copy / file.name).write_text(changed, "utf-8")
    return copy


def test_a_failed_sample_ends_as_failed_again(lab: Lab) -> None:
    async def unkind(request: Request) -> str | Reply:
        if is_unlucky(request):
            return Reply(content="I would rather not say.")
        return await lab.answers(request)

    lab.server.answers = unkind
    lab.write(run={"concurrency": CONCURRENCY})
    lab.refresh(limit=6)
    before = lab.results()[UNLUCKY]
    assert before.outcome == "failed"
    lab.forget()
    record(lab.files.root, lab.folder / "failed", texts=True)
    done = replay(lab.folder / "failed", lab.folder / "again")
    assert done.equal and done.stated == 1 and not done.missing
    assert lab.results("again")[UNLUCKY] == before
    retry(lab.files.root)
    assert lab.results()[UNLUCKY].outcome != "failed"
    record(lab.files.root, lab.folder / "retried", texts=True)
    lab.forget()
    retried = replay(lab.folder / "retried", lab.folder / "better")
    assert retried.equal and retried.stated == 0
    assert lab.results("better") == lab.results()
    assert lab.asked() == []


def test_a_run_that_was_killed_and_resumed_is_repeated(killed: Lab) -> None:
    with pytest.raises(CassetteError, match="the run is unfinished") as caught:
        record(killed.files.root, killed.folder / "a")
    assert "coreeval resume" in caught.value.hint
    killed.resume()
    record(killed.files.root, killed.folder / "a", texts=True)
    assert replay(killed.folder / "a", killed.folder / "again").equal


def test_a_changed_prompt_is_named_with_the_samples_that_it_concerns(deck: Deck) -> None:
    def reworded(line: CassetteLine) -> CassetteLine:
        if isinstance(line, PromptLine) and line.role == "composer":
            return line.model_copy(update={"text": f"Please. {line.text}"})
        return line

    done = deck.play(reworded)
    assert not done.equal and done.changed == ("the prompt of the composer", "the graph")
    assert {one.node for one in done.missing} == {"compose"}
    assert all("NotRecorded" in one.reason for one in done.missing)
    assert "composer.jsonl" in done.missing[0].reason


def test_the_first_difference_is_named(deck: Deck) -> None:
    def louder(line: CassetteLine) -> CassetteLine:
        if not isinstance(line, AnswerLine) or line.role != "composer":
            return line
        said = line.answer["content"].replace("!", "!!")
        return line.model_copy(update={"answer": line.answer | {"content": said}})

    done = deck.play(louder)
    differences = {file.name.partition("/")[0]: file.difference for file in done.files}
    first = differences["updated"]
    assert not done.equal and differences["semantic"] is None
    assert first and first.row >= 1 and first.id.startswith("emotion/test/")


def test_what_meaning_found_is_no_query(deck: Deck) -> None:
    def with_meaning(line: CassetteLine) -> CassetteLine:
        if not isinstance(line, OfferLine) or line.asked is None:
            return line
        row = NewsQuery(text=BY_MEANING, rung="concept", found=3, why_none="")
        return line.model_copy(update={"asked": (row, *line.asked)})

    done = deck.play(with_meaning)
    assert done.same, done.missing


def test_news_and_answers_that_are_not_recorded_are_named(deck: Deck) -> None:
    offers = [line for line in lines_of(deck.original) if isinstance(line, OfferLine)]
    one, other, third = offers[:3]
    assert len({one.sample_id, other.sample_id, third.sample_id}) == 3
    lost = extraction_of(deck.original, third.sample_id)

    def confused(line: CassetteLine) -> CassetteLine | None:
        if line == one:
            return one.model_copy(update={"asked": other.asked})
        return None if line in (other, lost) else line

    done = deck.play(confused)
    missing = done.missing
    failed = next(shift for shift in done.shifts if shift.outcome == "failed")
    assert (failed.recorded, failed.found) == (0, 3), missing
    assert not done.same
    reasons = [missing.reason for missing in missing]
    assert any("but the recording searched for" in reason for reason in reasons)
    assert any("no news is recorded for attempt" in reason for reason in reasons)
    (unasked,) = (each for each in missing if each.node == "extract")
    assert "extractor.jsonl (schema extraction, draw 0" in unasked.reason
    assert unasked.sample == third.sample_id


def extraction_of(cassette: Cassette, sample_id: str) -> AnswerLine:
    """Return the first answer of the extractor about a sample."""
    line = next(one for one in cassette.lines(SampleLine) if one.sample.id == sample_id)
    said = json.dumps(line.sample.fields["text"], ensure_ascii=False).strip('"')
    return next(
        answer
        for answer in cassette.lines(AnswerLine)
        if answer.role == "extractor" and said in answer.answer["messages"][-1]["content"]
    )


def test_what_a_run_rests_on_must_be_there_still(finished: Lab) -> None:
    root, out = finished.files.root, finished.folder / "a"
    manifest = finished.files.manifest.read_text()
    finished.files.manifest.write_text(manifest.replace('"composer": "', '"composer": "0'))
    with pytest.raises(CassetteError, match="changed since the run: the prompt of the composer"):
        record(root, out)
    finished.files.manifest.write_text(manifest)
    finished.workspace.takedown.write_text("Ada Roe\n")
    with pytest.raises(CassetteError, match=r"takedown list .* has changed") as refused:
        record(root, out)
    assert refused.value.hint == "refresh the benchmark again, and record that run"
    finished.workspace.takedown.rename(finished.folder / "listed.txt")
    config = finished.config.read_text()
    finished.config.write_text("knowledge: {takedown: listed.txt}\n")
    with pytest.raises(CassetteError, match=r"takedown list .* has changed"):
        record(root, out)
    finished.config.write_text(config)
    with closing(sqlite3.connect(finished.workspace.calls)) as file:
        file.execute("DELETE FROM calls WHERE role = 'extractor'")
        file.commit()
    with pytest.raises(CassetteError, match=r"14 of 14 answers of the extractor are no longer"):
        record(root, out)
    finished.workspace.calls.unlink()
    with pytest.raises(
        CassetteError, match="call store of the run's workspace, which has the answers, is missing"
    ):
        record(root, out)
    assert not finished.workspace.calls.exists()
    assert not out.exists()


def test_the_places_of_a_machine_are_cut_to_names(lab: Lab, undisturbed: Undisturbed) -> None:
    config, told = load_config(lab.config), undisturbed.lab.manifest
    places = (config.dataset.path, "/home/ada lovelace/before the move/emotion")
    notes = tuple(f"{place}: 24 rows" for place in places)
    target = "replay:/home/ada lovelace/answers.jsonl"
    about = {"cutoffs": (TargetDates(target=target),), "notes": notes,
             "after_cutoff": (TargetFreshness(target=target),)}  # fmt: skip
    seen = redact_manifest(told.model_copy(update=about), config)
    assert "ada" not in seen.model_dump_json()
    assert seen.notes == ("emotion: 24 rows", "emotion: 24 rows")
    assert str(undisturbed.lab.folder) not in seen.model_dump_json()
    assert str(HERE) not in seen.model_dump_json() + select_settings(config).model_dump_json()


@pytest.mark.parametrize(
    ("name", "seen"),
    [("openai:/home/a/secret/small", "openai:small"), ("openai:org/small", "openai:org/small")],
)
def test_a_model_that_is_named_by_its_folder_is_cut_to_its_name(
    lab: Lab, name: str, seen: str
) -> None:
    config = load_config(lab.config)
    models = config.models.model_copy(update={"default": ModelConfig(model=name), "composer": None})
    told = describe_players(config.model_copy(update={"models": models}))
    assert told["composer"]["model"] == seen


def test_an_id_that_is_there_twice_is_named_with_its_line(deck: Deck) -> None:
    first, second = [line for line in lines_of(deck.original) if isinstance(line, SampleLine)][:2]

    def doubled(line: CassetteLine) -> CassetteLine:
        return first if line == second else line

    with pytest.raises(CassetteError, match="occurs twice, first on line") as caught:
        deck.play(doubled)
    assert first.sample.id in caught.value.message
    assert caught.value.where.rpartition(", line ")[2].isdecimal()
    assert caught.value.hint
    assert not (deck.folder / "again").exists() or not any((deck.folder / "again").iterdir())


def test_a_repeated_run_pays_for_itself(deck: Deck, undisturbed: Undisturbed) -> None:
    recorded = undisturbed.lab.manifest
    again = read_manifest(deck.play().run / "manifest.json")
    assert (again.run, again.now) == (recorded.run, recorded.now)
    assert again.payer == f"{recorded.payer}#{deck.original.digest}"


def play_with_dates(deck: Deck, *dates: TargetDates) -> ReplayResult:
    """Repeat the run from a cassette that states when targets were trained."""
    changed = deck.folder / "dated.cassette"
    run = deck.original.head.run.model_copy(update={"cutoffs": dates})
    remade(deck.original, changed, lambda line: line, run=run)
    return replay(changed, deck.folder / "again")


@pytest.mark.parametrize(
    ("model", "day", "used", "source"),
    [
        ("openai:gpt-4o", "2020-01-31", None, None),
        ("openai:gpt-4o", "2099-01-31", "2099-01-31", "a model card"),
        ("openai:nobody-knows-it", "2020-01-31", "2020-01-31", "the cassette"),
    ],
)
def test_a_cassettes_word_makes_no_evidence_newer_than_a_known_target(
    deck: Deck, model: str, day: str, used: str | None, source: str | None
) -> None:
    stated = DateClaim(date=day, source="a model card", confidence="stated", as_of=date(2026, 1, 1))
    done = play_with_dates(deck, TargetDates(target=model, cutoff=stated))
    (found,) = read_manifest(done.run / "manifest.json").cutoffs or ()
    known = find_model_dates(model, load_built_in_cutoffs())
    if used is None:
        assert known is not None
        assert (found.cutoff, found.released) == (known.cutoff, known.released)
        assert list(done.changed) == [
            f"the dates of {model}, which are later than those in the cassette"
        ]
    else:
        assert found.cutoff is not None and not done.changed
        assert (found.cutoff.date, found.cutoff.source) == (used, source)


def test_results_are_stated_only_of_what_failed_or_was_kept(deck: Deck) -> None:
    def state(line: CassetteLine) -> CassetteLine:
        if not isinstance(line, SampleLine):
            return line
        made_up = {"text": "anything"}
        result = Result(
            sample_id=line.sample.id, outcome="accepted", updated=made_up, kept_from="2026.1"
        )
        return line.model_copy(update={"stated": FinalResult(result=result, excerpts=())})

    with pytest.raises(CassetteError, match="which was neither kept nor failed"):
        deck.play(state)


def test_the_takedown_list_of_the_workspace_around_a_repeated_run_holds(
    deck: Deck, undisturbed: Undisturbed
) -> None:
    home = Workspace(deck.folder / ".coreeval")
    place = home.runs / "survival" / "again"
    replay(deck.original.path, place)
    facts = [fact for one in undisturbed.results.values() for fact in one.facts]
    home.takedown.write_text(f"{facts[0].evidence_id}\n")
    made = make_release(place, version="1", out=deck.folder / "release")
    assert made.manifest.takedown.entries == 1
    assert made.manifest.takedown.withheld >= 1


def test_what_cannot_begin_leaves_the_folder_as_it_was(deck: Deck) -> None:
    cassette, empty = deck.folder / "odd.cassette", deck.folder / "empty"
    settings = deck.original.head.config.model_copy(update={"run": {"seed": "many"}})
    remade(deck.original, cassette, lambda line: line, config=settings)
    empty.mkdir()
    for folder, stays in ((empty, True), (deck.folder / "new", False)):
        with pytest.raises(
            CassetteError, match="this version of CoreEval cannot replay the recording"
        ):
            replay(cassette, folder)
        assert folder.exists() == stays
    assert not list(empty.iterdir())
