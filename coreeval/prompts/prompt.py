"""One prompt: stable instructions first, what varies after them, `$variables` checked."""

import hashlib
import json
from dataclasses import dataclass
from string import Template

from coreeval.errors import PromptError

DIVIDER = "=== user ==="
"""The line between the system message and the user message."""
Message = dict[str, str]
"""One message as chat models take it: `role` and `content`."""


@dataclass(frozen=True)
class Prompt:
    """A prompt with `$variables`; a dollar sign is written `$$`."""

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

    @property
    def version(self) -> str:
        """Short hash of the wording."""
        return _short_hash(self.text)

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that it takes."""
        return frozenset(Template(self.text).get_identifiers())

    def version_with(self, line: str) -> str:
        """Short hash of the wording together with the line that a task adds to it."""
        return _short_hash(f"{self.text}\0{line}")

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
        system, user = self.text.split(f"\n{DIVIDER}\n")
        return [
            {"role": "system", "content": Template(system).substitute(values).strip()},
            {"role": "user", "content": Template(user).substitute(values).strip()},
        ]


def as_data(value: object) -> str:
    """Return a value as JSON that cannot end the tagged block which it stands in.

    `<` is written as an escape, so no text can contain a closing tag. Items of a list get a line
    each.
    """
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(as_data(item) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
