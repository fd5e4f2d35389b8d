"""Which instructions against giving values away are tried, with what, and who judges the cost."""

from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from coreeval.config.model_values import ModelConfig
from coreeval.schema import Value

DEFENCES: Final = ("none", "soft", "strong", "retrieval_only")
"""The built-in ones (NumLeak, section 5): the control, a plea, a ban, a pointer to the source."""
SUFFIXES: Final = ("override", "research", "public", "confirm", "number_only", "reasoning")
"""The built-in endings of a question that try to undo them (NumLeak, appendix S)."""


class WordsConfig(Value):
    """A defence or an ending of a question: a built-in one by its name, or one's own words."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    text: str | None = None
    file: str | None = None
    """A file of plain text, in the place of `text`."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.text is not None and self.file is not None:
            raise ValueError(f"{self.name!r} has a text and a file: leave one of them out")
        if self.text is not None and not self.text.strip():
            raise ValueError(f"the text of {self.name!r} is empty: it would be no instruction")
        return self

    @property
    def built_in(self) -> bool:
        """True where it has no words of its own."""
        return self.text is None and self.file is None


def _named(names: Sequence[str]) -> tuple[WordsConfig, ...]:
    return tuple(WordsConfig(name=name) for name in names)


class DefencesConfig(Value):
    """Defences under attack, and what they cost in usefulness (research: numleak, section 5)."""

    names: Annotated[tuple[WordsConfig, ...], Field(min_length=1)] = _named(DEFENCES)
    suffixes: tuple[WordsConfig, ...] = _named(SUFFIXES)
    """None at all: only the plain question is asked."""
    dates: Annotated[int, Field(ge=1)] = 40
    """Dates of the first drawing that each defence is tried on: as many as NumLeak's."""
    utility: bool | None = None
    """Whether ordinary questions are asked and judged under each defence; None: if there is a
    judge."""
    questions: str | None = None
    """File of one's own ordinary questions."""
    judge: ModelConfig | None = None
    """Scores answers to them; `offline` compares words by rule."""
    second_judge: ModelConfig | None = None
    """Scores some of them again."""
    rescored: Annotated[int, Field(ge=2)] = 50
    """How many answers the second judge scores: as many as NumLeak's."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        _check_names("names", self.names, DEFENCES)
        _check_names("suffixes", self.suffixes, SUFFIXES)
        return self

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if self.utility and self.judge is None:
            raise ValueError("utility needs a judge: name a model, or offline")
        if self.second_judge and self.judge is None:
            raise ValueError("a second_judge needs a judge before it")
        for judge in (self.judge, self.second_judge):
            if judge and judge.by_rules and judge.model != "offline":
                raise ValueError(f"{judge.model!r} is no judge: name a model, or offline")
        if self.judge and self.second_judge and self.judge.model == self.second_judge.model:
            raise ValueError(f"both judges are {self.judge.model}: scores are kept by that name")
        return self

    @property
    def measures_utility(self) -> bool:
        """Whether ordinary questions are asked."""
        return self.judge is not None and self.utility is not False

    @property
    def judges(self) -> tuple[ModelConfig, ...]:
        """Who scores answers: nobody where none are asked for."""
        both = (self.judge, self.second_judge) if self.measures_utility else ()
        return tuple(judge for judge in both if judge)


def _check_names(key: str, given: Sequence[WordsConfig], built_in: Sequence[str]) -> None:
    names = [one.name for one in given]
    for one in given:
        if names.count(one.name) > 1:
            raise ValueError(f"{key} has {one.name!r} more than once")
        if one.built_in and one.name not in built_in:
            raise ValueError(
                f"{key}: there is no built-in {one.name!r}; there are {', '.join(built_in)}; one's "
                "own has a text or a file"
            )
        if not one.built_in and one.name in built_in:
            raise ValueError(f"{key}: {one.name!r} is built in: give your own another name")
