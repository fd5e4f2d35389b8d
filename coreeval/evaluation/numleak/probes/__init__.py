"""What a model is asked about series: which dates, and in which words."""

from coreeval.evaluation.numleak.probes.questions import Question, questions_about
from coreeval.evaluation.numleak.probes.sampling import Drawing, draw_dates
from coreeval.evaluation.numleak.probes.wording import Wording

__all__ = ["Drawing", "Question", "Wording", "draw_dates", "questions_about"]
