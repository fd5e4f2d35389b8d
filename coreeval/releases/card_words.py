"""Words that the card of a run and that of a release have in common."""

from collections.abc import Iterable, Mapping, Sequence

from coreeval.releases.markdown import plain
from coreeval.schema import Task
from coreeval.tools.cutoffs import LatestDate, TargetFreshness

ATTRIBUTION = (
    "News metadata comes from the GDELT Project (https://www.gdeltproject.org/); headlines and "
    "excerpts belong to their publishers and are quoted, at most 200 characters, with their URL."
)
SYNTHETIC = """\
**The texts of the updated and semantic arms are synthetic**: a program wrote them from benchmark
samples and dated news. They are no statements by the authors of the originals, and the people,
companies and places they name did not take part in making them."""


def front_matter(name: str, split: str, arms: Iterable[str]) -> dict[str, object]:
    """Return what `datasets` and hubs read of a card; the first arm is the default one.

    Args:
        name: The benchmark's.
        split: The split that the files hold.
        arms: Folders that have rows: `datasets` cannot load a config without any.
    """
    return {
        "pretty_name": f"CoreEval {name}",
        "language": ["en"],
        "task_categories": ["text-classification"],
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


def label_rows(task: Task) -> str:
    """Return the rows of a table of labels."""
    return "\n".join(
        f"| {label.id} | {plain(label.name)} | {plain(label.meaning)} |" for label in task.labels
    )


def count_rows(counts: Mapping[str, int]) -> str:
    """Return the rows of a table of outcomes."""
    return "\n".join(f"| {name} | {number} |" for name, number in counts.items())


def model_rows(models: Mapping[str, object]) -> str:
    """Return the rows of a table of roles and the models that played them."""
    return "\n".join(f"| {role} | {plain(_names(model))} |" for role, model in models.items())


def _names(model: object) -> str:
    """Return the names of a role's model, or of the targets."""
    several = model if isinstance(model, list) else [model]
    return ", ".join(str(one["model"]) for one in several if isinstance(one, dict)) or "none"


def start_told(start: LatestDate | None) -> str:
    """Say what an automatic start of the window rests on."""
    if start is None:
        return ""
    what = "release" if start.kind == "released" else "cutoff"
    known = f"{start.confidence}: {plain(start.source)}"
    return f"; starts after the {what} of {plain(start.target)} ({known})"


def fresh_told(targets: Sequence[TargetFreshness]) -> str:
    """Return how much of the evidence is newer than each target; nothing without targets."""
    if not targets:
        return ""
    lines = "\n".join(
        f"| {plain(one.target)} | {one.after} of {one.sample_count} | {one.by_crawl} "
        f"| {one.unknown} |"
        for one in targets
    )
    return f"""| target | accepted, with evidence after its cutoff | by crawl time | unknown |
|---|---|---|---|
{lines}

A target's cutoff is here the later of the end of its training data and its release. All evidence of
such a sample was published after it; `after_cutoff` in provenance names its targets. Where only the
time is known at which GDELT saw a page (by crawl time), the page may be older.

"""


def offline_told(roles: Sequence[str]) -> str:
    """Return a paragraph about the roles that rules played; nothing if models played them all."""
    if not roles:
        return ""
    who = ", ".join(roles)
    return f"\n**Offline roles** ({who}) are rules: a baseline, not what a model would write.\n"


def fill_told(on_reject: str) -> str:
    """Say what stands in the updated arm for rejected samples."""
    if on_reject == "drop":
        return ""
    return f"; rejected ones stand in with their {on_reject} text (see `outcome`)"


def precision_told(precision: str) -> str:
    """Return how certain a publication time is."""
    meanings = {
        "exact": "exact: stated by the page",
        "url": "url: a date in the URL",
        "cluster": "cluster: that of another report of the same event",
        "crawl": "crawl: when GDELT saw the page, which may be later than its publication",
    }
    return meanings[precision]
