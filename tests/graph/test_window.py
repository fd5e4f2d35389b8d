"""The window of a run: what `auto` takes, what it says where it cannot, and what a resume keeps."""

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml

from coreeval.config import Config, parse_config
from coreeval.errors import CassetteError, ConfigError, KnowledgeError
from coreeval.graph.bundled import demo_data
from coreeval.graph.cassettes.record import record
from coreeval.graph.cassettes.replay import replay
from coreeval.graph.run import refresh, resume
from coreeval.graph.setup import set_up
from coreeval.graph.window import DatedWindow, resolve_window
from coreeval.releases.create import make_release
from coreeval.releases.sources import find_new_cutoffs
from coreeval.runs.manifest import read_manifest
from coreeval.schema import Window
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
AUTO = {"start": "auto"}
LIMIT = 12
NOWHERE = "http://127.0.0.1:9/v1"


def _config(
    *targets: object, window: Mapping[str, object] = AUTO, cutoffs: str | None = None
) -> Config:
    news: dict[str, Any] = {"path": "news", "window": window, "cutoffs": cutoffs}
    raw = {
        "name": "n",
        "task": "emotion",
        "dataset": {"format": "tweeteval", "path": "emotion"},
        "knowledge": news,
        "models": {"default": "offline", "targets": list(targets)},
    }
    return parse_config(raw, where="test", base=Path("/"))


def _dated(*targets: object, window: Mapping[str, object] = AUTO) -> DatedWindow:
    return resolve_window(_config(*targets, window=window), NOW)


def test_auto_starts_after_the_latest_of_cutoff_and_release_over_all_targets() -> None:
    given = {"model": "openai:mine", "cutoff": "2026-01", "released": "2025-06-01"}
    found = _dated("openai:gpt-5", given, "offline:classifier")
    assert found.window == Window(start=datetime(2026, 2, 1, tzinfo=UTC), end=NOW)
    assert found.start and (found.start.target, found.start.kind) == ("openai:mine", "cutoff")
    assert (found.start.confidence, found.start.source) == ("given", "config")
    assert [one.target for one in found.targets] == ["openai:gpt-5", "openai:mine"]


def test_auto_takes_what_the_table_knows_with_its_source() -> None:
    found = _dated("openai:gpt-5-2025-08-07")
    assert found.window.start == datetime(2025, 8, 7, tzinfo=UTC)
    assert found.start and (found.start.kind, found.start.confidence) == ("released", "reported")
    assert found.start.source.startswith("https://")


def test_auto_without_a_model_to_go_by_names_the_key() -> None:
    for targets in [(), ("offline:classifier",)]:
        with pytest.raises(ConfigError, match="names no model with a cutoff") as error:
            _dated(*targets)
        assert error.value.where == "knowledge.window.start"


def test_auto_with_an_unknown_model_names_it_and_its_neighbours() -> None:
    with pytest.raises(ConfigError, match="no cutoff for 'openai:gpt5'") as error:
        _dated("openai:gpt-4.1", "openai:gpt5")
    assert error.value.where == "knowledge.window.start"
    assert "similar known models: gpt-5" in error.value.hint
    assert "knowledge.cutoffs" in error.value.hint


def test_a_start_that_is_written_needs_no_dates_and_keeps_those_there_are() -> None:
    found = _dated("openai:x", "openai:gpt-5", window={"start": "2025-01-01"})
    assert (found.start, found.window.start) == (None, datetime(2025, 1, 1, tzinfo=UTC))
    assert [one.latest is None for one in found.targets] == [True, False]


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ({"start": "2026-06-02"}, "starts on 2026-06-02 and is in the future: now is 2026-06-01"),
        ({"start": "2027-01-01", "end": "2027-02-01"}, "is in the future"),
        ({"start": "2026-03-01", "end": "2026-02-01"}, "is reversed: it ends on 2026-02-01"),
        ({"start": "2026-03-01", "end": "2026-03-01"}, "is empty"),
        (
            {"start": "auto", "end": "2025-01-01"},
            "auto: released of openai:gpt-5, https.*reversed",
        ),
    ],
)
def test_a_window_without_any_news_is_told(window: Mapping[str, object], told: str) -> None:
    with pytest.raises(KnowledgeError, match=told) as error:
        _dated("openai:gpt-5", window=window)
    assert error.value.where == "knowledge.window" and error.value.hint


