"""What sets headlines and edited texts apart from what people write: natural ranges, measured.

    python -m benchmarks.voice --data FOLDER [--records FILE.jsonl]

FOLDER has tweeteval, mrpc and gdelt as their publishers give them. Printed for each feature of
`coreeval.agents.text.voice`: percentiles over all test texts and as many headlines, and how well it
tells the two apart (AUC; 0.5 is chance). Then how often each check of a text's voice would fire if
another original of the same benchmark stood in the place of the new text: how strict it is for
texts that nobody edited. `--records` has lines with "original", "updated" (fields), "titles" and
"recognised" (bool): for these, features of updated texts are compared with those of originals, and
of texts that readers recognised as edited with those that they did not.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from coreeval.agents.text import voice
from coreeval.agents.text.words import measure_containment, split_words
from coreeval.agents.thresholds import THRESHOLDS

Feature = Callable[[str], float]
SEED, MOST = 7, 1500


def _capitals(text: str) -> float:
    inside = [word for word in voice.plain_text(text).split()[1:] if word[0].isalpha()]
    return sum(word[0].isupper() for word in inside) / len(inside) if inside else 0.0


def _word_length(text: str) -> float:
    own = split_words(voice.plain_text(text))
    return sum(map(len, own)) / len(own) if own else 0.0


def _sentence_length(text: str) -> float:
    parts = voice.split_sentences(text)
    return sum(len(split_words(part)) for part in parts) / len(parts) if parts else 0.0


FEATURES: Mapping[str, Feature] = {
    "function words": voice.measure_function_words,
    "word length": _word_length,
    "capitals inside": _capitals,
    "words a sentence": _sentence_length,
    "figures": lambda text: float(len(voice.find_figures(text))),
    "machine marks": lambda text: float(len(voice.find_machine_marks(text))),
    "informal spellings": lambda text: float(len(voice.find_informal_words(text))),
    "speaks as I": lambda text: float(voice.speaks_as_i(text)),
    "open end": lambda text: float(voice.ends_open(text)),
    "lower-case start": lambda text: float(voice.starts_lower(text)),
}


def main() -> None:
    """Print the ranges, and what records show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--records", type=Path)
    chosen = parser.parse_args()
    titles = _titles(chosen.data / "gdelt")
    luck = random.Random(SEED)
    for name, texts in _benchmarks(chosen.data).items():
        headlines = luck.sample(titles, min(len(titles), len(texts)))
        print(f"\n{name}: {len(texts)} texts, {len(headlines)} headlines")
        _ranges(texts, headlines)
        _strictness(name, texts, luck)
    if chosen.records:
        _records(chosen.records)


def _benchmarks(data: Path) -> dict[str, list[str]]:
    tweets = data / "tweeteval"
    stance = [p for p in sorted((tweets / "stance").glob("*/test_text.txt"))]
    mrpc = (data / "mrpc/msr_paraphrase_test.txt").read_text(encoding="utf-8-sig").splitlines()[1:]
    return {
        "emotion": _lines(tweets / "emotion/test_text.txt"),
        "irony": _lines(tweets / "irony/test_text.txt"),
        "stance": [line for path in stance for line in _lines(path)],
        "mrpc": [part for line in mrpc for part in line.split("\t")[3:5]],
    }


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _titles(folder: Path) -> list[str]:
    """Return distinct English-looking titles of GKG rows and article lists."""
    found: dict[str, None] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix not in {".csv", ".gz", ".json", ".tsv"}:
            continue
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8", "replace")
        for title in re.findall(r'"title": ?"((?:[^"\\]|\\.)+)"|<PAGE_TITLE>(.+?)</', text):
            told = " ".join((title[0] or title[1]).split())
            if told.isascii() and len(told.split()) >= 5:
                found[told] = None
    return list(found)


def _ranges(texts: Sequence[str], headlines: Sequence[str]) -> None:
    print(f"{'feature':20} {'p2':>6} {'p10':>6} {'p50':>6} {'p90':>6} | headlines p50 {'AUC':>5}")
    for name, feature in FEATURES.items():
        own, news = [feature(t) for t in texts], [feature(t) for t in headlines]
        cuts = quantiles(own, n=50, method="inclusive")
        middle = quantiles(news, n=2, method="inclusive")[0]
        told = " ".join(f"{cuts[at]:6.2f}" for at in (0, 4, 24, 44))
        print(f"{name:20} {told} | {middle:13.2f} {_auc(news, own):5.2f}")


def _auc(high: Sequence[float], low: Sequence[float]) -> float:
    """Return how often a value of the first list is above one of the second; ties count half."""
    ordered = sorted(low)
    import bisect

    wins = sum(
        (bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value)) / 2
        for value in high
    )
    return wins / (len(high) * len(low)) if high and low else 0.5


def _strictness(name: str, texts: Sequence[str], luck: random.Random) -> None:
    limits = THRESHOLDS["sentence" if name == "mrpc" else "tweet"]
    olds = luck.sample(texts, min(len(texts), MOST))
    pairs = list(zip(olds, luck.sample(olds, len(olds)), strict=True))
    fires = {
        "headline style": lambda old, new: (
            voice.measure_function_words(new) < limits.function_words
            and voice.measure_function_words(new)
            < voice.measure_function_words(old) - limits.function_fall
        ),
        "figures": lambda old, new: (
            not voice.find_figures(old) and len(voice.find_figures(new)) > limits.figures
        ),
        "machine marks": lambda old, new: bool(
            set(voice.find_machine_marks(new)) - set(voice.find_machine_marks(old))
        ),
        "capital start": lambda old, new: voice.starts_lower(old) and voice.starts_capital(new),
        "full stop": lambda old, new: voice.ends_open(old) and voice.ends_in_stop(new),
    }
    shares = (f"{what} {sum(map(fire, *zip(*pairs, strict=True))) / len(pairs):.1%}"
              for what, fire in fires.items())  # fmt: skip
    print(f"would fire on another original: {', '.join(shares)}")


def _records(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    print(f"\n{len(rows)} records; AUC of updated over original, and of recognised over not")
    for name, feature in FEATURES.items():
        old, new = list(_each(rows, "original", feature)), list(_each(rows, "updated", feature))
        known = list(_each([r for r in rows if r["recognised"]], "updated", feature))
        unknown = list(_each([r for r in rows if not r["recognised"]], "updated", feature))
        print(f"{name:20} {_auc(new, old):5.2f} {_auc(known, unknown):5.2f}")
    for name, compare in {"title 3-grams": _share, "longest title run": _run}.items():
        known = [compare(r) for r in rows if r["recognised"]]
        unknown = [compare(r) for r in rows if not r["recognised"]]
        print(f"{name:20}       {_auc(known, unknown):5.2f}")


def _each(rows: Sequence[dict[str, Any]], arm: str, feature: Feature) -> Iterator[float]:
    return (feature(text) for row in rows for text in row[arm].values())


def _share(row: dict[str, Any]) -> float:
    pairs = [(text, title) for text in row["updated"].values() for title in row["titles"]]
    return max((measure_containment(text, title) for text, title in pairs), default=0.0)


def _run(row: dict[str, Any]) -> float:
    pairs = [(text, title) for text in row["updated"].values() for title in row["titles"]]
    return float(max((len(voice.find_shared_run(*pair)) for pair in pairs), default=0))


if __name__ == "__main__":
    main()
