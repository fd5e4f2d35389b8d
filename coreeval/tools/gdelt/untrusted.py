"""News text is written by anybody: what no reader sees goes, what looks like an order is flagged.

A flagged text stays what it is, data: it is shown to models in a block of news, and to people with
a mark. The checks on what is written (agents/checks) decide what may come of it.
"""

import re
import unicodedata

from coreeval.tools.html_references import unescape

LONGEST_TITLE = 500
LONGEST_SNIPPET = 1000
"""Characters kept; GAL's descriptions have 146 in the median (research: gdelt §1), titles fewer."""
_MOST_LOOKED_AT = 20
"""Times its longest length that a raw text is looked at; a comment of markup may have no end."""

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control characters, marks of writing direction (bidi), what has no width, and Unicode's tags. The
joiners of emoji and of some scripts stay."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_FOLDED = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0406\u0410\u0415\u041e\u0420\u0421\u0131\u0130",
    "aeopcyxijsIAEOPCiI",
)
"""Cyrillic and Turkish letters that look Latin."""
_SIGNS = ("<", "[", "===", "```", "{", "\\")
_WORDS = (
    "ignore", "disregard", "forget", "override", "bypass", "system", "developer", "you are",
    "do not", "don't", "stop", "answer", "respond", "reply", "output", "label", "mark",
    "assistant", "user", "human", "feedback",
)  # fmt: skip
"""An order has one of these or of the signs: most texts have none, and are spared the rest."""
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,30}\b(?:instructions?|rules?|prompts?|"
    r"guidelines|above|previous|prior)\b|"
    r"\b(?:system|developer) (?:prompt|message|instructions?)\b|"
    r"\bmessage from the developers?\b|"
    r"\byou are (?:now |from now on )?(?:a |an |the )?"
    r"(?:ai\b|assistant|judge|language model|poet|bot)|"
    r"\b(?:do not|don't|stop) (?:follow|obey|read)(?:ing)?\b[^.!?]{0,20}"
    r"\b(?:instructions?|rules?|this)\b|"
    r"\b(?:answer|respond|reply|output|label)\b[^.!?]{0,20}"
    r"\b(?:only|exactly|the (?:word|label)|this as|with one json)\b|"
    r"\bmark (?:every|all|each)\b[^.!?]{0,20}\b(?:supported|true|correct)\b|"
    r"<\|?\w*\|?>|\[/?INST\]|^(?:system|assistant|user|human|feedback) ?:|"
    r"(?<!=)={3,} ?\w+ ?={3,}|```|"
    r"\{\s*\"\w+\"\s*:|</?(?:news|item|text|evidence|plan|drafts|feedback)\b|\\u00|\{\{|\{%|\$\{",
    re.IGNORECASE | re.MULTILINE,
)


def clean(raw: str, longest: int = LONGEST_TITLE) -> str:
    """Return a text as one line without markup and unseen characters, cut at a word."""
    raw = raw[: _MOST_LOOKED_AT * longest]
    text = unescape(unescape(raw))
    if "<" in text:
        text = _TAG.sub(" ", _without_comments(text))
    return _cut(without_unseen(text), longest)


def _without_comments(text: str) -> str:
    """Drop what stands in a comment of markup; one without an end is none."""
    kept, at = list[str](), 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + len("-->")
    return " ".join((*kept, text[at:]))


def without_unseen(text: str) -> str:
    """Drop control, bidi and tag characters, and what is no character at all."""
    if not text.isascii() or not text.isprintable():
        text = _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _UNSEEN.sub("", text))
    return " ".join(text.split())


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:") + "\u2026"


def instruction_like(*texts: str) -> bool:
    """Tell whether one of the texts reads like an order to a model or like a piece of a prompt."""
    return any(_may_order(text) and _ORDER.search(text) for text in map(_plain, texts))


def _may_order(text: str) -> bool:
    """Tell whether an order is possible at all; a fifteenth of the time of looking for one."""
    lowered = text.lower()
    return any(sign in text for sign in _SIGNS) or any(word in lowered for word in _WORDS)


def _plain(text: str) -> str:
    """Undo what hides letters: entities, wide and fancy forms, look-alikes."""
    if text.isascii() and "&" not in text:
        return text
    return unicodedata.normalize("NFKC", unescape(text)).translate(_FOLDED)
