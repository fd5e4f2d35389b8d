"""Merge modules and rename top-level names, with every importer, by a plan in YAML.

    python scripts/merge_modules.py PLAN.yaml [--check]

A plan is a list of groups. The sources of a group become one module, in an order in which each
stands before what imports it; `renames` gives top-level names of the sources new ones (in all that
use them); `doc` is the new module's docstring. A group with one source moves or renames a module.

    - to: coreeval/models/rate_limit.py
      doc: How fast requests go out.
      from: [coreeval/models/rate_limit.py, coreeval/models/rate_limit.py]
      renames:
        coreeval/models/rate_limit.py: {Pace: RateLimiter}

Nothing is written if two sources bind one name to different things, or if the new import graph has
a cycle; `--check` writes nothing at all.
"""

import argparse
import ast
import builtins
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
import yaml
from libcst import metadata

ROOTS = ("coreeval", "tests", "benchmarks", "examples", "scripts")
TEXTS = ("*.md", "*.toml", "*.yml", "*.yaml", "*.tsv", "Makefile")


def dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass
class Group:
    to: str
    sources: list[str]
    doc: str
    renames: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass
class Plan:
    groups: list[Group]
    modules: dict[str, str] = field(default_factory=dict)
    """Old module to new module."""
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """(old module, old name) to new name."""
    own: dict[str, set[str]] = field(default_factory=dict)
    """Names that an old module binds itself."""

    def new_name(self, module: str, name: str) -> str:
        return self.names.get((module, name), name)


def load(path: Path) -> Plan:
    plan = Plan([])
    for raw in yaml.safe_load(path.read_text()):
        group = Group(raw["to"], list(raw["from"]), raw.get("doc", ""), raw.get("renames") or {})
        plan.groups.append(group)
        for source in group.sources:
            if not Path(source).exists():
                sys.exit(f"{source} does not exist")
            if dotted(source) in plan.modules:
                sys.exit(f"{source} is in two groups")
            plan.modules[dotted(source)] = dotted(group.to)
            plan.own[dotted(source)] = bound(Path(source))
        for source, names in group.renames.items():
            if source not in group.sources:
                sys.exit(f"{source} of `renames` is not in the group {group.to}")
            for old, new in names.items():
                if old not in plan.own[dotted(source)]:
                    sys.exit(f"{source} has no top-level name {old}")
                plan.names[dotted(source), old] = new
        if Path(group.to).exists() and group.to not in group.sources:
            sys.exit(f"{group.to} exists and is not a source")
    return plan


def bound(path: Path) -> set[str]:
    """Return the names that a module binds at its top level, imports aside."""
    return bound_text(path.read_text())


