"""A task's spacing, restored by code: an arm must not be recognisable by its spaces (pilot §1)."""

import re

from coreeval.schema import Task

_CURLY_APOSTROPHE = re.compile(r"(?<=\w)\u2019(?=\w)")
_CURLY_QUOTE = re.compile(r"\u201c(?=\S)|(?<=\S)\u201d")
_APART = re.compile(
    r"""(&(?:\#\d+|[a-z]{2,8});)|([;:?!"()\[\]/$%&\u00a3\u20ac]|''|(?<!\.)\.{3,})"""
)
_COMMA = re.compile(r"(?<!\d),|,(?!\d)")
_CLITIC = re.compile(r"(?<=\w)'(?=[^\W\d_]|\s|\.(?:\s|$)|$)")
_ABBREVIATION = re.compile(
    r"(?:[A-Z]\w+\.-)?(?:Mr|Mrs|Ms|Dr|Sr|Jr|St|Gov|Sen|Rep|Gen|Sgt|Lt|Col|Capt|Cpl|Maj|Brig|Pfc|Pvt|Adm|Prof|Rev|Corp|Co|Inc|Ltd|No|Ave|Hwy|vs|"
    r"Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|[A-Z])\.",
)
_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}")
_QUOTE = '"'


def restore_spacing(task: Task, text: str) -> str:
    """Return a text on one line, spaced as the task's texts are.

    Tokenised tasks keep punctuation and what follows an apostrophe apart (`the nation 's`); the
    tweets' trailing space is the exporter's, since the loaders strip it.
    """
    return _tokenised(text) if task.tokenised else " ".join(text.split())


def _tokenised(text: str) -> str:
    plain = _CURLY_QUOTE.sub(_QUOTE, _CURLY_APOSTROPHE.sub("'", text))
    spaced = _CLITIC.sub(" '", _COMMA.sub(" , ", _APART.sub(_apart, plain)))
    tokens = spaced.split()
    following = [*tokens[1:], ""]
    return " ".join(map(_stop_apart, tokens, following))


def _apart(found: re.Match[str]) -> str:
    """Set a sign apart; an entity such as `&amp;` is one word."""
    return found[1] or f" {found[2]} "


def _stop_apart(token: str, following: str) -> str:
    """Set a full stop apart where it ends a sentence rather than an abbreviation."""
    word = token.removesuffix(".")
    if token == word or not word or word.endswith(".") or _ACRONYM.fullmatch(token):
        return token
    if not following:
        return f"{word} ."
    ends = following[0].isupper() or following == _QUOTE
    return token if _ABBREVIATION.fullmatch(token) or not ends else f"{word} ."
