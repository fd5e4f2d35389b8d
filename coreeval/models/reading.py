"""From what a model said to the JSON text in it: thoughts and wrappings removed, slips mended."""

import json
import re

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_CLOSED = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_OPENED = re.compile(r"<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_MARK = re.compile(r"\\.|[\"{}\[\]]", re.DOTALL)
_FENCED = re.compile(r"```[\w-]*\s*\n(?P<inside>.*?)\n\s*```", re.DOTALL)


def without_thoughts(text: str) -> str:
    """Return an answer without the model's thoughts, which are never the answer.

    Some chat templates swallow the opening tag; what comes before a closing one is a thought then.
    A thought that was never closed leaves nothing.
    """
    bare = text.strip()
    if "<" not in bare or (bare.startswith("{") and bare.endswith("}")):
        return text
    rest = _THOUGHT.sub("", text)
    if closed := list(_CLOSED.finditer(rest)):
        rest = rest[closed[-1].end() :]
    return _OPENED.split(rest)[0]


def json_text(text: str) -> str:
    """Return the JSON of an answer: without the one code fence that it may stand in."""
    rest = without_thoughts(text).strip()
    fenced = list(_FENCED.finditer(rest))
    return fenced[0]["inside"].strip() if len(fenced) == 1 else rest


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
    from json_repair import repair_json  # needed for few models

    try:
        repaired = repair_json(found, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return repaired if isinstance(repaired, str) and repaired else text


def _object_length(text: str) -> int:
    """Return the length of the object that a text begins with; 0 where it is no JSON."""
    try:
        return json.JSONDecoder().raw_decode(text)[1] if text.startswith("{") else 0
    except (ValueError, RecursionError):
        return 0


def _first_object(text: str) -> str | None:
    """Return the first object of a text, from its first brace to the one that closes it."""
    start = text.find("{")
    depth, in_string = 0, False
    for found in _MARK.finditer(text, max(start, 0)):
        mark = found.group()
        if mark == '"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            depth += 1 if mark in "{[" else -1
            if depth == 0:
                return text[start : found.end()]
    return None
