"""Parsers of answers in free text: a label of the task, or one of a question's options.

A target gives its label as JSON, as the bare word, or in a sentence. An option is one letter, or
none if the choice is unclear: the surest forms are searched first, and the first match decides. An
answer that names several letters in that form is unclear, regardless of other text.
"""

import json
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Final, Literal, NamedTuple, cast

from pydantic import BeforeValidator, create_model

from coreeval.models.answer_text import extract_final_answer, extract_json, iter_objects
from coreeval.models.answers import InvalidAnswer, OutputSchema
from coreeval.schema import Task, Value

_LONGEST_LABEL_ANSWER: Final = 4000
"""The number of characters that are read from the end of an answer."""
_NEAR: Final = 120
"""The number of characters before a label that show whether it is the answer."""
_MOST_NAMED: Final = 100
"""The most labels in a sentence; a sentence that names more claims none."""
_LATEX: Final = re.compile(r"\\(?:boxed|text|textbf|mathbf|mathrm|fbox)\b")
_DECORATION: Final = re.compile(r"(?:(?!-\d)[^\w\s]|_(?!\w)|(?<!\w)_|\ufe0f)+")
"""Characters that may surround a bare label: quotes, Markdown, brackets, full stops, emoji. A minus
before a number is not one of them."""
_MINUS: Final = re.compile(r"(?<!\w)[\u2010-\u2013\u2212\ufe63\uff0d](?=\d)")
"""A typographic minus, or a dash in its place, before a number."""
_EMPHASIS: Final = re.compile(
    r"(?<![\w*])(\*{1,3}|_{1,3}|`)(?=[^\s*_`])([^\n]{1,120}?)\1(?![\w*_`])"
)
"""A word or phrase in bold, in italics or as code, in Markdown."""
_KEYS: Final = ("label", "answer", "final_answer", "prediction", "class", "category")
"""Keys of an object that may hold its label, the surest first."""
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
"""Words before a label that mark it as the answer."""
_FINAL: Final = re.compile(
    rf"\b(?:answer|label|verdict|prediction|emotion|sentiment|stance)\b"
    rf"(?: is| would be|[:=])+{_FILLER}",
    re.IGNORECASE,
)
"""Words that mark a label as the answer with the highest priority."""
_DENIED_BEHIND: Final = re.compile(
    r"\s+(?:is|are|was|does|would|can)(?:n't|\s*not)\b", re.IGNORECASE
)
_OPENING: Final = re.compile(
    r"[^\w]*(?:(?:mostly|probably|likely|clearly|mainly)\s+|\w[.):]\s*)?[^\w]*", re.IGNORECASE
)
_STOP: Final = re.compile(r"[\"'*_`)]*\s*(?:[.,;:!(\n]|$)")
_SENTENCE: Final = re.compile(r"[^.!?\n]*[.!?\n]*")
_BROKEN_NOT: Final = re.compile(
    r"(?:(?<=\bnot)(?<!\bor not)(?<!\bmaybe not)|(?<=n't)|(?<=\bnon)) ?\n ?(?=\w)", re.IGNORECASE
)
"""A line break between a negation and what it denies; nothing follows "or not"."""
_DECIMAL_POINT: Final = re.compile(r"(?<=\d)\.(?=\d)")
_HIDDEN_STOPS: Final = str.maketrans(dict.fromkeys(".!?,;:", "\u00b7"))
"""A sign that ends no sentence, for the stops inside labels and numbers."""


class _Mention(NamedTuple):
    """A label in a sentence."""

    name: str
    start: int
    end: int


class TargetAnswer(Value):
    """The answer of every target; the schema that is sent restricts it to the task's labels."""

    label: str


