"""Ordinary questions about a series, which a defence should not block, and their scores.

A judge that does not know the defence, or a rule, scores the answers; a second judge scores some of
them again. Answers and scores are lines of a separate file.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from coreeval.config.user_files import YamlError, parse_yaml, read_text
from coreeval.errors import ConfigError, NoValidAnswer
from coreeval.evaluation.benchmarks.files import Records, read_records, validate_record
from coreeval.evaluation.numleak.defences.attacks import DefenceSet
from coreeval.evaluation.numleak.periods import Frequency
from coreeval.evaluation.numleak.series import Series
from coreeval.models import OutputSchema
from coreeval.models.answers import refuse_truth_value
from coreeval.prompts import Message, load_built_in_prompt, to_prompt_json
from coreeval.schema import AnswerKind, Text, Value
from coreeval.tools.files import write_text

Category = Literal["conceptual", "history", "adjacent_numeric"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
"""Question categories (NumLeak, section 5).

They cover the meaning of terms, events in words, and figures that are close to the values of dates
but are not values themselves.
"""
_STEPS: Final[Mapping[Frequency, str]] = {
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "annual": "year",
}


class UtilityQuestion(Value):
    """One ordinary question, and the points of a good answer."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    category: Category
    question: Text
    points: str = ""


_ALIKE: Final = 0.1
"""Halves that differ by less than this many standard deviations are described as alike."""
_LIST: Final = TypeAdapter(list[UtilityQuestion])


def select_questions(series: Series, own: Sequence[UtilityQuestion] = ()) -> list[UtilityQuestion]:
    """Return the questions about a series: the user's, those of its field and the general ones."""
    if own:
        return list(own)
    finance = _load_questions("finance")
    if series.definition.family in finance["families"]:
        return _LIST.validate_python(finance["questions"])
    known = _series_facts(series)
    return [
        one.model_copy(
            update={
                "question": Template(one.question).substitute(known),
                "points": Template(one.points).substitute(known),
            }
        )
        for one in _LIST.validate_python(_load_questions("generic")["questions"])
    ]


def read_questions(path: Path) -> list[UtilityQuestion]:
    """Read a user's own questions: a YAML list of {id, category, question, points}.

    Raises:
        ConfigError: the file cannot be read, is not such a list, or has a duplicate id.
    """
    try:
        raw = parse_yaml(read_text(path))
        found = _LIST.validate_python(raw)
    except (OSError, UnicodeDecodeError, YamlError) as error:
        raise _unfit_error(path, f"cannot read the questions: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _unfit_error(
            path, f"{place}: {first['msg']}" if place else str(first["msg"])
        ) from None
    ids = [one.id for one in found]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice or not found:
        raise _unfit_error(
            path, f"the id {twice!r} occurs twice" if twice else "the file contains no questions"
        )
    return found


def _unfit_error(path: Path, problem: str) -> ConfigError:
    hint = (
        "the file must contain a list of {id, category, question, points}; "
        f"categories: {', '.join(CATEGORIES)}"
    )
    return ConfigError(problem, where=str(path), hint=hint)


@cache
def _load_questions(name: str) -> Any:  # noqa: ANN401 - YAML, checked where it is used
    file = resources.files("coreeval.evaluation.numleak.defences") / f"{name}.yaml"
    return parse_yaml(file.read_text("utf-8"))


# -- what is known of a series --------------------------------------------------------------------


def _series_facts(series: Series) -> dict[str, str]:
    definition = series.definition
    return {
        "name": definition.name,
        "quantity": definition.quantity,
        "unit": definition.unit.name,
        "points_name": definition.unit.points_name,
        "step": _STEPS[definition.frequency],
        "first_year": str(series.first.start.year),
        "revisions": definition.revisions or "Whether and why, as it is with such figures.",
        "events": _describe_events(series),
        **dict(_describe_values([*series.values.values()])),
    }


