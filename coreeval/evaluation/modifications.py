"""Modifications of items (CAP paper, section 3.5) that keep the answer or change it accordingly.

Option shuffle: the texts of the options change places, and the right letter changes with them.
Label order: a classification prompt lists its labels in another order. Year shift: every year of an
item moves by the same number of years, and the reasoning stays the same. Paraphrase: a model
rewords an item's input, and the meaning is checked.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel

from coreeval.errors import NoValidAnswer
from coreeval.evaluation.benchmarks.item_records import OptionSpan, find_option_spans
from coreeval.evaluation.metrics.text import split_spaces
from coreeval.evaluation.years import FIRST, LAST, Year, find_years
from coreeval.models import InvalidAnswer, OutputSchema
from coreeval.prompts import Prompt, load_built_in_prompt, to_prompt_json
from coreeval.schema import Item, Text, Value
from coreeval.tools.embeddings import Embedder

TRIES = 1000
"""The number of random orders to try; with distinct texts, one in e succeeds."""


def derange(texts: Sequence[str], *, seed: int, key: str) -> list[int] | None:
    """Return an order of the texts' indices in which no index gets its own text.

    Equal texts count as one, so no index gets a text equal to its own. The order is drawn uniformly
    from all such orders, unless equal texts make them too rare: then groups of equal texts are
    rotated. The same seed and key give the same order. Return None if there is no such order.
    """
    most = max(Counter(texts).values(), default=1)
    if 2 * most > len(texts):
        return None
    random, order = Random(f"{seed}:{key}"), list(range(len(texts)))
    for _ in range(TRIES):
        random.shuffle(order)
        if all(texts[place] != texts[came] for place, came in enumerate(order)):
            return order
    grouped = sorted(order, key=texts.__getitem__)
    moved = dict(zip(grouped, grouped[most:] + grouped[:most], strict=True))
    return [moved[place] for place in range(len(texts))]


class ItemTwin(Value):
    """The modified twin of an item, under the same id."""

    item: Item
    changes: dict[str, str]
    """The replacement of each letter of an option, year or label; empty for a paraphrase."""


class NoTwin(Value):
    """The reason why an item has no modified twin; it is excluded from the comparison."""

    id: str
    reason: str


_BETWEEN = re.compile(r"[\W\d_]*(?:(?:or|and|either|或|和|或者)[\W\d_]*)?", re.IGNORECASE)
MOST_BETWEEN = 12
"""The most characters between two labels of one list: `", "`, `" or "`, a line with a bullet."""


def shuffle_label_order(item: Item, labels: Sequence[str], *, seed: int) -> ItemTwin | NoTwin:
    """Move every label in the input's list of labels to another place; the answer stays the same.

    The list is the last place where all labels follow each other with only punctuation, numbers,
    `or` and `and` between them.
    """
    found = _label_list(item.input, labels)
    if not found:
        return NoTwin(id=item.id, reason=f"the input does not list {', '.join(labels)}")
    names = [match.group() for match in found]
    order = derange([name.casefold() for name in names], seed=seed, key=item.id)
    if order is None:
        return NoTwin(id=item.id, reason="there is only one label")
    text = item.input
    for match, came in reversed([*zip(found, order, strict=True)]):
        text = text[: match.start()] + names[came] + text[match.end() :]
    changes = {names[place]: names[came] for place, came in enumerate(order)}
    return ItemTwin(item=item.model_copy(update={"input": text}), changes=changes)


def _label_list(text: str, labels: Sequence[str]) -> list[re.Match[str]]:
    longest_first = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    found = [*re.finditer(rf"(?<!\w)(?:{longest_first})(?!\w)", text, flags=re.IGNORECASE)]
    for start in range(len(found) - len(labels), -1, -1):
        run = found[start : start + len(labels)]
        if len({match.group().casefold() for match in run}) == len(labels) and _is_label_gap(
            text, run
        ):
            return run
    return []


def _is_label_gap(text: str, run: list[re.Match[str]]) -> bool:
    gaps = [text[one.end() : two.start()] for one, two in pairwise(run)]
    return all(len(gap) <= MOST_BETWEEN and _BETWEEN.fullmatch(gap) for gap in gaps)


_REFERS = re.compile(
    r"\b(?:all|none|any|both|either|neither|some) of the (?:above|below|others?|other options)\b"
    r"|\b(?:options?|answers?|choices?) [A-Z]\b|\b[A-Z] (?:and|or|nor) [A-Z]\b"
    r"|以上(?:选项|[都均皆全各])|上述(?:选项|[都均皆全各])|[A-Z][、和或及][A-Z]"
)
"""An option that refers to others by position; moving it would change its meaning."""


def shuffle_options(item: Item, *, seed: int) -> ItemTwin | NoTwin:
    """Assign the text of another option to every option letter, and update the answer's letter.

    The paper's authors only ensure that the order differs; here no option keeps its place.
    """
    letters, texts = list(item.options), list(item.options.values())
    answer = item.output.strip()
    if reason := _find_obstacle(item, answer):
        return NoTwin(id=item.id, reason=reason)
    order = derange([" ".join(text.split()) for text in texts], seed=seed, key=item.id)
    spans = find_option_spans(item.input, item.options)
    if order is None or spans is None:
        reason = "options are equal" if spans else "the input does not show the options"
        return NoTwin(id=item.id, reason=reason)
    options = {letter: texts[came] for letter, came in zip(letters, order, strict=True)}
    moved = {letters[came]: letter for letter, came in zip(letters, order, strict=True)}
    twin = item.model_copy(
        update={
            "input": _replace_spans(
                item.input, {spans[letter]: options[letter] for letter in letters}
            ),
            "options": options,
            "output": moved.get(answer, item.output),
        }
    )
    return ItemTwin(item=twin, changes=moved)


def _find_obstacle(item: Item, answer: str) -> str:
    if len(item.options) < 2:
        return "it has no options"
    if answer and answer not in item.options:
        return f"the output {answer!r} is not one of the option letters"
    if any(_REFERS.search(text) for text in item.options.values()):
        return "an option refers to others by position"
    return ""


def _replace_spans(text: str, by_span: dict[OptionSpan, str]) -> str:
    for span in sorted(by_span, reverse=True):
        text = text[: span.start] + by_span[span] + text[span.end :]
    return text


FLOOR = 0.9
"""The least cosine similarity of the two inputs by MiniLM; see docs/scoring.md for the reasons."""
PIECE = 150
"""The number of words per piece; with subwords and punctuation, as much as MiniLM reads at once."""
_NUMBER = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]*\d+(?:[.,]\d+)*[A-Za-z0-9]*")
"""A number with adjacent letters: `FY14`, or letters next to it because a mark was lost."""
_BLANK = "____"
Answer = TypeVar("Answer", bound=BaseModel)


class ParaphraseClient(Protocol):
    """A `ModelClient` in a role of its own, with the call store."""

    async def ask(
        self,
        messages: Sequence[dict[str, str]],
        output_schema: OutputSchema[Answer],
        *,
        check: Callable[[Answer], None],
    ) -> Answer:
        """Return a valid answer, or raise NoValidAnswer if there is none."""
        ...


class Paraphrase(Value):
    """The answer of the model."""

    input: Text


class Paraphraser:
    """Paraphrases items, and asks again if numbers change or the meaning drifts.

    Args:
        client: The model.
        embeds: Embeds the old and the new text to compare them.
        floor: The least cosine similarity that passes.
        prompt: The prompt; the built-in one by default.
    """

    def __init__(
        self,
        client: ParaphraseClient,
        embeds: Embedder,
        *,
        floor: float = FLOOR,
        prompt: Prompt | None = None,
    ) -> None:
        self._client = client
        self._embeds = embeds
        self._floor = floor
        self._prompt = prompt or load_built_in_prompt("paraphraser")
        self._schema = OutputSchema(Paraphrase)

    async def __call__(self, item: Item) -> ItemTwin | NoTwin:
        """Return a paraphrase of the item, or the reason why there is none.

        Raises:
            ModelCallError: the model could not be reached.
        """
        shown = {"input": item.input, "keep": dict(_count_fixed_parts(item))}
        messages = self._prompt.fill(item=to_prompt_json(shown))
        try:
            said = await self._client.ask(
                messages, self._schema, check=lambda answer: self._check(item, answer.input)
            )
        except NoValidAnswer as error:
            return NoTwin(id=item.id, reason=str(error))
        return ItemTwin(item=item.model_copy(update={"input": said.input}), changes={})

    def _check(self, item: Item, text: str) -> None:
        if " ".join(text.split()) == " ".join(item.input.split()):
            raise InvalidAnswer("it is the input itself")
        if changed := _count_fixed_parts(item) - _count_fixed_parts(item, text) or _count_numbers(
            text
        ) - _count_numbers(item.input):
            raise InvalidAnswer(f"numbers or options were changed: {', '.join(changed)}")
        near = similarity(item.input, text, self._embeds)
        if not near >= self._floor:  # NaN is not a similarity
            raise InvalidAnswer(
                f"it is too far from the input: stay nearer to its words (similarity {near:.3f}, "
                f"at least {self._floor})"
            )


def similarity(first: str, second: str, embeds: Embedder) -> float:
    """Return the cosine similarity of two texts of any length.

    A text's vector is the mean over its pieces, because a small model reads at most a few hundred
    words and would ignore the end of a long text.
    """
    one, other = (embeds(_pieces(text)).astype(np.float64).mean(axis=0) for text in (first, second))
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else 0.0


def _pieces(text: str) -> list[str]:
    tokens = [*split_spaces(" ".join(text.split()))]
    return [" ".join(tokens[at : at + PIECE]) for at in range(0, len(tokens), PIECE)]


def _count_numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(text))


def _count_fixed_parts(item: Item, text: str | None = None) -> Counter[str]:
    """Count the parts of a text that must not change: numbers, blanks and the texts of options."""
    where = item.input if text is None else text
    marks = (mark for mark in (*item.options.values(), _BLANK) if mark in where)
    return _count_numbers(where) | Counter({mark: where.count(mark) for mark in marks})


SHIFTS = (-56, -28, 28, 56)
"""Shifts by multiples of 28 years: the calendar repeats after 28 years from 1901 to 2099, so
weekdays and leap days stay right."""
DECADE_SHIFTS = (-60, -40, -20, 20, 40, 60)
"""Shifts for texts with decades; leap days stay right, but weekdays do not."""


def shift_years(item: Item, *, seed: int) -> ItemTwin | NoTwin:
    """Shift all years in the input by the same amount, drawn from seed and item; keep the output.

    Items whose answer is one of their years are left out, because the right answer would change.
    """
    years = [*find_years(item.input)]
    if not years:
        return NoTwin(id=item.id, reason="it names no year")
    if {year.value for year in years} & {year.value for year in find_years(item.output)}:
        return NoTwin(id=item.id, reason="its answer is one of its years")
    shifts = _list_possible_shifts(years)
    if not shifts:
        reason = f"no shift keeps its years between {FIRST} and {LAST}"
        return NoTwin(id=item.id, reason=reason)
    shift = Random(f"{seed}:{item.id}").choice(shifts)
    twin = item.model_copy(update={"input": _shift_text(item.input, years, shift)})
    changes = {str(value): str(value + shift) for value in sorted({year.value for year in years})}
    return ItemTwin(item=twin, changes=changes)


def _list_possible_shifts(years: Sequence[Year]) -> list[int]:
    """Return the shifts that keep every year's format, and after which it is still read as one."""
    shifts = DECADE_SHIFTS if any(year.decade for year in years) else SHIFTS
    return [
        shift for shift in shifts if all(_is_shiftable(year, year.value + shift) for year in years)
    ]


def _is_shiftable(year: Year, moved: int) -> bool:
    return FIRST < moved <= LAST and (year.end - year.start == 4 or 1970 <= moved <= 2069)


def _shift_text(text: str, years: Sequence[Year], shift: int) -> str:
    for year in reversed(years):
        digits = str(year.value + shift)[4 - (year.end - year.start) :]
        text = text[: year.start] + digits + text[year.end :]
    return text


BY_RULE: dict[str, Callable[..., ItemTwin | NoTwin]] = {
    "option_shuffle": shuffle_options,
    "year_shift": shift_years,
}
"""The modifications that do not need a model, by name: `modify(item, seed=7)`."""

__all__ = [
    "BY_RULE",
    "ItemTwin",
    "NoTwin",
    "Paraphraser",
    "derange",
    "shift_years",
    "shuffle_label_order",
    "shuffle_options",
]
