"""The judges by rules.

The fact judge goes clause by clause: a fact must be found in one item of the evidence. The label
judge uses word lists and, with train data, naive Bayes. It sees the fields alone; its agreement
with gold is that of a small classifier (figures in `docs/offline.md`), and it says `unclear` rather
than guess.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.headline import parse_clause
from coreeval.agents.offline.tokens import (
    EMOJI,
    collect_numbers,
    has_word,
    list_content_stems,
    list_content_words,
    measure_overlap,
    split_statements,
    split_tokens,
    stem,
)
from coreeval.agents.roles import Fields
from coreeval.schema import (
    Evidence,
    FactDefect,
    FactVerdict,
    JudgedStatement,
    LabelVerdict,
    Sample,
    StatementClass,
    Task,
)
from coreeval.tasks.task_file import UNDECIDED

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]


SUPPORTED_SHARE = 0.8
"""Share of a fact's content words that one item must hold; all its numbers and names besides.

The plain word-in-evidence check flagged 7 of 47 good samples after repair (pilot §7); asking for
four of five words leaves room for one reworded word in a headline.
"""
_READING = re.compile(
    r"^(?:so |and now |well,? )?(?:(?:i |i was |was )?(?:just |only )?"
    r"(?:read|reading|saw|see|seeing|hear|heard|hearing|scrolling)\b"
    r"(?: (?:in|on|through) the news)?(?: over coffee and read)? that|it was reported that|"
    r"according to news reports,?) ",
    re.IGNORECASE,
)
"""An author who tells what they read: what follows is a statement, whoever tells it."""
_FILLER = re.compile(r"^(?:so|and now|apparently,?|turns out,?) ", re.IGNORECASE)
_CLOSER = re.compile(r",? according to news reports$", re.IGNORECASE)
_SPEECH = re.compile(r"\b(?:said|says|told|announced|reported|according to|finds|found)\b", re.I)


@dataclass(frozen=True)
class OfflineFactJudge:
    """Judges by words: it knows neither the label nor the original nor the plan."""

    task: Task

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence]) -> FactVerdict:
        """Return every clause with its class and, for a fact, its source."""
        judged = [
            judge_clause(clause, field, evidence, tweet=self.task.text_kind == "tweet")
            for field, text in fields.items()
            for clause in _split_clauses(text)
        ]
        return FactVerdict(statements=tuple(judged))


def _split_clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a text without marks; a text without words is yielded whole."""
    plain = EMOJI.sub(" . ", re.sub(r"[#@]\w+", " ", text))
    found = [clause for clause in split_statements(plain) if split_tokens(clause)]
    yield from found or ([text] if text.strip() else [])


def judge_clause(
    clause: str, field: str, evidence: Sequence[Evidence], *, tweet: bool
) -> JudgedStatement:
    """Return the judged statement for one clause."""
    told = _CLOSER.sub("", _READING.sub("", clause)).strip() or clause
    reported = told != clause
    told = _FILLER.sub("", told)
    kind: StatementClass = classify_clause(told, tweet=tweet and not reported)
    if kind not in {"fact", "attributed"}:
        return JudgedStatement(text=clause, field=field, kind=kind, supported="not_needed")
    best = max(evidence, key=lambda item: _measure_support(told, item), default=None)
    defect = _find_defect(told, best)
    if best is None or defect != "none":
        return JudgedStatement(text=clause, field=field, kind=kind, supported="no", defect=defect)
    return JudgedStatement(
        text=clause,
        field=field,
        kind=kind,
        supported="yes",
        evidence_id=best.id,
        quote=_find_quote(told, best),
    )


def classify_clause(clause: str, *, tweet: bool) -> StatementClass:
    """Return the class of a clause; only tweets have an author whose own views need no news."""
    if clause.endswith("?"):
        return "question"
    if not tweet:
        return "attributed" if _SPEECH.search(clause) else "fact"
    if has_word(clause, word_lists.load_words("personal")):
        return "personal"
    feeling = has_word(clause, word_lists.load_words("subjective")) or _FEELING.search(clause)
    exclaims = _is_request(clause) or (
        len(split_tokens(clause)) <= 5 and parse_clause(clause) is None
    )
    if len(list_content_words(clause)) < 2 or ((feeling or exclaims) and not _states_fact(clause)):
        return "opinion"
    return "attributed" if _SPEECH.search(clause) else "fact"


def _is_request(clause: str) -> bool:
    """Return whether a clause says what should be done: an imperative or a duty."""
    first = clause.split()[0].casefold()
    verb = word_lists.load_verb_forms().get(first)
    imperative = verb is not None and verb.base == first and first != verb.past
    return imperative or bool(_DUTY.search(clause))


