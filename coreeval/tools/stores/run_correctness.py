"""The samples that targets answered right or wrong in each arm, and the answers about one sample.

Triggers maintain a narrow row for each target and sample, like the list of samples: so a filter
such as "right on original, wrong on updated" takes milliseconds for 100,000 samples. A run.db of an
earlier version lacks the table; the same rows are then computed from the answers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, get_args

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    MetaData,
    Select,
    String,
    Table,
    and_,
    case,
    func,
    select,
)

from coreeval.schema import Arm, Prediction, Value
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.sqlite import WIDE_INTEGER

Correctness = Literal["right", "wrong", "mixed"]
"""A target's answers about a sample in an arm: all right, all wrong, or some of each. Refusals do
not count."""
CORRECTNESS: Final[tuple[Correctness, ...]] = get_args(Correctness)
ARMS: Final[tuple[Arm, ...]] = get_args(Arm)
_COUNTS: Final = tuple(f"{arm}_{end}" for arm in ARMS for end in ("right", "wrong"))
own_metadata = MetaData()
"""Separate from the other tables, because the step from version 12 creates only these."""
correctness = Table(
    "correctness",
    own_metadata,
    Column("target", String, primary_key=True),
    Column("seq", WIDE_INTEGER, primary_key=True),
    *(Column(name, WIDE_INTEGER, nullable=False) for name in _COUNTS),
    sqlite_with_rowid=False,
)
"""For each target and sample, the number of right and of wrong answers in each arm."""
correctness_sums = Table(
    "correctness_sums",
    own_metadata,
    Column("target", String, primary_key=True),
    *(Column(name, WIDE_INTEGER, primary_key=True) for name in _COUNTS),
    Column("samples", WIDE_INTEGER, nullable=False),
)
"""The number of samples of each target with the same counts."""


# -- keeping it up --------------------------------------------------------------------------------

_SOURCES = ", ".join(f"'{arm}'" for arm in ARMS)
_IS_RIGHT = """coalesce({row}."right", {row}.answer = s.label_text)"""


def _count(row: str, sign: str = "") -> list[str]:
    """Return expressions for an answer's increment of each count, for a sample `s`."""
    right = _IS_RIGHT.format(row=row)
    return [
        f"CASE WHEN {row}.source = '{arm}' AND {row}.kind <> 'refused' AND {test} "
        f"THEN {sign}1 ELSE 0 END"
        for arm in ARMS
        for test in (right, f"NOT {right}")
    ]


def _add(row: str, sign: str = "") -> str:
    """Return a statement that adds an answer to the counts, or subtracts it with the sign `-`."""
    more = ", ".join(f"{name} = correctness.{name} + excluded.{name}" for name in _COUNTS)
    return f"""
    INSERT INTO correctness SELECT {row}.target, s.seq, {", ".join(_count(row, sign))}
    FROM samples s WHERE s.id = {row}.sample_id AND {row}.source IN ({_SOURCES})
    ON CONFLICT (target, seq) DO UPDATE SET {more};
    """


def _sum(row: str, sign: str = "") -> str:
    """Return a statement that adds a row of counts to the sums, or subtracts it."""
    key = ", ".join(("target", *_COUNTS))
    values = ", ".join(f"{row}.{name}" for name in ("target", *_COUNTS))
    return f"""
    INSERT INTO correctness_sums VALUES ({values}, {sign}1)
    ON CONFLICT ({key}) DO UPDATE SET samples = correctness_sums.samples + excluded.samples;
    """


TRIGGERS: Final[Mapping[str, str]] = {
    "INSERT ON predictions": _add("NEW"),
    "UPDATE ON predictions": _add("OLD", "-") + _add("NEW"),
    "DELETE ON predictions": _add("OLD", "-"),
    "DELETE ON samples": "DELETE FROM correctness WHERE seq = OLD.seq;",
    "INSERT ON correctness": _sum("NEW"),
    "UPDATE ON correctness": _sum("OLD", "-") + _sum("NEW"),
    "DELETE ON correctness": _sum("OLD", "-"),
}
_SUMS = ", ".join(f"sum({each}) AS {name}" for each, name in zip(_count("p"), _COUNTS, strict=True))
COUNT_ALL: Final = f"""
    INSERT INTO correctness SELECT p.target, s.seq, {_SUMS}
    FROM predictions p JOIN samples s ON s.id = p.sample_id
    WHERE p.source IN ({_SOURCES}) GROUP BY p.target, s.seq
"""
"""Fills the table from the answers of a run.db without it; triggers compute the sums."""


# -- filters --------------------------------------------------------------------------------------


def select_answered(wanted: Mapping[Arm, Correctness], target: str | None) -> Select[tuple[int]]:
    """Return the query for the numbers of samples that a target answered as given.

    Args:
        wanted: The correctness of the answers, by arm; one target must match all.
        target: The target; None for any.
    """
    rows = correctness.c
    query = select(rows.seq).where(*(_holds(arm, how) for arm, how in wanted.items()))
    return query.where(rows.target == target) if target is not None else query


