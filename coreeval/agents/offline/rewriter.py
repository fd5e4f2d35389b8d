"""The rewriter by rules: the same facts, modestly reworded, outside what is locked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.text import capitalise
from coreeval.agents.offline.wording import swap
from coreeval.schema import Defect, Extraction, Rewrite, Sample, Task

_LINKED = re.compile(
    r"^(?P<main>[^.!?]{12,}?),? (?P<link>because|when|while|after|before|although|though|since|if|"
    r"as soon as) (?P<side>[^.!?,]{8,}?)(?P<end>[.!?]*)$"
)
_FRONTED = re.compile(
    r"^(?P<link>Because|When|While|After|Before|Although|Though|Since|If|In|On|At|From) (?P<side>[^,.!?]{3,}?) ?, "
    r"(?P<main>[^.!?]{12,}?)(?P<end> ?[.!?]*)$"
)
_SAYS = re.compile(
    r"^(?P<who>(?:[A-Z][\w.&' -]{1,30}|The [\w ]{3,25}|Officials|Police|Experts)) (?P<says>said|says|announced)"
    r"(?: that)? (?P<what>[^,\"]{12,}?)(?P<end> ?\.?)$"
)
_ENDING_TIME = re.compile(
    r"^(?P<main>.{15,}?) (?P<when>(?:in|on) (?:January|February|March|April|May|June|July|August|"
    r"September|October|November|December)(?: \d{1,2})?(?: ,| ,?)?(?: \d{4})?)(?P<end> ?\.?)$"
)


@dataclass(frozen=True)
class OfflineRewriter:
    """Swaps listed synonyms, writes contractions out and turns clauses round."""

    task: Task

    async def __call__(
        self, sample: Sample, extraction: Extraction, *, feedback: Sequence[Defect] = ()
    ) -> Rewrite:
        """Return the reworded sample, or the same text with the reason why it is the same."""
        fields = {
            name: reword(text, _locked(extraction, name), turn=number % 2 == 0 or bool(feedback))
            for number, (name, text) in enumerate(sample.fields.items())
        }
        if fields == dict(sample.fields):
            reason = "no listed synonym, contraction or clause to turn round outside the locks"
            return Rewrite(fields=fields, reworded=False, reason=reason)
        return Rewrite(fields=fields, reworded=True)


def _locked(extraction: Extraction, field: str) -> list[str]:
    return [lock.span for lock in extraction.locked if lock.field == field]


def reword(text: str, locked: Sequence[str], *, turn: bool) -> str:
    """Return a text reworded outside its locked spans, its clauses turned round if asked."""
    turned = _by_sentence(text, locked) if turn else text
    return _outside(turned, locked)


def _by_sentence(text: str, locked: Sequence[str]) -> str:
    parts = re.split(r"(?<=[a-z0-9)][.!?])(\s+)", text)
    changed = "".join(_turned(part) if part.strip() else part for part in parts)
    return changed if all(span in changed for span in locked) else text


def _turned(sentence: str) -> str:
    """Return a sentence with its clauses in the other order, where a rule is sure."""
    if found := _LINKED.match(sentence):
        main = _lower_first(found["main"])
        return f"{capitalise(found['link'])} {found['side']}, {main}{found['end']}"
    if found := _FRONTED.match(sentence):
        link = found["link"].lower()
        return f"{capitalise(found['main'])} {link} {found['side']}{found['end']}"
    if found := _SAYS.match(sentence):
        who = _lower_first(found["who"])
        return f"{capitalise(found['what'])} , {who} {found['says']}{found['end']}".replace(" ,", ",")
    if found := _ENDING_TIME.match(sentence):
        when = found["when"].rstrip(" ,")
        return f"{capitalise(when)}, {_lower_first(found['main'])}{found['end']}"
    return sentence


def _lower_first(text: str) -> str:
    """Return a clause for the middle of a sentence: its first word small unless it is a name."""
    first = re.split(r"\W", text, maxsplit=1)[0]
    common = first.casefold() in lexicon.words("function") | lexicon.words("plain")
    return text[0].lower() + text[1:] if common and first != "I" else text


def _outside(text: str, locked: Sequence[str]) -> str:
    """Return a text with its words swapped wherever nothing is locked."""
    spans = sorted({span for span in locked if span}, key=len, reverse=True)
    marks = [r"[#@]\w+", r"\"[^\"]*\"", r"``.*?''", r"https?://\S+"]
    held = "|".join([*map(re.escape, spans), *marks])
    parts = re.split(f"({held})", text)
    return "".join(part if i % 2 else _swapped(part) for i, part in enumerate(parts))


def _swapped(text: str) -> str:
    return swap(_SHORT.sub(_expanded, text), loose=True)


_SHORT = re.compile(
    r"(?<!\w)(?:" + "|".join(lexicon.contractions()).replace("'", "['’]") + r")(?!\w)", re.IGNORECASE
)


def _expanded(found: re.Match[str]) -> str:
    full = lexicon.contractions()[found.group().casefold().replace("’", "'")]
    return capitalise(full) if found.group()[0].isupper() else full.replace("i ", "I ", 1)
