"""Extracts the answer from a model's text: removes thoughts and wrappers, repairs JSON mistakes.

Every function here takes time linear in the length of the text. To repair JSON, a text is split
into punctuation, words and strings once, from left to right, and joined again. Nothing is invented:
a missing value or end stays missing.
"""

import json
import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Final

from coreeval.config.user_files import MOST_DEPTH

_MOST_KEY: Final = 80
"""The most characters of a key that are examined to decide whether a comma is missing before it."""
_TOKEN: Final = re.compile(
    r"\s+|(?P<sign>[{}\[\]:,])|(?P<quote>[\"'\u201c])|(?P<comment>//[^\n]*|/\*)"
    r"|(?P<word>[^\s{}\[\]:,\"'\u201c](?:[^{}\[\]:,\"\n/]|/(?![/*]))*)"
)
_CLOSING: Final = {'"': re.compile(r'\\.|"', re.DOTALL), "'": re.compile(r"\\.|'", re.DOTALL),
                   "\u201c": re.compile(r"\\.|[\"\u201d]", re.DOTALL)}  # fmt: skip
_ENDS_STRING: Final = re.compile(
    rf"\s*(?:[,:}}\]]|//|/\*|$|[\"'\u201c][^\"'\u201c\u201d\n]{{0,{_MOST_KEY}}}[\"'\u201d]\s*[:,}}\]])"
)
"""What follows a quote that ends a string; after any other quote, the string continues."""
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CONSTANTS: Final = {
    **{name: name for name in ("true", "false", "null", "NaN", "Infinity", "-Infinity")},
    **{"True": "true", "False": "false", "None": "null"},
}


MOST_REPAIRED: Final = 1 << 15
"""The most characters of an object to repair: 8,192 tokens at 4 characters each, twice the default
limit of a second answer. The worst text of that length takes 0.05 s."""


class _NotRepairable(Exception):
    """A string or a comment has no end."""


def repair_object(text: str) -> str | None:
    """Return an object with its commas, quotes and line breaks repaired.

    Quotes may be single, typographic, missing, or unescaped inside a string; strings may contain
    line breaks; commas may be missing or trailing; comments are removed. The result need not be
    valid JSON: other kinds of mistakes are left as they are.

    Args:
        text: The object, from its first brace to its last.

    Returns:
        None if a string or a comment is not closed, or if there are more than `MOST_MENDED`
        characters.
    """
    if len(text) > MOST_REPAIRED:
        return None
    try:
        return "".join(_join_tokens(_iter_tokens(text)))
    except _NotRepairable:
        return None


def _join_tokens(tokens: Iterator[str]) -> Iterator[str]:
    """Yield tokens with the commas that JSON requires between them."""
    before, comma = "", False
    for token in tokens:
        behind_value = before not in ("", "{", "[", ":", ",")
        if token == "," and behind_value:
            comma = True
        elif token == ",":
            yield ",,"  # a value is missing: the text stays invalid
            comma = False
        elif token in ("}", "]", ":"):
            yield token
            comma = False
        else:
            yield f",{token}" if comma or behind_value else token
            comma = False
        before = token


