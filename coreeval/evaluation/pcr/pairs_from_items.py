"""Pairs from a benchmark's items: items with modified twins, the questions and the answers.

An item without answers to both questions is also a pair, with its statuses: without it, a model
that declines hard questions in one split would seem to remember that split.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from coreeval.evaluation.answer_parsers import read_choice
from coreeval.evaluation.benchmarks.items import BenchmarkItems
from coreeval.evaluation.modifications import BY_RULE, ItemTwin, NoTwin
from coreeval.evaluation.pcr.pairs import Pair, Status
from coreeval.schema import AnswerKind, BadRow, Item
from coreeval.tools.files import write_text
from coreeval.tools.outputs import refuse_foreign_file

Modify = Callable[[Item], ItemTwin | NoTwin]


@dataclass(frozen=True, kw_only=True)
class ItemSample:
    """A random sample of a split's items, in the split's order."""

    split: str
    total: int
    """The number of items in the split."""
    items: tuple[Item, ...]
    bad_rows: tuple[BadRow, ...]


@dataclass(frozen=True, kw_only=True)
class Twins:
    """The pairs of items and modified twins to ask about in one split."""

    drawn: ItemSample
    pairs: tuple[tuple[Item, Item], ...]
    left_out: tuple[NoTwin, ...]
    """The items without a twin, with the reason for each."""

    @property
    def identical_count(self) -> int:
        """The number of recorded twins with the same text as their item."""
        return sum(item.input == twin.input for item, twin in self.pairs)

    @property
    def reasons(self) -> dict[str, int]:
        """The number of items left out for each reason, most common first."""
        counts: dict[str, int] = {}
        for one in self.left_out:
            counts[one.reason] = counts.get(one.reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda each: -each[1]))


def draw_items(found: BenchmarkItems, split: str, *, most: int, seed: int) -> ItemSample:
    """Draw at most `most` items of a split; the same seed gives the same items."""
    items, chance = found.items, Random(f"{seed}:{split}")
    places = sorted(chance.sample(range(len(items)), min(most, len(items))))
    return ItemSample(
        split=split,
        total=len(items),
        items=tuple(items[place] for place in places),
        bad_rows=found.bad_rows,
    )


def make_rule(name: str, *, seed: int) -> Modify:
    """Return the modification with the given name, which does not use a model."""
    return lambda item: BY_RULE[name](item, seed=seed)


def make_lookup(found: Sequence[Item]) -> Modify:
    """Return a modification that looks up recorded twins by the item's id."""
    twins: Mapping[str, Item] = {twin.id: twin for twin in found}

    def modify(item: Item) -> ItemTwin | NoTwin:
        twin = twins.get(item.id)
        if twin is None:
            return NoTwin(id=item.id, reason="it has no recorded modified item")
        return ItemTwin(item=twin, changes={})

    return modify


def match_twins(drawn: ItemSample, outcomes: Iterable[ItemTwin | NoTwin]) -> Twins:
    """Pair each item with its twin or the reason why it has none, in the order of the items."""
    made = list(zip(drawn.items, outcomes, strict=True))
    return Twins(
        drawn=drawn,
        pairs=tuple((item, one.item) for item, one in made if isinstance(one, ItemTwin)),
        left_out=tuple(one for _, one in made if isinstance(one, NoTwin)),
    )


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """A target's answer to one text; empty if the target declined or was truncated."""

    kind: AnswerKind
    text: str = ""


Answers = Mapping[str, ItemAnswer]
"""Answers by the text of the question."""


@dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """Counts for a split's questions: two per item, the original and the modified text."""

    items: int
    """The number of items asked about."""
    compared: int
    """The number of these items with two answers; the others are also pairs (see
    `Pair.original_status`)."""
    kinds: Mapping[AnswerKind, int]
    """The number of questions with each kind of answer."""
    unclear: int
    """The number of answers without a readable option letter; 0 if there are no options."""


