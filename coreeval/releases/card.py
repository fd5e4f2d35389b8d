"""The dataset card: README.md of the dataset folder, read by people and by `datasets`."""

from pathlib import Path

from coreeval.config import Config
from coreeval.releases.card_words import (
    ATTRIBUTION,
    SYNTHETIC,
    count_rows,
    fill_told,
    fresh_told,
    front_matter,
    label_rows,
    model_rows,
    offline_told,
    precision_told,
    start_told,
)
from coreeval.releases.manifest import Manifest
from coreeval.releases.markdown import code_cell, front_matter_text, plain
from coreeval.schema import Task
from coreeval.tools.files import write_text
from coreeval.tools.knowledge import describe_coverage


def write_card(
    folder: Path, task: Task, config: Config, manifest: Manifest, rows: dict[str, int]
) -> None:
    """Write the card beside the arms."""
    arms = [name for name in ("updated", "semantic", "control", "provenance") if rows.get(name)]
    head = front_matter(config.name, config.dataset.split, arms)
    told = front_matter_text(head).strip()
    write_text(folder / "README.md", f"---\n{told}\n---\n\n{_body(task, config, manifest, rows)}\n")


def _body(task: Task, config: Config, manifest: Manifest, rows: dict[str, int]) -> str:
    window, news, start = manifest.window, manifest.knowledge, start_told(manifest.window_start)
    fill = fill_told(config.run.on_reject)
    return f"""# {config.name}

{plain(task.description)} Refreshed by CoreEval {manifest.fingerprints.code}.

{SYNTHETIC}
{offline_told(config.models.rule_based_roles)}
| arm | rows | what it holds |
|---|---|---|
| updated | {rows["updated"]} | rewritten with recent facts, checked and judged{fill} |
| semantic | {rows["semantic"]} | samples reworded with the same facts |
{_control_row(manifest, rows)}\
| provenance | {rows["provenance"]} | one row per replaced fact: old triple, new triple, evidence |

## Labels

| label | name | meaning |
|---|---|---|
{label_rows(task)}

## How it was made

| | |
|---|---|
| run | {code_cell(manifest.run)}, started {manifest.created_at} |
| news window | {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded){start} |
| news | {plain(describe_coverage(news.coverage))} ({news.backend}) |
| least certain publication time accepted | {precision_told(news.min_precision)} |
| bad rows of the benchmark | {manifest.bad_rows} |

| role | model |
|---|---|
{model_rows(manifest.models)}

| outcome | samples |
|---|---|
{count_rows(manifest.counts)}

{fresh_told(manifest.after_cutoff)}Compare arms only on samples that both have (`id`).

## Attribution

{ATTRIBUTION}"""


def _control_row(manifest: Manifest, rows: dict[str, int]) -> str:
    """Return the row of the control arm, with its line end; empty where there is none."""
    if manifest.control is None:
        return ""
    window = manifest.control.window
    return (
        f"| control | {rows['control']} | rewritten as the updated arm is, with news from "
        f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d}, before the targets' cutoffs |\n"
    )
