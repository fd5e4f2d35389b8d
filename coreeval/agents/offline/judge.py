"""Plays the two judges by rules.

The fact judge checks each clause: one item of the evidence must support a fact. The label judge
uses word lists and, with train data, naive Bayes. It sees only the fields; its agreement with gold
is that of a small classifier (figures in `docs/offline.md`), and it answers `unclear` instead of
guessing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

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
from coreeval.agents.offline.word_lists import (
    compile_label_words,
    load_label_patterns,
    load_verb_forms,
)
from coreeval.agents.roles import Fields
from coreeval.agents.text.words import find_marker
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
"""The share of a fact's content words that one item must have, besides all its numbers and names.

The plain word-in-evidence check flagged 7 of 47 good samples after repair (pilot §7); requiring
four of five words allows for one reworded word in a headline.
"""
_READING = re.compile(
    r"^(?:so |and now |well,? )?(?:(?:i |i was |was )?(?:just |only )?"
    r"(?:read|reading|saw|see|seeing|hear|heard|hearing|scrolling)\b"
    r"(?: (?:in|on|through) the news)?(?: over coffee and read)? that|it was reported that|"
    r"according to news reports,?) ",
    re.IGNORECASE,
)
"""An author's words about reading the news; a statement in any voice follows."""
_FILLER = re.compile(r"^(?:so|and now|apparently,?|turns out,?) ", re.IGNORECASE)
_CLOSER = re.compile(r",? according to news reports$", re.IGNORECASE)
_SPEECH = re.compile(r"\b(?:said|says|told|announced|reported|according to|finds|found)\b", re.I)
_DUTY = re.compile(r"\b(?:has to|have to|had better|needs? to|ought to|let's|let us)\b", re.I)


@dataclass(frozen=True)
class OfflineFactJudge:
    """Judges facts by words, without seeing the label, the original or the plan."""

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
    """Yield the clauses of a text without marks; a text without words is yielded unchanged."""
    plain = EMOJI.sub(" . ", re.sub(r"[#@]\w+", " ", text))
    found = [clause for clause in split_statements(plain) if split_tokens(clause)]
    yield from found or ([text] if text.strip() else [])


def judge_clause(
    clause: str, field: str, evidence: Sequence[Evidence], *, tweet: bool
) -> JudgedStatement:
    """Return the judged statement for one clause."""
    reported = _CLOSER.sub("", _READING.sub("", clause)).strip() or clause
    told = _FILLER.sub("", reported)
    kind = classify_clause(told, tweet=tweet and reported == clause)
    judge = partial(JudgedStatement, text=clause, field=field, kind=kind)
    if kind not in {"fact", "attributed"}:
        return judge(supported="not_needed")
    best = max(evidence, key=lambda item: _measure_support(told, item), default=None)
    defect = _find_defect(told, best)
    if best is None or defect != "none":
        return judge(supported="no", defect=defect)
    return judge(supported="yes", evidence_id=best.id, quote=_find_quote(told, best))


def classify_clause(clause: str, *, tweet: bool) -> StatementClass:
    """Return the class of a clause; only in tweets can it be the author's view, without news."""
    if clause.endswith("?"):
        return "question"
    if tweet and has_word(clause, "personal"):
        return "personal"
    few = len(list_content_words(clause)) < 2
    if tweet and (few or (_is_view(clause) and not _states_fact(clause))):
        return "opinion"
    return "attributed" if _SPEECH.search(clause) else "fact"


def _is_view(clause: str) -> bool:
    """Return whether a clause names a feeling, is an exclamation, or says what should be done."""
    feelings = compile_label_words("emotion").values()
    if has_word(clause, "subjective") or any(words.search(clause) for words in feelings):
        return True
    first = clause.split()[0].casefold()
    verb = load_verb_forms().get(first)
    imperative = verb is not None and verb.base == first and first != verb.past
    exclaims = len(split_tokens(clause)) <= 5 and parse_clause(clause) is None
    return imperative or exclaims or _DUTY.search(clause) is not None


def _states_fact(clause: str) -> bool:
    """Return whether a clause also states something about a name or a number."""
    named = any(word[0].isupper() for word in split_tokens(clause)[1:])
    return bool(collect_numbers(clause)) or (named and parse_clause(clause) is not None)


def _measure_support(clause: str, item: Evidence) -> float:
    """Return the share of a clause's content words that an item has."""
    return measure_overlap(list_content_stems(clause), list_content_stems(_read_text(item)))


def _read_text(item: Evidence) -> str:
    return f"{item.title} {item.snippet}"


def _find_defect(clause: str, item: Evidence | None) -> FactDefect:
    """Return whether the number, the name or the words of a fact lack support in an item."""
    if item is None or not list_content_stems(clause):
        return "unsupported"
    text = _read_text(item)
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
    source = max(
        (text for text in (item.title, item.snippet) if text),
        key=lambda text: measure_overlap(sorted(wanted), list_content_stems(text)),
    )
    words = re.finditer(r"[#@]?\w[\w'\u2019.,%-]*", source)
    shared = [word for word in words if stem(word.group().rstrip(".,")) in wanted]
    return source[shared[0].start() : shared[-1].end()].rstrip(",") if shared else source


FEWEST_TRAIN_SAMPLES = 200
"""With fewer train samples, the word lists are more reliable than a fitted classifier."""
BAYES_DAMPING = 0.35
"""The factor of the log probabilities: naive Bayes treats words as independent and is
overconfident."""


