"""The words of a run put plainly: outcomes, steps, states."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coreeval.releases.manifest import Manifest

OUTCOMES: dict[str, str] = {
    "accepted": "rewritten with recent facts, checked and judged",
    "rejected_facts": "the news did not carry all that was written",
    "rejected_label": "the new text no longer had its label",
    "rejected_form": "wrong length, too close to its sources, or a word that must stay was lost",
    "label_unrecoverable": "a judge who was not told the label gave the original another one",
    "unsafe": "too sensitive to rewrite",
    "no_knowledge": "no recent news fitted it",
    "failed": "a step or a model call failed; it can be retried",
    "pending": "not finished yet",
}
STATES: dict[str, str] = {
    "running": "running",
    "interrupted": "interrupted by a signal",
    "stopped": "stopped by an error",
    "killed": "its process is gone without having finished",
    "complete": "complete",
}
STEPS: dict[str, str] = {
    "extract": "what the text mentions, and what must stay",
    "judge_original": "a judge labels the original without being told its label",
    "reword": "the same facts in other words: the semantic text",
    "judge_semantic": "a judge labels the semantic text",
    "retrieve": "looking for news",
    "replace": "choosing the news and the facts that change",
    "compose": "writing the updated text",
    "check": "checks that need no model",
    "reflect": "two judges: are the facts supported, does the label hold?",
}
RUNGS: dict[str, str] = {
    "named": "by what the text names",
    "alias": "by other names for what the text names",
    "concept": "by what the text is about",
    "sibling": "by something of the same kind",
    "structure": "by news that is built alike",
    "none": "by no query",
}


def outcome_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each outcome that occurred: name, number, meaning."""
    for name, meaning in OUTCOMES.items():
        if counts.get(name):
            yield f"  {name:<20}{counts[name]:>8}   {meaning}"


def offline_roles(manifest: "Manifest") -> list[str]:
    """Return the roles that rules play in a run."""
    from coreeval.config import ModelsConfig

    return list(ModelsConfig.model_validate(manifest.models).ruled)


def offline_note(roles: list[str]) -> list[str]:
    """Return a line saying that rules played these roles; none if a model played them all."""
    from coreeval.config import ROLES

    who = "every role" if len(roles) == len(ROLES) else ", ".join(roles)
    return [f"offline: {who} played by rules, which show the workings, not a model"] * bool(roles)
