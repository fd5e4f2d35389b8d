"""Worlds of overlap: what kind of hit a planted item gets, in made-up benchmarks.

A study has two benchmarks of 40 and 80 items; one item of the first is planted in the second in
some form. Items are sentences over a made-up vocabulary with the word frequencies of a language
(Zipf), with names and numbers, or questions of eight templates.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Final

import numpy as np

from benchmarks.verdicts import World
from benchmarks.verdicts_paraphrases import PARAPHRASES
from coreeval.errors import ConfigError
from coreeval.evaluation.overlap.search import (
    SAME,
    BenchmarkTexts,
    OverlapSearch,
    TextEntry,
    find_overlap,
)
from coreeval.evaluation.overlap.templates import NUMBER_WORDS
from coreeval.tools.embeddings import Embedder, Vectors, open_embeddings

ITEMS, OTHERS = 40, 80
"""Items of either benchmark."""
WORDS: Final = 30
"""Words of an item."""
ORDER: Final = (*SAME, "template")
Make = Callable[[random.Random], str]
Change = Callable[[random.Random, str], str]


# -- texts ----------------------------------------------------------------------------------------


@cache
def vocabulary() -> tuple[str, ...]:
    """Return 3,000 made-up words, the commonest first and shortest."""
    rng = random.Random(23)
    onsets, codas = (*"bcdfglmnprstv", "st", "tr", "pl"), ("", "n", "r", "s")
    words: dict[str, None] = {}
    while len(words) < 3000:
        syllables = 1 + (len(words) > 60) + (len(words) > 600)
        parts = [part for _ in range(syllables) for part in (onsets, "aeiou", codas)]
        words["".join(rng.choice(part) for part in parts)] = None
    return tuple(word for word in words if word not in NUMBER_WORDS)


@cache
def _frequencies() -> tuple[float, ...]:
    return tuple(1 / (rank + 3) for rank in range(len(vocabulary())))


def plain_words(rng: random.Random, number: int) -> list[str]:
    """Return words as often as a language has them."""
    return rng.choices(vocabulary(), _frequencies(), k=number)


def sentence(rng: random.Random) -> str:
    """Return an item: words, two names and two numbers among them."""
    words = plain_words(rng, WORDS)
    places = rng.sample(range(1, WORDS), 4)
    for place in places[:2]:
        words[place] = name(rng)
    for place in places[2:]:
        words[place] = str(rng.randint(2, 5000))
    return f"{_capital(words)}."


def _capital(words: Sequence[str]) -> str:
    return " ".join([words[0].capitalize(), *words[1:]])


def name(rng: random.Random) -> str:
    """Return one of many names."""
    end = rng.choice(("ov", "sen", "ia", "ez"))
    return f"{rng.choice(vocabulary()[700:1500])}{end}".capitalize()


TEMPLATES: Final = (
    "{n} has {a} boxes of tea and sells {b} of them to {m}. How many boxes does {n} keep?",
    "A bus leaves {n} at {a} km per hour and arrives {b} hours later. How long is the road?",
    "In {y}, the company of {n} reported revenue of {a} million. By how much did it exceed {b}?",
    "{n} reads {a} pages a day. After how many days is a book of {b} pages finished?",
    "A field is {a} metres wide and {b} metres long. What is its area in square metres?",
    "{n} and {m} divide {b} coins in the ratio of {a} to one. How many coins does {m} get?",
    "If {a} workers build a wall in {b} days, how many days do twice as many workers need?",
    "On what date in {y} did {n} sign the contract with {m}, and who else was present?",
)


def templated(rng: random.Random) -> str:
    """Return a question of one of the templates, with names and numbers of its own."""
    return filled(rng, rng.choice(TEMPLATES))


def filled(rng: random.Random, template: str) -> str:
    """Return a question of a template."""
    one, other = name(rng), name(rng)
    a, b, year = rng.randint(2, 99), rng.randint(100, 999), rng.randint(1950, 2024)
    return template.format(n=one, m=other, a=a, b=b, y=year)


# -- what is planted ------------------------------------------------------------------------------


def copied(_: random.Random, text: str) -> str:
    """Return the text."""
    return text


def edited(share: float, rng: random.Random, text: str) -> str:
    """Return the text with some of its words replaced by other words, one at least."""
    words = text.split()
    for place in rng.sample(range(len(words)), max(1, round(share * len(words)))):
        words[place] = plain_words(rng, 1)[0]
    return " ".join(words)


def inside(times: int, rng: random.Random, text: str) -> str:
    """Return a text some times as long that has the item somewhere in it."""
    around = [sentence(rng) for _ in range(times - 1)]
    around.insert(rng.randint(0, len(around)), text)
    return " ".join(around)


def edited_inside(rng: random.Random, text: str) -> str:
    """Return a text five times as long with the item in it, 15 % of whose words are replaced."""
    return inside(5, rng, edited(0.15, rng, text))


# -- studies --------------------------------------------------------------------------------------


def plant(make: Make, change: Change, seed: int) -> str:
    """Plant the first item of one benchmark in the other; return the kind of the hit."""
    rng = random.Random(seed)
    a = [make(rng) for _ in range(ITEMS)]
    b = [make(rng) for _ in range(OTHERS)]
    b[rng.randrange(OTHERS)] = change(rng, a[0])
    return kind_of("a/0", a, b)


def siblings(seed: int) -> str:
    """Give both benchmarks questions of the same templates; return what the first item is."""
    return plant(templated, lambda rng, _: templated(rng), seed)


def boilerplate(share: float, seed: int) -> str:
    """Begin a share of all items with the same 60 words; return what the first item is."""
    rng = random.Random(seed)
    prefix = _capital(plain_words(rng, 60))
    a, b = ([sentence(rng) for _ in range(number)] for number in (ITEMS, OTHERS))
    for side in (a, b):
        for place in range(round(share * len(side))):
            side[place] = f"{prefix}. {side[place]}"
    return kind_of("a/0", a, b)


def independent(make: Make, seed: int) -> str:
    """Give both benchmarks items of one domain; return the surest kind of any hit."""
    rng = random.Random(seed)
    a, b = ([make(rng) for _ in range(number)] for number in (ITEMS, OTHERS))
    return kind_of(None, a, b)


def kind_of(
    item: str | None, a: Sequence[str], b: Sequence[str], embeds: Embedder | None = None
) -> str:
    """Return the surest kind of hit that an item of the first is in; of any item if it is None."""
    found = find_overlap(texts("a", a), texts("b", b), search=OverlapSearch(embeds=embeds))
    kinds = {hit.kind for hit in found.hits if item is None or item in {each.id for each in hit.a}}
    return next((kind for kind in ORDER if kind in kinds), "none")


def texts(name: str, found: Iterable[str]) -> BenchmarkTexts:
    """Return a benchmark of some texts."""
    return BenchmarkTexts(
        name, tuple(TextEntry(f"{name}/{place}", text) for place, text in enumerate(found))
    )


# -- paraphrases ----------------------------------------------------------------------------------


class Remembered:
    """Embeddings of texts, each made once in a process.

    Args:
        embeds: What embeds.
    """

    def __init__(self, embeds: Embedder) -> None:
        self.name = embeds.name
        self._embeds = embeds
        self._known: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions)."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known.update(zip(missing, self._embeds(missing), strict=True))
        return np.array([self._known[text] for text in texts], np.float32)


@cache
def minilm() -> Embedder | None:
    """Return all-MiniLM-L6-v2, or None if it is not installed."""
    try:
        return Remembered(open_embeddings("minilm"))
    except ConfigError:
        return None


def paraphrased(planted: bool, seed: int) -> str:
    """Give the other benchmark a paraphrase of the first item, or of none; return what it is."""
    rng = random.Random(seed)
    pairs = rng.sample(PARAPHRASES, len(PARAPHRASES))
    half = len(pairs) // 2
    a = [rng.choice(pair) for pair in pairs[:half]]
    b = [rng.choice(pair) for pair in pairs[half:]]
    if planted:
        b.append(next(text for text in pairs[0] if text != a[0]))
    return kind_of("a/0" if planted else None, a, b, minilm())


# -- worlds ---------------------------------------------------------------------------------------

COPIES = frozenset(SAME)
WHOLE = frozenset({"exact", "normalised", "near"})


def _world(
    name: str, study: Callable[[int], str], found: Iterable[str] = (), before: float | None = None
) -> World:
    right = frozenset(found)
    wrong = frozenset(ORDER) - right if right else COPIES
    return World(
        detector="overlap", name=name, study=study, false=wrong, found=right, before=before
    )


def _copies() -> Iterable[World]:
    """Yield worlds with a copy as long as the item."""
    yield _world("copied word for word", partial(plant, sentence, copied), {"exact"}, before=1.0)
    for percent, before in ((5, 1.0), (15, 1.0), (30, 0.96)):
        change = partial(edited, percent / 100)
        study = partial(plant, sentence, change)
        yield _world(f"{percent} % of a copy's words replaced", study, {"near"}, before=before)
    study = partial(plant, templated, partial(edited, 0.05))
    yield _world("5 % of a copied template's words replaced", study, {"near"}, before=1.0)


def _inside() -> Iterable[World]:
    """Yield worlds with an item in a longer text."""
    for times, before in ((2, 1.0), (5, 0.0), (20, 0.0)):
        study = partial(plant, sentence, partial(inside, times))
        name = f"an item in a text {times} times as long"
        yield _world(name, study, {"near", "contained"}, before=before)
    study = partial(plant, sentence, edited_inside)
    yield _world("15 % of its words replaced, in a text 5 times as long", study, {"contained"})


def _paraphrases() -> Iterable[World]:
    """Yield worlds that need embeddings, if they are there."""
    if minilm() is not None:
        yield _world("no paraphrase (MiniLM)", partial(paraphrased, False))
        study = partial(paraphrased, True)
        yield _world("a paraphrase (MiniLM)", study, {"paraphrase", "near"})


WORLDS: Final[Sequence[World]] = (
    _world("independent items of one domain", partial(independent, sentence)),
    _world("questions of the same eight templates", siblings),
    _world("60 words of instruction before every item", partial(boilerplate, 1.0)),
    _world("60 words of instruction before one item in ten", partial(boilerplate, 0.1)),
    *_copies(),
    *_inside(),
    *_paraphrases(),
)
"""Of worlds without a copy every kind but `template` is false."""
