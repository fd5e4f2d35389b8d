"""Generate the synthetic items on which the demo shows PCR at work; nobody wrote or said them.

    python examples/synthetic_memory.py [DIR]

Each item is one sentence put together by chance: a feeling, and what happened. There are so many
words for each feeling that a small classifier, fitted on half of the train split, is right on about
half of the items that it has not seen: often enough to be one, wrong often enough that remembering
an item shows. Nothing that they mention is looked up in the news.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SEED = 2
"""Seeds 1 to 7 give the same three verdicts; with this one no interval ends near 0."""
SIZES = {"train": 200, "test": 100}
FEELINGS = {
    "anger": "livid|furious|fuming|seething|outraged|annoyed|irritated|resentful|bitter|hostile|"
    "infuriated|mad|disgusted|raging",
    "joy": "happy|joyful|delighted|elated|ecstatic|thrilled|cheerful|merry|glad|grateful|thankful|"
    "proud|excited|playful",
    "optimism": "hopeful|optimistic|brave|inspired|motivated|positive|hoping|stronger|believing|"
    "full of motivation|full of trust|full of courage|full of strength|full of hope",
    "sadness": "sad|saddened|grieving|unhappy|heartbroken|hopeless|discouraged|miserable|hurt|"
    "upset|disappointed|devastated|numb|weary",
}
HOW = ["totally", "very", "really", "completely", "certainly"]
LINKS = ["because", "when", "while", "after", "although"]
WHO = (
    "the employees", "my colleagues", "everyone here", "someone upstairs", "most of the guests",
    "a lot of visitors", "two cousins", "the drivers", "my flatmates", "the twins", "the librarian",
    "everyone next door", "lots of us", "the caretaker", "the landlady",
)  # fmt: skip
DID = (
    "postponed", "bought", "halted", "unveiled", "ended", "tried to move", "agreed to keep",
    "were able to repair", "wanted to have", "painted",
)  # fmt: skip
WHAT = (
    "annual fair", "strange photo", "biggest tent", "chess evening", "window display",
    "lantern walk", "paper calendar", "roof terrace", "huge shed", "strange lamp", "yearly raffle",
    "brand-new bench", "biggest ladder", "additional chair", "wooden fence", "odd clock",
    "enormous mirror", "blue carpet", "spare key", "extra shelf",
)  # fmt: skip
WHEN = (
    "again", "all day", "all night", "every day", "tonight", "at the moment", "right now", "also",
)  # fmt: skip


def main(folder: Path) -> None:
    """Write a file for each split."""
    luck = random.Random(SEED)
    texts = _texts(luck)
    for split, size in SIZES.items():
        lines = [_line(split, number, *next(texts)) for number in range(1, size + 1)]
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")


def _texts(luck: random.Random) -> Iterator[tuple[str, str]]:
    """Yield labels in turn, each with a sentence that was not there before."""
    known = set[str]()
    while True:
        for label, words in FEELINGS.items():
            text = _sentence(luck, luck.choice(words.split("|")))
            while text in known:
                text = _sentence(luck, luck.choice(words.split("|")))
            known.add(text)
            yield label, text


def _sentence(luck: random.Random, feeling: str) -> str:
    who, did, what, when = (luck.choice(words) for words in (WHO, DID, WHAT, WHEN))
    return f"I'm {luck.choice(HOW)} {feeling} {luck.choice(LINKS)} {who} {did} the {what} {when}."


def _line(split: str, number: int, label: str, text: str) -> str:
    item = {"id": f"synthetic/{split}/{number}", "text": text, "label": label}
    return json.dumps(item) + "\n"


if __name__ == "__main__":
    here = Path(__file__).parent / "demo" / "synthetic_memory"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here)
