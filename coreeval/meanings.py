"""What the words of a run mean, for people: outcomes, states, steps and rungs."""

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
    "waiting": "waiting for batches",
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
COMPARABILITY: dict[str, str] = {
    "comparable": "The updated arm is as long, as hard and about the same as the original.",
    "not_comparable": (
        "The updated arm is not comparable with the original: a score that differs between them "
        "need not be memory."
    ),
    "cannot_tell": "Whether the updated arm is comparable with the original cannot be told yet.",
}
"""What each verdict on both arms says."""
