"""Questions to a model about series: the dates and the wording."""

from coreeval.evaluation.numleak.probes.questions import questions_about, sibling_questions
from coreeval.evaluation.numleak.probes.wording import SeriesQuestion, SeriesQuestionSet
from coreeval.evaluation.numleak.replies import write_replies

__all__ = [
    "SeriesQuestion",
    "SeriesQuestionSet",
    "questions_about",
    "sibling_questions",
    "write_replies",
]
