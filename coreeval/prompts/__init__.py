"""The prompts of a run: one file for each role, and a version for each wording.

A prompt has checked `$variables`, its stable instructions first, and what varies after them.
The files of a user's folder replace the built-in ones.
"""

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Literal

from coreeval.config import ROLES
from coreeval.config.user_files import (
    UNREADABLE_HINT,
    describe_unreadable,
    read_text,
)
from coreeval.errors import PromptError
from coreeval.schema import RoleName, Task

DIVIDER = "=== user ==="
"""The line between the system message and the user message."""
PromptName = Literal[
    "extractor",
    "replacer",
    "rewriter",
    "composer",
    "fact_judge",
    "label_judge",
    "extractor_rewriter",
    "replacer_composer_tweet",
    "replacer_composer_sentence",
    "label_judge_batch",
    "replacer_composer_item",
    "composer_item",
    "answer_judge",
    "option_judge",
    "summary_judge",
]
ROLES_OF_PROMPT: Mapping[PromptName, tuple[RoleName, ...]] = MappingProxyType(
    {
        **{role: (role,) for role in ROLES},
        "extractor_rewriter": ("extractor", "rewriter"),
        "replacer_composer_tweet": ("replacer", "composer"),
        "replacer_composer_sentence": ("replacer", "composer"),
        "label_judge_batch": ("label_judge",),
        "replacer_composer_item": ("replacer", "composer"),
        "composer_item": ("composer",),
        "answer_judge": ("label_judge",),
        "option_judge": ("label_judge",),
        "summary_judge": ("label_judge",),
    }
)
"""Every prompt of the roles, with the roles whose lines of a task it shows; the first is asked."""
Message = dict[str, str]
"""One message in the form that chat models accept: `role` and `content`."""


@dataclass(frozen=True)
class Prompt:
    """A prompt with `$variables`; a literal dollar sign is written `$$`."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if not Template(self.text).is_valid():
            raise PromptError(
                "a $ is followed by something that is not a variable name",
                where=self.name,
                hint="write $$ for a dollar sign",
            )
        if self.text.split("\n").count(DIVIDER) != 1:
            raise PromptError(
                "a prompt needs one line between its instructions and its data",
                where=self.name,
                hint=f"the line reads: {DIVIDER}",
            )
        if not all(half.strip() for half in self._split()):
            raise PromptError(
                "a prompt needs instructions above its divider and data below it: one is empty",
                where=self.name,
                hint=f"move the line {DIVIDER} to where the instructions end and the data begin",
            )

    @property
    def version(self) -> str:
        """Short hash of the wording."""
        return _hash_text(self.text)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that it takes."""
        return frozenset(Template(self.text).get_identifiers())

    def version_with_lines(self, *lines: str) -> str:
        """Short hash of the wording together with the lines that a task adds to it."""
        return _hash_text("\0".join([self.text, *lines]))

    def fill(self, **values: str) -> list[Message]:
        """Return the system and the user message, with exactly the variables filled in.

        Raises:
            PromptError: a variable has no value, or a value has no variable.
        """
        if self.variables != values.keys():
            raise PromptError(
                f"needs the variables {', '.join(sorted(self.variables))}; "
                f"got {', '.join(sorted(values))}",
                where=self.name,
            )
        system, user = self._halves
        return [
            {"role": "system", "content": _fill_parts(system, values)},
            {"role": "user", "content": _fill_parts(user, values)},
        ]

    @cached_property
    def _halves(self) -> tuple[Sequence["_Part"], Sequence["_Part"]]:
        """What stands above the divider and what stands below it, taken apart once."""
        system, user = self._split()
        return _take_apart(system), _take_apart(user)

    def _split(self) -> tuple[str, str]:
        """Return what stands above the divider and what stands below it."""
        lines = self.text.split("\n")
        at = lines.index(DIVIDER)
        return "\n".join(lines[:at]), "\n".join(lines[at + 1 :])


_Part = tuple[str, str]
"""Some text, and the variable that follows it; empty at the end."""


