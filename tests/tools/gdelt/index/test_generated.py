"""The benchmark's news, in small: what is generated is the same each time, and can be found."""

from argparse import Namespace
from pathlib import Path

from benchmarks import knowledge
from benchmarks.news import World, segment


def test_the_same_seed_gives_the_same_news() -> None:
    world = World.made(3)
    assert segment(world, 1, 200).equals(segment(world, 1, 200))
    assert not segment(world, 1, 200).equals(segment(world, 2, 200))


def test_a_small_benchmark_runs_through(tmp_path: Path) -> None:
    chosen = Namespace(days=2, articles=400, seed=3)
    made = knowledge.generate(tmp_path, chosen)
    parts = knowledge.make_parts(tmp_path, chosen)
    cold = knowledge.ask_cold(tmp_path, chosen)
    assert made["rows"] == knowledge.generate(tmp_path, chosen)["rows"]
    assert parts["parts"] == 1
    found = cold["pieces of evidence"]
    assert isinstance(found, int) and found > 20
