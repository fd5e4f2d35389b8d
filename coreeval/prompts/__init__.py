"""The prompts of a run: one file for each role, and a version for each wording.

A prompt has checked `$variables`, its stable instructions first, and what varies after them.
The files of a user's folder replace the built-in ones.
"""

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from coreeval.config import ROLES
from coreeval.config.user_files import read_text
from coreeval.errors import PromptError
from coreeval.schema import RoleName, Task

DIVIDER = "=== user ==="
"""The line between the system message and the user message."""
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
                "a $ stands before something that is no variable name",
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

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that it takes."""
        return frozenset(Template(self.text).get_identifiers())

    def version_with_line(self, line: str) -> str:
        """Short hash of the wording together with the line that a task adds to it."""
        return _hash_text(f"{self.text}\0{line}")

    def fill(self, **values: str) -> list[Message]:
        """Return the system and the user message, with exactly the variables filled in.

        Raises:
            PromptError: a variable has no value, or a value has no variable.
        """
        if self.variables != values.keys():
            raise PromptError(
                f"wants the variables {', '.join(sorted(self.variables))}; "
                f"was given {', '.join(sorted(values))}",
                where=self.name,
            )
        system, user = self._split()
        return [
            {"role": "system", "content": Template(system).substitute(values).strip()},
            {"role": "user", "content": Template(user).substitute(values).strip()},
        ]

    def _split(self) -> tuple[str, str]:
        """Return what stands above the divider and what stands below it."""
        lines = self.text.split("\n")
        at = lines.index(DIVIDER)
        return "\n".join(lines[:at]), "\n".join(lines[at + 1 :])


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
    """A prompt for each role."""

    by_role: Mapping[RoleName, Prompt]

    def __getitem__(self, role: RoleName) -> Prompt:
        return self.by_role[role]

    def role_versions(self, task: Task) -> dict[RoleName, str]:
        """Return a hash per role of its prompt and the task's line for it."""
        return {
            role: prompt.version_with_line(task.lines.get(role, ""))
            for role, prompt in self.by_role.items()
        }


def load_prompts(overlay: Path | None = None) -> PromptSet:
    """Return the built-in prompts, each replaced by a folder's *.md file if there is one.

    Raises:
        PromptError: the folder or a file cannot be read, a file name is not a role, or it uses
            other variables than the prompt it replaces.
    """
    built_in = {role: load_built_in_prompt(role) for role in ROLES}
    own = _read_folder(overlay) if overlay else {}
    for role, prompt in own.items():
        _check_variables(prompt, built_in[role])
    return PromptSet(built_in | own)


def load_built_in_prompt(name: str) -> Prompt:
    """Return a prompt that comes with the package, by the name of its file."""
    text = (files("coreeval.prompts") / f"{name}.md").read_text(encoding="utf-8")
    return Prompt(f"{name}.md", text)


def _read_folder(folder: Path) -> dict[RoleName, Prompt]:
    if not folder.is_dir():
        raise PromptError("there is no such folder of prompts", where=str(folder))
    return {_find_role(path): _read_prompt(path) for path in sorted(folder.glob("*.md"))}


def _find_role(path: Path) -> RoleName:
    for role in ROLES:
        if path.stem == role:
            return role
    near = difflib.get_close_matches(path.stem, ROLES, n=1, cutoff=0.5)
    raise PromptError(
        "this file is named like no role",
        where=str(path),
        hint=f"did you mean {near[0]}.md?" if near else f"roles: {', '.join(ROLES)}",
    )


def _read_prompt(path: Path) -> Prompt:
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"this prompt cannot be read: {error}", where=str(path)) from None
    return Prompt(str(path), text)


OPTIONAL = frozenset({"language"})
"""The variables that a user's prompt may do without: `language` came after such prompts existed."""


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