def fit_bayes(train: Sequence[Sample], seed: int) -> "Pipeline | None":
    """Return a classifier fitted on train samples; None if there are too few of them.

    Fitting is not random; the seed only orders the rows, so that two runs add floats in the same
    order.
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
    return pipeline.fit(texts, [sample.label_text for sample in rows])


def score_labels(pipeline: "Pipeline", text: str) -> dict[str, float]:
    """Return the damped log probability of each label name."""
    row = pipeline.predict_log_proba([text])[0]
    return {
        str(name): BAYES_DAMPING * float(value)
        for name, value in zip(pipeline.classes_, row, strict=True)
    }


Confidence = Literal["low", "medium"]
LIST_WEIGHT = 1.2
"""The log probability that one listed word adds to a label: about threefold odds."""
MARKER_WEIGHT = 3.6
"""The log probability that a marker adds to irony: 311 of 432 test tweets with one are ironic
(pilot §1)."""
MARGIN = 0.4
"""The lead in log probability below which the judge answers `unclear`: odds of three to two."""
SURE = 2.3
"""The lead from which the confidence is medium, if both sources agree: odds of ten to one.

If a label needs no cue (`non_irony`, `none`), words alone never suffice for another one: on
TweetEval irony, 78 of 211 such verdicts were wrong.
"""
SAME, OTHER = 0.6, 0.45
"""Shares of common content words, both ways: from the first on, a pair says the same; up to the
second, it does not."""
DERIVED, BESIDE = 0.8, 0.65
"""Shares of a hypothesis found in its premise: from the first on, it follows; up to the second, it
does not."""
_NEGATION = re.compile(r"\b(?:not|no|never|without|cannot|nobody|none|n't)\b|n't\b", re.IGNORECASE)


@dataclass(frozen=True)
class TextJudge:
    """Labels one text by the words that indicate each label."""

    task: Task
    bayes: "Pipeline | None"

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        """Return the label with a clear lead, or `unclear`."""
        text = " ".join(fields.values())
        cues = {
            label: list(dict.fromkeys(found.casefold() for found in pattern.findall(text)))
            for label, pattern in load_label_patterns(self.task).items()
        }
        learned = score_labels(self.bayes, text) if self.bayes else {}
        unseen = min(learned.values(), default=0.0)
        scores = {
            label.name: learned.get(label.name, unseen)
            + LIST_WEIGHT * len(cues.get(label.name, ()))
            for label in self.task.labels
        }
        if "irony" in scores and any(find_marker(text, marker) for marker in self.task.markers):
            scores["irony"] += MARKER_WEIGHT
        return self._verdict(scores, cues, learned)

    def _verdict(
        self,
        scores: Mapping[str, float],
        cues: Mapping[str, Sequence[str]],
        learned: Mapping[str, float],
    ) -> LabelVerdict:
        """Return the verdict of label scores, cues by label, and scores of only the classifier."""
        (best, first), (_, second) = sorted(scores.items(), key=lambda pair: -pair[1])[:2]
        lead, cue = first - second, ", ".join(cues.get(best, ()))
        plain = next((name for name in scores if cues and name not in cues), None)
        if not learned and plain and not any(cues.values()) and lead < MARGIN:
            return LabelVerdict(label=plain, cue="no word of any other label", confidence="low")
        if lead < MARGIN:
            return LabelVerdict(label=UNDECIDED, confidence="low")
        agreed = bool(cue) and max(learned, key=learned.__getitem__, default=best) == best
        sure: Confidence = "medium" if lead >= SURE and agreed and not plain else "low"
        return LabelVerdict(label=best, cue=cue, confidence=sure)


@dataclass(frozen=True)
class PairJudge:
    """Labels a pair by shared words, numbers and negations."""

    task: Task

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        """Return whether the pair is coherent, or `unclear` between the limits."""
        first, second = (fields[name] for name in self.task.fields)
        score = score_pair(first, second, symmetric=self.task.symmetric)
        high, low = (SAME, OTHER) if self.task.symmetric else (DERIVED, BESIDE)
        fails, holds = sorted(
            (label.name for label in self.task.labels),
            key=lambda name: not name.startswith(("not", "non")),
        )
        label = holds if score >= high else fails if score <= low else UNDECIDED
        sure: Confidence = "medium" if score < low / 3 else "low"
        cue = f"{score:.2f} of the content words are shared"
        return LabelVerdict(label=label, cue=cue, confidence=sure)


def score_pair(first: str, second: str, *, symmetric: bool) -> float:
    """Return the share of the second sentence, or of each, found in the other; half if they clash.

    A number that only the second sentence has, or a negation in only one of them, is a clash.
    """
    one, other = list_content_stems(first), list_content_stems(second)
    share = measure_overlap(other, one)
    if symmetric:
        share = min(share, measure_overlap(one, other))
    new_number = collect_numbers(second) - collect_numbers(first)
    negated = [_NEGATION.search(text) is not None for text in (first, second)]
    return share * 0.5 if new_number or negated[0] != negated[1] else share


def build_label_judge(task: Task, train: Sequence[Sample], seed: int) -> TextJudge | PairJudge:
    """Return the judge of single texts or of pairs, by the fields of the task."""
    return PairJudge(task) if len(task.fields) == 2 else TextJudge(task, fit_bayes(train, seed))
