"""A file of gates, and each mistake in one message that says where and what to do."""

from pathlib import Path

import pytest
import yaml

from coreeval.errors import ConfigError
from coreeval.releases.gates.limits import (
    ForbiddenVerdicts,
    Gates,
    IntervalLimit,
    RankLimit,
    load_default_gates,
    load_gates,
    read_default_text,
)


def test_the_default_gates_are_a_file_and_each_tells_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(read_default_text())
    assert load_gates(path) == load_default_gates()
    lines = read_default_text().splitlines()
    for name in load_default_gates().model_dump(exclude_none=True):
        place = next(n for n, line in enumerate(lines) if line.startswith(f"  {name}:"))
        assert lines[place - 1].startswith("  # "), name
    named = {line.strip("# ").partition(":")[0] for line in lines}
    assert set(Gates.model_fields) <= named


def test_what_is_commented_out_may_be_taken_in(tmp_path: Path) -> None:
    path = tmp_path / "gates.yaml"
    shown = [
        line.removeprefix("  # ") for line in read_default_text().splitlines() if "_usd: {" in line
    ]
    path.write_text("gates:\n" + "\n".join(f"  {line}" for line in shown))
    assert load_gates(path).cost_usd


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("gates: {}", "it contains no gates", "coreeval docs gates"),
        ("gates:", "it contains no gates", ""),
        ("gates: [acceptance]", "mapping of gates", ""),
        ("", "must be a mapping", ""),
        ("name: x", "gates: this key is required", ""),
        ("gates: {acceptance: {min: 0.5}}\nnane: x", "unknown key 'nane'", "known keys: gates"),
        ("gates: {aceptance: {min: 0.5}}", "unknown key 'gates.aceptance'", "'acceptance'"),
        ("gates: {acceptance: {mim: 0.5}}", "unknown key 'gates.acceptance.mim'", "'min'"),
        ("gates: {cost_usd: {max: 1, by: ci_low}}", "unknown key 'gates.cost_usd.by'", "known"),
        ("gates: {acceptance: 0.5}", "a gate is a mapping such as {max: 0.1}, not 0.5", ""),
        ("gates: {acceptance: }", "acceptance is empty", ""),
        ("gates: {acceptance: {}}", "neither min nor max", ""),
        ("gates: {acceptance: {missing: skip}}", "neither min nor max", ""),
        ("gates: {acceptance: {min: lots}}", "gates.acceptance.min: 'lots' is not a number", ""),
        ("gates: {acceptance: {min: true}}", "gates.acceptance.min: true is not a number", ""),
        ("gates: {acceptance: {min: '0.5'}}", "gates.acceptance.min: '0.5' is not a number", ""),
        ("gates: {acceptance: {min: .nan}}", "gates.acceptance.min: nan is not a fin", ""),
        ("gates: {acceptance: {min: 5}}", "5 is not possible: a share is between 0 and 1", ""),
        ("gates: {cost_usd: {max: -5}}", "in US dollars is 0 or more", ""),
        ("gates: {rank_correlation: {min: 2}}", "between -1 and 1", ""),
        ("gates: {acceptance: {min: 0.6, max: 0.5}}", "min 0.6 is more than max 0.5", ""),
        ("gates: {acceptance: {min: 0.6, by: low}}", "'ci_low' or 'ci_high'", ""),
        ("gates: {pcr: {forbid: [contaminatd]}}", "'contaminated'", ""),
        ("gates: {pcr: {forbid: []}}", "gates.pcr.forbid", ""),
        ("gates: {pcr: contaminated}", "such as {forbid: [contaminated]}", ""),
        ("gates: [", "not YAML", ""),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as told:
        load_gates(path)
    assert message in told.value.message
    assert hint in told.value.hint
    assert str(path) in told.value.where


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="config file not found") as told:
        load_gates(tmp_path / "gates.yaml")
    assert "coreeval gate --print-config" in told.value.hint


def test_yaml_reads_no_key_of_a_gate_as_something_else() -> None:
    """`on` would be true to YAML 1.1: no key may be such a word."""
    limits = (IntervalLimit, RankLimit, ForbiddenVerdicts)
    for key in {*Gates.model_fields, *(key for limit in limits for key in limit.model_fields)}:
        assert yaml.safe_load(key) == key
