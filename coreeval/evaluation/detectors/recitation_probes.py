"""Other probes of `coreeval detect recitation`: their questions, findings and tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    TextAnswer,
    list_clusters,
    make_verdict_table,
)
from coreeval.evaluation.scores import Score
from coreeval.tools.formatting import format_estimate
from coreeval.tools.tables import Foreign, Table, numbers, texts

if TYPE_CHECKING:
    from coreeval.evaluation.recitation import ArmFields, HalvedText
    from coreeval.evaluation.recitation_quiz import QuizItem
    from coreeval.evaluation.recitation_shares import Answers, Place, TextPair

COMPLETION_QUESTION: Final = (
    'Here is the beginning of a text from the published benchmark "{task}". What the benchmark is '
    "about: {description}\n\nWrite the rest of this text exactly as it was published, word for "
    "word. If you do not remember it, write what is most likely to follow. Answer with the rest "
    "alone: no remarks, no quotation marks, nothing of the beginning.\n\nBeginning:\n{beginning}"
)
NGRAM_QUESTION: Final = (
    'Here is the beginning of a text from the published benchmark "{task}". What the benchmark is '
    "about: {description}\n\nWrite the next {number} words of this text exactly as they were "
    "published. If you do not remember them, write the {number} words that are most likely to "
    "follow. Answer with these {number} words alone: no remarks, no quotation marks, nothing of "
    "the beginning.\n\nBeginning:\n{beginning}"
)
QUIZ_QUESTION: Final = (
    'One of the two texts below is from the published benchmark "{task}", word for word; the other '
    "one says the same in other words. What the benchmark is about: {description}\n\n"
    "A) {A}\n\nB) {B}\n\n"
    "Which one is the published text? If you do not know, choose the more likely one. Answer with "
    "its letter alone."
)

OPTION_QUESTION: Final = (
    'Here is a question from the published benchmark "{task}", with its options. What the '
    "benchmark is about: {description}\n\nOne option, which is not the right one, has been "
    "replaced by [MASK]. Write this option exactly as it was published. If you do not remember it, "
    "write the most likely one. Answer with the text of the option alone: no letter, no remarks, "
    "no quotation marks.\n\n{beginning}"
)


def _format_score(value: Json) -> str:
    return format_estimate(Score.model_validate(value), ".2f")


# -- the quiz -------------------------------------------------------------------------------------


def _choose_quiz(inputs: DetectorInputs) -> "list[QuizItem]":
    from coreeval.evaluation.recitation_quiz import choose_quiz_items

    return choose_quiz_items(
        ((sample.id, arms) for sample, arms in inputs.texts()), seed=inputs.seed
    )


def _ask_quiz(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    from coreeval.evaluation.recitation_quiz import ORDERS

    task = inputs.task
    for item in _choose_quiz(inputs):
        for first in ORDERS:
            question = QUIZ_QUESTION.format(
                task=task.name, description=task.description, **item.order(first)
            )
            yield DetectorQuestion(f"{first}:{item.id}", question)


def _score_quiz(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
    from coreeval.evaluation.recitation_quiz import ORDERS, judge_quiz

    items = _choose_quiz(inputs)
    said = {
        (item.id, first): (answers[key].kind, answers[key].text)
        for item in items
        for first in ORDERS
        if (key := f"{first}:{item.id}") in answers
    }
    return judge_quiz(items, said).model_dump(mode="json")


_QUIZ_COLUMNS: Final = (
    texts("target", most=40),
    *(numbers(head, gap=2, most=40) for head in ("texts", "original", "reworded", "first", "last")),
    texts("originals picked", gap=2, most=40),
    numbers("p", gap=2, most=40),
)
_QUIZ_COUNTS: Final = ("items", "original", "reworded", "first", "last")


def _make_quiz_tables(document: Json) -> Sequence[Table]:
    rows = [
        (
            Foreign(each["target"]),
            *(str(each[count]) for count in _QUIZ_COUNTS),
            _format_score(each["picked"]),
            f"{each['p_value']:.2g}",
        )
        for each in document["targets"]
    ]
    title = (
        "The number of texts of which the target picked the original, the reworded, the first "
        "or the last text in both orders. Originals picked: the share of all answers that pick the "
        "original (0.5 by chance)."
    )
    return [make_verdict_table(document, QUIZ.question), Table(_QUIZ_COLUMNS, rows, title)]


QUIZ: Final = Detector(
    name="recitation_quiz",
    title="recitation: the quiz",
    question="Does the target pick the original text rather than its rewording?",
    access="answers",
    arguments=("recitation", "--probe", "quiz"),
    verdicts={
        "picks_originals": "cannot_tell",  # style also gives originals away
        "no_preference": "not_shown",
        "too_few": "cannot_tell",
        "refusing": "cannot_tell",
    },
    questions=_ask_quiz,
    score=_score_quiz,
    tables=_make_quiz_tables,
)


# -- n-grams and peakedness: a share for each text ------------------------------------------------


def _choose_pairs(
    inputs: DetectorInputs, cut: "Callable[[str], tuple[HalvedText, ...]]"
) -> "list[TextPair]":
    from coreeval.evaluation.recitation_shares import choose_pairs

    def read() -> "Iterator[tuple[str, ArmFields]]":
        return ((sample.id, arms) for sample, arms in inputs.texts())

    return choose_pairs(read, cut, seed=inputs.seed)


def _key(place: "Place") -> str:
    return f"{place.side}:{place.number}:{place.draw}:{place.id}"


def _read_answers(
    answers: Mapping[str, TextAnswer], places: "Iterable[tuple[Place, HalvedText]]"
) -> "Answers":
    return {
        place: (answers[key].kind, answers[key].text)
        for place, _ in places
        if (key := _key(place)) in answers
    }


def _ask_ngrams(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    from coreeval.evaluation.recitation_shares import NGRAM, cut_ngrams, list_places

    task = inputs.task
    for place, text in list_places(_choose_pairs(inputs, cut_ngrams)):
        question = NGRAM_QUESTION.format(
            task=task.name, description=task.description, number=NGRAM, beginning=text.beginning
        )
        yield DetectorQuestion(_key(place), question)


def _score_ngrams(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
    from coreeval.evaluation.recitation_shares import cut_ngrams, judge_ngrams, list_places

    pairs = _choose_pairs(inputs, cut_ngrams)
    return judge_ngrams(pairs, _read_answers(answers, list_places(pairs))).model_dump(mode="json")


def _ask_peakedness(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    from coreeval.evaluation.recitation_peakedness import DRAWS, GREEDY, TEMPERATURE, cut_half
    from coreeval.evaluation.recitation_shares import list_places

    task = inputs.task
    for place, text in list_places(_choose_pairs(inputs, cut_half), draws=DRAWS + 1):
        question = COMPLETION_QUESTION.format(
            task=task.name, description=task.description, beginning=text.beginning
        )
        if place.draw == GREEDY:
            yield DetectorQuestion(_key(place), question, temperature=0.0)
        else:
            draw = place.draw - 1
            yield DetectorQuestion(_key(place), question, draw=draw, temperature=TEMPERATURE)


def _score_peakedness(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
    from coreeval.evaluation.recitation_peakedness import DRAWS, cut_half, judge_peakedness
    from coreeval.evaluation.recitation_shares import list_places

    pairs = _choose_pairs(inputs, cut_half)
    said = _read_answers(answers, list_places(pairs, draws=DRAWS + 1))
    return judge_peakedness(pairs, said).model_dump(mode="json")


_SHARES: Final = ("original", "twin", "difference")


def _make_share_table(document: Json, title: str, counts: Mapping[str, str]) -> Table:
    """Return the table of a share for each text.

    Args:
        document: The detector's document.
        title: The title of the shares.
        counts: Additional counts: the key of each, and its heading.
    """
    named = {"items": "texts", "higher": "original ahead", "lower": "twin ahead", **counts}
    columns = (
        texts("target", most=40),
        texts("twins", gap=2, most=40),
        *(numbers(head, gap=2, most=40) for head in named.values()),
        *(texts(head, gap=2, most=40) for head in ("originals", "of twins", "difference")),
        numbers("p", gap=2, most=40),
    )
    rows = [
        (
            Foreign(each["target"]),
            each["compared"] or "none",
            *(str(each[count]) for count in named),
            *(_format_score(each[part]) for part in _SHARES),
            f"{each['p_value']:.2g}",
        )
        for each in document["targets"]
    ]
    return Table(columns, rows, title)


def _make_ngram_tables(document: Json) -> Sequence[Table]:
    title = (
        "N-gram accuracy: shares of the starting points from which the next five words were "
        "recited exactly."
    )
    return [make_verdict_table(document, NGRAMS.question), _make_share_table(document, title, {})]


def _make_peakedness_tables(document: Json) -> Sequence[Table]:
    title = "Peakedness: shares of the drawn answers that are close to the greedy answer."
    counts = {"peaked": "peaked", "peaked_twin": "twins peaked"}
    return [
        make_verdict_table(document, PEAKEDNESS.question),
        _make_share_table(document, title, counts),
    ]


NGRAMS: Final = Detector(
    name="recitation_ngrams",
    title="recitation: n-gram accuracy",
    question="Does the target recite the next words of originals more often than those of "
    "their twins?",
    access="answers",
    arguments=("recitation", "--probe", "ngrams"),
    verdicts={
        "recites": "remembered",
        "no_recitation": "not_shown",
        "too_few": "cannot_tell",
        "refusing": "cannot_tell",
    },
    questions=_ask_ngrams,
    score=_score_ngrams,
    tables=_make_ngram_tables,
)
PEAKEDNESS: Final = Detector(
    name="recitation_peakedness",
    title="recitation: peakedness",
    question="Are repeated answers more alike when the target continues originals than when it "
    "continues their twins?",
    access="answers",
    arguments=("recitation", "--probe", "peakedness"),
    verdicts={
        "peaked": "remembered",
        "not_peaked": "not_shown",
        "too_few": "cannot_tell",
        "refusing": "cannot_tell",
    },
    questions=_ask_peakedness,
    score=_score_peakedness,
    tables=_make_peakedness_tables,
)


# -- masked options of choices --------------------------------------------------------------------


def _choose_options(inputs: DetectorInputs) -> "list[TextPair]":
    from coreeval.evaluation.recitation_options import choose_options

    samples = ((sample.id, sample.label_text, arms) for sample, arms in inputs.fields())
    return choose_options(samples, list_clusters(inputs), seed=inputs.seed)


def _ask_options(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    from coreeval.evaluation.recitation_shares import list_places

    task = inputs.task
    for place, text in list_places(_choose_options(inputs)):
        question = OPTION_QUESTION.format(
            task=task.name, description=task.description, beginning=text.beginning
        )
        yield DetectorQuestion(_key(place), question)


def _score_options(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
    from coreeval.evaluation.recitation_options import judge_options
    from coreeval.evaluation.recitation_shares import list_places

    pairs = _choose_options(inputs)
    return judge_options(pairs, _read_answers(answers, list_places(pairs))).model_dump(mode="json")


_OVERLAPS: Final = ("rouge_l", "rouge_l_twin", "rouge_l_difference")


def _make_option_tables(document: Json) -> Sequence[Table]:
    from coreeval.evaluation.recitation_options import CAVEAT

    columns = (
        texts("target", most=40),
        *(texts(head, gap=2, most=40) for head in ("originals", "of twins", "difference")),
    )
    rows = [
        (Foreign(each["target"]), *(_format_score(each[part]) for part in _OVERLAPS))
        for each in document["targets"]
    ]
    title = f"Exact match: shares of the masked options that were recited word for word; {CAVEAT}."
    overlap = "ROUGE-L between the answers and the masked options."
    return [
        make_verdict_table(document, OPTIONS.question),
        _make_share_table(document, title, {}),
        Table(columns, rows, overlap),
    ]


OPTIONS: Final = Detector(
    name="recitation_options",
    title="recitation: masked options",
    question="Does the target recite wrong options of originals more often than those of their "
    "updated twins?",
    access="answers",
    arguments=("recitation", "--probe", "options"),
    verdicts={
        "suggestive": "cannot_tell",
        "no_recitation": "not_shown",
        "too_few": "cannot_tell",
        "refusing": "cannot_tell",
    },
    questions=_ask_options,
    score=_score_options,
    tables=_make_option_tables,
)
PROBES: Final[Mapping[str, Detector]] = {
    "quiz": QUIZ,
    "ngrams": NGRAMS,
    "peakedness": PEAKEDNESS,
    "options": OPTIONS,
}
"""The probes by the value of `--probe`."""