def test_a_broken_file_of_dates_is_told_whatever_the_window(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        set_up(_config("openai:x", cutoffs=str(tmp_path / "none.yaml")), NOW)


# -- a run --------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a config with targets that are known from a file, from itself, and not at all."""
    data = demo_data()
    stated = {"date": "2025-08", "source": "me", "confidence": "stated", "as_of": "2026-01-01"}
    (tmp_path / "dates.yaml").write_text(yaml.safe_dump({"ours": {"released": stated}}))
    raw = {
        "name": "fresh",
        "task": "emotion",
        "dataset": {"format": "tweeteval", "path": str(data / "emotion"), "split": "test"},
        "knowledge": {
            "path": str(data / "news"),
            "min_precision": "crawl",
            "cutoffs": "dates.yaml",
            "window": {"start": "2025-08-01", "end": "2026-10-01"},
        },
        "models": {
            "default": "offline",
            "targets": [
                {"model": "openai:ours", "base_url": NOWHERE},
                {"model": "openai:newer", "base_url": NOWHERE, "cutoff": "2026-08-10"},
                {"model": "openai:unheard-of", "base_url": NOWHERE},
                "offline:classifier",
            ],
        },
        "detect": {"evaluate": False},
    }
    path = tmp_path / "fresh.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def test_a_run_records_for_which_targets_its_evidence_is_new(config: Path) -> None:
    run = config.parent / "run"
    manifest = refresh(config, run_dir=run, limit=LIMIT).manifest
    assert manifest.window_start is None
    accepted, by_name = manifest.counts["accepted"], {c.target: c for c in manifest.after_cutoff}
    assert accepted and set(by_name) == {"openai:ours", "openai:newer", "openai:unheard-of"}
    assert {one.sample_count for one in by_name.values()} == {accepted}
    assert by_name["openai:unheard-of"].unknown == accepted
    results = _results(run)
    for target, after in {"openai:ours": "2025-09-01", "openai:newer": "2026-08-10"}.items():
        new = [key for key, found in results.items() if found >= after]
        assert (by_name[target].after, by_name[target].before) == (len(new), accepted - len(new))
        rows = pq.read_table(next((run / "dataset" / "provenance").iterdir())).to_pylist()
        assert {row["id"] for row in rows if target in row["after_cutoff"]} == set(new)
    report = json.loads((run / "report.json").read_text())
    assert report["after_cutoff"] == [one.model_dump() for one in manifest.after_cutoff]
    told = f"{by_name['openai:ours'].after} of {accepted}"
    (row,) = re.findall(r">openai:ours</th>.*?</tr>", (run / "report.html").read_text(), re.DOTALL)
    assert f"<td>{told}" in row
    assert f"| openai:ours | {told} |" in (run / "dataset" / "README.md").read_text()


def test_a_target_in_a_local_file_has_one_public_name(config: Path) -> None:
    folder, run, out = config.parent, config.parent / "run", config.parent / "a.cassette"
    raw = yaml.safe_load(config.read_text())
    names = [f"replay:{place}/final/a.jsonl" for place in ("a", "b")]
    for name in names:
        answers = folder / name.removeprefix("replay:")
        answers.parent.mkdir(parents=True)
        answers.touch()
    raw["models"]["targets"] = [{"model": name, "cutoff": "2025-01-01"} for name in names]
    raw["knowledge"]["window"]["start"] = "auto"
    config.write_text(yaml.safe_dump(raw))
    manifest = refresh(config, run_dir=run, limit=LIMIT).manifest
    assert [each.target for each in manifest.after_cutoff] == names
    assert manifest.window_start and manifest.window_start.target in names
    assert _read_targets(run / "dataset") == names
    report = json.loads((run / "report.json").read_text())
    assert all(each["cutoff"] and each["fresh"] for each in report["targets"])
    assert str(folder) not in (run / "dataset" / "README.md").read_text()
    record(run, out, texts=True)
    assert replay(out, folder / "again").equal
    release = make_release(run, version="1")
    assert _read_targets(release.path) == names
    assert find_new_cutoffs(release.manifest.cutoffs, manifest.cutoffs or ()) == {}
    _name_as_before(run, names, folder)
    with pytest.raises(CassetteError, match="names the folder of a target"):
        record(run, out)
    assert _read_targets(make_release(run, version="2").path) == names


def _read_targets(folder: Path) -> list[str]:
    """Return the targets in the first row of provenance."""
    table = pq.read_table(next((folder / "provenance").iterdir()))
    targets: list[str] = table["after_cutoff"].to_pylist()[0]
    return targets


def _name_as_before(run: Path, names: list[str], folder: Path) -> None:
    """Name targets by their absolute paths, as runs of earlier versions do."""
    text = (run / "manifest.json").read_text()
    with closing(sqlite3.connect(run / "run.db")) as store:
        for name in names:
            long = name.replace(":", f":{folder}/")
            text = text.replace(f'"{name}"', f'"{long}"')
            store.execute(
                "UPDATE results SET freshness = replace(freshness, ?, ?)",
                (f'"{name}"', f'"{long}"'),
            )
        store.commit()
    (run / "manifest.json").write_text(text)


def _results(run: Path) -> dict[str, str]:
    """Return the day of the oldest evidence of each accepted sample, by its facts."""
    with closing(RunStore.open(run / "run.db", now=utc_now)) as store:
        facts = list(store.facts())
        evidence = store.history.evidence([fact.evidence_id for fact in facts])
        days: dict[str, str] = {}
        for fact in facts:
            day = evidence[fact.evidence_id].published_at.date().isoformat()
            days[fact.sample_id] = min(day, days.get(fact.sample_id, day))
        recorded = {key: known.earliest for key, known in store.freshness() if known}
    assert {key: moment.date().isoformat() for key, moment in recorded.items()} == days
    return days


def test_a_resumed_run_keeps_the_window_that_it_began_with(config: Path) -> None:
    raw = yaml.safe_load(config.read_text())
    raw["knowledge"]["window"]["start"] = "auto"
    raw["models"]["targets"] = raw["models"]["targets"][:1]
    config.write_text(yaml.safe_dump(raw))
    began = refresh(config, run_dir=config.parent / "run", limit=1).manifest
    assert began.window.start == datetime(2025, 9, 1, tzinfo=UTC)
    assert began.window_start and began.window_start.target == "openai:ours"
    (config.parent / "dates.yaml").unlink()
    went_on = resume(config.parent / "run").manifest
    assert went_on == began
    assert read_manifest(config.parent / "run" / "manifest.json") == began
    lines = (config.parent / "run" / "dataset" / "README.md").read_text()
    assert "starts after the release of openai:ours (stated: me)" in lines
