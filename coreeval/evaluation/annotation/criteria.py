"""The questions to raters about the texts of each kind of task: one entry per kind.

Most criteria are scales, and each value has a meaning. The gold of a choice or of a short answer is
not shown: raters answer the question themselves, and their answers are graded like those of
targets. Answers count 1 if they are right, otherwise 0.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.grading import read_accepted
from coreeval.schema import TaskKind, Value
from coreeval.tasks.kinds import Texts
from coreeval.tasks.kinds.choice import option_fields

Level = Literal["nominal", "ordinal"]
CriterionName = Literal[
    "fluency", "coherence", "factuality", "accuracy", "answer", "support", "coverage"
]
CriterionForm = Literal["scale", "option", "text"]


class Criterion(Value):
    """A question that is asked about each text."""

    name: CriterionName
    asks: str
    anchors: dict[int, str]
    """The meaning of each value, the worst first."""
    level: Level
    """The distance of two values: constant, or by the number of ratings between them."""
    form: CriterionForm = "scale"
    """The form of a rating: a value, the letter of an option, or an answer in words."""

    @property
    def values(self) -> tuple[int, ...]:
        """Return the values of ratings, worst first."""
        return tuple(self.anchors)

    @property
    def shown_anchors(self) -> dict[int, str]:
        """Return the meanings that raters see: those of a scale."""
        return self.anchors if self.form == "scale" else {}


class RatedText(NamedTuple):
    """A rated text: the fields of its arm, and the name of its sample's label."""

    fields: Texts
    label: str


class GivenAnswer(NamedTuple):
    """The rating of a rater by one criterion."""

    value: int
    """A value of the scale; for an answer, 1 if it is right, otherwise 0."""
    words: str = ""
    """The letter, or the answer as written; empty for a scale."""


@dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """The functions that read and compare ratings of one form."""

    read: Callable[[Criterion, RatedText, str], GivenAnswer | None]
    """A function that returns the rating in a cell, or None if it has none."""
    is_same: Callable[[RatedText, GivenAnswer, GivenAnswer], bool]
    """A function that returns whether two ratings of one item mean the same."""


@dataclass(frozen=True, kw_only=True)
class StudyDesign:
    """The questions to raters about the texts of one kind of task."""

    criteria: tuple[Criterion, ...]
    instructions: tuple[str, ...]
    source: str
    """The source of the criteria and their values."""
    gold_title: str = ""
    """The title of the gold next to a text; empty if raters must not see it."""
    by_label: bool = True
    """Whether arms are compared on samples of the same labels; the letter of a choice only gives
    the position of the right option."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the criteria, which are columns of a sheet."""
        return tuple(each.name for each in self.criteria)


NO_OPTION: Final = "none"
"""The rating if no option is right, or several are."""
_LONGEST_ANSWER: Final = 2_000
"""The most characters of an answer, as for an accepted one."""
_LETTER: Final = re.compile(r"\(?([A-Za-z])[).:]?")


def _read_value(criterion: Criterion, text: RatedText, said: str) -> GivenAnswer | None:
    """Return a whole number, which may be written as 3.0, if it is a value of the criterion."""
    whole, _, rest = said.replace(",", ".").partition(".")
    short = len(whole) < 4 and whole.isascii() and whole.isdigit() and not rest.strip("0")
    return GivenAnswer(int(whole)) if short and int(whole) in criterion.values else None


def _read_letter(criterion: Criterion, text: RatedText, said: str) -> GivenAnswer | None:
    found = _LETTER.fullmatch(said)
    letter = found[1].upper() if found else said.casefold()
    if letter not in (*option_fields(list(text.fields)), NO_OPTION):
        return None
    return GivenAnswer(int(letter == text.label), letter)


def _read_words(criterion: Criterion, text: RatedText, said: str) -> GivenAnswer | None:
    if len(said) > _LONGEST_ANSWER:
        return None
    return GivenAnswer(int(_is_accepted(text, said)), said)


def _is_accepted(text: RatedText, said: str, instead: str | None = None) -> bool:
    """Return whether an answer is an accepted one, or equal to the other given answer."""
    from coreeval.evaluation.metrics.short_answers import grade_short_answer

    due = read_accepted(text.fields, text.label)
    due = due if instead is None else replace(due, answers=[instead])
    return grade_short_answer(said, due).right


def _same_words(text: RatedText, one: GivenAnswer, other: GivenAnswer) -> bool:
    if one.value or other.value:
        return one.value == other.value
    return one.words == other.words or _is_accepted(text, one.words, instead=other.words)


FORMS: Final[Mapping[CriterionForm, AnswerForm]] = {
    "scale": AnswerForm(read=_read_value, is_same=lambda text, one, other: one == other),
    "option": AnswerForm(read=_read_letter, is_same=lambda text, one, other: one == other),
    "text": AnswerForm(read=_read_words, is_same=_same_words),
}


