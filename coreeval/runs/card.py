"""The dataset card of a run: README.md of the dataset folder, read by people and by `datasets`.

The card of a release uses the same parts: front matter, tables, and notes on rules and windows.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coreeval.config import Config, ModelsConfig
from coreeval.evaluation.comparability.rows import MeasureRow, list_rows
from coreeval.evaluation.comparability.verdict import Comparability
from coreeval.meanings import COMPARABILITY
from coreeval.project import name_in_markdown
from coreeval.runs.arms import shard_name
from coreeval.runs.languages import describe_language
from coreeval.runs.manifest import Cost, Manifest
from coreeval.runs.sources import SourceTerms, count_sources, describe_sources
from coreeval.schema import Precision, Task
from coreeval.tasks import kind_of
from coreeval.tasks.kinds import ColumnType
from coreeval.tools.cutoffs import LatestDate, TargetFreshness
from coreeval.tools.files import read_parquet, write_text
from coreeval.tools.formatting import format_usd
from coreeval.tools.knowledge import describe_coverage
from coreeval.tools.local_paths import strip_paths
from coreeval.tools.markdown import code_table_cell, dump_front_matter, escape
from coreeval.tools.tables import Foreign, Row, markdown_table

SYNTHETIC = """\
**The texts of the updated and semantic arms are synthetic**: a program wrote them from benchmark
samples and dated news. They are not statements by the authors of the originals, and the people,
companies and places they name did not take part in making them."""


def front_matter(name: str, split: str, arms: Iterable[str], task: Task) -> dict[str, object]:
    """Return the card's YAML for `datasets` and hubs; the first arm is the default config.

    Args:
        name: The name of the benchmark.
        split: The split in the files.
        arms: The folders with rows; `datasets` cannot load a config without rows.
        task: The task, with the language of the texts and the question about them.
    """
    return {
        "pretty_name": f"CoreEval {name}",
        "language": [task.language],
        "task_categories": [kind_of(task).display.hub_task],
        "tags": ["coreeval", "contamination", "synthetic"],
        "configs": [
            {
                "config_name": arm,
                **({"default": True} if place == 0 else {}),
                "data_files": [{"split": split, "path": f"{arm}/{split}-*.parquet"}],
            }
            for place, arm in enumerate(arms)
        ],
    }


def describe_gold(task: Task) -> str:
    """Return the section on the gold: the labels, or the columns that contain it."""
    kind = kind_of(task)
    if not kind.display.columns:
        rows = ((one.id, Foreign(one.name), Foreign(one.meaning)) for one in task.labels)
        return f"## Labels\n\n{markdown_table('label', 'name', 'meaning', rows=rows)}"
    told = kind.display.columns
    columns = (
        (Foreign(name), _COLUMN_TYPES[form], told.get(name, "text that is shown"))
        for name, form in kind.columns(task).items()
    )
    table = markdown_table("column", "type", "contents", rows=columns)
    return f"## What a sample is\n\n{kind.display.about}\n\n{table}"


_COLUMN_TYPES: Mapping[ColumnType, str] = {
    "string": "text",
    "int64": "integer",
    "strings": "list of texts",
}


def count_table(counts: Mapping[str, int]) -> str:
    """Return the table of outcomes."""
    return markdown_table("outcome", "samples", rows=counts.items())


def model_table(models: Mapping[str, object]) -> str:
    """Return the table of roles and their models."""
    rows = ((role, Foreign(_model_names(model))) for role, model in models.items())
    return markdown_table("role", "model", rows=rows)


def _model_names(model: object) -> str:
    """Return the names of a role's model, or of the targets."""
    several = model if isinstance(model, list) else [model]
    return ", ".join(str(one["model"]) for one in several if isinstance(one, dict)) or "none"