class LabelReader:
    """Finds exactly one of a task's label names in an answer.

    Labels match in any case, and regardless of how their words are joined. A bare label, as
    templates request, and a sentence that states the label are valid answers although they are not
    JSON. An answer that names two labels, or denies one, is invalid. Signs that distinguish two
    labels, as in `C` and `C++`, are part of the label. A stop inside a label, as in `Windows 8.1`,
    or a number ends no sentence. A minus may be typographic.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._by_key = {_label_key(name): name for name in names}
        self._has_minus = any(re.search(r"(?<!\w)-\d", name) for name in names)
        self._alike = _find_alike(names)
        signs = sorted(set(re.findall(r"[^\w\s-]", "".join(self._alike))))
        apart = re.escape("".join(signs))
        self._core = re.compile(rf"(?:(?!-\d)[^\w{apart}])*(.*[\w{apart}])?", re.DOTALL)
        self._by_core = {core: name for name in names if (core := self._find_core(name))}
        longest_first = sorted(self._by_key, key=len, reverse=True)
        joined = (r"(?:[^\S\n]|[_-])+".join(map(re.escape, key.split())) for key in longest_first)
        self._named_in = re.compile(
            rf"(?<![\w{apart}-])(?!(?<=\d\.)\d)({'|'.join(joined)})(?:(?<=\d)\.0+(?!\d))?"
            rf"(?!(?<=\d)\.\d)(?![\w{apart}-])",
            re.IGNORECASE,
        )

    def read(self, text: str) -> str:
        """Return the label of an answer, or "" if it has none or several.

        The answer is JSON, a bare label or a sentence that states the label.
        """
        said = self._normalise_minus(extract_final_answer(text)[-_LONGEST_LABEL_ANSWER:])
        if exact := self.find(said):
            return exact
        objects = [value for value, _, _ in iter_objects(said)]
        found = {self._in_object(one) for one in objects} if objects else {self._in_words(said)}
        return (found.pop() or "") if len(found) == 1 else ""

    def find(self, name: str) -> str | None:
        """Return a label in the task's spelling."""
        return self._by_key.get(_label_key(self._normalise_minus(name)))

    def _normalise_minus(self, text: str) -> str:
        return _MINUS.sub("-", text) if self._has_minus else text

    def _in_object(self, value: object) -> str | None:
        """Return an object's label: under a label key, or the only label among its values."""
        if isinstance(value, list):
            found = {self._in_object(one) for one in value}
            return found.pop() if len(found) == 1 else None
        if not isinstance(value, dict):
            return self.find(value) if isinstance(value, str) else None
        for key in _KEYS:
            if key in value:
                return self._find_constant(value[key]) or self._in_object(value[key])
        told = {self._in_object(one) for key, one in value.items() if key.lower() not in _ASIDE}
        told.discard(None)
        return told.pop() if len(told) == 1 else None

    def _find_constant(self, value: object) -> str | None:
        """Return the label whose name is a truth value or number in JSON."""
        if not isinstance(value, bool | int | float):
            return None
        whole = isinstance(value, float) and value.is_integer()
        wanted = {json.dumps(value).casefold(), str(int(value)) if whole else ""}
        found = [name for name in self._by_key.values() if name.casefold() in wanted]
        return found[0] if len(found) == 1 else None

    def _in_words(self, said: str) -> str | None:
        """Return the label that a text states, or None if it names several, or none clearly."""
        text = _BROKEN_NOT.sub(" ", _LATEX.sub("", extract_json(said)))
        if self._alike:
            text = _EMPHASIS.sub(r"\2", text)
        if name := self._find_bare(text):
            return None if "?" in text.casefold().replace(name.casefold(), "") else name
        claimed = set(self._find_claims(text))
        return claimed.pop() if len(claimed) == 1 else None

    def _find_bare(self, text: str) -> str | None:
        """Return the label that is the whole text apart from decoration."""
        name = self._by_key.get(_strip_decoration(text))
        return (
            name if name and name not in self._alike else self._by_core.get(self._find_core(text))
        )

    def _find_core(self, text: str) -> str:
        """Return the key of a text without the signs around it that distinguish no labels."""
        core = self._core.match(text)
        return _label_key(core[1] or "") if core else ""

    def _find_claims(self, text: str) -> Iterator[str]:
        """Yield each label that a sentence claims; sentences with a question claim none."""
        for sentence, named in self._find_sentences(text):
            if "?" in sentence:
                continue
            places = [found for found in named if not _is_denied(sentence, found)]
            if len(places) > _MOST_NAMED:
                continue
            final = [found for found in places if _is_claim(_FINAL, sentence, found)]
            sure = any(
                _is_claim(_CLAIM, sentence, found) or _opens_sentence(sentence, found)
                for found in places
            )
            told = final or (places if sure else [])
            yield from (found.name for found in told)

    def _find_sentences(self, text: str) -> Iterator[tuple[str, list[_Mention]]]:
        """Yield each sentence and the labels in it."""
        found = deque(self._named_in.finditer(text))
        hidden = self._named_in.sub(lambda label: label[0].translate(_HIDDEN_STOPS), text)
        for sentence in _SENTENCE.finditer(_DECIMAL_POINT.sub("\u00b7", hidden)):
            at, named = sentence.start(), list[_Mention]()
            while found and found[0].start() < sentence.end():
                label = found.popleft()
                name = self._by_key[_label_key(label[1])]
                named.append(_Mention(name, label.start() - at, label.end() - at))
            yield sentence[0], named


