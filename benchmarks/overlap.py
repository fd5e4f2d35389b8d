"""How well and how fast overlap is found: planted, recorded, 100,000 x 100,000.

    python -m benchmarks.overlap [--data ../shared/data] [--items 100000] [--recorded FILE]

*Kinds*: each text of a set is changed in one way; how many are found as the same item and how many
as another item of a template, and hits between texts that are not a pair and of whose pairs neither
the originals nor the changed texts resemble each other. The last rows are changes that others made:
those of the CAP paper's authors, and MRPC's pairs.
*Recorded*: a file of the CAP authors' overlap of C-Eval and FinEval, as their search
wrote it (a C-Eval text, then one of FinEval's), against FinEval's validation split here.
*Scale*: texts of a word (or character) chain over real ones, in a process of its own, with 1,000
planted near-duplicates.
"""

import argparse
import gzip
import json
import multiprocessing
import random
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from coreeval.evaluation.overlap.search import (
    SAME,
    BenchmarkTexts,
    HitKind,
    OverlapSearch,
    TextEntry,
    find_overlap,
)
from coreeval.evaluation.overlap.shingles import normal_key

THRESHOLDS = (0.3, 0.4, 0.5, 0.6)
SEED = 7
PLANTED = 1_000
FINEVAL = "cap/fineval/ori_val.json"
Change = Callable[[random.Random, str], str]
Pairs = Sequence[tuple[str, str]]


# -- changes --------------------------------------------------------------------------------------


