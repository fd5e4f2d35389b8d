"""What config.yaml and config.tsv leave: names in strings, docstrings and documents. Run after both; idempotent."""

import re
from pathlib import Path

ALL = {
    "coreeval/config/__init__.py": {"WordsConfig": "InstructionConfig", "series_part": "extract_series_config", "changed_keys": "find_changed_keys"},
    "coreeval/tasks/__init__.py": {"folded": "fold_name", "label_finder": "make_label_finder", "fingerprint": "hash_task"},
}
"""Names in `__all__`."""
TEXTS = {
    "coreeval/schedule/plan.py": {"not each.by_rules": "not each.is_rule_based", "model.key_env for": "model.key_variable for"},
    "coreeval/cli/validate.py": {"not model.by_rules": "not model.is_rule_based"},
    "coreeval/config/user_files.py": {"than `MOST_LINE` (": "than `MOST_LINE_BYTES` ("},
    "coreeval/config/schedule.py": {
        "(time for time in back if time <= moment)": "(due for due in back if due <= moment)",
        "        for time in self.iter_after(found):\n            if time > moment:\n                break\n            found = time\n":
        "        for due in self.iter_after(found):\n            if due > moment:\n                break\n            found = due\n",
        """f"{expression!r} has {count} fields, not the five of cron: {' '.join(CRON_FIELDS)}, as in "\n            "'0 3 * * MON'\"""":
        """f"{expression!r} has {count} fields, not the five of cron: {' '.join(CRON_FIELDS)}, "\n            "as in '0 3 * * MON'\"""",
    },
    "coreeval/evaluation/numleak/series/catalogue.py": {
        """(built in: {', '.join(names)}; a definition of your "\n        "own ends in .yaml)\"""":
        """(built in: {', '.join(names)}; "\n        "a definition of your own ends in .yaml)\"""",
    },
    "docs/security.md": {"`tests/test_credentials`": "`tests/config/test_credentials`", "`tests/test_user_files`": "`tests/config/test_user_files`"},
}


def main() -> None:
    for name, names in ALL.items():
        path = Path(name)
        text = path.read_text()
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        path.write_text(text)
    for name, texts in TEXTS.items():
        path = Path(name)
        text = path.read_text()
        for old, new in texts.items():
            text = text.replace(old, new)
        path.write_text(text)
    prompts = Path("coreeval/prompts/__init__.py")
    prompts.write_text(re.sub(r"\n+__all__ = \[[^\]]*\]\n", "\n", prompts.read_text()))
    Path("tests/config/__init__.py").touch()


if __name__ == "__main__":
    main()
