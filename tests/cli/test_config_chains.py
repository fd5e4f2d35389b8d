"""Random configs through every command that follows a refresh (benchmarks/config_chains.py)."""

from pathlib import Path

import pytest

from benchmarks.config_chains import Chain, run_chain


@pytest.mark.parametrize(
    ("seed", "step"),
    [(15, "cassette = 0"), (115, "takedown = 0"), (124, "config: names a list")],
    ids=["policies", "takedown", "copy"],
)
def test_a_random_config(
    seed: int, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # it changes the folder
    chain = Chain(seed, tmp_path)
    run_chain(chain)
    assert not chain.faults, "\n".join(chain.faults)
    assert step in chain.steps
