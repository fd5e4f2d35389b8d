"""The prompts of a run: the built-in files, with those of a user's folder in their place."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from coreeval.config import ROLES
from coreeval.config.user_files import read_text
from coreeval.errors import PromptError
from coreeval.prompts.prompt import Prompt
from coreeval.schema import RoleName, Task


@dataclass(frozen=True)
class Prompts:
    """A prompt for each role."""

    by_role: Mapping[RoleName, Prompt]

    def __getitem__(self, role: RoleName) -> Prompt:
        return self.by_role[role]

    def versions(self, task: Task) -> dict[RoleName, str]:
        """Return what each role is told, as a hash: its prompt and the task's line for it."""
        return {
            role: prompt.version_with(task.lines.get(role, ""))
            for role, prompt in self.by_role.items()
        }


def load_prompts(overlay: Path | None = None) -> Prompts:
    """Return the built-in prompts, replaced by the *.md files of a folder where it has them.

    Raises:
        PromptError: the folder or a file cannot be read, a file is named like no role, or it uses
            other variables than the prompt it replaces.
    """
    built_in = {role: built_in_prompt(role) for role in ROLES}
    own = _read_folder(overlay) if overlay else {}
    for role, prompt in own.items():
        _check_variables(prompt, built_in[role])
    return Prompts(built_in | own)


def built_in_prompt(name: str) -> Prompt:
    """Return a prompt that comes with the package, by the name of its file."""
    text = (files("coreeval.prompts") / f"{name}.md").read_text(encoding="utf-8")
    return Prompt(f"{name}.md", text)


def _read_folder(folder: Path) -> dict[RoleName, Prompt]:
    if not folder.is_dir():
        raise PromptError("there is no such folder of prompts", where=str(folder))
    return {_role_of(path): _read(path) for path in sorted(folder.glob("*.md"))}


def _role_of(path: Path) -> RoleName:
    for role in ROLES:
        if path.stem == role:
            return role
    near = difflib.get_close_matches(path.stem, ROLES, n=1, cutoff=0.5)
    raise PromptError(
        "this file is named like no role",
        where=str(path),
        hint=f"did you mean {near[0]}.md?" if near else f"roles: {', '.join(ROLES)}",
    )


def _read(path: Path) -> Prompt:
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"this prompt cannot be read: {error}", where=str(path)) from None
    return Prompt(str(path), text)


def _check_variables(own: Prompt, built_in: Prompt) -> None:
    if own.variables != built_in.variables:
        missing = sorted(built_in.variables - own.variables)
        unknown = sorted(own.variables - built_in.variables)
        raise PromptError(
            f"its variables differ from the built-in prompt's: missing {missing or 'none'}, "
            f"unknown {unknown or 'none'}",
            where=own.name,
            hint=f"it must use {', '.join('$' + name for name in sorted(built_in.variables))}",
        )
