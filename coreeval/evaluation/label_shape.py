"""A target's answer: one of the task's labels, as JSON, as the bare word, or said in a sentence."""

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal, cast

from pydantic import BeforeValidator, create_model

from coreeval.models.answer_text import extract_final_answer, extract_json, iter_objects
from coreeval.models.answers import InvalidAnswer, OutputSchema
from coreeval.schema import Task, Value

_LONGEST: Final = 4000
"""Characters of an answer that are looked at, from its end."""
_NEAR: Final = 120
"""Characters before a label that tell whether it is the one."""
_MOST_NAMED: Final = 100
"""Labels in one sentence; one that names more claims none."""
_LATEX: Final = re.compile(r"\\(?:boxed|text|textbf|mathbf|mathrm|fbox)\b")
_DECORATION: Final = re.compile(r"(?:[^\w\s]|_(?!\w)|(?<!\w)_|\ufe0f)+")
"""What may stand round a bare label: quotes, Markdown, brackets, full stops, emoji."""
_KEYS: Final = ("label", "answer", "final_answer", "prediction", "class", "category")
"""Where an object has its label, the surest first."""
_ASIDE: Final = frozenset({"reason", "reasoning", "explanation", "rationale", "text", "input"})
_NOT: Final = re.compile(
    r"(?:\b(?:not|no|nor|never|neither|can't|cannot|rather than|instead of|without|than|whether"
    r"|either|if)\b|n't\b)(?:(?!\bbut\b)[^.,;:!?\n])*$",
    re.IGNORECASE,
)
_SUBJECT: Final = (
    r"\b(?:it|this|that|answer|label|emotion|sentiment|feeling|tone|mood|stance|tweet|text|message"
    r"|post|author|writer|speaker|sentences?|pair|they|class|category|relation(?:ship)?|prediction"
    r"|verdict|choice)\b"
)
_FILLER: Final = (
    r"[\s:=-]{0,20}(?:\b(?:the|a|an|of|in|label|emotion|class|clearly|mainly)\b\s*){0,4}$"
)
_CLAIM: Final = re.compile(
    rf"(?:{_SUBJECT}[^.!?\n,;]{{0,40}}?(?:\b(?:is|are|as|be)\b|'s\b)|\bit's\b"
    r"|\b(?:classif\w+|label(?:ed|led)?|categori[sz]ed?)\b[^.!?\n,;]{0,40}\bas\b"
    r"|\b(?:expresses|conveys|shows|say|choose|pick|but|therefore)\b"
    r"|\b(?:author|writer|speaker|user|they|he|she) feels?\b"
    r"|(?:^\W*|\b(?:argues?|is) )in\b|\b(?:answer|label) ?-|[:=]|->)"
    rf"{_FILLER}",
    re.IGNORECASE,
)
"""What says, before a label, that it is the one."""
_FINAL: Final = re.compile(
    rf"\b(?:answer|label|verdict|prediction|emotion|sentiment|stance)\b"
    rf"(?: is| would be|[:=])+{_FILLER}",
    re.IGNORECASE,
)
"""What says so above all else."""
_DENIED_BEHIND: Final = re.compile(
    r"\s+(?:is|are|was|does|would|can)(?:n't|\s*not)\b", re.IGNORECASE
)
_OPENING: Final = re.compile(
    r"[^\w]*(?:(?:mostly|probably|likely|clearly|mainly)\s+|\w[.):]\s*)?[^\w]*", re.IGNORECASE
)
_STOP: Final = re.compile(r"[\"'*_`)]*\s*(?:[.,;:!(\n]|$)")
_SENTENCE: Final = re.compile(r"[^.!?\n]*[.!?\n]*")


class TargetAnswer(Value):
    """What every target answers; the schema that is sent narrows it to the task's labels."""

    label: str


