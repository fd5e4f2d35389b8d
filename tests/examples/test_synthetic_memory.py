import json
import runpy
from collections import Counter
from pathlib import Path

from coreeval.graph.bundled import MEMORY, demo_data

SCRIPT = Path(__file__).parents[2] / "examples" / "synthetic_memory.py"


def test_the_script_writes_the_bundled_items(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    for split in ("train", "test"):
        bundled = demo_data() / MEMORY / f"{split}.jsonl"
        assert (tmp_path / bundled.name).read_bytes() == bundled.read_bytes()


def test_the_items_say_that_they_are_synthetic_and_none_is_in_both_splits() -> None:
    folder = demo_data() / MEMORY
    rows = {
        split: [json.loads(line) for line in (folder / f"{split}.jsonl").read_text().splitlines()]
        for split in ("train", "test")
    }
    assert {split: len(items) for split, items in rows.items()} == {"train": 200, "test": 100}
    for split, items in rows.items():
        assert all(item["id"].startswith(f"synthetic/{split}/") for item in items)
        assert len(set(Counter(item["label"] for item in items).values())) == 1
    texts = [item["text"] for items in rows.values() for item in items]
    assert len(set(texts)) == 300
