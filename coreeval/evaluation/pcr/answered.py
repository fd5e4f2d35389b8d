"""What a target said to items and their twins, as the pairs that a comparison reads.

An item whose questions were not both answered is a pair as well, with its statuses: were it left
out, a model that declines what is hard in one split would look as if it remembered that split.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from coreeval.evaluation.pcr.pairs import Pair, Status
from coreeval.evaluation.pcr.twins import Twins
from coreeval.evaluation.scoring.choices import read_choice
from coreeval.schema import AnswerKind, Item
from coreeval.tools.files import write_text


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target said to one text; no text where it declined or was cut short."""

    kind: AnswerKind
    text: str = ""


Answers = Mapping[str, Answer]
"""By the text that was asked."""


@dataclass(frozen=True, kw_only=True)
class SplitAsked:
    """What became of a split's questions: two an item, the original and the modified text."""

    items: int
    """Items that were asked about."""
    compared: int
    """Of them, those with two answers; the others are pairs too, see `Pair.original_status`."""
    kinds: Mapping[AnswerKind, int]
    """Questions by what came of them."""
    unclear: int
    """Answers of which no option's letter could be read; 0 where there are no options."""


@dataclass(frozen=True, kw_only=True)
class TargetAsked:
    """What one target said: the pairs, and what became of the questions."""

    pairs: tuple[Pair, ...]
    splits: Mapping[str, SplitAsked]

    @property
    def silence(self) -> str:
        """Why there is nothing to compare: a split without a pair; empty where there is none."""
        told = [
            f"none of {asked.items} items of {name} has two answers ({_counted(asked.kinds)})"
            for name, asked in self.splits.items()
            if not asked.compared
        ]
        return "; ".join(told)


def _counted(kinds: Mapping[AnswerKind, int]) -> str:
    counts = [f"{number} {kind}" for kind, number in kinds.items() if number]
    return f"of {sum(kinds.values())} questions: {', '.join(counts) or 'nothing to ask'}"


def asked_of(twins: Iterable[Twins], answers: Answers, *, letters: bool = False) -> TargetAsked:
    """Return the pairs of a target's answers; what was not answered is an empty output.

    Args:
        twins: What was asked.
        answers: What was said.
        letters: Whether the letter that an answer chooses stands for it, where it is clear.
    """
    pairs, splits = list[Pair](), dict[str, SplitAsked]()
    for each in twins:
        own = [_lettered(pair) if letters else pair for pair in _pairs(each, answers)]
        pairs += own
        splits[each.drawn.split] = _split(each, own, answers)
    return TargetAsked(pairs=tuple(pairs), splits=splits)


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


def _status(answer: Answer) -> Status | None:
    """Return what became of a question; None leaves it to the words of the answer."""
    return None if answer.kind == "answered" else answer.kind


def _lettered(pair: Pair) -> Pair:
    return replace(
        pair,
        original_output=pair.original_choice or pair.original_output,
        modified_output=pair.modified_choice or pair.modified_output,
    )


def _choice(answer: Answer, item: Item) -> str | None:
    return read_choice(answer.text, item.options) if item.options else None


def _split(twins: Twins, pairs: Sequence[Pair], answers: Answers) -> SplitAsked:
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
    return SplitAsked(
        items=len(twins.pairs),
        compared=sum(whole),
        kinds={kind: kinds[kind] for kind in order},
        unclear=choices.count(""),
    )


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as the file that `read_pairs` reads, in one replacement."""
    known = ({key: value for key, value in asdict(pair).items() if value is not None}
             for pair in pairs)  # fmt: skip
    write_text(path, "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in known))
