"""What the source of a class or function says and the object does not: signatures, field docs."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping


def parse_definition(value: Callable[..., object]) -> ast.stmt:
    """Return the syntax tree of a class or function."""
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]


def read_field_docs(model: type) -> Mapping[str, str]:
    """Return the docstring below each field of a class and of its bases; the class itself wins."""
    docs = dict[str, str]()
    for base in reversed(model.__mro__):
        if base.__module__.partition(".")[0] == "coreeval":
            docs |= dict(_iter_field_docs(base))
    return docs


def _iter_field_docs(model: type) -> Iterator[tuple[str, str]]:
    tree = parse_definition(model)
    assert isinstance(tree, ast.ClassDef)
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            yield field.target.id, inspect.cleandoc(str(after.value.value))


def read_field_types(model: type) -> Mapping[str, str]:
    """Return the annotation of each public field that a class itself declares, as written."""
    tree = parse_definition(model)
    assert isinstance(tree, ast.ClassDef)
    return {
        each.target.id: _unparse(each.annotation)
        for each in tree.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and not each.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(each.annotation)
    }


def format_signature(name: str, function: Callable[..., object], *, width: int = 90) -> str:
    """Return how a function is defined, without `self`; a parameter a line if it is long."""
    tree = parse_definition(function)
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    shown = [each for each in _iter_parameters(tree.args) if each not in ("self", "cls")]
    returned = f" -> {_unparse(tree.returns)}" if tree.returns else ""
    start = "async " if isinstance(tree, ast.AsyncFunctionDef) else ""
    one_line = f"{start}{name}({', '.join(shown)}){returned}"
    if len(one_line) <= width:
        return one_line
    return "\n".join([f"{start}{name}(", *(f"    {each}," for each in shown), f"){returned}"])


def _iter_parameters(given: ast.arguments) -> Iterator[str]:
    """Yield the parameters as they are written, with the bare star and slash."""
    plain = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
    for number, (each, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield _format_parameter(each, default)
        if number == len(given.posonlyargs):
            yield "/"
    if given.vararg:
        yield f"*{_format_parameter(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _format_parameter(each, default)
    if given.kwarg:
        yield f"**{_format_parameter(given.kwarg, None)}"


def _format_parameter(given: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {_unparse(given.annotation)}" if given.annotation else ""
    if default is None:
        return given.arg + annotation
    return f"{given.arg}{annotation}{' = ' if annotation else '='}{_unparse(default)}"


def _unparse(tree: ast.expr) -> str:
    """Return an expression as written; an annotation in quotes without them."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str) and _is_type(tree.value):
        return tree.value
    return ast.unparse(tree).replace("'", '"')


def _is_type(text: str) -> bool:
    """Return whether a constant is an annotation in quotes: a class, or made of classes."""
    return text[:1].isupper() and text.isascii() and (" " not in text or "|" in text)
