"""The rewriter by rules: the same facts, modestly reworded, outside what is locked."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.text import capitalise
from coreeval.agents.offline.turns import TURNS, Turn
from coreeval.agents.offline.wording import swap
from coreeval.agents.roles import Fields
from coreeval.agents.words import containment
from coreeval.schema import Defect, Extraction, Rewrite, Sample, Task


@dataclass(frozen=True)
class OfflineRewriter:
    """Swaps listed synonyms, writes contractions out and turns clauses round."""

    task: Task

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        *,
        feedback: Sequence[Defect] = (),
        previous: Fields | None = None,
    ) -> Rewrite:
        """Return the reworded sample, or the same text with the reason why it is the same.

        The sides of a pair try the turns in another order, so that they come out different.
        """
        fields = {}
        for number, (name, text) in enumerate(sample.fields.items()):
            turns = TURNS if (number + bool(feedback)) % 2 == 0 else TURNS[::-1]
            locked = [lock.span for lock in extraction.locked if lock.field == name]
            fields[name] = reword(text, locked, turns)
        if fields == dict(sample.fields):
            reason = "no listed synonym, contraction or clause to turn round outside the locks"
            return Rewrite(fields=fields, reworded=False, reason=reason)
        return Rewrite(fields=fields, reworded=True)


def reword(text: str, locked: Sequence[str], turns: Sequence[Turn]) -> str:
    """Return a text reworded outside its locked spans, each sentence turned round once."""
    parts = re.split(r"(?<=[a-z0-9)][.!?])(\s+)", text)
    changed = "".join(_turned(part, turns) if part.strip() else part for part in parts)
    kept = changed if all(span in changed for span in locked) else text
    return _outside(kept, locked)


def _turned(sentence: str, turns: Sequence[Turn]) -> str:
    """Return the sentence turned once or twice, whichever repeats it least."""
    bare = sentence.strip()
    once = [other for turn in turns if (other := turn(bare)) is not None]
    twice = [other for one in once for turn in turns if (other := turn(one)) is not None]
    return min([sentence, *once, *twice], key=lambda other: containment(other, bare))


def _outside(text: str, locked: Sequence[str]) -> str:
    """Return a text with its words swapped wherever nothing is locked."""
    spans = sorted({span for span in locked if span}, key=len, reverse=True)
    marks = [
        r"[#@]\w+",
        r"\"[^\"]*\"",
        r"``(?:[^`\n]|`(?!`))*?''",
        r"https?://\S+",
        r"\b[A-Z]{2,}\b",
    ]
    held = "|".join([*map(re.escape, spans), *marks])
    return "".join(_pieces(text, re.compile(held)))


def _pieces(text: str, held: re.Pattern[str]) -> Iterator[str]:
    last = 0
    for found in held.finditer(text):
        yield _swapped(text[last : found.start()])
        yield found.group()
        last = found.end()
    yield _swapped(text[last:])


def _swapped(text: str) -> str:
    return swap(_SHORT.sub(_expanded, text), loose=True)


_SHORT = re.compile(
    r"(?<!\w)(?:" + "|".join(lexicon.contractions()).replace("'", "['\u2019]") + r")(?!\w)",
    re.IGNORECASE,
)


def _expanded(found: re.Match[str]) -> str:
    full = lexicon.contractions()[found.group().casefold().replace("\u2019", "'")]
    if full.startswith("i "):
        return full.replace("i ", "I ", 1)
    return capitalise(full) if found.group()[0].isupper() else full
