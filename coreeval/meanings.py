"""Descriptions of outcomes, states, steps, rungs and checks for people."""

import re

OUTCOMES: dict[str, str] = {
    "accepted": "rewritten with recent facts, checked and judged",
    "rejected_facts": "the news did not support the whole text",
    "rejected_label": "the new text no longer had its label, or its answer or options were wrong",
    "rejected_form": "a check of its form failed: length, copied or lost words, a tell-tale option",
    "label_unrecoverable": "a blind judge gave the original a different label",
    "unsafe": "too sensitive to rewrite",
    "no_knowledge": "no recent news fits",
    "failed": "a step or a model call failed",
    "pending": "not finished yet",
}
STATES: dict[str, str] = {
    "running": "running",
    "interrupted": "interrupted by a signal",
    "waiting": "waiting for batches",
    "stopped": "stopped by an error",
    "killed": "its process died before finishing",
    "complete": "complete",
}
RUN_STATES = ("running", "interrupted", "stopped", "waiting", "killed", "complete", "damaged")
"""The states that a list of runs can be filtered by."""
STEPS: dict[str, str] = {
    "extract": "finding what the text mentions and what must stay",
    "judge_original": "judging the label of the original without knowing it",
    "reword": "stating the same facts in other words: the semantic text",
    "judge_semantic": "judging the label of the semantic text without knowing it",
    "retrieve": "searching for news",
    "replace": "choosing the news and the facts to change",
    "compose": "writing the updated text",
    "check": "running the checks that need no model",
    "reflect": "judging whether the facts are supported and the label is still right",
}
RUNGS: dict[str, str] = {
    "named": "by what the text names",
    "alias": "by other names for what the text names",
    "concept": "by what the text is about",
    "sibling": "by something of the same kind",
    "structure": "by news with a similar structure",
    "none": "by no query",
}
COMPARABILITY: dict[str, str] = {
    "comparable": "The updated arm is equivalent to the original in length, difficulty and topic.",
    "not_comparable": (
        "The updated arm is not comparable with the original: a score difference between "
        "them may have other causes than memory."
    ),
    "cannot_tell": "It is not yet clear whether the updated arm is comparable with the original.",
}
"""The meaning of each verdict on both arms."""
CHECKS: dict[str, str] = {
    "address": "a link that is not in the original",
    "answer_length": "the answer is too long",
    "answer_missing": "the answer is not in its context",
    "answer_told": "the text gives the answer away",
    "answer_type": "the answer has a different type",
    "answer_words": "words of the answer are not in the news",
    "answers": "the accepted answers do not fit",
    "before": "a change replaces something that the text does not say",
    "catch_all": "an option that covers several others",
    "conduct": "a person's conduct that the news does not support",
    "copied_headline": "a headline is copied",
    "copied_original": "the original is copied",
    "dates": "a date that the news does not support",
    "delete": "a deleted passage does not occur in the text",
    "differs": "the text is identical to the original",
    "document_length": "the document is too long or too short",
    "ease": "the label is easier to find than the original's",
    "emoji": "a different number of emoji",
    "evidence_id": "the cited news was not offered",
    "facts_attribution": "judge of facts: said by someone else",
    "facts_date": "judge of facts: different date",
    "facts_identity": "judge of facts: about someone or something else",
    "facts_memory": "judge of facts: from memory, not from the news",
    "facts_modality": "judge of facts: more certain than the news",
    "facts_number": "judge of facts: different number",
    "facts_person": "judge of facts: harm to a real person",
    "facts_relation": "judge of facts: different relation",
    "facts_stale": "judge of facts: no longer true",
    "facts_unjudged": "judge of facts: nothing was judged",
    "facts_unsupported": "judge of facts: not supported by the news",
    "field": "a change names a field that does not exist",
    "fields": "fields are missing or added",
    "figures": "more figures than the author would write",
    "fluency": "less natural than the original",
    "habits": "the author's writing habits are lost",
    "harm": "harm to a real person",
    "headline_run": "many words of a headline in the same order",
    "headline_style": "the style of a headline",
    "hashtags": "more hashtags than its original",
    "hidden_signs": "invisible characters",
    "instructions": "instructions to a reader or a model",
    "label": "judge of labels: different label",
    "label_told": "the text reveals its label",
    "language": "another language",
    "leftover": "a replaced name was left in the text",
    "length": "much longer or shorter than the original",
    "length_cue": "the length of the right option gives it away",
    "line_breaks": "line breaks that are not in the original",
    "lock": "words that must stay are lost",
    "markers": "signs of the label are lost",
    "marks": "punctuation that is not in the original",
    "mentions": "@names that differ from the original",
    "modality": "more certain than the news",
    "names": "a name that the news does not support",
    "needs_no_passage": "the question can be answered without the passage",
    "negation": "a negation was added or lost",
    "numbers": "a number that the news does not support",
    "old_answer": "the old answer is still right",
    "options": "the options do not fit",
    "person": "a real person in a sensitive matter",
    "persons": "a person whom the news does not support",
    "plan_content": "the plan contains nothing to write",
    "profanity": "coarse words were added",
    "program": "the calculation does not work",
    "quotation": "a quotation was changed or made up",
    "quote": "the cited passage is not in the news",
    "relation": "a relation that the news does not state",
    "right_option": "the news does not support the right option",
    "second_right": "a second option is also right",
    "shared_words": "the two fields share more or fewer words than the original's",
    "statement_index": "a change cites a statement that is not in the plan",
    "statement_numbers": "a statement's number is not in its news",
    "statement_words": "a statement's words are not in its news",
    "summary_length": "the summary is too long",
    "summary_names": "a name of the summary is not in its document",
    "summary_numbers": "a number of the summary is not in its document",
    "takedown": "a name or article on the takedown list",
    "target": "the target of the stance is lost",
    "triple_numbers": "a change's number is not in its news",
    "triple_words": "a change's words are not in its news",
    "type_cue": "the type of the right option gives it away",
    "weak_option": "an implausible option",
    "window": "a time outside the news window",
}
"""The defect that each check or judge finds."""
_CHECK = re.compile(r"(^|; )([a-z_]+): ")


def describe_cause(cause: str) -> str:
    """Describe why samples were left out; the name of a check becomes the defect that it found."""
    return CHECKS.get(cause) or cause.replace("_", " ")


def describe_reason(reason: str) -> str:
    """Return a reason with descriptions in place of the names of checks."""
    told = _CHECK.sub(lambda found: f"{found[1]}{describe_cause(found[2])}: ", reason)
    return told.replace("no_news for ", "no news for ")