class LabelShape(OutputSchema[TargetAnswer]):
    """Exactly one of a task's label names, as `LabelReader` reads it."""

    def __init__(self, task: Task) -> None:
        self._names = tuple(label.name for label in task.labels)
        self._reader = LabelReader(self._names)
        one_of = cast("type[str]", Literal[self._names])  # created at run time: mypy sees a str
        known = Annotated[one_of, BeforeValidator(self._find_label)]  # type: ignore[valid-type]
        super().__init__(create_model("LabelAnswer", __base__=TargetAnswer, label=known))

    def parse(self, text: str, *, mend: bool = False) -> TargetAnswer:
        """Parse an answer given as JSON, as a bare label or as a sentence that states the label.

        Raises:
            InvalidAnswer: the answer is none of these, or names several labels.
        """
        if name := self._reader.read(text):
            return TargetAnswer(label=name)
        said = extract_final_answer(text)[-_LONGEST_LABEL_ANSWER:]
        if any(True for _ in iter_objects(said)):
            raise InvalidAnswer(f"its object has no one label of {', '.join(self._names)}")
        return super().parse(text, mend=mend)

    def _find_label(self, value: object) -> object:
        """Return a label in the task's spelling."""
        return (self._reader.find(value) or value) if isinstance(value, str) else value


def _is_denied(sentence: str, found: _Mention) -> bool:
    """Return whether a label is only denied."""
    return bool(_NOT.search(_before(sentence, found))) or bool(
        _DENIED_BEHIND.match(sentence, found.end)
    )


def _opens_sentence(sentence: str, found: _Mention) -> bool:
    """Return whether a sentence starts with a label and a stop: "Joy. The author smiles."."""
    opens = _OPENING.fullmatch(sentence, 0, found.start)
    return bool(opens and _STOP.match(sentence, found.end))


def _is_claim(words: re.Pattern[str], sentence: str, found: _Mention) -> bool:
    before = _before(sentence, found).rstrip("\"'*_`\u201c\u2018 (")
    return words.search(before) is not None


def _before(sentence: str, found: _Mention) -> str:
    return sentence[max(0, found.start - _NEAR) : found.start]


def _find_alike(names: Sequence[str]) -> frozenset[str]:
    """Return the labels that differ from another label only in signs."""
    counts = Counter(map(_strip_decoration, names))
    return frozenset(name for name in names if counts[_strip_decoration(name)] > 1)


def _strip_decoration(text: str) -> str:
    return _label_key(_DECORATION.sub(" ", text))


def _label_key(text: str) -> str:
    joined = re.sub(r"[\s_-]+", " ", text).strip().casefold()
    return f"-{joined}" if re.match(r"[\s_-]*-\d", text) else joined


