"""What a run says of the prices that it rests on when it starts."""

from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress
from coreeval.graph.run import refresh, resume
from tests.graph.kit import CONCURRENCY, Lab


def test_a_run_says_once_that_a_price_is_old(lab: Lab) -> None:
    prices = lab.folder / "mine.yaml"
    prices.write_text("openai:scripted: {input: 1, output: 2, as_of: 2025-01-01, source: me}\n")
    lab.write(run={"concurrency": CONCURRENCY, "prices": str(prices)})
    told = list[Progress]()
    hooks = RunHooks(watch=told.append)
    refresh(lab.config, limit=2, run_dir=lab.files.root, around=hooks)
    for after in ("refresh", "resume"):
        notes = [one.note for one in told if "looked up on 2025-01-01" in one.note]
        assert len(notes) == 1, f"{after}: {notes}"
        assert "openai:scripted" in notes[0] and "(mine.yaml)" in notes[0]
        told.clear()
        resume(lab.files.root, around=hooks)