def describe_start(start: LatestDate | None) -> str:
    """Describe the date behind an automatic start of the news window."""
    if start is None:
        return ""
    what = "release" if start.kind == "released" else "cutoff"
    known = f"{start.confidence}: {escape(start.source)}"
    return f"; it starts after the {what} of {escape(start.target)} ({known})"


def describe_freshness(targets: Sequence[TargetFreshness]) -> str:
    """Describe the share of evidence newer than each target's cutoff; empty without targets."""
    if not targets:
        return ""
    heads = ("target", "accepted samples after its cutoff", "of these, by crawl time", "unknown")
    rows = (
        (Foreign(one.target), f"{one.after} of {one.sample_count}", one.by_crawl, one.unknown)
        for one in targets
    )
    return f"""{markdown_table(*heads, rows=rows)}

Here, a target's cutoff is the later of the end of its training data and its release. A sample is
after a cutoff if all its evidence was published after that date; the `after_cutoff` column of
provenance names the targets for which this is so. "By crawl time" means that only the time at which
GDELT saw a page is known, so the page may be older.

"""


def describe_offline_roles(roles: Sequence[str]) -> str:
    """Describe the roles that rules played; empty if models played all of them."""
    if not roles:
        return ""
    who = ", ".join(roles)
    return (
        f"\n**Offline roles** ({who}) were played by rules. Their texts are a baseline, not what a "
        "model would write.\n"
    )


def describe_unchecked(language: str) -> str:
    """Describe the checks that code lacks in a language; empty for English."""
    told = describe_language(language)
    return f"\n**{told[0].upper()}{told[1:]}.** The judges still read every text.\n" if told else ""


def describe_fill(on_reject: str) -> str:
    """Describe the substitute for rejected samples in the updated arm."""
    if on_reject == "drop":
        return ""
    return f"; rejected samples appear with their {on_reject} text (see `outcome`)"


def describe_precision(precision: Precision) -> str:
    """Describe how certain a publication time is."""
    meanings: dict[Precision, str] = {
        "exact": "exact: stated by the page",
        "url": "url: a date in the URL",
        "cluster": "cluster: taken from another report of the same event",
        "crawl": "crawl: when GDELT saw the page, which may be later than its publication",
    }
    return meanings[precision]


def describe_comparability(found: Comparability | None) -> str:
    """Return the section on the similarity of the arms; empty if it was not measured."""
    if found is None:
        return ""
    differences = "".join(f"- {escape(each)}\n" for each in found.sentences)
    rows = "\n".join(map(_measure_row, list_rows(found)))
    return f"""## Is the updated arm comparable with the original?

**{COMPARABILITY[found.verdict]}**

{differences}
Both arms are compared on the same {found.compared} accepted samples, with 95 % intervals.

| measure | | original | updated | value or difference | alike |
|---|---|---|---|---|---|
{rows}

"""


def _measure_row(row: MeasureRow) -> str:
    title = escape("; ".join((row.title, *row.notes)))
    value = f"{row.value} ({row.span}{', ' if row.span else ''}n = {row.n:,})"
    told = (title, row.word.replace("_", " "), row.original, row.updated, value, row.range)
    return f"| {' | '.join(told)} |"


def describe_cost(cost: Cost) -> str:
    """Return the section on the cost of a run's calls; empty if it paid for none."""
    if not cost.billed_calls:
        return ""
    paid = [row for row in cost.by_model if not row["cached"]]
    rows: list[Row] = [(Foreign(row["model"]), *_cost_cells(row, _row_usd(row))) for row in paid]
    if len(paid) > 1:
        total = {"calls": cost.billed_calls} | cost.model_dump(include=set(_TOKENS))
        rows.append(("all", *_cost_cells(total, cost.billed_usd)))
    known = f"{cost.cached_calls:,} more answers came from the call store and cost nothing."
    more = f" Calls with an unknown outcome may cost up to {cost.unknown_usd:.2f} USD more."
    return f"""## What it cost

{markdown_table("model", "calls", "prompt tokens", "answer tokens", "cost", rows=rows)}

The table lists the calls that the run paid for, including those to targets. {known}\
{more if cost.unknown_usd else ""}

"""


