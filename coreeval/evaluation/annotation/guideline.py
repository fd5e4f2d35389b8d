"""What raters are asked: four criteria, each value of which has its meaning."""

from typing import Final, Literal

from coreeval.schema import Value

Level = Literal["nominal", "ordinal"]
CriterionName = Literal["fluency", "coherence", "factuality", "accuracy"]


class Criterion(Value):
    """One question that is asked of each text."""

    name: CriterionName
    asks: str
    anchors: dict[int, str]
    """What each value means, the worst first."""
    level: Level
    """How far apart two values are: all the same, or by how many ratings lie between them."""

    @property
    def values(self) -> tuple[int, ...]:
        """The values that may be given, the worst first."""
        return tuple(self.anchors)


CRITERIA: Final[tuple[Criterion, ...]] = (
    Criterion(
        name="fluency",
        asks="Is the language in order: grammar, spelling, ease?",
        anchors={
            1: "Many mistakes; they make it hard to read.",
            2: "A few mistakes that hold a reader up; what is meant stays clear.",
            3: "Correct and natural; reads easily.",
        },
        level="ordinal",
    ),
    Criterion(
        name="coherence",
        asks="Does it hang together and say clearly what it means?",
        anchors={
            1: "No thread; hard to tell what it is about.",
            2: "There is a thread, but parts are loose, roundabout or vague.",
            3: "One clear thread, said directly.",
        },
        level="ordinal",
    ),
    Criterion(
        name="factuality",
        asks="Is what it states as fact right?",
        anchors={
            0: "Something that matters is wrong or misleading.",
            1: "All of it is right, or it states nothing that could be wrong.",
        },
        level="nominal",
    ),
    Criterion(
        name="accuracy",
        asks="Does the label that is given fit the text?",
        anchors={
            0: "The label does not fit, or misleads.",
            1: "The label fits.",
        },
        level="nominal",
    ),
)
SOURCE: Final = (
    "CoreEval paper, Appendix D, Table 13, in other words. Fluency and coherence go from 1 to 3 as "
    "in that table; section 3.6 of the paper writes 0 to 2."
)
INSTRUCTIONS: Final[tuple[str, ...]] = (
    "Rate every text by itself. Texts of several origins are mixed; do not try to tell them apart.",
    "Take a text as what it is: in a tweet, slang, tags, emoji and @user are no mistakes, nor are "
    "spaces before signs where a benchmark writes them so.",
    "The excerpts are news on what a text may be about. A text may use them, say something else, "
    "or be older than they are: that alone is no fault. Look up what they do not settle.",
    "Feelings, opinions and the author's private life cannot be checked: they are no wrong facts.",
    "Rate alone. Leave a rating empty if you cannot decide, and say why in the note.",
)
