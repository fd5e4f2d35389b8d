"""What refreshing each of the five tasks costs by `coreeval estimate`: the table of docs/cost.md.

    python -m benchmarks.cost_table

Prompts are rendered on the bundled samples of each task, and the likely cost of a sample is carried
over to the benchmark's test set. Nothing is asked. Live calls of a role are taken to find its
instructions in the provider's cache, all but the first: a run would ask about all bundled samples
at once and find nothing, but of a test set these are few. The second refresh comes a month after
the first with `--from latest --stale-after 90d`, in the same workspace.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from coreeval.graph.bundled import DATASETS, WINDOW, demo_data
from coreeval.graph.estimate.model import CostEstimate, Range
from coreeval.graph.estimate.run_estimate import estimate
from coreeval.tools.catalogs import load_built_in_prices
from coreeval.tools.formatting import format_expected_time
from coreeval.tools.tables import markdown_table

SAMPLES = {"emotion": 1421, "irony": 784, "stance": 1249, "mrpc": 1725, "rte": 277}
"""The test sets of the CoreEval paper; RTE's is GLUE's development set."""
MODELS = {
    "small": "openai:gpt-5-mini",
    "middle": "anthropic:claude-sonnet-5",
    "large": "openai:gpt-5.5",
}
ACCEPTED = 49 / 60
"""Accepted samples of the last trial (docs/quality.md)."""
STILL_FRESH = 2 / 3
"""Accepted samples whose evidence is younger than 90 days a month later, if its days are spread
evenly over the 90 days before the first refresh."""
ASKED_ANEW = 3.00 / 5.15
"""Calls of a sample that a second refresh asks anew, of those of the first (docs/quality.md): what
rests on the original alone is answered already."""
SECOND = (1 - ACCEPTED * STILL_FRESH) * ASKED_ANEW
"""What a second refresh costs as a share of the first."""


def main() -> None:
    """Print the table, and what it rests on."""
    with tempfile.TemporaryDirectory() as folder:
        found = {
            (task, size): _estimate(Path(folder), task, model)
            for task in SAMPLES
            for size, model in MODELS.items()
        }
    heads = ("task", "samples", "refresh", *(f"{size}: live / batch" for size in MODELS))
    print(markdown_table(*heads, rows=_rows(found)))
    print()
    print("\n".join(describe_terms()))
    batch = next(iter(found.values())).batch
    assert batch
    ends = (batch.seconds.low, batch.seconds.likely, batch.seconds.high)
    low, likely, high = map(format_expected_time, ends)
    print(f"- a refresh in batches takes {low} (low), {likely} (likely) or {high} (high)")


def describe_terms() -> list[str]:
    """Return the prices of the table, each with its day, and what the second refresh costs."""
    prices = load_built_in_prices()
    terms = [
        f"- {size}: `{model}`, {price.input:g} and {price.output:g} USD per million prompt and "
        f"answer tokens ({price.batch_input:g} and {price.batch_output:g} USD in a batch), as of "
        f"{price.as_of}"
        for size, model in MODELS.items()
        for price in [prices[model]]
    ]
    kept = f"{100 * ACCEPTED * STILL_FRESH:.0f} % of the samples are kept"
    return [*terms, f"- second refresh: costs {SECOND:.2f} times as much as the first; {kept}"]


def _rows(found: dict[tuple[str, str], CostEstimate]) -> Iterator[tuple[str, ...]]:
    for task, samples in SAMPLES.items():
        for refresh, share in (("first", 1.0), ("second", SECOND)):
            cells = (_cell(found[task, size], samples, share) for size in MODELS)
            yield (task, f"{samples:,}", refresh, *cells)


def _cell(made: CostEstimate, samples: int, share: float) -> str:
    factor = share * samples / made.samples
    assert made.batch, "the model has no batch price"
    return " / ".join(_format_usd(usd, factor) for usd in (made.totals.usd, made.batch.usd))


def _format_usd(usd: Range | None, factor: float) -> str:
    assert usd, "a model of the table has no price"
    return f"{usd.likely * factor:,.2f}"


def _estimate(folder: Path, task: str, model: str) -> CostEstimate:
    data = demo_data()
    config = {
        "name": f"cost-{task}",
        "task": task,
        "dataset": {**DATASETS[task], "path": str(data / DATASETS[task]["path"]), "split": "test"},
        "knowledge": {"path": str(data / "news"), "window": WINDOW, "min_precision": "crawl"},
        "models": {"default": model},
        "run": {"concurrency": 1},
    }
    path = folder / f"{task}.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return estimate(path)


if __name__ == "__main__":
    main()
