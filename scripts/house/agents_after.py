"""What merge_modules.py and rename_symbols.py leave of the room agents; run after both.

Then: ruff check --fix . ; ruff format .
"""

from pathlib import Path

NEW = {
    "coreeval/agents/text/__init__.py": (
        '"""Reads texts by code: words, numbers, names, voice, and what supports them."""\n'
    ),
    "tests/agents/text/__init__.py": "",
}
BUILDERS = [("from .builders", "from tests.agents.builders")]
REPLACED = {
    "coreeval/agents/text/support.py": [
        ("which `calendar` finds", "which `find_calendar_words` finds")
    ],
    "coreeval/agents/offline/extract.py": [
        (")  # fmt: skip\n\n\ndef _make_entity", ")\n\n\ndef _make_entity")
    ],
    "coreeval/agents/offline/rewrite.py": [
        ("move_time_first,\n)  # fmt: skip", "move_time_first,\n)")
    ],
    "tests/agents/text/test_words.py": [
        ('words_module, "span_pattern"', 'words_module, "build_span_pattern"')
    ],
    "tests/agents/text/test_support.py": BUILDERS,
    "tests/hostile/test_patterns.py": [  # where patterns are made: module and expression
        ('"agents.marks: ', '"agents.text.words: '),
        ('"agents.words: ', '"agents.text.words: '),
        ('"agents.screen: ', '"agents.safety: '),
        ('"agents.substitute: ', '"agents.edits: '),
        ('"agents.offline.compose_tweet: ', '"agents.offline.compose: '),
        ('"agents.offline.rewriter: ', '"agents.offline.rewrite: '),
        (
            '"agents.offline.care: lexicon.phrase_pattern(lexicon.care(name))',
            '"agents.offline.news: word_lists.build_phrase_pattern"\n    "(word_lists.load_care_words(name))',
        ),
        (
            '"agents.offline.care: lexicon.phrase_pattern(lexicon.unpublishable(name))',
            '"agents.offline.news: word_lists.build_phrase_pattern"\n    "(word_lists.load_exclusions(name))',
        ),
        (
            '"agents.offline.care: lexicon.phrase_pattern(words)',
            '"agents.offline.news: word_lists.build_phrase_pattern(words)',
        ),
        (
            '"agents.offline.extractor: lexicon.phrase_pattern(words)',
            '"agents.offline.extract: word_lists.build_phrase_pattern(words)',
        ),
        (
            '"agents.offline.label_judge: lexicon.phrase_pattern(words)',
            '"agents.offline.judge: word_lists.build_phrase_pattern(words)',
        ),
        (
            '"agents.offline.wording: lexicon.phrase_pattern(_synonyms(loose=loose))',
            '"agents.offline.wording: word_lists.build_phrase_pattern(_load_swaps(loose=loose))',
        ),
    ],
    "benchmarks/voice.py": [
        ("all test texts, over as many headlines", "all test texts and as many headlines")
    ],
}


def main() -> None:
    for name, text in NEW.items():
        Path(name).write_text(text)
    for name, pairs in REPLACED.items():
        path = Path(name)
        text = path.read_text()
        for old, new in pairs:
            text = text.replace(old, new)
        path.write_text(text)


if __name__ == "__main__":
    main()