class LabelShape(OutputSchema[TargetAnswer]):
    """Exactly one of a task's label names.

    A label is known whatever its case, and however its words are joined. A model that says nothing
    but a label, as templates ask for, has answered although it is no JSON; so has one that says in
    a sentence which label it is. An answer that names two, or denies one, is none.
    """

    def __init__(self, task: Task) -> None:
        names = tuple(label.name for label in task.labels)
        self._by_key = {_key(name): name for name in names}
        longest_first = sorted(self._by_key, key=len, reverse=True)
        joined = (r"[\s_-]+".join(map(re.escape, key.split())) for key in longest_first)
        self._named_in = re.compile(rf"(?<![\w-])(?:{'|'.join(joined)})(?![\w-])", re.IGNORECASE)
        one_of = cast("type[str]", Literal[names])  # made at run time: mypy sees a str
        known = Annotated[one_of, BeforeValidator(self._named)]  # type: ignore[valid-type]
        super().__init__(create_model("LabelAnswer", __base__=TargetAnswer, label=known))

    def parse(self, text: str, *, mend: bool = False) -> TargetAnswer:
        """Read an answer, as JSON, as a bare label or as a sentence that says which label it is.

        Raises:
            InvalidAnswer: it is none of them, or names several.
        """
        said = extract_final_answer(text)[-_LONGEST:]
        objects = [value for value, _, _ in iter_objects(said)]
        found = {self._in_object(one) for one in objects} if objects else {self._in_words(said)}
        name = found.pop() if len(found) == 1 else None
        if name is not None:
            return TargetAnswer(label=name)
        if objects:
            raise InvalidAnswer(
                f"its object has no one label of {', '.join(self._by_key.values())}"
            )
        return super().parse(text, mend=mend)

    def _named(self, value: object) -> object:
        """Return a label as the task spells it."""
        return self._by_key.get(_key(value), value) if isinstance(value, str) else value

    def _in_object(self, value: object) -> str | None:
        """Return the label of an object: under a key for it, else the only one in its values."""
        if isinstance(value, list):
            found = {self._in_object(one) for one in value}
            return found.pop() if len(found) == 1 else None
        if not isinstance(value, dict):
            return self._by_key.get(_key(value)) if isinstance(value, str) else None
        for key in _KEYS:
            if key in value:
                return self._in_object(value[key])
        told = {self._in_object(one) for key, one in value.items() if key.lower() not in _ASIDE}
        told.discard(None)
        return told.pop() if len(told) == 1 else None

    def _in_words(self, said: str) -> str | None:
        """Return the label that words say; None where they name several, or none for sure."""
        text = _LATEX.sub("", extract_json(said))
        if name := self._by_key.get(_key(_DECORATION.sub(" ", text))):
            return None if "?" in text else name
        claimed = set(self._claimed(text))
        return claimed.pop() if len(claimed) == 1 else None

    def _claimed(self, text: str) -> Iterator[str]:
        """Yield each label that a sentence claims; of a sentence with a question none."""
        for sentence in _SENTENCE.findall(text):
            if "?" in sentence:
                continue
            places = [found for found in self._named_in.finditer(sentence)
                      if not _denied(sentence, found)]  # fmt: skip
            if len(places) > _MOST_NAMED:
                continue
            final = [found for found in places if _said_by(_FINAL, sentence, found)]
            sure = any(
                _said_by(_CLAIM, sentence, found) or _begins(sentence, found) for found in places
            )
            told = final or (places if sure else [])
            yield from (self._by_key[_key(found[0])] for found in told)


def _denied(sentence: str, found: re.Match[str]) -> bool:
    """Whether a label is named to say that it is not the one."""
    return bool(_NOT.search(_before(sentence, found))) or bool(
        _DENIED_BEHIND.match(sentence, found.end())
    )


def _begins(sentence: str, found: re.Match[str]) -> bool:
    """Whether a sentence begins with a label and a stop behind it: "Joy. The author smiles."."""
    opens = _OPENING.fullmatch(sentence, 0, found.start())
    return bool(opens and _STOP.match(sentence, found.end()))


def _said_by(words: re.Pattern[str], sentence: str, found: re.Match[str]) -> bool:
    before = _before(sentence, found).rstrip("\"'*_`\u201c\u2018 (")
    return words.search(before) is not None


def _before(sentence: str, found: re.Match[str]) -> str:
    return sentence[max(0, found.start() - _NEAR) : found.start()]


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()