OptionPatterns = tuple[re.Pattern[str], ...]
"""Patterns that are equally sure; their groups contain what they name."""
_WRAP = r"""(?:[\s"'\u2018-\u201d`*_(\[{【「《<:$\\=]|boxed|textbf|text|mathrm){0,16}"""
"""Characters allowed between the introductory words and a letter: marks, Markdown, LaTeX."""
_END = r"""(?=\s*(?:\Z|[.:,;!、)\]}'"\u2019\u201d*。」】>\n])|\s[-\u2013\u2014]\s)"""
_OR = r"(?:[^\w\n]|(?i:\b(?:and|or|then|but|maybe|option|boxed|text|textbf|mathrm)\b)){1,24}"
"""Characters allowed between two letters at the start of an answer."""
_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_CORRECT = (
    r"(?=['\"*_`)\]]*\s+(?i:is|are|would be|must be|should be|seems)\s+"
    r"(?i:(?:the|most|likely)\s+){0,4}(?i:(?:(?:correct|right|best|true)\b|(?:final\s+)?(?:answer|choice|option)\b)))"
)
"""Characters after a letter that mark it as the answer."""
_ELSEWHERE = (
    r"(?i:\b(?:antwort|r\u00e9ponse|respuesta|risposta|resposta)\b"
    r"(?:\s+(?:richtige|korrekte|correcte|correcta|corretta|correta|ist|lautet|est|es|\u00e8|\u00e9)){0,4})"
)
""""The answer is" in other languages."""
_IS = (
    r"(?i:\s+(?:is|are|(?:would|should|must|will) be|option|choice|letter|the|correct|most|likely"
    r"|definitely|certainly|clearly|surely|obviously|probably)){0,8}"
)
_SHALL = r"(?:\s|应该|应当|应|可能|就|则|只能|最终|更|选项|选择|选|[是为]){0,4}"
_WRONG = r"(?:wrong|incorrect|false|untrue|ruled out|not (?:the )?(?:correct|right|true|answer))\b"
_OTHER_SUBJECT = (
    r"(?:because|since|as|for|so|while|whereas|and|or|but|the|all|every|everything|others?|rest"
    r"|options?|choices?|answers?|statements?|is|are|[a-z])\b"
)
"""The start of the subject of a verdict that follows a letter but is not about it."""
_REJECTED_OPTION = re.compile(
    r"[\s)\]*_]{0,8}\?"
    rf"|[)\]}}*_'\"`:]{{0,8}}[ \t]{{1,8}}(?:(?!{_OTHER_SUBJECT})\w{{1,40}}[ \t]{{1,8}}){{0,4}}?"
    rf"(?:(?P<one>is|was)|are|were)(?:\s{{1,8}}{_WRONG}"
    r"|n['\u2019]t (?:the )?(?:correct|right|true|answer)\b)"
    r"|[ \t.:)\]*_(=\u2013\u2014-]{1,8}(?:no|false|wrong|(?:in|not )correct|[\u2717\u2718\u274c])"
    r"[ \t.!)*_]{0,8}(?:\n|\Z)",
    re.IGNORECASE,
)
"""Text after a letter, or its option, that is questioned or rejected."""
_TAKEN_BACK = re.compile(r"(?i)[\s.,;!)*_\u2014-]{1,8}(?:no,|(?:no )?wait\b|hmm\b|scratch that\b)")
_DENIED_OPTION = re.compile(
    r"(?:(?:\b(?:not|never|cannot)|n['\u2019]t)"
    r"(?:[ \t]{1,8}(?!(?:but|so|thus|therefore|hence|and|because|mistaken)\b)\w{1,40}){1,5}"
    r"|\b(?:wrong|incorrect|false|worst) (?:answer|option|choice)s?\b(?: (?:is|are|was))?"
    r")[^\w.,;!?\n]{0,8}\Z",
    re.IGNORECASE,
)
"""Text before a letter that is not chosen."""
_ALSO = re.compile(
    r"[^\w\n.;:!?]{1,8}(?:or[^\w\n]{1,4}(?:(?:maybe|perhaps|possibly|else|even|option|choice)[^\w\n]{1,4}){0,2}"
    r"(?-i:([A-Z]))(?![A-Za-z0-9])"
    rf"|and[^\w\n]{{1,4}}(?:option[^\w\n]{{1,4}})?(?-i:([A-Z])){_END})",
    re.IGNORECASE,
)
"""Text after a letter if another letter is also named."""
_NEXT: Final = 400  # characters after a letter that show whether it is rejected
_IS_WORD = re.compile(r" (?!(?:is|would be|must be|should be|seems) )[a-z]")
"""Text after the article A or the pronoun I."""
_LISTED = re.compile(r"\A(?:[>#\u2022*-]+\s+)+")
_ANSWER_IS = re.compile(
    r"\A(?:the\s+)?(?:(?:final|correct|right|best)\s+)?answer(?:\s+is)?\s*:?\s+", re.IGNORECASE
)
_SURE_KEYS: Final = ("answer", "final_answer", "choice", "option", "label")
_REASONS: Final = frozenset({"reason", "reasoning", "explanation", "rationale", "analysis"})
_LONGEST_OPTION_ANSWER: Final = 20_000
"""The number of characters that are read from the end of an answer."""
_WORD_SIGN: Final = re.compile(r"[A-Za-z0-9]")
_SIGNS_BEFORE: Final = re.compile(r"[\W_]*")
_BETWEEN_OPTIONS: Final = re.compile(
    r"(?:[\W_]|(?i:\b(?:and|or|then|option|choice|boxed|text|textbf|mathrm)\b)|[和与及或]|选项|选择|选)*"
)
"""Characters allowed between the options of a list."""
_SIGNS = " \t\n\r.。\"'`*,;"
_MARKS = f"{_SIGNS})]:"


