"""Explains why a complete run accepted no sample, and what to do."""

from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.meanings import OUTCOMES
from coreeval.tools.formatting import format_quantity
from coreeval.tools.knowledge import describe_coverage
from coreeval.tools.terminal import command

if TYPE_CHECKING:
    from coreeval.runs.manifest import Manifest


_WRITE_BETTER = "a more capable model may do better: test a few samples with coreeval prompts try"
_TO_DO = {
    "no_knowledge": "download more news (coreeval gdelt sync), widen knowledge.window, or use a "
    "more capable model, which finds more matches",
    "rejected_facts": _WRITE_BETTER,
    "rejected_label": _WRITE_BETTER,
    "rejected_form": _WRITE_BETTER,
    "label_unrecoverable": "describe each label more clearly in the task file, or use a more "
    "capable models.label_judge",
    "unsafe": "check what the config allows under safety: coreeval docs safety",
    "failed": "fix the cause, then run coreeval retry RUN",
}


def explain_no_result(run: Path, manifest: "Manifest") -> str | None:
    """Return why no sample was accepted, and what to do; None if some were or it is not over."""
    counts = {name: count for name in OUTCOMES if (count := manifest.counts.get(name, 0))}
    if manifest.status != "complete" or not counts or "accepted" in counts:
        return None
    ended = max(counts, key=lambda name: counts[name])
    held = f" ({_describe_news(manifest)})" if ended == "no_knowledge" else ""
    total = format_quantity(manifest.counts["total"], "sample")
    return (
        f"no sample was accepted; {counts[ended]} of {total} ended as "
        f"{ended}: {OUTCOMES[ended]}{held}\n"
        f"  to do: {_TO_DO[ended]}{_less_certain_news(manifest) * (ended == 'no_knowledge')}\n"
        f"  see:   {command('trace', run, '--outcome', ended)}"
    )


def _describe_news(manifest: "Manifest") -> str:
    window, known = manifest.window, manifest.knowledge.coverage
    span = f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d}"
    if known.articles is None:
        return f"from {span}"
    return f"{span} has {describe_coverage(known)}"


def _less_certain_news(manifest: "Manifest") -> str:
    """Return how much of the store `knowledge.min_precision` excluded; "" if nothing."""
    from coreeval.tools.cutoffs import CERTAIN_FIRST

    used = manifest.knowledge
    held = CERTAIN_FIRST[CERTAIN_FIRST.index(used.min_precision) + 1 :]
    counts = {one: n for one in held if (n := used.stats.get("precision", {}).get(one, 0))}
    if not counts:
        return ""
    return (
        f"; or set knowledge.min_precision: {list(counts)[-1]} (the store has "
        f"{sum(counts.values()):,} more articles, with less certain publication times)"
    )