_TOKENS = ("prompt_tokens", "completion_tokens")


def _row_usd(row: Mapping[str, Any]) -> float | None:
    """Return the cost of the calls to a model; None if one of them has no known price."""
    return row["usd"] if row["priced"] == row["calls"] else None


def _cost_cells(sums: Mapping[str, Any], usd: float | None) -> tuple[str, str, str, str]:
    prompt, completion = (f"{sums.get(name, 0):,}" for name in _TOKENS)
    return (f"{sums['calls']:,}", prompt, completion, format_usd(usd))


def write_card(
    folder: Path,
    task: Task,
    config: Config,
    manifest: Manifest,
    rows: dict[str, int],
    *,
    comparability: Comparability | None = None,
) -> None:
    """Write the dataset card to the folder of the arms."""
    arms = [name for name in ("updated", "semantic", "control", "provenance") if rows.get(name)]
    head = front_matter(config.name, config.dataset.split, arms, task)
    told = dump_front_matter(head).strip()
    sources = describe_sources(_read_sources(folder, config.dataset.split))
    body = _card_body(task, config, manifest, rows, comparability)
    write_text(
        folder / "README.md",
        f"---\n{told}\n---\n\n{body}\n\n## Sources and licences of the news\n\n{sources}\n",
    )


def _read_sources(folder: Path, split: str) -> tuple[SourceTerms, ...]:
    """Return the sources of the facts in the provenance of a dataset."""
    file = folder / "provenance" / shard_name(split)
    if not file.exists():
        return ()
    return count_sources((row["source"], row["licence"]) for row in read_parquet(file))


def _card_body(
    task: Task,
    config: Config,
    manifest: Manifest,
    rows: dict[str, int],
    comparability: Comparability | None,
) -> str:
    fill = describe_fill(config.run.on_reject)
    return f"""# {config.name}

{escape(task.description)} Refreshed by {name_in_markdown()} {manifest.fingerprints.code}.

{SYNTHETIC}
{describe_offline_roles(ModelsConfig.model_validate(manifest.models).rule_based_roles)}\
{describe_unchecked(task.language)}
| arm | rows | contents |
|---|---|---|
| updated | {rows["updated"]} | rewritten with recent facts, checked and judged{fill} |
| semantic | {rows["semantic"]} | samples reworded with the same facts |
{_control_row(manifest, rows)}\
| provenance | {rows["provenance"]} | one row per replaced fact: old triple, new triple, evidence |

{describe_comparability(comparability)}\
{describe_gold(task)}

## How it was made

{_origin_rows(manifest)}

{model_table(strip_paths(manifest.models, *manifest.source.bases))}

{count_table(manifest.counts)}

{describe_cost(manifest.cost)}\
{describe_freshness(manifest.after_cutoff)}\
Compare arms only on the samples that both arms contain, matched by `id`."""


def _origin_rows(manifest: Manifest) -> str:
    """Return the table of a run's start time and news."""
    window, news, start = manifest.window, manifest.knowledge, describe_start(manifest.window_start)
    return f"""| | |
|---|---|
| run | {code_table_cell(manifest.run)}, started {manifest.created_at} |
| news window | {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded){start} |
| news | {escape(describe_coverage(news.coverage))} ({news.backend}) |
| least certain publication time accepted | {describe_precision(news.min_precision)} |
| bad rows of the benchmark | {manifest.bad_rows} |"""


def _control_row(manifest: Manifest, rows: dict[str, int]) -> str:
    """Return the row of the control arm with its line break; empty without a control arm."""
    if manifest.control is None:
        return ""
    window = manifest.control.window
    return (
        f"| control | {rows['control']} | rewritten as in the updated arm, with news from "
        f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d}, before the targets' cutoffs |\n"
    )
