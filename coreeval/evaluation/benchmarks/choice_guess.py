"""Guesses which columns of a table hold a question, its options, and the right one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from coreeval.errors import DatasetError
from coreeval.tasks import load_task
from coreeval.tasks.kinds import ItemDefect, kind_of
from coreeval.tasks.kinds.base import QUESTION, fold_column, match_names
from coreeval.tasks.kinds.choice import LETTERS
from coreeval.tools.formatting import list_first

CHOICE_TASK = "multiple_choice"
QUESTION_NAMES = ("question", "q", "query", "stem", "prompt", "problem")
"""Usual names of the column with the question, most usual first."""
ANSWER_NAMES = ("answer", "answerkey", "correct", "correctanswer", "correctoption", "label",
                "gold", "target", "solution", "key")  # fmt: skip
"""Usual names of the column with the right option, most usual first."""
FITTING_SHARE = 0.9
"""The least share of rows in which a column names one of the options (own choice)."""
NAMED_SHARE = 0.5
"""The same for a column with a usual or given name (own choice)."""
_FEWEST = 2
_PREFIXES = ("option", "opt", "choice", "answer", "ans", "alternative", "ending", "solution",
             "sol", "")  # fmt: skip
"""What precedes the letter or number in the name of a column with an option."""

Rows = Sequence[Mapping[str, str]]


class ChoiceColumns(NamedTuple):
    """The columns of a multiple-choice table."""

    question: str
    options: tuple[str, ...]
    answer: str

    def by_our_names(self) -> dict[str, str]:
        """Return the columns by the names in `dataset.columns`."""
        options = dict(zip(LETTERS, self.options, strict=False))
        return {QUESTION: self.question, **options, "answer": self.answer}


def find_choice_columns(
    rows: Rows, present: Sequence[str], *, where: str, answer: str | None = None
) -> ChoiceColumns | None:
    """Return the columns of a multiple-choice table; None if it is none.

    Args:
        rows: The rows.
        present: The columns.
        where: The file, for messages.
        answer: The column with the right option; guessed if None.

    Raises:
        DatasetError: several columns may name the right option, or it is counted from 1.
    """
    options = find_option_columns(present)
    if not options or not rows:
        return None
    filled = Counter(name for row in rows for name, value in row.items() if value.strip())
    others = [
        name
        for name in present
        if name not in options and filled[name] >= FITTING_SHARE * len(rows)
    ]
    found = _find_answer(rows, options, [name for name in others if answer in (None, name)], where)
    left = [name for name in others if name != found and fold_column(name) not in ("id", "cluster")]
    if found is None or not left:
        return None
    sizes = Counter[str]()
    for row in rows:
        sizes.update({name: len(row.get(name, "")) for name in left})
    question = _find_named(left, QUESTION_NAMES) or max(left, key=sizes.__getitem__)
    return ChoiceColumns(question, options, found)


def find_option_columns(present: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that each hold an option, such as `opt_a`, `opt_b`; none if only one."""
    folded = {fold_column(name): name for name in reversed(present)}
    numbers = [[str(number) for number in range(start, 27)] for start in (0, 1)]
    for prefix in _PREFIXES:
        for marks in (list(LETTERS.lower()), *(numbers if prefix else ())):
            names = [prefix + mark for mark in marks]
            found = tuple(folded[name] for name in takewhile(folded.__contains__, names))
            if len(found) >= _FEWEST:
                return found
    return ()


def _find_answer(
    rows: Rows, options: Sequence[str], columns: Sequence[str], where: str
) -> str | None:
    """Return the column whose values are letters, indices or texts of the row's options.

    Raises:
        DatasetError: there are several, or its numbers start from 1.
    """
    named = _find_named(columns, ANSWER_NAMES)
    likely = named or (columns[0] if len(columns) == 1 else None)
    if likely and _counts_from_one(rows, options, likely):
        raise DatasetError(
            f"the column {likely!r} counts the options from 1, but an index counts from 0",
            where=where,
            hint=f"write the letter of the right option (A to {LETTERS[len(options) - 1]}) or its "
            "text in this column",
        )
    shares = {name: NAMED_SHARE if name == likely else FITTING_SHARE for name in columns}
    fitting = [name for name, share in shares.items() if _fits(rows, options, name, share)]
    if named in fitting or len(fitting) < _FEWEST:
        return named if named in fitting else next(iter(fitting), None)
    raise DatasetError(
        f"the table has options ({', '.join(options[:_FEWEST])} …), but several columns may name "
        f"the right one: {list_first(fitting, len(LETTERS))}",
        where=where,
        hint="name it with --label COLUMN",
    )


def _counts_from_one(rows: Rows, options: Sequence[str], answer: str) -> bool:
    """Return whether no value is 0, and nearly all are from 1 to the number of options.

    A column with nearly only texts of options names the options by their texts.
    """
    given = [(row, value) for row in rows if (value := row.get(answer, "").strip())]
    counts = Counter(value.removesuffix(".0") for _, value in given)
    numbers = sum(counts[str(number)] for number in range(1, len(options) + 1))
    texts = sum(value in {row.get(name, "").strip() for name in options} for row, value in given)
    least = FITTING_SHARE * len(given)
    return bool(given) and not counts["0"] and numbers >= least and texts < least


def _fits(rows: Rows, options: Sequence[str], answer: str, share: float) -> bool:
    """Return whether a column names an option in this share of the rows."""
    task = load_task(CHOICE_TASK)
    read, misses = kind_of(task).make_reader(task), 0
    allowed = (1 - share) * len(rows)
    for row in rows:
        values: dict[str, object] = {QUESTION: "?", "answer": row.get(answer)}
        values |= {letter: row.get(name) for letter, name in zip(LETTERS, options, strict=False)}
        try:
            read(values)
        except ItemDefect:
            misses += 1
        if misses > allowed:
            return False
    return True


def _find_named(columns: Sequence[str], usual: Sequence[str]) -> str | None:
    found = match_names(columns, {name: (name,) for name in usual})
    return next((found[name] for name in usual if name in found), None)
