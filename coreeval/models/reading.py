"""From what a model said to its answer: thoughts and wrappings removed, slips of JSON mended.

Every reader here takes time in proportion to the text, whatever the text is.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from coreeval.config.user_files import MOST_DEPTH
from coreeval.models.mending import MOST_MENDED, put_right

_THOUGHT_TAG: Final = re.compile(
    r"<(?P<end>/?)(?P<name>think|thinking|thoughts?|reasoning|seed:think)>"
    r"|\[(?P<square>/?)THINK\]|\u25c1(?P<wide>/?)think\u25b7",
    re.IGNORECASE,
)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,80}<\|message\|>")
_SIGNAL: Final = re.compile(r"<\|(?:end|return|start|eot_id|im_end)\|>")
_BARE_CHANNELS: Final = re.compile(r"\s*analysis(?=[A-Z\"'])")
"""How channels begin where their signs were swallowed: `analysisThe user asks … assistantfinal`."""
_BARE_FINAL: Final = "assistantfinal"
_ANSWER_TAG: Final = re.compile(
    r"<(?P<end>/?)(?P<name>answer|final_answer|final|solution|label|choice)>", re.IGNORECASE
)
_OBJECT_BEGINS: Final = re.compile(r"(?<![\w\\}])\{(?=\s*(?:[\"']|[A-Za-z_][\w -]{0,40}:))")
"""A brace that opens an object, and none of LaTeX."""
_MOST_OBJECTS: Final = 5
"""Objects of one answer that are looked at."""
_DECODER: Final = json.JSONDecoder()
_MARK: Final = re.compile(r"\\.|[\"{}\[\]]", re.DOTALL)
_FENCE: Final = re.compile(r"```[\w-]*[^\S\n]*\n")
_FENCE_END: Final = re.compile(r"\n[^\S\n]*```")


def without_thoughts(text: str) -> str:
    """Return an answer without the model's thoughts, which are never the answer.

    Thoughts stand in tags (`<think>`, `[THINK]`) or in the channels before the final one. Some chat
    templates swallow the opening tag; what comes before a closing one is a thought then. A thought
    that was never closed leaves nothing.
    """
    bare = text.strip()
    if bare.startswith("{") and bare.endswith("}"):
        return text
    return _outside_tags(_final_channel(text))


def final_answer(text: str) -> str:
    """Return the part of a text that is the answer: without thoughts, and inside its own tags.

    Of `<answer>`, `<final_answer>`, `<solution>`, … the content counts, closed or not; of several
    that differ all do, one a line.
    """
    said = without_thoughts(text)
    parts = dict.fromkeys(part.strip() for part in _tagged(said))
    return "\n".join(part for part in parts if part) if parts else said


def _final_channel(text: str) -> str:
    """Return what the final channel says; all of a text without channels."""
    channels = list(_CHANNEL.finditer(text)) if "<|channel|>" in text else []
    if channels:
        last = channels[-1]
        rest = text[last.end() :] if last[1] == "final" else ""
        return _SIGNAL.split(rest)[0]
    if _BARE_CHANNELS.match(text):
        return text.rpartition(_BARE_FINAL)[2] if _BARE_FINAL in text else ""
    return text


def _outside_tags(text: str) -> str:
    """Return what stands in no thought; a tag inside a thought is part of it."""
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


def _tagged(text: str) -> Iterator[str]:
    """Yield what stands in tags for an answer; the last of them may be open."""
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


def json_text(text: str) -> str:
    """Return the JSON of an answer: without the one code fence that it may stand in."""
    rest = without_thoughts(text).strip()
    fenced = _fenced(rest)
    return fenced[0].strip() if len(fenced) == 1 else rest


def _fenced(text: str) -> list[str]:
    """Return what stands in code fences."""
    found, at = list[str](), 0
    while (begun := _FENCE.search(text, at)) and (ended := _FENCE_END.search(text, begun.end())):
        found.append(text[begun.end() : ended.start()])
        at = ended.end()
    return found


def mended(text: str) -> str:
    """Return the JSON object of a text, with commas, quotes and line breaks put right.

    An object whose end is missing is not made up, and of several none is chosen: such a text comes
    back as it was. What is wrong with an object that needs no mending is not mended either.
    """
    start = text.find("{")
    if length := _object_length(text[max(start, 0) :]):
        end = start + length
        return text if "{" in text[end:] else text[start:end]
    found = _first_object(text)
    if found is None:
        return text
    return put_right(found) or text


def _object_length(text: str) -> int:
    """Return the length of the object that a text begins with; 0 where it is no JSON."""
    try:
        return json.JSONDecoder().raw_decode(text)[1] if text.startswith("{") else 0
    except (ValueError, RecursionError):
        return 0


def _first_object(text: str) -> str | None:
    """Return the first object of a text, from its first brace to the one that closes it.

    One that is too long to be mended is not looked for.
    """
    start = text.find("{")
    if start < 0:
        return None
    depth, in_string = 0, False
    for found in _MARK.finditer(text, start, start + MOST_MENDED):
        mark = found.group()
        if mark == '"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            depth += 1 if mark in "{[" else -1
            if depth == 0:
                return text[start : found.end()]
    return None


def objects_in(
    text: str, decoder: json.JSONDecoder = _DECODER
) -> Iterator[tuple[object, int, int]]:
    """Yield the JSON objects in a text, slips mended, each with its start and its end.

    What has more than `MOST_DEPTH` levels is none: no answer is so deep but to break its reader.
    A text that is a list as a whole counts as one; what is no JSON is passed over.
    """
    found = _decoded(text, len(text) - len(text.lstrip()), decoder)
    if found and isinstance(found[0], list) and not text[found[1] :].strip():
        yield found[0], 0, len(text)
        return
    at = 0
    for _ in range(_MOST_OBJECTS):
        begun = _OBJECT_BEGINS.search(text, at)
        found = _object_at(text, begun.start(), decoder) if begun else None
        if begun is None or found is None:
            return
        at = found[1]
        yield found[0], begun.start(), at


def _object_at(text: str, start: int, decoder: json.JSONDecoder) -> tuple[object, int] | None:
    """Return the object that begins at a place, its slips mended, and where it ends."""
    if found := _decoded(text, start, decoder):
        return found
    whole = _first_object(text[start:])
    repaired = mended(whole) if whole else None
    if not whole or not repaired or not (read := _decoded(repaired, 0, decoder)):
        return None
    return read[0], start + len(whole)


def _decoded(text: str, start: int, decoder: json.JSONDecoder) -> tuple[object, int] | None:
    """Return the value that begins at a place, and where it ends; of one too deep nothing."""
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    opened = text.count("{", start, end) + text.count("[", start, end)
    return None if opened > MOST_DEPTH and too_deep(value) else (value, end)


def too_deep(value: object) -> bool:
    """Whether a value has more levels than a reader that calls itself for each may be given."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level
                 if isinstance(one, dict | list))  # fmt: skip
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
    return bool(level)
