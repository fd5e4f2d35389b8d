"""What merge_modules.py and rename_symbols.py leave of the room schedule; run after both.

Then: ruff check --fix . ; ruff format .
"""

import re
from pathlib import Path

WORDS = {
    "coreeval/schedule/due.py": {
        "hands": "dependencies",
        "book": "state_file",
        r"run, does = Path": "run, steps = Path",
        r"does\.resume\(": "steps.resume(",
        r"does\.retry\(": "steps.retry(",
    },
    "coreeval/schedule/daemon.py": {
        "hands": "dependencies",
        "bell": "queue",
        "alarms": "timers",
        "`due` has told of it": "`run_due` has reported it",
    },
    "tests/schedule/test_daemon.py": {'"AGAIN_AFTER"': '"RETRY_AFTER"'},
}
"""Local names, strings and comments, as whole words."""
TWICE = '    monkeypatch.delitem(sys.modules, "coreeval.schedule.daemon", raising=False)\n'
"""Two modules were forgotten here, which are one now."""


def main() -> None:
    for name, words in WORDS.items():
        path = Path(name)
        text = path.read_text()
        for old, new in words.items():
            text = re.sub(rf"(?<![\w]){old}(?![\w])" if old[-1].isalpha() else old, new, text)
        path.write_text(text)
    path = Path("tests/cli/test_schedule.py")
    path.write_text(path.read_text().replace(TWICE * 2, TWICE))


if __name__ == "__main__":
    main()