def _iter_tokens(text: str) -> Iterator[str]:
    """Yield the punctuation and values of a text, each written as JSON."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _NotRepairable
        at = found.end()
        if found["sign"]:
            yield found["sign"]
        elif found["quote"]:
            inside, at = _read_string(text, at, _CLOSING[found["quote"]])
            yield inside
        elif found["comment"] == "/*":
            at = _skip_comment(text, at)
        elif found["word"]:
            yield _read_word(found["word"].strip())


def _skip_comment(text: str, at: int) -> int:
    end = text.find("*/", at)
    if end < 0:
        raise _NotRepairable
    return end + 2


def _read_string(text: str, start: int, closing: re.Pattern[str]) -> tuple[str, int]:
    """Return a string written as JSON, and the position after it in the text."""
    parts, at = list[str](), start
    for found in closing.finditer(text, start):
        parts.append(_escape_text(text[at : found.start()]))
        at, said = found.end(), found.group()
        if said.startswith("\\"):
            parts.append(_read_escape(text, found.start()))
            at = found.start() + 2
        elif _ENDS_STRING.match(text, at):
            return f'"{"".join(parts)}"', at
        else:
            parts.append(_escape_text(said))
    raise _NotRepairable


def _read_escape(text: str, at: int) -> str:
    """Return the first two characters of an escape, or of other text, as JSON."""
    if _ESCAPE.match(text, at):
        return text[at : at + 2]
    return _escape_text("'" if text[at + 1] == "'" else text[at : at + 2])


def _escape_text(text: str) -> str:
    """Return characters escaped for a JSON string."""
    return encode_basestring(text)[1:-1]


def _read_word(word: str) -> str:
    """Return an unquoted word as a number or a constant if it is one, otherwise as a string."""
    if _NUMBER.fullmatch(word):
        return word
    return _CONSTANTS.get(word) or f'"{_escape_text(word)}"'


_THOUGHT_TAG: Final = re.compile(
    r"<(?P<end>/?)(?P<name>think|thinking|thoughts?|reasoning|seed:think)>"
    r"|\[(?P<square>/?)THINK\]|\u25c1(?P<wide>/?)think\u25b7",
    re.IGNORECASE,
)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,80}<\|message\|>")
_SIGNAL: Final = re.compile(r"<\|(?:end|return|start|eot_id|im_end)\|>")
_BARE_CHANNELS: Final = re.compile(r"\s*analysis(?=[A-Z\"'])")
"""How channels begin if their markers were stripped: `analysisThe user asks … assistantfinal`."""
_BARE_FINAL: Final = "assistantfinal"
_ANSWER_TAG: Final = re.compile(
    r"<(?P<end>/?)(?P<name>answer|final_answer|final|solution|label|choice)>", re.IGNORECASE
)
_OBJECT_BEGINS: Final = re.compile(r"(?<![\w\\}])\{(?=\s*(?:[\"']|[A-Za-z_][\w -]{0,40}:))")
"""A brace that opens an object, not a LaTeX group."""
_MOST_OBJECTS: Final = 5
"""The most objects examined in one answer."""
_DECODER: Final = json.JSONDecoder()
_MARK: Final = re.compile(r"\\.|[\"{}\[\]]", re.DOTALL)
_FENCE: Final = re.compile(r"```[\w-]*[^\S\n]*\n")
_FENCE_END: Final = re.compile(r"\n[^\S\n]*```")


def strip_thoughts(text: str) -> str:
    """Return an answer without the model's thoughts, which are never part of the answer.

    Thoughts are written in tags (`<think>`, `[THINK]`) or in the channels before the final one.
    Some chat templates remove the opening tag; everything before a closing tag is then a thought.
    A thought that is never closed leaves nothing.
    """
    bare = text.strip()
    if bare.startswith("{") and bare.endswith("}"):
        return text
    return _strip_thought_tags(_extract_final_channel(text))


def extract_final_answer(text: str) -> str:
    """Return the answer in a text: without thoughts, and taken out of its own tags.

    If there is `<answer>`, `<final_answer>`, `<solution>`, …, its content is used, closed or not.
    If several differ, all of them are returned, one per line.
    """
    said = strip_thoughts(text)
    parts = dict.fromkeys(part.strip() for part in _iter_answer_tags(said))
    return "\n".join(part for part in parts if part) if parts else said


def _extract_final_channel(text: str) -> str:
    """Return the text of the final channel, or the whole text if it has no channels."""
    channels = list(_CHANNEL.finditer(text)) if "<|channel|>" in text else []
    if channels:
        last = channels[-1]
        rest = text[last.end() :] if last[1] == "final" else ""
        return _SIGNAL.split(rest)[0]
    if _BARE_CHANNELS.match(text):
        return text.rpartition(_BARE_FINAL)[2] if _BARE_FINAL in text else ""
    return text


def _strip_thought_tags(text: str) -> str:
    """Return the text outside thoughts; a tag inside a thought is part of the thought."""
    kept, at, open_tags = list[str](), 0, list[str]()
    for tag in _THOUGHT_TAG.finditer(text):
        name = (tag["name"] or "think").lower()
        if not (tag["end"] or tag["square"] or tag["wide"]):
            if not open_tags:
                kept.append(text[at : tag.start()])
            if name not in open_tags:
                open_tags.append(name)
            continue
        if not open_tags:
            kept.clear()
        open_tags = open_tags[: open_tags.index(name)] if name in open_tags else []
        at = tag.end()
    return "".join(kept) if open_tags else "".join(kept) + text[at:]


def _iter_answer_tags(text: str) -> Iterator[str]:
    """Yield the contents of answer tags; the last tag may be unclosed."""
    begun: tuple[str, int] | None = None
    for tag in _ANSWER_TAG.finditer(text):
        name = tag["name"].lower()
        if tag["end"] and begun and begun[0] == name:
            yield text[begun[1] : tag.start()]
            begun = None
        elif not tag["end"] and begun is None:
            begun = name, tag.end()
    if begun:
        yield text[begun[1] :]


def extract_json(text: str) -> str:
    """Return the JSON of an answer, taken out of its code fence if there is exactly one."""
    rest = strip_thoughts(text).strip()
    fenced = _find_fenced(rest)
    return fenced[0].strip() if len(fenced) == 1 else rest


def _find_fenced(text: str) -> list[str]:
    """Return the contents of code fences."""
    found, at = list[str](), 0
    while (begun := _FENCE.search(text, at)) and (ended := _FENCE_END.search(text, begun.end())):
        found.append(text[begun.end() : ended.start()])
        at = ended.end()
    return found


def repair_json(text: str) -> str:
    """Return the JSON object in a text, with commas, quotes and line breaks repaired.

    An object without an end is not completed, and if there are several, none is chosen: such a text
    is returned unchanged. Mistakes in an object that needs no repair are left alone too.
    """
    start = text.find("{")
    if length := _measure_object(text[max(start, 0) :]):
        end = start + length
        return text if "{" in text[end:] else text[start:end]
    found = _find_object(text)
    if found is None:
        return text
    return repair_object(found) or text


def _measure_object(text: str) -> int:
    """Return the length of the object at the start of a text, or 0 if it is not valid JSON."""
    try:
        return json.JSONDecoder().raw_decode(text)[1] if text.startswith("{") else 0
    except (ValueError, RecursionError):
        return 0


def _find_object(text: str) -> str | None:
    """Return the first object in a text, from its first brace to the matching one.

    An object that is too long to repair is not searched for.
    """
    start = text.find("{")
    if start < 0:
        return None
    depth, in_string = 0, False
    for found in _MARK.finditer(text, start, start + MOST_REPAIRED):
        mark = found.group()
        if mark == '"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            depth += 1 if mark in "{[" else -1
            if depth == 0:
                return text[start : found.end()]
    return None


def iter_objects(
    text: str, decoder: json.JSONDecoder = _DECODER
) -> Iterator[tuple[object, int, int]]:
    """Yield the JSON objects in a text, repaired if needed, each with its start and end.

    Objects with more than `MOST_DEPTH` levels are skipped: answers that deep are attacks on the
    parser. A text that is a list as a whole counts as one object; other text is skipped.
    """
    found = _decode(text, len(text) - len(text.lstrip()), decoder)
    if found and isinstance(found[0], list) and not text[found[1] :].strip():
        yield found[0], 0, len(text)
        return
    at = 0
    for _ in range(_MOST_OBJECTS):
        begun = _OBJECT_BEGINS.search(text, at)
        found = _read_object(text, begun.start(), decoder) if begun else None
        if begun is None or found is None:
            return
        at = found[1]
        yield found[0], begun.start(), at


def _read_object(text: str, start: int, decoder: json.JSONDecoder) -> tuple[object, int] | None:
    """Return the object at a position, repaired if needed, and the position where it ends."""
    if found := _decode(text, start, decoder):
        return found
    whole = _find_object(text[start:])
    repaired = repair_json(whole) if whole else None
    if not whole or not repaired or not (read := _decode(repaired, 0, decoder)):
        return None
    return read[0], start + len(whole)


def _decode(text: str, start: int, decoder: json.JSONDecoder) -> tuple[object, int] | None:
    """Return the value at a position and where it ends; None if it is nested too deeply."""
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    opened = text.count("{", start, end) + text.count("[", start, end)
    return None if opened > MOST_DEPTH and is_too_deep(value) else (value, end)


def is_too_deep(value: object) -> bool:
    """Return whether a value is nested too deeply for a recursive reader."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level
                 if isinstance(one, dict | list))  # fmt: skip
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
    return bool(level)
