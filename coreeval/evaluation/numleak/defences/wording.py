"""Defences and the endings that try them: a name and its words, built in or a user's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import yaml

from coreeval.config import DefencesConfig, InstructionConfig
from coreeval.config.user_files import read_text
from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.series import SeriesDefinition
from coreeval.prompts import Message, load_built_in_prompt

CONTROL: Final = "none"
"""The defence that is none: a question comes without any instructions."""
_UNKNOWN: Final = "its publisher"


@dataclass(frozen=True, kw_only=True)
class Defence:
    """Instructions of an operator against giving values away."""

    name: str
    text: str | None = None
    """A user's own words; None where it is built in."""

    def messages(self, question: str, *, about: SeriesDefinition) -> list[Message]:
        """Return a question with the defence alone as its system message; `none` has no such."""
        user = {"role": "user", "content": question}
        if self.text is not None:
            return [{"role": "system", "content": self.text}, user]
        if self.name == CONTROL:
            return [user]
        prompt = load_built_in_prompt(f"series_defence_{self.name}")
        known = {"question": question, "name": about.name, "publisher": _publisher(about)}
        return prompt.fill(**{name: known[name] for name in prompt.variables})


@dataclass(frozen=True, kw_only=True)
class Suffix:
    """The ending of a question that tries to undo a defence."""

    name: str
    text: str

    def on(self, question: str) -> str:
        """Return the question with this ending."""
        return f"{question}\n\n{self.text}"


@dataclass(frozen=True, kw_only=True)
class Armoury:
    """All that is tried: each defence against each ending."""

    defences: tuple[Defence, ...]
    suffixes: tuple[Suffix, ...]


def open_armoury(asked: DefencesConfig) -> Armoury:
    """Read the words of all defences and endings.

    Raises:
        ConfigError: a file is missing, cannot be read, or is empty.
    """
    return Armoury(
        defences=tuple(Defence(name=one.name, text=_own_words(one)) for one in asked.names),
        suffixes=tuple(
            Suffix(name=one.name, text=_own_words(one) or built_in_suffixes()[one.name])
            for one in asked.suffixes
        ),
    )


@cache
def built_in_suffixes() -> Mapping[str, str]:
    """Return the words of each built-in ending by its name."""
    file = resources.files("coreeval.evaluation.numleak.defences") / "suffixes.yaml"
    return {name: str(text) for name, text in yaml.safe_load(file.read_text("utf-8")).items()}


def _publisher(about: SeriesDefinition) -> str:
    """Return who publishes a series, without the terms on which it does."""
    return about.publisher.partition(";")[0].rstrip(". ") or _UNKNOWN


def _own_words(given: InstructionConfig) -> str | None:
    if given.file is None:
        return given.text.strip() if given.text is not None else None
    try:
        text = read_text(Path(given.file)).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the words of {given.name!r} cannot be read: {error}", where=given.file
        ) from None
    if not text:
        raise ConfigError(
            f"the file of {given.name!r} is empty: it would be no instruction at all",
            where=given.file,
            hint="write the words into it; the control without instructions is called none",
        )
    return text
