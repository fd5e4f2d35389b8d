"""What a model is asked about series: which dates, and in which words."""

from coreeval.evaluation.numleak.probes.question import Asked, Question
from coreeval.evaluation.numleak.probes.questions import questions_about, sibling_questions
from coreeval.evaluation.numleak.probes.recording import write_replies

__all__ = ["Asked", "Question", "questions_about", "sibling_questions", "write_replies"]
