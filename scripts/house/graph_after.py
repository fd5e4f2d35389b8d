"""What graph.yaml and graph.tsv cannot do: strings, documents, and names of local variables.

    python scripts/house/graph_after.py

It is run after both, in the root of the repository, and may be run twice.
"""

import io
import re
import subprocess
import tokenize
from pathlib import Path

VARIABLES = {
    "crew": "context",
    "_crew": "_context",
    "desk": "runner",
    "bench": "lab",
    "teller": "recorder",
    "listener": "observer",
    "rehearsal": "dry_run",
    "contender": "variant",
    "contenders": "variants",
}
"""Names in `coreeval/graph` and `tests/graph` that follow the classes they are of."""

WORDS = {
    "bench": "lab",
    "crew": "context",
    "contender": "variant",
    "contenders": "variants",
    "desk": "runner",
    "listener": "observer",
    "open_at_once": "max_open_samples",
    "plan_of": "build_item_plan",
    "learnt_from": "load_train_examples",
    "numleak_plan_of": "build_numleak_plan",
}
"""The same in docstrings."""

TEXTS = {
    "tests/graph/test_inputs.py": [('"TRAIN_MOST"', '"MOST_TRAIN_EXAMPLES"')],
    "tests/support/worker.py": [
        ('patch.object(refresh, "recorder", deadly)', 'patch.object(refresh, "build_recorder", deadly)'),
        ("    def recorder(*means: object)", "    def deadly_recorder(*means: object)"),
        ("    return recorder\n", "    return deadly_recorder\n"),
    ],
    "coreeval/graph/threads.py": [("saver.knows(", "saver.has_thread(")],
    "coreeval/graph/prompt_lab/lab.py": [("{bench.setup.task.name}", "{lab.setup.task.name}")],
    "docs/cost.md": [
        ("import error_of, estimate_of", "import find_estimate, measure_error"),
        ("estimate = estimate_of(manifest)", "estimate = find_estimate(manifest)"),
        ("print(error_of(estimate", "print(measure_error(estimate"),
    ],
    "docs/security.md": [
        ("`graph/cassettes/unpacking`", "`graph/cassettes/restore`"),
        ("`tests/graph/test_hostile_checkpoints`", "`tests/graph/test_checkpoints`"),
        ("`tests/graph/test_damage`", "`tests/graph/test_kills`"),
    ],
    # These lines are formatted as others are: their names are longer now.
    "coreeval/graph/estimate/campaign_estimate.py": [(")  # fmt: skip", ")")],
    "tests/graph/test_estimate.py": [(":  # fmt: skip", ":"), (".widened(", ".widen(")],
}


def rename_variables(path: Path) -> None:
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in VARIABLES:
            found.append((token.start, token.end, VARIABLES[token.string]))
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            new = re.sub(r"\b\w+\b", lambda one: WORDS.get(one[0], one[0]), token.string)
            if new != token.string:
                found.append((token.start, token.end, new))
    for (row, column), (last, end), new in reversed(found):
        head, tail = lines[row - 1][:column], lines[last - 1][end:]
        lines[row - 1 : last] = [head + new + tail]
    if found:
        path.write_text("".join(lines))


def main() -> None:
    package = Path("coreeval/graph/telemetry")
    if package.exists():
        subprocess.run(["git", "rm", "-q", "-r", "-f", str(package)], check=True)
        subprocess.run(["rm", "-rf", str(package)], check=True)
    for root in ("coreeval", "tests", "benchmarks", "examples"):
        for path in Path(root).rglob("*.py"):
            text = path.read_text()
            new = text.replace("from coreeval.graph.telemetry import", "from coreeval.graph.spans import")
            if new != text:
                path.write_text(new)
    for root in ("coreeval/graph", "tests/graph"):
        for path in sorted(Path(root).rglob("*.py")):
            rename_variables(path)
    for name, pairs in TEXTS.items():
        path = Path(name)
        text = path.read_text()
        for old, new in pairs:
            if old not in text and new not in text:
                print(f"{name}: has no {old!r}")
            text = text.replace(old, new)
        path.write_text(text)


if __name__ == "__main__":
    main()