class _Options(NamedTuple):
    """A question's options by letter, normalised once for an answer: their texts may be long."""

    texts: Mapping[str, str]
    """The texts without case and outer signs."""
    listed: Mapping[str, str]
    """The texts without signs before them, as in a list of options."""


def read_choice(text: str, options: Mapping[str, str]) -> str:
    """Return the letter of the option that an answer chooses, or "" if the choice is unclear.

    Clear choices are a single letter, "the answer is (B)", "答案:B", "选B", a leading letter before
    its mark or option, and the exact text of one option. Full-width letters count, lower-case
    letters do not; the article A and the pronoun I are not choices.
    """
    plain = {letter: unicodedata.normalize("NFKC", option) for letter, option in options.items()}
    return _read_choice(
        text,
        _Options(
            texts={letter: _strip_signs(option) for letter, option in plain.items()},
            listed={
                letter: option[_end_of(_SIGNS_BEFORE, option, 0) :]
                for letter, option in plain.items()
            },
        ),
    )


def _read_choice(text: str, options: _Options) -> str:
    answer = extract_final_answer(text)[-_LONGEST_OPTION_ANSWER:]
    if objects := [value for value, _, _ in iter_objects(answer) if isinstance(value, dict)]:
        found = {letter for one in objects for letter in _choices_in_object(one, options)}
        return found.pop() if len(found) == 1 else ""
    said = _LISTED.sub("", unicodedata.normalize("NFKC", answer).strip())
    if _lists_options(said, options.listed):
        return ""
    texts = options.texts
    for way in _option_patterns("".join(texts)):
        if found := {letter for pattern in way for letter in _find_letters(pattern, said, texts)}:
            return found.pop() if len(found) == 1 else ""
    return _match_option_text(said, texts)


def _choices_in_object(value: Mapping[str, object], options: _Options) -> Iterator[str]:
    """Yield the choices in an object's texts, under an answer key if it has one, or any key."""
    sure = [key for key in _SURE_KEYS if key in value][:1]
    for key in sure or [key for key in value if key.lower() not in _REASONS]:
        inner = value[key]
        for text in inner if isinstance(inner, list) else [inner]:
            if isinstance(text, str):
                yield _read_choice(text, options)


