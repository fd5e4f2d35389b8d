"""Option shuffle: the content of the options changes places, the right letter moves along."""

import re

from coreeval.evaluation.benchmarks.options import Span, option_spans
from coreeval.evaluation.modifications.order import derangement
from coreeval.evaluation.modifications.outcome import Modified, Unmodified
from coreeval.schema import Item

_REFERS = re.compile(
    r"\b(?:all|none|any|both|either|neither|some) of the (?:above|below|others?|other options)\b"
    r"|\b(?:options?|answers?|choices?) [A-Z]\b|\b[A-Z] (?:and|or|nor) [A-Z]\b"
    r"|以上(?:选项|[都均皆全各])|上述(?:选项|[都均皆全各])|[A-Z][、和或及][A-Z]"
)
"""An option about other options, by their place: moved, it would say something else."""


def shuffle_options(item: Item, *, seed: int) -> Modified | Unmodified:
    """Give every option letter the text of another one, and the answer its new letter.

    The paper's authors only see to it that the order differs; here no option stays where it was.
    """
    letters, texts = list(item.options), list(item.options.values())
    answer = item.output.strip()
    if reason := _obstacle(item, answer):
        return Unmodified(id=item.id, reason=reason)
    order = derangement([" ".join(text.split()) for text in texts], seed=seed, key=item.id)
    spans = option_spans(item.input, item.options)
    if order is None or spans is None:
        reason = "options are equal" if spans else "the input does not show the options"
        return Unmodified(id=item.id, reason=reason)
    options = {letter: texts[came] for letter, came in zip(letters, order, strict=True)}
    moved = {letters[came]: letter for letter, came in zip(letters, order, strict=True)}
    twin = item.model_copy(
        update={
            "input": _replaced(item.input, {spans[letter]: options[letter] for letter in letters}),
            "options": options,
            "output": moved.get(answer, item.output),
        }
    )
    return Modified(item=twin, changes=moved)


def _obstacle(item: Item, answer: str) -> str:
    if len(item.options) < 2:
        return "it has no options"
    if answer and answer not in item.options:
        return f"the output {answer!r} is none of the option letters"
    if any(_REFERS.search(text) for text in item.options.values()):
        return "an option speaks of others by their place"
    return ""


def _replaced(text: str, by_span: dict[Span, str]) -> str:
    for span in sorted(by_span, reverse=True):
        text = text[: span.start] + by_span[span] + text[span.end :]
    return text