_FLUENCY: Final = Criterion(
    name="fluency",
    asks="Is the language correct and easy to read?",
    anchors={
        1: "Many mistakes; they make it hard to read.",
        2: "A few mistakes that slow a reader down; the meaning is clear.",
        3: "Correct and natural; reads easily.",
    },
    level="ordinal",
)
_COHERENCE: Final = Criterion(
    name="coherence",
    asks="Is the text coherent and clear?",
    anchors={
        1: "Incoherent; hard to tell what it is about.",
        2: "Mostly coherent, but parts are disconnected, roundabout or vague.",
        3: "Coherent, clear and direct.",
    },
    level="ordinal",
)
_FACTUALITY: Final = Criterion(
    name="factuality",
    asks="Are the factual claims of the text correct?",
    anchors={
        0: "Something that matters is wrong or misleading.",
        1: "All claims are right, or the text makes no claim that could be wrong.",
    },
    level="nominal",
)
_FACTS_STATED: Final = _FACTUALITY.model_copy(
    update={"asks": "Are the factual claims in the question and its context correct?"}
)
_ACCURACY: Final = Criterion(
    name="accuracy",
    asks="Does the given label fit the text?",
    anchors={
        0: "The label does not fit, or misleads.",
        1: "The label fits.",
    },
    level="nominal",
)
_ANSWER: Final = partial(
    Criterion,
    name="answer",
    anchors={0: "The answer is not the gold answer.", 1: "The answer is the gold answer."},
    level="nominal",
)
_SUPPORT: Final = Criterion(
    name="support",
    asks="Does the document support everything in the summary?",
    anchors={
        1: "Something important is not in the document or contradicts it.",
        2: "The document supports what matters, but not every detail.",
        3: "The document supports the whole summary.",
    },
    level="ordinal",
)
_COVERAGE: Final = Criterion(
    name="coverage",
    asks="Does the summary cover what matters most in the document?",
    anchors={
        1: "What matters most is missing.",
        2: "Part of what matters most is missing, or details take its place.",
        3: "It says what matters most, and little else.",
    },
    level="ordinal",
)
SOURCE: Final = (
    "CoreEval paper, Appendix D, Table 13, paraphrased. Fluency and coherence are rated from 1 to "
    "3 as in that table; section 3.6 of the paper states 0 to 2."
)
_BY_ITSELF: Final = (
    "Rate every text on its own. Texts of several origins are mixed; do not try to tell them apart."
)
_NEWS: Final = (
    "The excerpts are news on the possible subject of a text. A text may use this news, say "
    "something else, or be older than the news: that alone is not a fault. If the excerpts do not "
    "settle a question, look it up."
)
_ALONE: Final = (
    "Do not discuss your ratings with other raters. If you cannot decide, leave the rating empty "
    "and say why in the note."
)
_QUESTION_SOURCE: Final = (
    "Fluency, coherence and factuality: CoreEval paper, Appendix D, Table 13, paraphrased. "
    "Answer: 1 if the rater gives the gold answer without seeing it, and 0 otherwise."
)
LABEL_STUDY: Final = StudyDesign(
    criteria=(_FLUENCY, _COHERENCE, _FACTUALITY, _ACCURACY),
    instructions=(
        _BY_ITSELF,
        "Rate a text as what it is: in a tweet, slang, tags, emoji and @user are not "
        "mistakes. Nor are spaces before punctuation, if the benchmark has them.",
        _NEWS,
        "Feelings, opinions and the author's private life cannot be checked: do not count "
        "them as wrong facts.",
        _ALONE,
    ),
    source=SOURCE,
    gold_title="Given label",
)
STUDIES: Final[Mapping[TaskKind, StudyDesign]] = {
    "labels": LABEL_STUDY,
    "choice": StudyDesign(
        criteria=(
            _FLUENCY,
            _COHERENCE,
            _FACTS_STATED,
            _ANSWER(
                asks=f"Which option is right? Choose {NO_OPTION} if none or several are right.",
                form="option",
            ),
        ),
        instructions=(
            _BY_ITSELF,
            _NEWS,
            "Answer the question from its context if there is one, otherwise from the news and "
            "from what you look up. Wrong options are meant to be wrong: do not count them as "
            "wrong facts.",
            _ALONE,
        ),
        source=_QUESTION_SOURCE,
        by_label=False,
    ),
    "answer": StudyDesign(
        criteria=(
            _FLUENCY,
            _COHERENCE,
            _FACTS_STATED,
            _ANSWER(
                asks="What is the answer? Write a name, a number, a date or a few words.",
                form="text",
            ),
        ),
        instructions=(
            _BY_ITSELF,
            _NEWS,
            "Answer the question from its context if there is one, otherwise from the news and "
            "from what you look up. Write only the answer.",
            _ALONE,
        ),
        source=_QUESTION_SOURCE,
    ),
    "summary": StudyDesign(
        criteria=(
            _FLUENCY.model_copy(
                update={"asks": "Is the language of the summary correct and easy to read?"}
            ),
            _COHERENCE.model_copy(update={"asks": "Is the summary coherent and clear?"}),
            _SUPPORT,
            _COVERAGE,
        ),
        instructions=(
            _BY_ITSELF,
            "Compare the summary only with the document: what the document does not say is not "
            "supported, even if it is true.",
            "The excerpts are news on the possible subject of a document; you need not read them.",
            _ALONE,
        ),
        source="Fluency, coherence, consistency (here: support) and relevance (here: coverage) as "
        "in SummEval (Fabbri et al. 2021), paraphrased and rated from 1 to 3.",
        gold_title="Given summary",
    ),
}
