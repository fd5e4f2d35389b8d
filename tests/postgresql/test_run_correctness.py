"""Answers of targets by sample in PostgreSQL: what holds for a file holds for them."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from coreeval.schema import Sample
from coreeval.tools.stores.run_queries import SampleFilter
from coreeval.tools.stores.run_store import RunStore
from tests.postgresql.server import Server
from tests.tools.stores.test_run_correctness import ANSWERS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _fill(path: Path) -> list[object]:
    with closing(RunStore.open(path, now=lambda: NOW)) as store:
        store.add_samples(
            Sample(id=f"s/{number}", split="test", fields={"text": "x"}, label=0, label_text="a")
            for number in range(1, 5)
        )
        store.add_predictions(ANSWERS)
        store.add_predictions(ANSWERS)  # what is written again counts once
        answers = store.target_answers
        lost = SampleFilter(on_original="right", on_updated="wrong")
        return [
            answers.by_sample(range(1, 5)),
            answers.tally(),
            answers.about("s/3"),
            store.listing.page(lost),
            store.listing.ids(lost.model_copy(update={"target": "n"})),
        ]


def test_a_database_answers_as_a_file(server: Server, tmp_path: Path) -> None:
    RunStore.create(tmp_path / "there.db")
    assert _fill(tmp_path / "there.db") == _fill(tmp_path / "here.db")
    assert not (tmp_path / "there.db").exists()
