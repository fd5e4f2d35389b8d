"""docs/json.md: the JSON documents that commands print, from `documents.yaml`.

The documents are made in many modules, as plain mappings; this file is the one place that says
what their keys mean. Tests hold it against what the commands print.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from scripts.reference.markdown import NOTICE, table

SOURCE = Path(__file__).with_name("documents.yaml")
_COMMON = "Common keys"


class Part(BaseModel):
    """A text, or a table of keys."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    keys: Mapping[str, str] = {}
    """What each key means; several keys that belong together are separated by commas."""


class Section(BaseModel):
    """A heading with what stands below it."""

    model_config = ConfigDict(extra="forbid")

    title: str
    level: Annotated[int, Field(ge=1, le=4)]
    parts: tuple[Part, ...]


def read_sections() -> tuple[Section, ...]:
    """Return the sections of the page.

    Raises:
        ValidationError: the file has another form.
    """
    said = yaml.safe_load(SOURCE.read_text("utf-8"))
    return TypeAdapter(tuple[Section, ...]).validate_python(said)


def build_page() -> str:
    """Return the page.

    Raises:
        ValueError: a key has no meaning, and is not among the common ones.
    """
    sections = read_sections()
    common = {
        key
        for section in sections
        if section.title == _COMMON
        for part in section.parts
        for keys in part.keys
        for key in keys.split(", ")
    }
    first, *others = (("\n".join(_format(section, common))) for section in sections)
    heading, _, rest = first.partition("\n")
    return "\n".join([heading, "", NOTICE, rest, *others])


def _format(section: Section, common: set[str]) -> Iterator[str]:
    yield from (f"{'#' * section.level} {section.title}", "")
    for part in section.parts:
        rows = [
            (", ".join(f"`{key}`" for key in keys.split(", ")), _explain(keys, meaning, common))
            for keys, meaning in part.keys.items()
        ]
        yield table(("key", "meaning"), rows) if rows else part.text.strip()
        yield ""


def _explain(keys: str, meaning: str, common: set[str]) -> str:
    unknown = set(keys.split(", ")) - common
    if not meaning and unknown:
        raise ValueError(f"{SOURCE.name}: {', '.join(sorted(unknown))} have no meaning")
    return meaning or "[common](#common-keys)"