def _describe_events(series: Series) -> str:
    days = {what: day for day, what in reversed(series.definition.notable.items())}
    known = "; ".join(f"{what} ({day})" for what, day in reversed(days.items()))
    return f"At least two true events, such as: {known}" if known else "At least two true events."


def _describe_values(values: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of approximate facts about the values of a series."""
    import numpy as np

    found = np.array(values)
    steps = np.diff(found) if len(found) > 1 else np.zeros(1)
    early, late = found[: (len(found) + 1) // 2], found[len(found) // 2 :]
    low, high = np.quantile(found, [0.05, 0.95])
    sizes = {
        "average": found.mean(), "low": low, "high": high, "largest": found.max(),
        "smallest": found.min(), "change": np.median(np.abs(steps)),
        "early_average": early.mean(), "late_average": late.mean(),
        "early_spread": early.std(), "late_spread": late.std(),
    }  # fmt: skip
    yield from ((name, f"{size:.3g}") for name, size in sizes.items())
    yield "rises", f"{10 * float(np.mean(steps > 0)):.0f}"
    near = _ALIKE * float(found.std())
    yield "steadier", _larger_half(late.std() - early.std(), near)
    yield "higher", _larger_half(early.mean() - late.mean(), near)


def _larger_half(ahead: float, near: float) -> str:
    """Return which half is larger; neither if they differ by less than `near`."""
    if abs(ahead) < near:
        return "About alike: naming either is right"
    return f"In the {'first' if ahead > 0 else 'second'} half"


TOP_SCORE: Final = 4
"""The best score; the worst is 0 (NumLeak, section 5)."""
_PROSE: Final = (
    "each line must be {model, series, defence, question, category, asked, response, scores}"
)


class UtilityScore(Value):
    """One judge's score of an answer."""

    judge: str
    score: Annotated[int, Field(ge=0, le=TOP_SCORE)] | None
    """The score; None if the judge could not or would not score."""
    reason: str = ""


class UtilityReply(Value):
    """One answer to an ordinary question."""

    model: Annotated[str, Field(min_length=1)]
    series: str
    defence: str
    question: str
    """The id of the question."""
    category: Category
    asked: str
    """The text of the question."""
    points: str = ""
    """The points of a good answer."""
    response: str | None
    kind: AnswerKind = "answered"
    scores: tuple[UtilityScore, ...] = ()
    """The scores of the first and then the second judge, if they were asked."""


def write_utility(path: Path, replies: Iterable[UtilityReply]) -> None:
    """Write one line for each answer, atomically."""
    lines = (json.dumps(one.model_dump(mode="json"), ensure_ascii=False) for one in replies)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_utility(path: Path) -> Records[UtilityReply]:
    """Read JSON Lines; if several lines have the same answer, the first counts.

    Raises:
        DatasetError: the file cannot be read, or no line of it is such an answer.
    """
    found = read_records(
        path, partial(validate_record, UtilityReply), key=_reply_key, twice=_describe_duplicate
    )
    return found.require_records(path, what="a judged answer", whats="judged answers", prose=_PROSE)


def _reply_key(one: UtilityReply) -> tuple[str, ...]:
    return (one.model, one.series, one.defence, one.question)


def _describe_duplicate(_: UtilityReply, first: int) -> str:
    return f"duplicate answer, first in line {first}"


Answer = TypeVar("Answer", bound=BaseModel)
RULE_JUDGE: Final = "offline"
"""The judge that scores by comparing words."""
_WORD: Final = re.compile(r"[a-z]{4,}|\d+")


class UtilityJudge(Protocol):
    """The interface of a judge: a `ModelClient` with its own role, through the call store."""

    async def ask(
        self, messages: Sequence[dict[str, str]], output_schema: OutputSchema[Answer]
    ) -> Answer:
        """Return a valid answer; raise NoValidAnswer if there is none."""
        ...


class Judgement(Value):
    """The answer of a judge: the reason comes first, so that the judge thinks before it scores."""

    reason: str
    score: Annotated[Literal[0, 1, 2, 3, 4], BeforeValidator(refuse_truth_value)] | None


JUDGEMENT_SHAPE: Final = OutputSchema(Judgement, name="usefulness")


class JudgeInput(Value):
    """The input of a judge, without the model that answered and its instructions."""

    question: str
    points: str
    answer: str

    @property
    def messages(self) -> list[Message]:
        """The messages to send."""
        points = self.points or "none are given: judge by what you know"
        return load_built_in_prompt("series_judge").fill(
            question=to_prompt_json(self.question),
            points=to_prompt_json(points),
            answer=to_prompt_json(self.answer),
        )


async def score_answer(client: UtilityJudge, exhibit: JudgeInput, *, judge: str) -> UtilityScore:
    """Return a model's score for an answer; if the model gives no score, it is None, not 0.

    Raises:
        ModelCallError: the judge was not reached.
        CoreEvalError: no more questions can be asked.
    """
    try:
        said = await client.ask(exhibit.messages, JUDGEMENT_SHAPE)
    except NoValidAnswer as error:
        return UtilityScore(judge=judge, score=None, reason=f"no score: {error.kind}")
    return UtilityScore(judge=judge, score=said.score, reason=said.reason)


def score_by_rule(exhibit: JudgeInput) -> UtilityScore:
    """Score an answer by the number of words it shares with a good answer.

    The score only separates answers from non-answers; it is for trial runs without an API key.
    """
    wanted, there = (_content_words(text) for text in (exhibit.points, exhibit.answer))
    if not wanted:
        return UtilityScore(judge=RULE_JUDGE, score=None, reason="no points to compare with")
    share = len(wanted & there) / len(wanted)
    return UtilityScore(
        judge=RULE_JUDGE, score=round(TOP_SCORE * share), reason=f"{share:.0%} of the words"
    )


def _content_words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


UtilityKey = tuple[str, str, str, str]
"""A model, a series id, a defence and a question id."""


@dataclass(frozen=True, kw_only=True)
class OrdinaryQuestion:
    """One ordinary question, asked of a model under a defence."""

    series: str
    defence: str
    asked: UtilityQuestion
    text: tuple[tuple[str, str], ...]
    """The role and content of each message."""

    @property
    def messages(self) -> list[Message]:
        """The messages to send."""
        return [{"role": role, "content": content} for role, content in self.text]

    def key(self, model: str) -> UtilityKey:
        """Return the key that identifies a model's answer to this question."""
        return (model, self.series, self.defence, self.asked.id)

    def exhibit(self, answer: str) -> JudgeInput:
        """Return the input that a judge sees for an answer."""
        return JudgeInput(question=self.asked.question, points=self.asked.points, answer=answer)

    def reply(
        self, model: str, response: str | None, kind: AnswerKind, scores: Iterable[UtilityScore]
    ) -> UtilityReply:
        """Return the model's response and the judges' scores as a record."""
        return UtilityReply(
            model=model,
            series=self.series,
            defence=self.defence,
            question=self.asked.id,
            category=self.asked.category,
            asked=self.asked.question,
            points=self.asked.points,
            response=response,
            kind=kind,
            scores=tuple(scores),
        )


def list_ordinary_questions(
    series: Series, armoury: DefenceSet, own: Sequence[UtilityQuestion]
) -> Iterator[OrdinaryQuestion]:
    """Yield each question about a series under each defence; `own` come before built-in ones."""
    for defence in armoury.defences:
        for one in select_questions(series, own):
            messages = defence.messages(one.question, about=series.definition)
            yield OrdinaryQuestion(
                series=series.definition.id,
                defence=defence.name,
                asked=one,
                text=tuple((message["role"], message["content"]) for message in messages),
            )


def choose_second_scores(
    keys: Iterable[UtilityKey], *, count: int, seed: int
) -> frozenset[UtilityKey]:
    """Return the answers that the second judge also scores, drawn uniformly from all answers."""

    def turn(key: UtilityKey) -> bytes:
        return hashlib.sha256("\0".join((str(seed), *key)).encode()).digest()

    return frozenset(sorted(set(keys), key=turn)[:count])
