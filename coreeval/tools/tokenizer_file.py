"""Checks `tokenizer.json` of a model, since texts are cut only after it has expanded them."""

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

MOST_GROWTH: Final = 1000
"""The largest factor by which a part of a tokenizer may expand a character or token (own
choice)."""
LONGEST_TOKEN: Final = 10_000
"""The most characters of a token (own choice; the longest known ones are some hundred blanks)."""
_STEP_GROWTH: Final = {"ByteLevel": 2, "BertNormalizer": 3}
"""The number of characters that a step makes of one, each time that it is repeated."""
_TREE: Final = struct.Struct("<I")


def find_swelling(tokenizer: Mapping[str, Any]) -> str:
    """Describe how a tokenizer expands a text too much; empty if it does not."""
    parts = [tokenizer.get("normalizer"), tokenizer.get("pre_tokenizer")]
    growths = (
        _multiply(parts, _measure_step),
        _multiply(tokenizer.get("decoder"), _measure_step),
        _multiply(tokenizer.get("post_processor"), _measure_template),
    )
    if max(growths) > MOST_GROWTH:
        return f"expands one character to more than {MOST_GROWTH:,} characters"
    if max(map(len, _iter_tokens(tokenizer)), default=0) > LONGEST_TOKEN:
        return f"has a token of more than {LONGEST_TOKEN:,} characters"
    return ""


def _multiply(steps: object, measure: Callable[[Mapping[str, Any]], int]) -> int:
    """Return the product of the factors of all steps, including nested ones."""
    growth, waiting = 1, [steps]
    while waiting and growth <= MOST_GROWTH:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            growth *= max(1, measure(one))
            waiting += one.values()
    return growth


def _measure_step(step: Mapping[str, Any]) -> int:
    """Return the number of characters that a step makes of one."""
    content, pattern = step.get("content", step.get("prepend")), step.get("pattern")
    if isinstance(content, str):
        # an expression or an empty text may match between all characters
        is_between = isinstance(pattern, dict) and not pattern.get("String")
        return len(content) + is_between
    if isinstance(packed := step.get("precompiled_charsmap"), str):
        return _find_longest_piece(packed)
    return _STEP_GROWTH.get(str(step.get("type")), 1)


def _find_longest_piece(packed: str) -> int:
    """Return the most bytes that a compiled sentencepiece map makes of a character.

    The map consists of the size of its tree, the tree, and texts that end with a zero byte.
    """
    try:
        content = base64.b64decode(packed)
        (size,) = _TREE.unpack_from(content)
    except (ValueError, struct.error):
        return 1  # no tokenizer can be made from it
    return max(map(len, content[_TREE.size + size :].split(b"\0")))


def _measure_template(step: Mapping[str, Any]) -> int:
    """Return the number of tokens that a template makes of one."""
    pieces = [len(side) for name in ("single", "pair") if isinstance(side := step.get(name), list)]
    told = step.get("special_tokens")
    specials = list(told.values()) if isinstance(told, dict) else told
    ids = [one.get("ids") for one in specials if isinstance(one, dict)] if specials else []
    longest = max((len(one) for one in ids if isinstance(one, list)), default=1)
    return max(pieces, default=1) * max(1, longest)


def _iter_tokens(tokenizer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tokens; a vocabulary is a mapping, or a list of pairs with scores."""
    model, added = tokenizer.get("model"), tokenizer.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    for one in vocabulary if isinstance(vocabulary, dict | list) else ():
        token = one[0] if isinstance(one, list) and one else one
        if isinstance(token, str):
            yield token
    for one in added if isinstance(added, list) else ():
        if isinstance(one, dict):
            yield str(one.get("content", ""))