def _holds(arm: Arm, how: Correctness) -> ColumnElement[bool]:
    right, wrong = correctness.c[f"{arm}_right"], correctness.c[f"{arm}_wrong"]
    return and_(
        right > 0 if how != "wrong" else right == 0, wrong > 0 if how != "right" else wrong == 0
    )


# -- reading --------------------------------------------------------------------------------------


class ArmTally(Value):
    """The number of samples of an arm that a target answered, by correctness."""

    right: int
    wrong: int
    mixed: int

    @property
    def total(self) -> int:
        """Return the number of samples with an answer that is not a refusal."""
        return self.right + self.wrong + self.mixed


class TargetTally(Value):
    """The correctness of a target's answers about the samples of a run."""

    target: str
    arms: dict[Arm, ArmTally]
    """Arms with an answer, in their usual order."""
    lost: int
    """The samples right on the original and wrong on the updated text."""
    gained: int
    """The samples wrong on the original and right on the updated text."""


SampleCorrectness = Mapping[str, Mapping[Arm, Correctness]]
"""The correctness by target and arm, without unanswered ones."""


class TargetAnswers:
    """The answers of targets about the samples of a run, read-only."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def targets(self) -> list[str]:
        """Return the targets with answers, sorted."""
        with self._engine.connect() as connection:
            return list(_iter_targets(connection))

    def about(self, sample_id: str) -> list[Prediction]:
        """Return all answers about a sample, by target, arm and template.

        They are looked up by the key of their table, whose last part is the sample.
        """
        said = t.predictions.c
        with self._engine.connect() as connection:
            targets = list(_iter_targets(connection))
            most = max((_find_last_template(connection, each) for each in targets), default=0)
            query = select(t.predictions).where(
                said.target.in_(targets),
                said.source.in_(ARMS),
                said.template.in_(range(most + 1)),
                said.sample_id == sample_id,
            )
            found = [Prediction.model_validate(dict(row))
                     for row in connection.execute(query).mappings()]  # fmt: skip
        places: list[str] = list(ARMS)
        return sorted(found, key=lambda one: (one.target, places.index(one.source), one.template))

    def by_sample(self, seqs: Sequence[int]) -> Mapping[int, SampleCorrectness]:
        """Return the correctness of samples, by their positions in the benchmark."""
        rows = correctness.c
        found = dict[int, dict[str, dict[Arm, Correctness]]]()
        query = select(rows.target, rows.seq, *_states()).where(rows.seq.in_(seqs))
        with self._engine.connect() as connection:
            targets = list(_iter_targets(connection))
            for target, seq, *states in connection.execute(query.where(rows.target.in_(targets))):
                known = {arm: how for arm, how in zip(ARMS, states, strict=True) if how}
                found.setdefault(seq, {})[target] = known
        return found

    def tally(self) -> list[TargetTally]:
        """Return the sums of each target, sorted by target."""
        sums = correctness_sums.c
        query = select(sums.target, *(sums[name] for name in _COUNTS), sums.samples)
        found = dict[str, Counter[tuple[Correctness | None, ...]]]()
        with self._engine.connect() as connection:
            for target, *counts, samples in connection.execute(query):
                states = tuple(map(_find_state, counts[::2], counts[1::2]))
                found.setdefault(target, Counter())[states] += samples
        return [_build_tally(target, found[target]) for target in sorted(found)]


def _states() -> Iterator[ColumnElement[str]]:
    for arm in ARMS:
        yield case(*((_holds(arm, how), how) for how in CORRECTNESS), else_="").label(arm)


def _find_state(right: int, wrong: int) -> Correctness | None:
    """Return a target's correctness in an arm, given its numbers of right and wrong answers."""
    if right > 0:
        return "mixed" if wrong > 0 else "right"
    return "wrong" if wrong > 0 else None


def _build_tally(target: str, samples: Mapping[tuple[Correctness | None, ...], int]) -> TargetTally:
    """Return the sums of a target, given its number of samples by state in all arms."""
    arms, moves = dict[Arm, ArmTally](), Counter[tuple[Correctness | None, ...]]()
    for place, arm in enumerate(ARMS):
        sums = Counter[Correctness | None]()
        for states, number in samples.items():
            sums[states[place]] += number
        if any(sums[how] for how in CORRECTNESS):
            arms[arm] = ArmTally(right=sums["right"], wrong=sums["wrong"], mixed=sums["mixed"])
    for states, number in samples.items():
        moves[states[ARMS.index("original")], states[ARMS.index("updated")]] += number
    lost, gained = moves["right", "wrong"], moves["wrong", "right"]
    return TargetTally(target=target, arms=arms, lost=lost, gained=gained)


def _iter_targets(connection: Connection) -> Iterator[str]:
    """Yield the targets, each found by one search in the key; DISTINCT would read all of it."""
    said, last = t.predictions.c.target, ""
    while (found := connection.scalar(select(func.min(said)).where(said > last))) is not None:
        yield found
        last = found


def _find_last_template(connection: Connection, target: str) -> int:
    said = t.predictions.c
    own = select(said.template).where(said.target == target, said.source == "original")
    return connection.scalar(own.order_by(said.template.desc()).limit(1)) or 0
