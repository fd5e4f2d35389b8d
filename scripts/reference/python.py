"""docs/reference_python.md: what `coreeval.__all__` names, with signatures and docstrings."""

import inspect
import re
from collections.abc import Iterator

import coreeval
from scripts.reference.markdown import NOTICE, prose
from scripts.reference.source import format_signature, read_field_docs, read_field_types

_INTRO = f"""\
# Python reference

{NOTICE}

Everything that a script may import from `coreeval`. Each name is imported when it is first used, so
`import coreeval` is fast.
"""
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes|Example|Examples):$")
_ENTRY = re.compile(r"^ {4}(\*{0,2}[\w.]+(?: \([^)]*\))?): (.*)$")


def build_page() -> str:
    """Return the page: functions first, then classes, then the other names."""
    names = sorted(coreeval.__all__, key=lambda name: (_rank(name), name.lower()))
    return "\n".join([_INTRO, *("\n".join([*_describe(name)]) for name in names)])


def _rank(name: str) -> int:
    value = getattr(coreeval, name)
    return 0 if inspect.isroutine(value) else 1 if inspect.isclass(value) else 2


def _describe(name: str) -> Iterator[str]:
    value: object = getattr(coreeval, name)
    yield from (f"## `{name}`", "")
    if inspect.isfunction(value):
        yield from ("```python", format_signature(name, value), "```", "")
    if inspect.isfunction(value) or inspect.isclass(value):
        yield from (_format_docstring(value), "")
    else:
        yield from (f"A value of the type `{type(value).__name__}`.", "")
    if inspect.isclass(value):
        members = [*_list_fields(value), *_list_members(value)]
        yield from [*members, ""] if members else []


def _list_fields(value: type) -> Iterator[str]:
    docs = read_field_docs(value)
    for name, annotation in read_field_types(value).items():
        said = " ".join(prose(docs.get(name, "")).split())
        yield f"- `{name}: {annotation}`" + (f". {said}" if said else "")


def _list_members(value: type) -> Iterator[str]:
    """Yield the public methods and properties that a class itself defines."""
    for name, member in vars(value).items():
        function = _find_function(member)
        summary = (inspect.getdoc(function) or "").partition("\n\n")[0] if function else ""
        if name.startswith("_") or not inspect.isfunction(function) or not summary:
            continue
        called = name if function is not member else format_signature(name, function, width=999)
        yield f"- `{called}`. {' '.join(prose(summary).split())}"


def _find_function(member: object) -> object:
    """Return the function behind a method or a property."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "func", member)


def _format_docstring(value: object) -> str:
    """Return a Google-style docstring as Markdown: its sections are bold, their entries a list."""
    lines, inside = list[str](), False
    for line in prose(inspect.getdoc(value) or "").splitlines():
        head = _SECTION.match(line)
        if head:
            inside = True
            lines += [f"**{head[1]}**", ""]
        elif inside and line.startswith("    "):
            entry = _ENTRY.match(line)
            lines.append(f"- `{entry[1]}`: {entry[2]}" if entry else f"  {line.strip()}")
        else:
            inside = inside and not line
            lines.append(line)
    return "\n".join(lines).strip()