@dataclass(frozen=True, kw_only=True)
class TargetPairs:
    """The pairs from one target's answers, and the outcomes of its questions."""

    pairs: tuple[Pair, ...]
    splits: Mapping[str, SplitCounts]

    @property
    def silence(self) -> str:
        """The reason why nothing can be compared (a split without a pair); empty otherwise."""
        told = [
            f"none of the {asked.items} items of {name} has two answers "
            f"({_describe_counts(asked.kinds)})"
            for name, asked in self.splits.items()
            if not asked.compared
        ]
        return "; ".join(told)


def _describe_counts(kinds: Mapping[AnswerKind, int]) -> str:
    counts = [f"{number} {kind}" for kind, number in kinds.items() if number]
    return f"of {sum(kinds.values())} questions: {', '.join(counts) or 'no questions'}"


def pair_answers(twins: Iterable[Twins], answers: Answers, *, letters: bool = False) -> TargetPairs:
    """Return the pairs of a target's answers; an unanswered question is an empty output.

    Args:
        twins: The items that were asked about.
        answers: The target's answers.
        letters: Whether to replace an answer by the option letter that it chooses, if clear.
    """
    pairs, splits = list[Pair](), dict[str, SplitCounts]()
    for each in twins:
        own = [_read_letters(pair) if letters else pair for pair in _pairs(each, answers)]
        pairs += own
        splits[each.drawn.split] = _count_split(each, own, answers)
    return TargetPairs(pairs=tuple(pairs), splits=splits)


def _pairs(twins: Twins, answers: Answers) -> Iterator[Pair]:
    texts = Counter(item.input for item, _ in twins.pairs)
    for item, twin in twins.pairs:
        first, second = answers[item.input], answers[twin.input]
        yield Pair(
            split=twins.drawn.split,
            id=item.id,
            reference=item.output,
            original_output=first.text,
            modified_output=second.text,
            original_choice=_choice(first, item),
            modified_choice=_choice(second, twin),
            original_options=item.options or None,
            modified_options=twin.options or None,
            original_status=_status(first),
            modified_status=_status(second),
            cluster=item.cluster or (item.input if texts[item.input] > 1 else None),
        )


def _status(answer: ItemAnswer) -> Status | None:
    """Return the status of a question, or None if it must be read from the answer's text."""
    return None if answer.kind == "answered" else answer.kind


def _read_letters(pair: Pair) -> Pair:
    return replace(
        pair,
        original_output=pair.original_choice or pair.original_output,
        modified_output=pair.modified_choice or pair.modified_output,
    )


def _choice(answer: ItemAnswer, item: Item) -> str | None:
    return read_choice(answer.text, item.options) if item.options else None


def _count_split(twins: Twins, pairs: Sequence[Pair], answers: Answers) -> SplitCounts:
    both = [tuple(answers[one.input].kind for one in pair) for pair in twins.pairs]
    kinds = Counter(kind for each in both for kind in each)
    whole = [each == ("answered", "answered") for each in both]
    choices = [
        choice
        for pair, answered in zip(pairs, whole, strict=True)
        if answered
        for choice in (pair.original_choice, pair.modified_choice)
    ]
    order: tuple[AnswerKind, ...] = ("answered", "refused", "truncated", "unparsed")
    return SplitCounts(
        items=len(twins.pairs),
        compared=sum(whole),
        kinds={kind: kinds[kind] for kind in order},
        unclear=choices.count(""),
    )


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs in the format that `read_pairs` reads, replacing the file atomically."""
    write_text(path, "".join(f"{_to_line(pair)}\n" for pair in pairs))


def refuse_foreign_pairs(path: Path) -> None:
    """Refuse to replace a file that `write_pairs` did not write.

    Raises:
        UsageError: something else is there.
    """

    def write_again(line: str) -> str:
        return _to_line(Pair(**json.loads(line)))

    refuse_foreign_file(path, write_again)


def _to_line(pair: Pair) -> str:
    known = {key: value for key, value in asdict(pair).items() if value is not None}
    return json.dumps(known, ensure_ascii=False)