def _find_letters(pattern: re.Pattern[str], said: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield each letter found, unless it is denied or rejected; "" if it is withdrawn."""
    for match in pattern.finditer(said):
        names = "".join(sign for name in match.groups() if name for sign in name if sign.isupper())
        if _DENIED_OPTION.search(said[max(0, match.start(1) - _NEAR) : match.start(1)]):
            continue
        told = said[match.end() : match.end() + _NEXT]
        rest = _skip_option(told, texts[names[-1]])
        if rejected := _REJECTED_OPTION.match(rest):
            names = names[:-1] if rejected["one"] else ""
        elif also := _ALSO.match(rest):
            names += _drop_article(also[1] or also[2], rest[also.end() :])
        elif _TAKEN_BACK.match(rest):
            yield ""
        yield from _drop_article(names, told)


def _drop_article(names: str, rest: str) -> str:
    return "" if names in ("A", "I") and _IS_WORD.match(rest) else names


def _skip_option(rest: str, text: str) -> str:
    """Return the text after a letter and, if it follows, the text of its option or its start."""
    told = rest.lstrip(_MARKS)
    behind = told[len(text) :]
    if text and told[: len(text)].casefold() == text and not _WORD_SIGN.match(behind):
        return behind
    line = _strip_signs(told.partition("\n")[0])
    return "" if line and text.startswith(line) else rest


@cache
def _option_patterns(letters: str) -> tuple[OptionPatterns, ...]:
    """Return patterns for naming a letter, in decreasing order of certainty."""
    one = f"[{letters}]"
    joint = r"(?:\s*[、,/&+和与及或]\s*|\s+(?:and|or)\s+)?"
    named = rf"(?<![A-Za-z0-9])({one}(?:{joint}{one})*)(?![A-Za-z0-9])"
    ways = (
        (rf"\A{_WRAP}{named}[\s.!。)\]}}'\"*`】」>{_EMOJI}]*\Z",),
        (
            rf"答案{_SHALL}{_WRAP}(?:选项|选择|选)?{_WRAP}{named}",
            rf"(?i:\banswers?\b){_IS}(?:\s+(?:[-\u2013\u2014]>?|\u2192)\s)?{_WRAP}(?i:(?:option|choice)\s+)?{_WRAP}{named}",
            rf"{_ELSEWHERE}{_WRAP}{named}",
            rf"(?i:\Ait(?:'s|\s+is)\s+){_WRAP}{named}{_END}",
            rf"(?i:\bnot\s+){_WRAP}[{letters}]{_WRAP}(?i:\s+but\s+){_WRAP}{named}",
            rf"(?:\A|[.!?:;\n]\s*|(?i:\b(?:so|thus|therefore|hence|but|only|option|choice),?\s+)){_WRAP}{named}{_CORRECT}",
        ),
        (
            rf"\A{_WRAP}(?:选项|选择|选|(?i:option|choice)\s)?{_WRAP}{named}{_END}",
            rf"\A{_WRAP}({one}){_OR}({one})(?!(?:\W{{1,3}}(?:(?:and|or)\s)?{one}\b){{1,8}}\s+(?i:(?:is|are)\s+{_WRONG})){_END}",
            rf"(?s:\A{_WRAP}({one})['\"]?\s*[:,].*?[\s\[(,'\"]((?!\1){one})['\"]?\s*[:\],])",
        ),
        (
            rf"(?<![不未可以挑供被])(?:选择|选)(?:\s|答案|[是为]){{0,3}}{_WRAP}{named}",
            rf"(?<!不)[是为]{_WRAP}(?:选项)?{_WRAP}{named}{_END}",
            rf"(?i:\b(?:choice|option|(?:correct|right)\s(?:one|statement|letter))){_IS}{_WRAP}{named}{_END}",
            rf"(?i:\b(?:so|thus|therefore|hence),?\s+(?:it(?:'s|\s+is|\s+must\s+be)\s+)?){_WRAP}{named}{_END}",
            rf"(?i:\b(?:choose|chose|select|pick|go with)\s+(?:option\s+)?){_WRAP}{named}",
        ),
        (rf"(?:选项|(?i:\b(?:option|choice)\s)){_WRAP}{named}", rf"(?<!\w)\({named}\)"),
    )
    return tuple(tuple(map(re.compile, way)) for way in ways)


def _lists_options(said: str, texts: Mapping[str, str]) -> bool:
    """Return whether an answer is a list of several options, by letter, text or both."""
    named, at = set[str](), 0
    while (at := _end_of(_BETWEEN_OPTIONS, said, at)) < len(said):
        letter = said[at] if said[at] in texts and not said[at + 1 : at + 2].isalnum() else ""
        start = _end_of(_SIGNS_BEFORE, said, at + 1) if letter else at
        meant = [letter] if letter else sorted(texts, key=lambda one: -len(texts[one]))
        written = next(
            (one for one in meant if texts[one] and said.startswith(texts[one], start)), ""
        )
        if not letter and not written:
            return False
        named.add(letter or written)
        at = start + len(texts[written]) if written else at + 1
    return len(named) > 1


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of a match at a position, or the position if there is no match."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _match_option_text(said: str, texts: Mapping[str, str]) -> str:
    """Return the letter of the only option whose text is the answer, with or without its letter."""
    bare = _strip_signs(_ANSWER_IS.sub("", said))
    found = [
        letter
        for letter, text in texts.items()
        if text
        and (bare == text or (said[:1] == letter and _begins_with(said[1:], text)))
        and not (said[:1] == letter and _REJECTED_OPTION.match(_skip_option(said[1:_NEXT], text)))
    ]
    return found[0] if len(found) == 1 else ""


def _begins_with(rest: str, option: str) -> bool:
    """Return whether the text after a letter is its option's text, as whole words."""
    told = _strip_signs(rest)
    behind = told[len(option) : len(option) + 1]
    return told.startswith(option) and not _WORD_SIGN.match(rest) and not _WORD_SIGN.match(behind)


def _strip_signs(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_SIGNS).casefold()