def bound_text(text: str) -> set[str]:
    found = set[str]()

    def look(body: Iterable[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
                for each in ast.walk(node):
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                        found.add(each.id)
            elif isinstance(node, ast.If | ast.Try):
                look(node.body)
                look(node.orelse)
            elif type(node).__name__ == "TypeAlias":
                found.add(node.name.id)

    look(ast.parse(text).body)
    return found


# -- one file -------------------------------------------------------------------------------------


class Rewrite(cst.CSTTransformer):
    """Applies replacements of nodes that were collected before."""

    def __init__(self, replaced: Mapping[cst.CSTNode, cst.CSTNode | None]) -> None:
        self.replaced = replaced

    def on_leave(self, original, updated):  # type: ignore[no-untyped-def]
        if original in self.replaced:
            new = self.replaced[original]
            return cst.RemoveFromParent() if new is None else new
        return updated


def rewrite(path: Path, plan: Plan, siblings: set[str], warn: list[str]) -> str:
    """Return a file with its imports and names changed; `siblings` are merged with it."""
    text = path.read_text()
    wrapper = metadata.MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=False)
    module = wrapper.module
    scopes = wrapper.resolve(metadata.ScopeProvider)
    parents = wrapper.resolve(metadata.ParentNodeProvider)
    me = dotted(str(path))
    replaced: dict[cst.CSTNode, cst.CSTNode | None] = {}
    strings: dict[str, str] = {}
    bindings = {name for scope in {s for s in scopes.values() if s} for a in scope.assignments
                for name in [a.name]}

    def rename_binding(scope, name: str, new: str) -> None:  # type: ignore[no-untyped-def]
        if name == new:
            return
        if new in bindings or hasattr(builtins, new):
            warn.append(f"{path}: {name} -> {new}: the new name is bound in this file already")
        for assignment in scope[name]:
            node = getattr(assignment, "node", None)
            if isinstance(node, cst.FunctionDef | cst.ClassDef):
                replaced[node.name] = cst.Name(new)
            elif isinstance(node, cst.Name):
                replaced[node] = node.with_changes(value=new)
            for access in assignment.references:
                if isinstance(access.node, cst.Name):
                    replaced[access.node] = access.node.with_changes(value=new)
                elif isinstance(access.node, cst.Attribute):
                    base = access.node
                    while isinstance(base, cst.Attribute):
                        base = base.value
                    replaced[base] = cst.Name(new)
        strings[name] = new

    def flatten(scope, name: str, old: str) -> None:  # type: ignore[no-untyped-def]
        """Turn `stem.X` into `X`, for a module that becomes part of this one."""
        for assignment in scope[name]:
            for access in assignment.references:
                node = access.node
                if isinstance(node, cst.Name):
                    node = parents[node]
                while isinstance(node, cst.Attribute) and not (
                    isinstance(node.value, cst.Name) and node.value.value == name
                ):
                    node = node.value
                if isinstance(node, cst.Attribute):
                    replaced[node] = cst.Name(plan.new_name(old, node.attr.value))
                else:
                    warn.append(f"{path}: {name} is used as a module object")

    def rename_attributes(scope, name: str, old: str) -> None:  # type: ignore[no-untyped-def]
        for assignment in scope[name]:
            for access in assignment.references:
                node = access.node
                parent = parents[node] if isinstance(node, cst.Name) else node
                if isinstance(parent, cst.Attribute):
                    while isinstance(parent.value, cst.Attribute):
                        parent = parent.value
                    if (old, parent.attr.value) in plan.names:
                        new = plan.new_name(old, parent.attr.value)
                        replaced[parent.attr] = cst.Name(new)

    class Imports(cst.CSTVisitor):
        def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
            if node.module is None or isinstance(node.names, cst.ImportStar):
                return
            source = cst.helpers.get_full_name_for_node(node.module) or ""
            scope = scopes[node]
            kept: dict[str, list[str]] = defaultdict(list)
            changed = False
            for alias in node.names:
                name = alias.name.value  # type: ignore[union-attr]
                local = alias.asname.name.value if alias.asname else name  # type: ignore[union-attr]
                full = f"{source}.{name}"
                is_module = full in plan.modules and not (
                    source in plan.own and name in plan.own[source]
                )
                if is_module:
                    changed = True
                    if full in siblings or (me in siblings and plan.modules[full] == plan.modules[me]):
                        flatten(scope, local, full)
                        continue
                    package, _, stem = plan.modules[full].rpartition(".")
                    rename_attributes(scope, local, full)
                    if alias.asname:
                        kept[package].append(f"{stem} as {local}" if stem != local else stem)
                    else:
                        rename_binding(scope, local, stem)
                        kept[package].append(stem)
                elif source in plan.modules and (
                    name in plan.own[source] or not is_submodule(source, name)
                ):
                    new = plan.new_name(source, name)
                    changed = True
                    if source in siblings:
                        rename_binding(scope, local, new) if local != new else None
                        continue
                    if alias.asname and local != new:
                        kept[plan.modules[source]].append(f"{new} as {local}")
                    else:
                        if local != new:
                            rename_binding(scope, local, new)
                        kept[plan.modules[source]].append(new)
                else:
                    kept[source].append(f"{name} as {local}" if alias.asname else name)
            if not changed:
                return
            line = parents[node]
            assert isinstance(line, cst.SimpleStatementLine)
            block = parents[line]
            comment = line.trailing_whitespace.comment
            new_lines = []
            for target, names in kept.items():
                words = f"from {target} import {', '.join(dict.fromkeys(names))}"
                new_lines.append(cst.parse_statement(words))
            if new_lines:
                first = new_lines[0].with_changes(
                    leading_lines=line.leading_lines, trailing_whitespace=line.trailing_whitespace
                )
                replaced[line] = cst.FlattenSentinel([first, *new_lines[1:]])
            elif isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
                replaced[line] = cst.parse_statement("pass")
            else:
                replaced[line] = None
            if comment and len(new_lines) > 1:
                warn.append(f"{path}: a comment on an import that was split: {comment.value}")

    wrapper.module.visit(Imports())
    if me in plan.modules:
        top = scopes[module.body[0]] if module.body else None
        for (owner, name), new in plan.names.items():
            if owner == me:
                assert top is not None
                rename_binding(top.globals, name, new)
    result = module.visit(Rewrite(replaced)).code
    return rename_in_annotations(result, strings) if strings else result


def is_submodule(package: str, name: str) -> bool:
    base = Path(package.replace(".", "/"))
    return (base / f"{name}.py").exists() or (base / name / "__init__.py").exists()


def is_literal(node: cst.Subscript) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "Literal"


def rename_in_annotations(text: str, strings: Mapping[str, str]) -> str:
    """Rename names within quoted annotations."""

    class Quoted(cst.CSTTransformer):
        def __init__(self) -> None:
            self.depth = 0
            self.texts = 0

        def visit_Annotation(self, node: cst.Annotation) -> None:
            self.depth += 1

        def leave_Annotation(self, original, updated):  # type: ignore[no-untyped-def]
            self.depth -= 1
            return updated

        def visit_Call(self, node: cst.Call) -> None:
            self.texts += 1  # such as the help of an option in Annotated: no annotation

        def leave_Call(self, original, updated):  # type: ignore[no-untyped-def]
            self.texts -= 1
            return updated

        def visit_Subscript(self, node: cst.Subscript) -> None:
            self.texts += is_literal(node)

        def leave_Subscript(self, original, updated):  # type: ignore[no-untyped-def]
            self.texts -= is_literal(original)
            return updated

        def leave_SimpleString(self, original, updated):  # type: ignore[no-untyped-def]
            if self.depth == 0 or self.texts:
                return updated
            value = updated.value
            for old, new in strings.items():
                value = re.sub(rf"(?<![\w.]){re.escape(old)}\b", new, value)
            return updated.with_changes(value=value)

    return cst.parse_module(text).visit(Quoted()).code


# -- merging --------------------------------------------------------------------------------------


@dataclass
class Cut:
    doc: str
    imports: list[str]
    typing: list[str]
    body: list[str]


def cut(text: str) -> Cut:
    """Cut a module's text into docstring, imports, imports for typing alone, and the rest."""
    tree, lines = ast.parse(text), text.splitlines()
    doc, imports, typing, body = "", list[str](), list[str](), list[str]()
    end = 0
    for number, node in enumerate(tree.body):
        assert node.end_lineno is not None
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        before = lines[end:start]
        chunk = "\n".join(lines[end : node.end_lineno]).strip("\n")
        end = node.end_lineno
        if number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            doc = ast.get_docstring(tree, clean=False) or ""
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(chunk)
        elif is_type_checking(node):
            assert isinstance(node, ast.If)
            for each in node.body:
                assert each.end_lineno is not None
                typing.append("\n".join(line[4:] for line in lines[each.lineno - 1 : each.end_lineno]))
            if any(line.strip() for line in before):
                body.append("\n".join(before).strip("\n"))
        else:
            body.append("\n".join(lines[last_end(tree, number) : node.end_lineno]).rstrip())
    if rest := "\n".join(lines[end:]).strip():
        body.append(rest)
    return Cut(doc, imports, typing, body)


def last_end(tree: ast.Module, number: int) -> int:
    return 0 if number == 0 else (tree.body[number - 1].end_lineno or 0)


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def assemble(group: Group, texts: Mapping[str, str], warn: list[str]) -> str:
    cuts = {source: cut(texts[source]) for source in order(group)}
    doc = group.doc or next((one.doc for one in cuts.values() if one.doc), "")
    imports = [each for one in cuts.values() for each in one.imports]
    there = imported_names("\n".join(imports))
    own = {name for source in group.sources for name in bound_text(texts[source])}
    typing = list[str]()
    for one in cuts.values():
        for each in one.typing:
            typing += keep_names(each, there | own)
    typing = list(dict.fromkeys(typing))
    imports = [each for each in imports if typing or "TYPE_CHECKING" not in each
               or each.strip() != "from typing import TYPE_CHECKING"]
    doc = doc.strip()
    parts = [f'"""{doc}{chr(10) if chr(10) in doc else ""}"""' if doc else ""]
    parts.append("\n".join(imports))
    if typing:
        block = "\n".join("    " + line for each in typing for line in each.splitlines())
        parts.append(f"if TYPE_CHECKING:\n{block}")
    for one in cuts.values():
        parts.append("\n".join(one.body))
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def keep_names(statement: str, there: set[str]) -> list[str]:
    """Return an import statement without names that are bound anyway."""
    node = ast.parse(statement).body[0]
    if not isinstance(node, ast.ImportFrom):
        return [statement]
    names = [a for a in node.names if (a.asname or a.name) not in there]
    if len(names) == len(node.names):
        return [statement]
    if not names:
        return []
    return [f"from {node.module} import {', '.join(a.name + (f' as {a.asname}' if a.asname else '') for a in names)}"]


def imported_names(text: str) -> set[str]:
    return {a.asname or a.name for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import | ast.ImportFrom) for a in node.names}


