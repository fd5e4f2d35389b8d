"""The dataset card: README.md of the dataset folder, read by people and by `datasets`."""

from pathlib import Path

import yaml

from coreeval.config import Config
from coreeval.releases.manifest import Manifest
from coreeval.schema import Task
from coreeval.tools.files import write_text
from coreeval.tools.knowledge import coverage_told

ATTRIBUTION = (
    "News metadata comes from the GDELT Project (https://www.gdeltproject.org/); headlines and "
    "excerpts belong to their publishers and are quoted, at most 200 characters, with their URL."
)


def write_card(
    folder: Path, task: Task, config: Config, manifest: Manifest, rows: dict[str, int]
) -> None:
    """Write the card beside the arms."""
    head = yaml.safe_dump(_front_matter(config), sort_keys=False).strip()
    write_text(folder / "README.md", f"---\n{head}\n---\n\n{_body(task, config, manifest, rows)}\n")


def _front_matter(config: Config) -> dict[str, object]:
    split = config.dataset.split
    return {
        "pretty_name": f"CoreEval {config.name}",
        "language": ["en"],
        "task_categories": ["text-classification"],
        "tags": ["coreeval", "contamination", "synthetic"],
        "configs": [
            {
                "config_name": arm,
                **({"default": True} if arm == "updated" else {}),
                "data_files": [{"split": split, "path": f"{arm}/{split}-*.parquet"}],
            }
            for arm in ("updated", "semantic", "provenance")
        ],
    }


def _body(task: Task, config: Config, manifest: Manifest, rows: dict[str, int]) -> str:
    window, coverage = manifest.window, manifest.knowledge.coverage
    labels = "\n".join(f"| {label.id} | {label.name} | {label.meaning} |" for label in task.labels)
    counts = "\n".join(f"| {name} | {number} |" for name, number in manifest.counts.items())
    models = "\n".join(f"| {role} | {_model(model)} |" for role, model in manifest.models.items())
    return f"""# {config.name}

{task.description} Refreshed by CoreEval {manifest.fingerprints.code}.

**The texts of the updated and semantic arms are synthetic**: a program wrote them from benchmark
samples and dated news. They are no statements by the authors of the originals, and the people,
companies and places they name did not take part in making them.
{_offline(config)}
| arm | rows | what it holds |
|---|---|---|
| updated | {rows["updated"]} | rewritten with recent facts, checked and judged{_fill(config)} |
| semantic | {rows["semantic"]} | samples reworded with the same facts |
| provenance | {rows["provenance"]} | one row per replaced fact: old triple, new triple, evidence |

## Labels

| label | name | meaning |
|---|---|---|
{labels}

## How it was made

| | |
|---|---|
| run | `{manifest.run}`, started {manifest.created_at} |
| news window | {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded){_start(manifest)} |
| news | {coverage_told(coverage)} ({manifest.knowledge.backend}) |
| least certain publication time accepted | {_precision(manifest.knowledge.min_precision)} |
| bad rows of the benchmark | {manifest.bad_rows} |

| role | model |
|---|---|
{models}

| outcome | samples |
|---|---|
{counts}

{_fresh(manifest)}Compare arms only on samples that both have (`id`).

## Attribution

{ATTRIBUTION}"""


def _start(manifest: Manifest) -> str:
    """Say what an automatic start rests on."""
    start = manifest.window_start
    if start is None:
        return ""
    what = "release" if start.kind == "released" else "cutoff"
    return f"; starts after the {what} of {start.target} ({start.confidence}: {start.source})"


def _fresh(manifest: Manifest) -> str:
    """Return how much of the evidence is newer than each target; nothing without targets."""
    if not manifest.after_cutoff:
        return ""
    lines = "\n".join(
        f"| {one.target} | {one.after} of {one.accepted} | {one.by_crawl} | {one.unknown} |"
        for one in manifest.after_cutoff
    )
    return f"""| target | accepted, with evidence after its cutoff | by crawl time | unknown |
|---|---|---|---|
{lines}

A target's cutoff is here the later of the end of its training data and its release. All evidence of
such a sample was published after it; `after_cutoff` in provenance names its targets. Where only the
time is known at which GDELT saw a page (by crawl time), the page may be older.

"""


def _model(model: object) -> str:
    """Return the names of a role's model, or of the targets."""
    several = model if isinstance(model, list) else [model]
    return ", ".join(str(one["model"]) for one in several if isinstance(one, dict)) or "none"


def _offline(config: Config) -> str:
    """Return a paragraph about the roles that rules played; nothing if models played them all."""
    roles = ", ".join(config.models.ruled)
    if not roles:
        return ""
    return f"\n**Offline roles** ({roles}) are rules: a baseline, not what a model would write.\n"


def _fill(config: Config) -> str:
    if config.run.on_reject == "drop":
        return ""
    return f"; rejected ones stand in with their {config.run.on_reject} text (see `outcome`)"


def _precision(precision: str) -> str:
    meanings = {
        "exact": "exact: stated by the page",
        "url": "url: a date in the URL",
        "cluster": "cluster: that of another report of the same event",
        "crawl": "crawl: when GDELT saw the page, which may be later than its publication",
    }
    return meanings[precision]
