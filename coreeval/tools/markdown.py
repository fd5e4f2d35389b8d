"""Escapes foreign text in the Markdown of a dataset card."""

import re

import yaml

from coreeval.tools.text import find_unseen, visible_line

_SIGNS = re.compile(r"[\\`*\[\]<>|~#$]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that start code, emphasis, links, HTML, cells, headings or formulas in a line; an
underscore inside a word does not."""
_OPENING = re.compile(r"^(\d*)([-+=:.)])")
"""Characters at the start of a line that open a list, a rule or another block."""


def escape(text: str) -> str:
    """Return a text on one line, with the special characters of Markdown and HTML escaped."""
    line = visible_line(text).replace("&", "&amp;")
    return _OPENING.sub(r"\1\\\2", _SIGNS.sub(lambda sign: f"\\{sign[0]}", line))


def code_span(text: str) -> str:
    """Return a text as a code span."""
    return "`" + visible_line(text).replace("`", "'") + "`"


def code_table_cell(text: str) -> str:
    """Return a text as a code span in a table cell, which a bar would end."""
    return code_span(text).replace("|", "\\|")


def web_address(url: str | None) -> str | None:
    """Return a web address as a link target; None for any other scheme, which may be unsafe.

    Spaces and brackets, which would end the target, are percent-encoded.
    """
    if url is None or not url.startswith(("https://", "http://")):
        return None
    return re.sub(r"[\s<>()\[\]|\\`\"]", lambda sign: f"%{ord(sign[0]):02X}", visible_line(url))


def dump_front_matter(values: object) -> str:
    """Return YAML for the front matter of a card; invisible characters are escaped."""
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    if find_unseen(text):
        text = yaml.safe_dump(values, sort_keys=False, allow_unicode=False)
    return text
