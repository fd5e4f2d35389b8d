"""What viewer.yaml and viewer.tsv cannot do: templates, untyped state, names of local variables.

    python scripts/house/viewer_after.py

It is run after both, in the root of the repository, and may be run twice. `ruff format .` follows.
"""

import io
import re
import tokenize
from pathlib import Path

EVERYWHERE = {"story": "history", "shelf": "catalog"}
"""Names in `coreeval/viewer` and `tests/viewer` that follow the classes they are of."""
VARIABLES = {
    "coreeval/viewer/app.py": {"place": "server_socket", "told": "context"},
    "coreeval/viewer/comparison.py": {"standings": "samples"},
    "coreeval/viewer/history.py": {"told": "reader"},
    "coreeval/viewer/sample_page.py": {"told": "timed"},
    "coreeval/cli/view.py": {"place": "server_socket"},
    "tests/viewer/kit.py": {"place": "server_socket"},
    "tests/viewer/test_compare_page.py": {"shelf": "workspace"},
    "tests/viewer/test_history.py": {"told": "redacted"},
}
"""Names in single files, before those of everywhere."""
WORDS = {"story": "history"}
"""The same in docstrings."""

RENDERING = '''    environment.filters |= {
        "number": format_number,
        "percent": format_percent,
        "usd": format_usd,
        "seconds": format_seconds,
        "when": format_time,
        "words": format_name,
        "shown": isolate_text,
        "marked": mark_unseen,
        "web_link": keep_web_url,
    }
    environment.globals |= {
        "run_url": build_run_url,
        "sample_url": build_sample_url,
        "compare_url": build_compare_url,
    }
'''
HELPERS = '''HELPERS: Mapping[str, object] = {
    "DATED": DATE_SOURCES,
    "moments": time_steps,
    "chapters": group_steps,
    "news": number_evidence,
    "facts": list_facts,
    "last_text": find_last_text,
    "objections": list_objections,
    "diffs_between": select_diffs,
    "pretty": indent_json,
    "as_json": format_details,
}
"""What the template uses, by the names that it has there."""


'''

TEXTS = {
    "coreeval/viewer/app.py": [("app.state.shelf", "app.state.catalog")],
    "coreeval/viewer/sample_page.py": [("telling=telling", "helpers=HELPERS")],
    "coreeval/cli/view.py": [
        ("app.state.shelf.paths", "app.state.catalog.run_paths"),
        ("{place.address}", "{server_socket.address}"),
    ],
    "benchmarks/viewer.py": [("app.state.shelf.all_runs()", "app.state.catalog.find_runs()")],
    "tests/viewer/test_detection.py": [
        ("app.state.shelf.all_runs()", "app.state.catalog.find_runs()"),
        ("app.state.catalog.all_runs()", "app.state.catalog.find_runs()"),
    ],
    "tests/viewer/test_run_pages.py": [
        ('"coreeval.viewer.run_pages.cost_rows"', '"coreeval.viewer.run_pages.sum_costs"'),
    ],
    "tests/viewer/test_rendering.py": [
        (
            '''    assert [format_percent(0.5), format_percent(None), format_time("2026-01-02T03:04:05Z"), format_time("")] == [
        "50.0 %", "\\N{EN DASH}", "2026-01-02 03:04", "",
    ]  # fmt: skip
''',
            '''    assert [format_percent(value) for value in (0.5, None)] == ["50.0 %", "\\N{EN DASH}"]
    assert [format_time(stamp) for stamp in ("2026-01-02T03:04:05Z", "")] == [
        "2026-01-02 03:04", "",
    ]  # fmt: skip
''',
        )
    ],
    "docs/security.md": [("`viewer/untrusted`", "`viewer/rendering`")],
}


def rename_variables(path: Path, names: dict[str, str]) -> None:
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in names:
            found.append((token.start, token.end, names[token.string]))
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            new = re.sub(r"\b\w+\b", lambda one: WORDS.get(one[0], one[0]), token.string)
            if new != token.string:
                found.append((token.start, token.end, new))
    for (row, column), (last, end), new in reversed(found):
        head, tail = lines[row - 1][:column], lines[last - 1][end:]
        lines[row - 1 : last] = [head + new + tail]
    if found:
        path.write_text("".join(lines))


def name_filters(path: Path) -> None:
    """Give filters and globals of templates names of their own: they went by `__name__`."""
    text = path.read_text()
    if "__name__" in text:
        start, end = text.index("    named = ("), text.index("    return environment\n")
        path.write_text(text[:start] + RENDERING + text[end:])


def add_helpers(path: Path) -> None:
    """Give the template of a sample its functions in a mapping; it had the module itself."""
    text = path.read_text()
    if "HELPERS: " not in text:
        path.write_text(text.replace("def show_sample(", HELPERS + "def show_sample(", 1))


def drop_alias(path: Path) -> None:
    """Use the status of a run under one name: two of the merged modules had it under two."""
    text = path.read_text()
    if alias := re.search(r"^from \S+ import (\w+) as live_of\n", text, re.MULTILINE):
        text = text.replace(alias[0], "")
        path.write_text(re.sub(r"\blive_of\(", f"{alias[1]}(", text))


def main() -> None:
    name_filters(Path("coreeval/viewer/rendering.py"))
    add_helpers(Path("coreeval/viewer/sample_page.py"))
    drop_alias(Path("coreeval/viewer/run_pages.py"))
    for name, pairs in TEXTS.items():
        path = Path(name)
        if not path.exists():
            print(f"{name} is gone: apply {pairs} where it went")
            continue
        text = path.read_text()
        for old, new in pairs:
            text = text.replace(old, new)
        path.write_text(text)
    for name, names in VARIABLES.items():
        if Path(name).exists():
            rename_variables(Path(name), names)
    for root in ("coreeval/viewer", "tests/viewer"):
        for path in sorted(Path(root).rglob("*.py")):
            rename_variables(path, EVERYWHERE)
    for path in Path("coreeval/viewer/templates").glob("*.html"):
        text = path.read_text()
        new = re.sub(r"\btelling\b", "helpers", text)
        new = re.sub(r"\bstory\b(?=\.|,|\))", "history", new)
        if new != text:
            path.write_text(new)


if __name__ == "__main__":
    main()
