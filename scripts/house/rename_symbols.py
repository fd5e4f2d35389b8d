"""Rename functions, methods, attributes and classes wherever they are used, with a language server.

    python scripts/rename_symbols.py RENAMES.tsv

Each line is `path:Qualified.name<TAB>new_name`; the qualified name is a function, a class, a
method, an attribute of a class (annotated in its body, or assigned to self), or a nested function,
with dots between. Strings are not looked at, so that names in YAML, JSON and SQL stay.
"""

import ast
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Queue
from urllib.parse import unquote, urlparse

SERVER = os.environ.get("LANGSERVER", "basedpyright-langserver")


class Server:
    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen([SERVER, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.answers: dict[int, Queue] = {}
        self.count = 0
        self.open: dict[str, int] = {}
        threading.Thread(target=self.read, daemon=True).start()
        self.ask("initialize", {
            "processId": os.getpid(), "rootUri": root.as_uri(),
            "workspaceFolders": [{"uri": root.as_uri(), "name": "root"}],
            "capabilities": {"workspace": {"workspaceEdit": {"documentChanges": True}, "configuration": True}, "textDocument": {"rename": {"prepareSupport": False}}},
        })
        self.tell("initialized", {})

    def read(self) -> None:
        out = self.process.stdout
        while True:
            length = 0
            while (line := out.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            message = json.loads(out.read(length))
            if "method" in message and "id" in message:
                result = None
                if message["method"] == "workspace/configuration":
                    settings = {"analysis": {"diagnosticMode": "openFilesOnly", "typeCheckingMode": "off", "useLibraryCodeForTypes": False, "autoSearchPaths": True, "indexing": False}, "pythonPath": sys.executable}
                    result = [settings.get("analysis") if "analysis" in (i.get("section") or "") else settings for i in message["params"]["items"]]
                self.send({"id": message["id"], "result": result})
            elif "id" in message:
                self.answers[message["id"]].put(message)

    def send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def ask(self, method: str, params: dict):
        self.count += 1
        number = self.count
        self.answers[number] = Queue()
        self.send({"id": number, "method": method, "params": params})
        answer = self.answers[number].get(timeout=600)
        del self.answers[number]
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer.get("result")

    def tell(self, method: str, params: dict) -> None:
        self.send({"method": method, "params": params})

    def show(self, path: Path) -> None:
        uri = path.resolve().as_uri()
        if uri in self.open:
            return
        self.open[uri] = 1
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": path.read_text()}})

    def changed(self, path: Path) -> None:
        uri = path.resolve().as_uri()
        if uri in self.open:
            self.open[uri] += 1
            self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": self.open[uri]}, "contentChanges": [{"text": path.read_text()}]})
        else:
            self.tell("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})


def position(path: Path, qualified: str) -> tuple[int, int]:
    """Return line and column (from 0) of a definition's name."""
    text = path.read_text()
    lines = text.splitlines()
    node: ast.AST = ast.parse(text)
    parts = qualified.split(".")
    for depth, part in enumerate(parts):
        found = None
        for each in ast.walk(node):
            if each is node:
                continue
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and each.name == part:
                found = each
                break
        if found is None and depth == len(parts) - 1:
            for each in ast.walk(node):
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id == part:
                    return each.target.lineno - 1, len(lines[each.target.lineno - 1].encode()[: each.target.col_offset].decode())
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id == part:
                    return each.lineno - 1, each.col_offset
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and each.attr == part:
                    return each.end_lineno - 1, each.end_col_offset - len(part)
                if isinstance(each, ast.arg) and each.arg == part:
                    return each.lineno - 1, each.col_offset
        if found is None:
            raise LookupError(f"{path} has no {qualified}")
        node = found
    line = node.lineno - 1
    while True:
        for word in ("def ", "class "):
            at = lines[line].find(word + node.name)
            if at >= 0:
                return line, at + len(word)
        line += 1


def apply(edit: dict) -> list[Path]:
    changes: dict[str, list] = {}
    for one in edit.get("documentChanges") or []:
        changes.setdefault(one["textDocument"]["uri"], []).extend(one["edits"])
    for uri, edits in (edit.get("changes") or {}).items():
        changes.setdefault(uri, []).extend(edits)
    paths = []
    for uri, edits in changes.items():
        path = Path(unquote(urlparse(uri).path))
        lines = path.read_text().splitlines(keepends=True)
        for e in sorted(edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
            start, end = e["range"]["start"], e["range"]["end"]
            assert start["line"] == end["line"]
            units = lines[start["line"]].encode("utf-16-le")
            lines[start["line"]] = (units[: 2 * start["character"]] + e["newText"].encode("utf-16-le") + units[2 * end["character"] :]).decode("utf-16-le")
        path.write_text("".join(lines))
        paths.append(path)
    return paths


def main() -> None:
    server = Server(Path.cwd())
    for path in [p for root in ("coreeval", "tests", "benchmarks", "examples") for p in Path(root).rglob("*.py")]:
        server.show(path)
    failed = 0
    for line in Path(sys.argv[1]).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        place, new = line.split("\t")[:2]
        name, qualified = place.split(":")
        path = Path(name)
        began = time.perf_counter()
        try:
            row, column = position(path, qualified)
            edit = server.ask("textDocument/rename", {"textDocument": {"uri": path.resolve().as_uri()}, "position": {"line": row, "character": column}, "newName": new.strip()})
        except (LookupError, RuntimeError) as error:
            print(f"FAILED {line}: {error}")
            failed += 1
            continue
        if not edit:
            print(f"FAILED {line}: nothing to rename")
            failed += 1
            continue
        paths = apply(edit)
        for each in paths:
            server.changed(each)
        print(f"{time.perf_counter() - began:5.1f} s  {place} -> {new}: {len(paths)} files", flush=True)
    server.process.kill()
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
