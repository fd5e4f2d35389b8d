"""What models.yaml and models.tsv leave: names in strings, docstrings and documents. Run after both; idempotent."""

from pathlib import Path

ALL = {"Asker": "ModelClient", "Exchange": "ModelPool", "open_exchange": "open_model_pool", "AnswerShape": "OutputSchema", "PlainShape": "PlainOutput"}
"""Names in `__all__` of coreeval.models."""
TEXTS = {
    "coreeval/models/chat.py": {"ainvoke needs form=Form(...)": "ainvoke needs form=RequestOptions(...)", "see `ai_message`": "see `make_ai_message`", "answers one form at a time": "answers one request at a time"},
    "tests/models/test_survival_ends.py": {'("retry", "limits", "asker")': '("retry", "rate_limit", "client")'},
    "coreeval/graph/setup.py": {"from coreeval.models import providers\n": "from coreeval.models import preflight\n", "            providers(model, trusted=trusted)": "            preflight(model, trusted=trusted)"},
    "tests/models/test_providers.py": {"import open_model, providers\n": "import open_model, preflight\n", " providers(": " preflight("},
    "tests/models/test_budget.py": {"pays.give_back(one)": "pays.release(one)"},
    "tests/models/test_capabilities.py": {"one.refused(model()": "one.drop_method(model()", "one.refused_limit(model()": "one.drop_limit_name(model()", "one.note(model()": "one.record_outcome(model()", "one.found(": "one.set_known("},
    "docs/numleak_parsing.md": {"`models/reading.py`": "`models/answer_text.py`"},
}


def main() -> None:
    package = Path("coreeval/models/__init__.py")
    text = package.read_text()
    for old, new in ALL.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    package.write_text(text)
    for name, texts in TEXTS.items():
        path = Path(name)
        text = path.read_text()
        for old, new in texts.items():
            text = text.replace(old, new)
        path.write_text(text)


if __name__ == "__main__":
    main()