def _take_apart(text: str) -> Sequence[_Part]:
    parts, start, literal = list[_Part](), 0, ""
    for found in Template.pattern.finditer(text):
        literal += text[start : found.start()]
        start = found.end()
        if name := found["named"] or found["braced"]:
            parts.append((literal, name))
            literal = ""
        else:
            literal += "$"
    return [*parts, (literal + text[start:], "")]


def _fill_parts(parts: Sequence[_Part], values: Mapping[str, str]) -> str:
    return "".join(text + (values[name] if name else "") for text, name in parts).strip()


def to_prompt_json(value: object) -> str:
    """Return a value as JSON that cannot end its tagged block.

    `<` is written as an escape, so no text can contain a closing tag. Items of a list get a line
    each.
    """
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(to_prompt_json(item) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class PromptSet:
    """The prompts of all roles."""

    by_name: Mapping[PromptName, Prompt]
    own: frozenset[PromptName] = frozenset()
    """Those that a user's folder replaces."""

    def __getitem__(self, name: PromptName) -> Prompt:
        return self.by_name[name]

    def version_for(self, name: PromptName, task: Task) -> str:
        """Return a hash of a prompt and the task's lines that it shows."""
        lines = (task.lines.get(role, "") for role in ROLES_OF_PROMPT[name])
        return self.by_name[name].version_with_lines(*lines)


def load_prompts(overlay: Path | None = None) -> PromptSet:
    """Return the built-in prompts, each replaced by a folder's *.md file if there is one.

    Raises:
        PromptError: the folder or a file cannot be read, a file has the name of no prompt, or it
            uses other variables than the prompt it replaces.
    """
    built_in = {name: load_built_in_prompt(name) for name in ROLES_OF_PROMPT}
    own = _read_folder(overlay) if overlay else {}
    for name, prompt in own.items():
        _check_variables(prompt, built_in[name])
    return PromptSet(built_in | own, frozenset(own))


def load_built_in_prompt(name: str) -> Prompt:
    """Return a prompt that comes with the package, by the name of its file."""
    text = (files("coreeval.prompts") / f"{name}.md").read_text(encoding="utf-8")
    return Prompt(f"{name}.md", text)


def _read_folder(folder: Path) -> dict[PromptName, Prompt]:
    if not folder.is_dir():
        raise PromptError("there is no such folder of prompts", where=str(folder))
    return {_find_prompt_name(path): _read_prompt(path) for path in sorted(folder.glob("*.md"))}


def _find_prompt_name(path: Path) -> PromptName:
    for name in ROLES_OF_PROMPT:
        if path.stem == name:
            return name
    near = difflib.get_close_matches(path.stem, ROLES_OF_PROMPT, n=1, cutoff=0.5)
    raise PromptError(
        "no role has a prompt with this file name",
        where=str(path),
        hint=f"did you mean {near[0]}.md?" if near else f"prompts: {', '.join(ROLES_OF_PROMPT)}",
    )


def _read_prompt(path: Path) -> Prompt:
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        told = f"this prompt cannot be read: {describe_unreadable(error)}"
        raise PromptError(told, where=str(path), hint=UNREADABLE_HINT) from None
    return Prompt(str(path), text)


OPTIONAL = frozenset({"difficulty", "language"})
"""The variables that a user's prompt may do without: they came after such prompts existed."""


def _check_variables(own: Prompt, built_in: Prompt) -> None:
    if own.variables | OPTIONAL != built_in.variables | OPTIONAL:
        wanted = sorted(built_in.variables - OPTIONAL)
        missing = sorted(built_in.variables - own.variables - OPTIONAL)
        unknown = sorted(own.variables - built_in.variables - OPTIONAL)
        raise PromptError(
            f"its variables differ from the built-in prompt's: missing {missing or 'none'}, "
            f"unknown {unknown or 'none'}",
            where=own.name,
            hint=f"it must use {', '.join(f'${name}' for name in wanted)}",
        )