def order(group: Group) -> list[str]:
    """Return the sources so that each stands after those that it needs when it is imported."""
    needs = {source: needed(source) & {dotted(s) for s in group.sources} for source in group.sources}
    done, found = set[str](), list[str]()
    while len(found) < len(group.sources):
        ready = next((s for s in group.sources if s not in found and needs[s] - {dotted(s)} <= done), None)
        if ready is None:
            left = [s for s in group.sources if s not in found]
            sys.exit(f"{group.to}: its sources import each other in a circle: {left}")
        found.append(ready)
        done.add(dotted(ready))
    return found


def needed(source: str) -> set[str]:
    """Return the modules that a file imports at its top level."""
    found = set[str]()
    for node in ast.parse(Path(source).read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{a.name}" for a in node.names}
    return found


def collisions(group: Group, plan: Plan, texts: Mapping[str, str]) -> list[str]:
    origins: dict[str, dict[str, str]] = defaultdict(dict)
    for source in group.sources:
        text = texts[source]
        for name in bound_text(text):
            origins[name][f"{source}"] = source
        for node in ast.parse(text).body:
            nodes = node.body if is_type_checking(node) else [node]  # type: ignore[attr-defined]
            for each in nodes:
                if isinstance(each, ast.ImportFrom):
                    for a in each.names:
                        origins[a.asname or a.name][source] = f"import {each.module}.{a.name}"
                elif isinstance(each, ast.Import):
                    for a in each.names:
                        origins[a.asname or a.name.split(".")[0]][source] = f"import {a.name.split('.')[0] if not a.asname else a.name}"
    found = []
    for name, places in sorted(origins.items()):
        if len(set(places.values())) > 1:
            told = ", ".join(f"{Path(s).name}: {'defined' if o == s else o}" for s, o in places.items())
            found.append(f"{group.to}: {name} is two things: {told}")
    return found


# -- the graph ------------------------------------------------------------------------------------


def graph(plan: Plan) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the import graphs under the plan: at import time, and with lazy imports."""
    eager, lazy = defaultdict(set), defaultdict(set)
    files = {dotted(str(p)): p for p in Path("coreeval").rglob("*.py")}
    exists = set(files)
    for module, path in files.items():
        tree = ast.parse(path.read_text())
        typing = {id(n) for node in ast.walk(tree) if is_type_checking(node) for n in ast.walk(node)}
        top = {id(n) for n in tree.body}
        me = plan.modules.get(module, module)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or id(node) in typing or not node.module:
                continue
            for a in node.names:
                full = f"{node.module}.{a.name}"
                target = full if full in exists else node.module
                if target not in exists:
                    continue
                target = plan.modules.get(target, target)
                if target != me:
                    (eager if id(node) in top else lazy)[me].add(target)
    return eager, lazy


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    sys.setrecursionlimit(10_000)

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while True:
                part.append(stack.pop())
                if part[-1] == node:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


# -- everything -----------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    plan = load(chosen.plan)
    warn: list[str] = []
    eager, _ = graph(plan)
    was, _ = graph(Plan([]))
    new = [c for c in cycles(eager) if c not in cycles(was)]
    for cycle in new:
        print("cycle:", " ".join(cycle))
        for one in cycle:
            print("   ", one, "->", *sorted(eager[one] & set(cycle)))
    touched = {p for p in affected(plan)}
    texts: dict[str, str] = {}
    for path in sorted(touched):
        module = dotted(str(path))
        siblings = {s for s, t in plan.modules.items() if t == plan.modules.get(module) and s != module}
        texts[str(path)] = rewrite(path, plan, siblings, warn)
    trouble = [t for g in plan.groups for t in collisions(g, plan, {s: texts[s] for s in g.sources})]
    for line in [*trouble, *warn]:
        print(line)
    if new or trouble:
        sys.exit("nothing was written")
    for group in plan.groups:
        size = sum(texts[s].count("\n") for s in group.sources)
        print(f"{group.to}: about {size} lines of {len(group.sources)} files")
    if chosen.check:
        return
    merged = {group.to: assemble(group, texts, warn) for group in plan.groups}
    gone = {s for g in plan.groups for s in g.sources} - set(merged)
    for name, text in {**texts, **merged}.items():
        if name not in gone:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
    for name in gone:
        subprocess.run(["git", "rm", "-q", "--cached", name], check=False)
        Path(name).unlink()
        folder = Path(name).parent
        if not any(p for p in folder.iterdir() if p.name != "__pycache__"):
            subprocess.run(["rm", "-r", str(folder)], check=True)
    replace_in_texts(plan)
    files = [p for p in [*map(Path, texts), *map(Path, merged)] if p.exists()]
    ruff = Path(".venv/bin/ruff") if Path(".venv/bin/ruff").exists() else Path("ruff")
    subprocess.run([ruff, "check", "-q", "--fix", "--select", "I,F401,F811", *files], check=False)
    subprocess.run([ruff, "format", "-q", *files], check=False)


def affected(plan: Plan) -> Iterable[Path]:
    stems = {m.rpartition(".")[2] for m in plan.modules} | {m.rpartition(".")[0].rpartition(".")[2] for m in plan.modules}
    for root in ROOTS:
        for path in Path(root).rglob("*.py"):
            text = path.read_text()
            if dotted(str(path)) in plan.modules:
                yield path
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and node.module and (
                    node.module in plan.modules
                    or any(f"{node.module}.{a.name}" in plan.modules for a in node.names)
                ):
                    yield path
                    break


def replace_in_texts(plan: Plan) -> None:
    """Replace dotted names and paths of modules in strings, documents and settings."""
    moved = {old: new for old, new in plan.modules.items() if old != new}
    pairs: list[tuple[str, re.Pattern[str], str]] = []  # a text without the first has no match
    for (module, name), new in plan.names.items():
        pairs.append((module, re.compile(rf"\b{re.escape(module)}([.:]){re.escape(name)}\b"), rf"{plan.modules[module]}\g<1>{new}"))
    packages = {m for m in moved if Path(m.replace(".", "/")).is_dir()}
    for old, new in sorted(moved.items(), key=lambda pair: -len(pair[0])):
        end = r"(?![\w])" if old not in packages else r"(?![\w.])"
        pairs.append((old, re.compile(rf"\b{re.escape(old)}{end}"), new))
        for g in plan.groups:
            for s in g.sources:
                if dotted(s) == old:
                    pairs.append((s, re.compile(rf"(?<![\w/]){re.escape(s)}\b"), g.to))
    patterns = [p for root in ROOTS for p in Path(root).rglob("*.py")]
    patterns += [p for t in TEXTS for p in Path().glob(t)] + [p for t in TEXTS for p in Path("docs").rglob(t)]
    patterns += list(Path(".github").rglob("*.yml")) + [Path("CONTRIBUTING.md")]
    for path in set(patterns):
        if not path.exists() or path.name in ("CHANGELOG.md", "renames.tsv"):
            continue
        text = path.read_text()
        out = text
        for needle, pattern, new in pairs:
            if needle in out:
                out = pattern.sub(new, out)
        if out != text:
            path.write_text(out)


if __name__ == "__main__":
    main()