_DUTY = re.compile(r"\b(?:has to|have to|had better|needs? to|ought to|let's|let us)\b", re.I)


def _states_fact(clause: str) -> bool:
    """Return whether a clause about a feeling also states something about a name or a number."""
    named = any(word[0].isupper() for word in split_tokens(clause)[1:])
    return (bool(parse_clause(clause)) and named) or bool(collect_numbers(clause))


_FEELING = re.compile(
    word_lists.build_phrase_pattern(
        word for words in word_lists.find_label_words("emotion", None).values() for word in words
    ),
    re.IGNORECASE,
)


def _measure_support(clause: str, item: Evidence) -> float:
    return measure_overlap(
        list_content_stems(clause), list_content_stems(f"{item.title} {item.snippet}")
    )


def _find_defect(clause: str, item: Evidence | None) -> FactDefect:
    """Return the defect of a fact: its number, its name or its words; `none` if it has none."""
    if item is None or not list_content_stems(clause):
        return "unsupported"
    text = f"{item.title} {item.snippet}"
    if collect_numbers(clause) - collect_numbers(text):
        return "number"
    known = {stem(word) for word in split_tokens(text)}
    inner = [word for word in split_tokens(clause)[1:] if word[0].isupper() and word.isalpha()]
    if any(stem(word) not in known for word in inner):
        return "identity"
    return "none" if _measure_support(clause, item) >= SUPPORTED_SHARE else "unsupported"


def _find_quote(clause: str, item: Evidence) -> str:
    """Return the item's words from the first to the last that it shares with the clause."""
    wanted = set(list_content_stems(clause))
    places = [text for text in (item.title, item.snippet) if text]
    source = max(places, key=lambda text: measure_overlap(sorted(wanted), list_content_stems(text)))
    spots = [
        m
        for m in re.finditer(r"[#@]?\w[\w'\u2019.,%-]*", source)
        if stem(m.group().rstrip(".,")) in wanted
    ]
    return source[spots[0].start() : spots[-1].end()].rstrip(",") if spots else source


FEWEST_TRAIN_SAMPLES = 200
"""Train samples under which the word lists are surer than anything fitted."""
BAYES_DAMPING = 0.35
"""Naive Bayes counts words as if independent and is far too sure; its logs are shrunk by this."""


@dataclass(frozen=True)
class NaiveBayes:
    """A fitted classifier."""

    pipeline: "Pipeline"

    def log_probabilities(self, text: str) -> dict[str, float]:
        """Return the damped log probability of each label name."""
        row = self.pipeline.predict_log_proba([text])[0]
        return {
            str(name): BAYES_DAMPING * float(value)
            for name, value in zip(self.pipeline.classes_, row, strict=True)
        }


def fit_bayes(train: Sequence[Sample], seed: int) -> NaiveBayes | None:
    """Return a classifier fitted on train samples; None if there are too few of them.

    Fitting is not random; the seed only orders the rows, so that two runs add floats in one order.
    """
    counts = Counter(sample.label_text for sample in train)
    if len(train) < FEWEST_TRAIN_SAMPLES or len(counts) < 2:
        return None
    from sklearn.feature_extraction.text import CountVectorizer  # type: ignore[import-untyped]
    from sklearn.naive_bayes import MultinomialNB  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline
    from sklearn.utils import shuffle  # type: ignore[import-untyped]

    rows = shuffle(sorted(train, key=lambda sample: sample.id), random_state=seed)
    vectors = CountVectorizer(ngram_range=(1, 2), min_df=2, token_pattern=r"(?u)[#@]?\w\w+|[^\w\s]")
    pipeline = make_pipeline(vectors, MultinomialNB(alpha=0.5, fit_prior=False))
    texts = [" ".join(sample.fields.values()) for sample in rows]
    return NaiveBayes(pipeline.fit(texts, [sample.label_text for sample in rows]))


Confidence = Literal["low", "medium", "high"]
LIST_WEIGHT = 1.2
"""How much one listed word adds to a label's log probability: about threefold odds."""
MARKER_WEIGHT = 3.6
"""What a marker adds: 311 of 432 test tweets that have one are ironic (pilot §1)."""
MARGIN = 0.4
"""Lead in log probability under which the judge says `unclear`: odds of three to two."""
SURE = 2.3
"""Lead from which its confidence is medium: odds of ten to one, and both sources agree.

Where a label needs no cue (`non_irony`, `none`), words alone are never sure of another: on
TweetEval irony 78 of 211 such verdicts were wrong.
"""
SAME, OTHER = 0.6, 0.45
"""Content words shared both ways from which a pair says the same, and under which it does not."""
DERIVED, BESIDE = 0.8, 0.65
"""Share of a hypothesis found in its premise from which it follows, and under which it does not."""
_NEGATION = re.compile(r"\b(?:not|no|never|without|cannot|nobody|none|n't)\b|n't\b", re.IGNORECASE)


