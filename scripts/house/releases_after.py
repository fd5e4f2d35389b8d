"""What releases.yaml and releases.tsv leave of the room; run after both, in the root of the repository.

Then: ruff check --fix . ; ruff format .   It may be run twice.
"""

import re
import subprocess
from pathlib import Path

WORDS = {
    "coreeval/releases/review/__init__.py": {
        '"decided"': '"load_review"',
        '"review_of"': '"build_review"',
    },
    "coreeval/releases/release_card.py": {
        "    return f\"| {escape(one.criterion)}, {scale} | {' | '.join(arms)} | {_format_difference(one.difference)} |\"\n": (
            "    difference = _format_difference(one.difference)\n"
            "    return f\"| {escape(one.criterion)}, {scale} | {' | '.join(arms)} | {difference} |\"\n"
        ),
        '    return f"| {escape(one.criterion)} | {pairs} | {_chance(found.kappa)} | {_chance(found.alpha)} |"\n': (
            "    kappa, alpha = _chance(found.kappa), _chance(found.alpha)\n"
            '    return f"| {escape(one.criterion)} | {pairs} | {kappa} | {alpha} |"\n'
        ),
    },
    "tests/releases/test_status.py": {
        "status import live; live(Path": "status import read_status; read_status(Path",
    },
    "tests/releases/test_release.py": {
        "from coreeval.releases import making, writing": "from coreeval.releases import create, write",
        "        writing.write_json = lambda": "        write.write_json = lambda",
        "        making.make_release(Path": "        create.make_release(Path",
    },
    "docs/cassettes.md": {"releases/cassettes/lines.py": "releases/cassettes/format.py"},
    "docs/security.md": {
        "releases/forgetting/caches": "releases/takedown/calls",
        "releases/contained": "releases/folders",
        "releases/verifying": "releases/verify",
        "releases/test_verifying": "releases/test_verify",
        "releases/test_review_sheet": "releases/test_review_output",
        "releases/test_hostile_card": "releases/test_release_card",
    },
}
"""Strings and paths, as they stand."""

ROOTS = ("coreeval", "tests", "benchmarks", "examples", "docs")
EVERYWHERE = {
    r"releases\.review\.decided\b": "releases.review.review",
    r"releases/review/decided\b": "releases/review/review",
}
"""The function `decided` was exported under the name of its module, which is renamed only here."""


def main() -> None:
    for name, words in WORDS.items():
        path = Path(name)
        text = path.read_text()
        for old, new in words.items():
            text = text.replace(old, new)
        path.write_text(text)
    old = Path("coreeval/releases/review/decided.py")
    if old.exists():
        subprocess.run(["git", "mv", "-f", str(old), str(old.with_name("review.py"))], check=False)
        if old.exists():
            old.rename(old.with_name("review.py"))
    for root in ROOTS:
        for path in Path(root).rglob("*"):
            if path.suffix not in (".py", ".md"):
                continue
            text = new = path.read_text()
            for pattern, words in EVERYWHERE.items():
                new = re.sub(pattern, words, new)
            if new != text:
                path.write_text(new)


if __name__ == "__main__":
    main()
