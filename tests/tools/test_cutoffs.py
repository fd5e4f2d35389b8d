"""The table of cutoffs and releases, a user's own on top of it, and what a target cannot know."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from coreeval.config import TargetConfig
from coreeval.config.dates import first_moment_after
from coreeval.errors import ConfigError
from coreeval.schema import Evidence, Precision
from coreeval.tools.cutoffs import (
    DateClaim,
    ModelDates,
    TargetDates,
    TargetFreshness,
    count_by_target,
    find_model_dates,
    find_target_dates,
    load_built_in_cutoffs,
    load_cutoffs,
    measure_freshness,
    suggest_models,
)

TABLE = load_built_in_cutoffs()
OWN = "{date: 2026-05, source: my notes, confidence: reported, as_of: 2026-06-01}"


def _dates(model: str, **given: object) -> tuple[str | None, str | None]:
    target = TargetConfig.model_validate({"model": model, **given})
    known = find_target_dates(target, TABLE)
    cutoff, released = known.cutoff, known.released
    return cutoff.date if cutoff else None, released.date if released else None


@pytest.mark.parametrize("name", TABLE)
def test_every_date_has_a_source_a_day_and_makes_sense(name: str) -> None:
    row = TABLE[name]
    assert name == name.lower() and ":" not in name and "/" not in name
    assert row.released, "a release is what the window goes by"
    for fact in (row.cutoff, row.released):
        if fact is None:
            continue
        assert fact.source.startswith("https://")
        assert fact.as_of and fact.counts_from.date() < fact.as_of < date(2027, 1, 1)
        assert datetime(2022, 1, 1, tzinfo=UTC) < fact.counts_from
    assert row.cutoff is None or row.cutoff.counts_from <= row.released.counts_from


def test_no_name_means_two_models() -> None:
    names = [name for key, row in TABLE.items() for name in (key, *row.aliases)]
    assert len(names) == len(set(names))
    makers = ("gpt", "claude", "gemini", "llama", "mistral", "qwen", "deepseek")
    assert all(any(name.startswith(maker) for name in TABLE) for maker in makers)


def test_a_month_is_over_before_anything_counts_and_a_day_counts_itself() -> None:
    assert first_moment_after("2025-12") == datetime(2026, 1, 1, tzinfo=UTC)
    assert first_moment_after("2025-11") == datetime(2025, 12, 1, tzinfo=UTC)
    assert first_moment_after("2025-11-30") == datetime(2025, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-5", "gpt-5"),
        ("openai:gpt-5-2025-08-07", "gpt-5"),
        ("bedrock:claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("openai:meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct"),
        ("ollama:llama3.3:70b", "llama-3.3-70b-instruct"),
    ],
)
def test_a_model_is_known_whoever_serves_it_and_under_its_other_names(
    model: str, name: str
) -> None:
    assert find_model_dates(model, TABLE) == TABLE[name]


@pytest.mark.parametrize(
    "model", ["openai:gpt-5-chat", "openai:mistral-large-latest", "replay:a.jsonl", "openai:"]
)
def test_a_name_that_is_like_a_known_one_is_not_taken_for_it(model: str) -> None:
    assert find_model_dates(model, TABLE) is None


def test_a_version_with_a_later_day_in_its_name_came_out_then() -> None:
    found = find_model_dates("openai:gpt-5-2025-12-01", TABLE)
    assert found and found.released
    assert (found.released.date, found.released.confidence) == ("2025-12-01", "inferred")
    assert found.cutoff == TABLE["gpt-5"].cutoff
    earlier = find_model_dates("anthropic:claude-opus-4-5-20251101", TABLE)
    assert earlier == TABLE["claude-opus-4-5"]


def test_what_the_config_gives_comes_first_date_by_date() -> None:
    assert _dates("openai:gpt-5") == ("2024-09-30", "2025-08-07")
    assert _dates("openai:gpt-5", cutoff="2024-11") == ("2024-11", "2025-08-07")
    assert _dates("openai:mine", released="2026-03-05") == (None, "2026-03-05")
    assert _dates("openai:mine") == (None, None)


def test_the_later_of_cutoff_and_release_decides() -> None:
    def latest(**given: object) -> tuple[str, str] | None:
        target = TargetConfig.model_validate({"model": "openai:mine", **given})
        found = find_target_dates(target, TABLE).latest
        return (found.kind, found.date) if found else None

    assert latest(cutoff="2026-03", released="2026-03-31") == ("cutoff", "2026-03")
    assert latest(cutoff="2026-03", released="2026-04-01") == ("released", "2026-04-01")
    assert latest(cutoff="2026-03") == ("cutoff", "2026-03")
    assert latest() is None


def test_a_file_of_the_user_s_own_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "cutoffs.yaml"
    file.write_text(
        f"GPT-5: {{cutoff: {OWN}}}\nopenai:mine: {{released: {OWN}, aliases: [ours]}}\n"
    )
    table = load_cutoffs(file)
    stated = DateClaim(
        date="2026-05", source="my notes", confidence="reported", as_of=date(2026, 6, 1)
    )
    assert find_model_dates("openai:gpt-5", table) == ModelDates(cutoff=stated)
    assert find_model_dates("openai:ours", table) == find_model_dates("openai:mine", table)
    assert find_model_dates("anthropic:mine", table) is None, "it was listed for one provider"
    assert find_model_dates("openai:gpt-4.1", table) == TABLE["gpt-4.1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x: {released: {date: 2026-05, confidence: stated, as_of: 2026-06-01}}", "source"),
        ("x: {released: {date: 2026-05, source: me, confidence: stated}}", "needs as_of"),
        ("x: {released: {date: soon, source: me, confidence: stated, as_of: 2026-06-01}}", "soon"),
        (f"x: {{released: {OWN.replace('reported', 'given')}}}", "stated, reported or inferred"),
        ("x: {aliases: [y]}", "both cutoff and released are missing"),
        ("x: [2026-05]", "x"),
        ("{", "not YAML"),
    ],
)
def test_a_date_without_its_source_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "cutoffs.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told) as error:
        load_cutoffs(file)
    assert error.value.where == str(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_cutoffs(tmp_path / "none.yaml")


def test_the_nearest_known_names_are_offered() -> None:
    assert suggest_models("openai:gpt5", TABLE)[0] == "gpt-5"
    assert suggest_models("openai:mistral-large-latest", TABLE) == ["mistral-large-2512"]


DAY = datetime(2026, 3, 1, tzinfo=UTC)
RELEASED = DateClaim(date="2026-03-01", source="config", confidence="given")
TARGETS = (
    TargetDates(target="openai:new", released=RELEASED),
    TargetDates(target="openai:unknown"),
)


def _evidence(key: str, at: datetime, precision: Precision = "exact") -> Evidence:
    return Evidence(
        id=key,
        url=f"https://example.org/{key}",
        domain="example.org",
        title="title",
        published_at=at,
        published_precision=precision,
        origin="f:1",
    )


def test_the_oldest_piece_decides_and_the_least_certain_time_is_told() -> None:
    new = _evidence("a", DAY + timedelta(days=9), "crawl")
    found = measure_freshness([new, _evidence("b", DAY, "url")], TARGETS)
    assert found and (found.earliest, found.precision) == (DAY, "crawl")
    assert found.after_cutoff == {"openai:new": True, "openai:unknown": None}
    older = measure_freshness([new, _evidence("b", DAY - timedelta(seconds=1))], TARGETS)
    assert older and older.after_cutoff == {"openai:new": False, "openai:unknown": None}
    assert measure_freshness([], TARGETS) is None


def test_accepted_samples_are_counted_for_each_target() -> None:
    samples = [
        measure_freshness([_evidence("a", DAY)], TARGETS),
        measure_freshness([_evidence("a", DAY, "crawl")], TARGETS),
        measure_freshness([_evidence("a", DAY - timedelta(days=1), "crawl")], TARGETS),
        None,
    ]
    new, unknown = count_by_target(samples, TARGETS)
    assert new == TargetFreshness(target="openai:new", after=2, before=1, unknown=1, by_crawl=1)
    assert unknown == TargetFreshness(target="openai:unknown", unknown=4)
    assert new.sample_count == unknown.sample_count == 4
    assert count_by_target(samples, ()) == ()