def letters(rng: random.Random, text: str) -> str:
    """Replace three in a hundred characters, one at least."""
    found = list(text)
    for _ in range(max(1, len(found) * 3 // 100)):
        found[rng.randrange(len(found))] = rng.choice("etaoinshrdlu")
    return "".join(found)


def dropped(rng: random.Random, text: str) -> str:
    """Leave out fifteen in a hundred words."""
    units = _units(text)
    return "".join(unit for unit in units if rng.random() > 0.15) or text


def swapped(rng: random.Random, text: str) -> str:
    """Put the second half first."""
    units = _units(text)
    half = len(units) // 2
    return " ".join(["".join(units[half:]).strip(), "".join(units[:half]).strip()])


def longer(rng: random.Random, text: str) -> str:
    """Say a fifth more at the end, taken from its own words in another order."""
    units = _units(text)
    return text + " " + "".join(rng.sample(units, max(1, len(units) // 5)))


def dressed(rng: random.Random, text: str) -> str:
    """Change case, signs and blanks only."""
    return f"  {text.upper()} !!".replace(",", " ;").replace("\uff0c", " , ")


CHANGES: Mapping[str, Change] = {
    "case, punctuation, spaces": dressed,
    "3 % of characters": letters,
    "15 % of words removed": dropped,
    "halves swapped": swapped,
    "a fifth longer": longer,
}


def _units(text: str) -> list[str]:
    """Return words with their blank; where there are hardly any, pairs of characters."""
    words = re.findall(r"\S+\s*", text)
    return words if len(words) * 12 > len(text) else re.findall(r"(?s)..?", text)


# -- kinds ----------------------------------------------------------------------------------------


def kinds(data: Path) -> Iterator[tuple[str, Pairs]]:
    """Yield sets of pairs: what was changed, and each text before and after."""
    rng = random.Random(SEED)
    bases = {
        "tweets": [text for text in _lines(data / "tweeteval/emotion/train_text.txt")[:1000]],
        "news sentences": [row[3] for row in _mrpc(data)[:1000]],
        "Chinese questions": _inputs(data / FINEVAL),
    }
    for base, texts in bases.items():
        for change, changed in CHANGES.items():
            yield f"{base}: {change}", [(text, changed(rng, text)) for text in texts]
    recorded = {
        "FinEval: options shuffled": ("fineval/{}_val.json", ("ori", "mod")),
        "FinQA: years moved": ("finqa/{}_train.json.gz", ("ori", "mod")),
        "AlphaFin: modified": ("alphafin/research_{}_train.json.gz", ("ori", "mod")),
        "ECTSum: paraphrased": ("ectsum/{}_val_samples.json.gz", ("ori", "mod")),
    }
    for name, (path, both) in recorded.items():
        before, after = (_inputs(data / "cap" / path.format(side)) for side in both)
        yield name, list(zip(before, after, strict=True))
    for label, name in (("1", "MRPC: equivalent"), ("0", "MRPC: not equivalent")):
        yield name, [(row[3], row[4]) for row in _mrpc(data) if row[0] == label]


def tell_kinds(data: Path) -> None:
    """Print what the changed texts of each set are found as, and hits between other texts."""
    print(f"{'':40s}{'n':>6s}{'same':>8s}{'template':>10s}{'others':>8s}")
    for name, pairs in kinds(data):
        same, template, others = measured(pairs)
        print(f"{name:40s}{len(pairs):6d}{same:8.1%}{template:10.1%}{others:8d}", flush=True)


def measured(pairs: Pairs) -> tuple[float, float, int]:
    """Return the shares of pairs found as one item and as a template's, and hits of other pairs.

    Texts of other pairs that are alike before or after the change are left out of the last.
    """
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    across = _kinds_of(before, after)
    alike = {frozenset(place) for side in (before, after) for place in _kinds_of(side, None)}
    keys = [normal_key(text) for text in before]
    own = Counter(across.get((place, place)) for place in range(len(pairs)))
    others = sum(
        keys[i] != keys[j] and frozenset((i, j)) not in alike and kind in SAME
        for (i, j), kind in across.items()
    )
    template = own["template"] / len(pairs)
    return sum(own[kind] for kind in SAME) / len(pairs), template, others


def _kinds_of(left: list[str], right: list[str] | None) -> dict[tuple[int, int], HitKind]:
    """Return the surest kind of each pair of places."""
    found = find_overlap(_texts("a", left), None if right is None else _texts("b", right))
    return {
        (_place(a), _place(b)): hit.kind
        for hit in reversed(found.hits)
        for a in hit.a
        for b in hit.b
    }


def tell_unrelated(data: Path) -> None:
    """Print the hits between benchmarks that were collected apart."""
    tweets = {
        name: _texts(name, _lines(data / f"tweeteval/{name}_text.txt"))
        for name in ("emotion/train", "irony/train", "stance/climate/train")
    }
    sentences = _texts("mrpc/test", [row[3] for row in _mrpc(data)])
    for a, b in (
        ("emotion/train", "irony/train"),
        ("emotion/train", "stance/climate/train"),
        ("irony/train", "mrpc/test"),
    ):
        one, other = tweets[a], tweets.get(b, sentences)
        counts = [
            len(find_overlap(one, other, search=OverlapSearch(threshold=t)).hits)
            for t in THRESHOLDS
        ]
        size = len(one.entries) * len(other.entries)
        print(f"{a} x {b}: hits {counts} at {THRESHOLDS} of {size:,} pairs")


def tell_recorded(path: Path, data: Path) -> None:
    """Print which recorded hits are found, and what besides."""
    lines = path.read_text("utf-8").splitlines()
    marks = [place for place, line in enumerate(lines) if line.startswith("CEVAL")]
    recorded = {_recorded(lines[start:end])
                for start, end in zip(marks, [*marks[1:], len(lines)], strict=True)}  # fmt: skip
    theirs = list(dict.fromkeys(one for one, _ in recorded))
    ours = _inputs(data / FINEVAL)
    keys = [_question(text) for text in ours]
    known = {
        (theirs.index(one), place)
        for one, question in recorded
        for place, key in enumerate(keys)
        if _question(question) in key
    }
    print(f"recorded: {len(recorded)} pairs of {len(theirs)} C-Eval texts; here {len(known)}")
    one, other = _texts("theirs", theirs), _texts("ours", ours)
    for threshold in THRESHOLDS:
        kinds = {
            (_place(a), _place(b)): hit.kind
            for hit in find_overlap(one, other, search=OverlapSearch(threshold=threshold)).hits
            for a in hit.a
            for b in hit.b
        }
        found = Counter(kinds.get(pair, "none") for pair in known)
        besides = Counter(kind for pair, kind in kinds.items() if pair not in known)
        print(f"  {threshold:g}: {dict(found)}; besides {dict(besides)}")


def _place(entry: TextEntry) -> int:
    return int(entry.id.rpartition("/")[2])


def _recorded(lines: Sequence[str]) -> tuple[str, str]:
    """Return the two texts of a recorded hit: C-Eval's and FinEval's."""
    middle = next(place for place, line in enumerate(lines) if line.startswith("FinEval"))
    return "\n".join(lines[1:middle]).strip(), "\n".join(lines[middle + 1 :])


def _question(text: str) -> str:
    """Return what identifies a question of FinEval: the authors took out the word for options."""
    return normal_key(text.replace("\u9009\u9879", ""))


# -- scale ----------------------------------------------------------------------------------------


def tell_scale(data: Path, items: int) -> None:
    """Print time, memory and recall for two benchmarks of very many items."""
    bases = {
        "tweets": _lines(data / "tweeteval/emotion/train_text.txt"),
        "Chinese questions": [text.partition("\n")[2] for text in _inputs(data / FINEVAL)],
    }
    for name, base in bases.items():
        process = multiprocessing.get_context("spawn").Process(
            target=scale, args=(name, base, items)
        )
        process.start()
        process.join()


def scale(name: str, base: Sequence[str], items: int) -> None:
    """Search two benchmarks of chained texts that share planted near-duplicates, and print it."""
    rng = random.Random(SEED)
    left = _chained(base, items, rng)
    right = _chained(base, items - PLANTED, rng)
    right += [letters(rng, text) for text in left[:PLANTED]]
    one, other = _texts("left", left), _texts("right", right)
    before, started, worked = _peak(), time.perf_counter(), time.process_time()
    found = find_overlap(one, other)
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    planted = {f"right/{items - PLANTED + place}": f"left/{place}" for place in range(PLANTED)}
    hits = {(a.id, b.id) for hit in found.hits for a in hit.a for b in hit.b}
    back = sum((one, other) in hits for other, one in planted.items())
    length = sum(map(len, left)) / items
    print(
        f"{name}: {items:,} x {items:,} items of {length:.0f} characters: "
        f"{seconds:.0f} s ({worked:.0f} s of one core), "
        f"peak {_peak():.2f} GB ({before:.2f} before); {back} of {PLANTED} planted found, "
        f"{len(found.hits) - back} hits besides, {found.crowded} crowded buckets",
        flush=True,
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _chained(base: Sequence[str], items: int, rng: random.Random) -> list[str]:
    """Return texts whose units follow each other as in real ones, as long as real ones."""
    after: dict[str, list[str]] = defaultdict(list)
    sizes = []
    for text in base:
        units = _units(text)
        sizes.append(len(units))
        for one, other in zip(["", *units], units, strict=False):
            after[one].append(other)
    return [_walk(after, rng.choice(sizes), rng) for _ in range(items)]


def _walk(after: Mapping[str, Sequence[str]], size: int, rng: random.Random) -> str:
    found, last = [], ""
    for _ in range(size):
        last = rng.choice(after.get(last) or after[""])
        found.append(last)
    return "".join(found)


# -- data -----------------------------------------------------------------------------------------


def _texts(name: str, texts: Sequence[str]) -> BenchmarkTexts:
    return BenchmarkTexts(
        name, tuple(TextEntry(f"{name}/{i}", text) for i, text in enumerate(texts))
    )


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").split("\n") if line.strip()]


def _mrpc(data: Path) -> list[list[str]]:
    text = (data / "mrpc/msr_paraphrase_test.txt").read_text("utf-8-sig")
    return [line.split("\t") for line in text.splitlines()[1:]]


def _inputs(path: Path) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [row["input"] for row in json.load(file)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--recorded", type=Path, help="The CAP authors' c-eval/output_test.txt.")
    given = parser.parse_args()
    tell_kinds(given.data)
    tell_unrelated(given.data)
    if given.recorded:
        tell_recorded(given.recorded, given.data)
    tell_scale(given.data, given.items)


if __name__ == "__main__":
    main()