@dataclass(frozen=True)
class TextJudge:
    """Labels one text by what its words say of each label."""

    task: Task
    patterns: Mapping[str, re.Pattern[str]]
    bayes: NaiveBayes | None

    async def __call__(self, fields: Fields) -> LabelVerdict:
        """Return the label with a clear lead, or `unclear`."""
        text = " ".join(fields.values())
        cues = {label: _find_cues(text, pattern) for label, pattern in self.patterns.items()}
        learned = self.bayes.log_probabilities(text) if self.bayes else {}
        unseen = min(learned.values(), default=0.0)
        scores = {label.name: learned.get(label.name, unseen) for label in self.task.labels}
        for label, found in cues.items():
            scores[label] += LIST_WEIGHT * len(found)
        if "irony" in scores and _has_marker(text, self.task.markers):
            scores["irony"] += MARKER_WEIGHT
        return self._verdict(scores, cues, learned)

    def _verdict(
        self,
        scores: Mapping[str, float],
        cues: Mapping[str, Sequence[str]],
        learned: Mapping[str, float],
    ) -> LabelVerdict:
        (best, first), (_, second) = sorted(scores.items(), key=lambda pair: -pair[1])[:2]
        lead, cue, plain = first - second, ", ".join(cues.get(best, ())), self._plain()
        if not learned and plain and not any(cues.values()) and lead < MARGIN:
            return LabelVerdict(label=plain, cue="no word of any other label", confidence="low")
        if lead < MARGIN:
            return LabelVerdict(label=UNDECIDED, confidence="low")
        agreed = bool(cue) and max(learned, key=learned.__getitem__, default=best) == best
        sure: Confidence = "medium" if lead >= SURE and agreed and not plain else "low"
        return LabelVerdict(label=best, cue=cue, confidence=sure)

    def _plain(self) -> str | None:
        """Return the task's label that needs no cue, such as `none`; None if it has none."""
        labels = [label.name for label in self.task.labels]
        return next((name for name in labels if self.patterns and name not in self.patterns), None)


@dataclass(frozen=True)
class PairJudge:
    """Labels a pair by shared words, numbers and negation."""

    task: Task

    async def __call__(self, fields: Fields) -> LabelVerdict:
        """Return whether the pair is coherent, or `unclear` between the limits."""
        first, second = (fields[name] for name in self.task.fields)
        score = score_pair(first, second, symmetric=self.task.symmetric)
        high, low = (SAME, OTHER) if self.task.symmetric else (DERIVED, BESIDE)
        holds, fails = self._labels()
        cue = f"{score:.2f} of the content words are shared"
        if score >= high:
            return LabelVerdict(label=holds, cue=cue, confidence="low")
        if score <= low:
            sure: Confidence = "medium" if score < low / 3 else "low"
            return LabelVerdict(label=fails, cue=cue, confidence=sure)
        return LabelVerdict(label=UNDECIDED, cue=cue, confidence="low")

    def _labels(self) -> tuple[str, str]:
        names = [label.name for label in self.task.labels]
        fails = next(name for name in names if name.startswith(("not", "non")))
        return next(name for name in names if name != fails), fails


def score_pair(first: str, second: str, *, symmetric: bool) -> float:
    """Return the share of the second sentence, or of each, found in the other; 0 if they clash.

    A number that only the second has, or a negation on one side, counts as a clash.
    """
    one, other = list_content_stems(first), list_content_stems(second)
    share = measure_overlap(other, one)
    if symmetric:
        share = min(share, measure_overlap(one, other))
    clash = bool(collect_numbers(second) - collect_numbers(first)) or (
        bool(_NEGATION.search(first)) != bool(_NEGATION.search(second))
    )
    return share * 0.5 if clash else share


def build_label_judge(task: Task, train: Sequence[Sample], seed: int) -> TextJudge | PairJudge:
    """Return the judge for a task's kind of sample."""
    if len(task.fields) == 2:
        return PairJudge(task)
    lists = word_lists.find_label_words(task.name, task.target, task.target_terms)
    patterns = {
        label: re.compile(word_lists.build_phrase_pattern(words), re.IGNORECASE)
        for label, words in lists.items()
        if words
    }
    return TextJudge(task=task, patterns=patterns, bayes=fit_bayes(train, seed))


def _find_cues(text: str, pattern: re.Pattern[str]) -> list[str]:
    return list(dict.fromkeys(found.group().casefold() for found in pattern.finditer(text)))


def _has_marker(text: str, markers: Sequence[str]) -> bool:
    lowered = text.casefold()
    return any(re.search(rf"{re.escape(marker)}(?!\w)", lowered) for marker in markers)
