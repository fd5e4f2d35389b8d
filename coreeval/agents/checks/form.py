"""Checks of a composed text's form: locks, marks, length, overlap, language, voice and spacing.

The voice checks find signs that a text was made from a headline (pilot §9). `restore_spacing` gives
a text its task's spacing, since an arm must not be recognisable by its spaces (pilot §1).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from coreeval.agents.checks.context import CheckContext
from coreeval.agents.defects import form_defect
from coreeval.agents.edits import count_shared_words, keeps_lock, length_limits
from coreeval.agents.kinds import item_kind
from coreeval.agents.text import voice
from coreeval.agents.text.language_checks import HEADLINE_STYLE, LANGUAGE
from coreeval.agents.text.language_checks import PROFANITY as PROFANITY_CHECK
from coreeval.agents.text.lexicon import PROFANITY
from coreeval.agents.text.vocabulary import FEWEST_WORDS, recognise_language
from coreeval.agents.text.words import (
    MOST_SPANS,
    count_marker,
    count_words,
    find_content_words,
    find_emoji,
    find_hashtags,
    find_mentions,
    find_quotations,
    find_target,
    find_urls,
    is_same_text,
    mask_spans,
    measure_containment,
    measure_latin_share,
    normalise,
    remove_marks,
    split_words,
)
from coreeval.languages import ENGLISH
from coreeval.schema import Defect, Task
from coreeval.tools.gdelt.words import looks_english


def check_difference(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if a text differs from the original only in case and punctuation."""
    if all(is_same_text(old, new) for _, old, new in case.pairs()):
        yield form_defect("differs", "the text is the original unchanged")


def check_locks(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each locked span that is not in the text word for word."""
    for lock in case.request.extraction.locked:
        text = case.fields.get(lock.field)
        if text is not None and not keeps_lock(text, lock):
            yield form_defect(
                "lock", f"{lock.field} must keep {lock.span!r} word for word ({lock.why})"
            )


def check_markers(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the number of markers that carry the label has changed."""
    for name, old, new in case.pairs():
        for marker in case.task.markers:
            wanted, found = count_marker(old, marker), count_marker(new, marker)
            if wanted != found:
                yield form_defect(
                    "markers", f"{name} has {marker} {found} times instead of {wanted}"
                )


def check_mentions(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the @names or their counts differ from the original."""
    for name, old, new in case.form_pairs():
        wanted, found = Counter(find_mentions(old)), Counter(find_mentions(new))
        if wanted != found:
            odd = ", ".join(sorted((wanted - found) + (found - wanted)))
            yield form_defect("mentions", f"{name} has other @names than the original: {odd}")


def check_hashtags(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if a text has too many more hashtags than the original.

    It may have fewer: one that was about the old subject looks odd beside the new one.
    """
    for name, old, new in case.form_pairs():
        most, found = len(find_hashtags(old)) + case.limits.hashtags, len(find_hashtags(new))
        if found > most:
            yield form_defect("hashtags", f"{name} has {found} hashtags; it may have {most}")


def check_emoji(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the number of emoji differs too much from the original."""
    for name, old, new in case.form_pairs():
        wanted, found = len(find_emoji(old)), len(find_emoji(new))
        if abs(wanted - found) > case.limits.emoji:
            yield form_defect("emoji", f"{name} has {found} emoji; the original has {wanted}")


def check_target(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect unless a stance's target is named exactly if the original named it."""
    for name, old, new in case.pairs():
        before = find_target(old, case.task.target_terms)
        after = find_target(new, case.task.target_terms)
        if before and not after:
            yield form_defect("target", f"{name} must still name the target, as {before[0]!r}")
        if after and not before:
            yield form_defect(
                "target", f"{name} names the target ({after[0]!r}); the original does not"
            )


def check_length(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each field whose number of words differs too much from the original."""
    for name, old, new in case.pairs():
        request = case.request
        wanted = length_limits(case.task, old, request.plan, request.evidence)
        found = count_words(new)
        if not wanted.fewest <= found <= wanted.most:
            between = f"between {wanted.fewest} and {wanted.most} are wanted"
            yield form_defect("length", f"{name} has {found} words; {between}")


def check_shared_words(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the fields of a pair share many more or fewer words than the original's.

    The more words a hypothesis shares with its premise, the easier its label is to find.
    """
    wanted = count_shared_words(case.task, case.request.sample.fields)
    found = count_shared_words(case.task, case.fields)
    if wanted is None or found is None:
        return
    slack = max(case.limits.shared_words * found.second, case.limits.shared_words_free)
    if abs(found.both - wanted.share * found.second) > slack:
        first, second = case.task.fields
        yield form_defect(
            "shared_words",
            f"{found.both} of the {found.second} content words of {second} are in {first}; in the "
            f"original {wanted.both} of {wanted.second} are: come closer to that",
        )


def check_original_copied(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if too many word trigrams outside locks are copied from the original.

    Otherwise memory of the original would still help. The form of a question may stay.
    """
    limits, kind = case.limits, item_kind(case.task)
    for name, _, new in case.pairs():
        locks = case.locked_spans(name)
        in_form = kind.keeps_form and name in kind.lockable(case.task)
        most = limits.copied_form if in_form else limits.copied_original
        whole = " \x00 ".join(
            mask_spans(old, case.locked_spans(other)) for other, old, _ in case.pairs()
        )
        share = measure_containment(mask_spans(new, locks), whole, fewest=limits.judged_trigrams)
        if share > most:
            yield form_defect(
                "copied_original", f"{name} shares too many phrases with the original text"
            )


def check_headline_copied(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each headline that is copied almost whole."""
    limits = case.limits
    for name, _, new in case.pairs():
        own = mask_spans(new, case.locked_spans(name))
        for item in case.request.evidence:
            share = measure_containment(own, item.title, fewest=limits.judged_trigrams)
            if share > limits.copied_title:
                run = _quote_run(voice.find_shared_run(own, item.title))
                yield form_defect(
                    "copied_headline",
                    f"{name} has {share:.0%} of its phrases from a headline, such as {run!r}",
                )


MOST_QUOTED = 16
"""The most words that a message shows of a copied run (own choice: enough to find it)."""


def _quote_run(run: Sequence[str]) -> str:
    """Return a run of words for a message, shortened if it is long."""
    return " ".join(run[:MOST_QUOTED]) + (" ..." if len(run) > MOST_QUOTED else "")


def check_profanity(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each coarse word that the original lacks."""
    if not PROFANITY_CHECK.knows(case.task.language):
        return
    before = {word for _, old, _ in case.written_pairs() for word in split_words(old)}
    for name, _, new in case.written_pairs():
        gained = sorted((set(split_words(new)) & PROFANITY) - before)
        if gained:
            yield form_defect(
                "profanity", f"{name} has a coarse word of its own: {', '.join(gained)}"
            )


def check_headline_run(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each long run of words in the order of a headline.

    Names, figures and quotations do not count.
    """
    for name, _, new in case.pairs():
        quotations = dict.fromkeys(find_quotations(new))
        kept = [*case.locked_spans(name), *islice(quotations, MOST_SPANS)]
        own = mask_spans(new, kept)
        names = set(split_words(" ".join(re.findall(r"\b[A-Z][\w'-]*", new))))
        for item in case.request.evidence:
            run = voice.find_shared_run(own, item.title)
            fixed = [word for word in run if word in names or word[0].isdigit()]
            if len(run) - len(fixed) > case.limits.headline_run:
                yield form_defect(
                    "headline_run",
                    f"{name} repeats {len(run)} words of a headline: {_quote_run(run)!r}; "
                    "say it otherwise",
                )


def check_figures(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if a personal text without figures gains more than one."""
    if case.task.text_kind != "tweet":
        return
    for name, old, new in case.pairs():
        gained = voice.find_figures(new, case.task.language)
        before = voice.find_figures(old, case.task.language)
        if not before and len(gained) > case.limits.figures:
            told = ", ".join(gained)
            yield form_defect(
                "figures", f"{name} has {told}; its author would not write so many figures"
            )


def check_machine_marks(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each dash, semicolon or typographic sign foreign to the original.

    A dash within a name that the news spells with it is none.
    """
    news = "\n".join(f"{one.title}\n{one.snippet}" for one in case.request.evidence)
    names = set(_DASHED.findall(news))
    for name, old, new in case.pairs():
        own = _DASHED.sub(lambda found: "" if found[0] in names else found[0], new)
        gained = sorted(set(voice.find_machine_marks(own)) - set(voice.find_machine_marks(old)))
        if gained:
            yield form_defect(
                "marks", f"{name} has {' '.join(gained)}, which its author does not use"
            )


def check_habits(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the author's habit of omitting capitals or the final stop is lost."""
    if case.task.text_kind != "tweet":
        return
    for name, old, new in case.pairs():
        if voice.starts_lower(old) and voice.starts_capital(new):
            yield form_defect("habits", f"{name} starts with a capital; its author does not")
        if voice.ends_open(old) and voice.ends_in_stop(new):
            yield form_defect("habits", f"{name} ends in a full stop; its author leaves it out")


def check_line_breaks(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if line breaks are written differently or their number differs too much."""
    for name, old, new in case.pairs():
        wanted, found = voice.count_line_breaks(old), voice.count_line_breaks(new)
        if abs(wanted - found) > case.limits.line_breaks or (not wanted and found):
            yield form_defect(
                "line_breaks", f"{name} has {found} written line breaks; {wanted} before"
            )


def check_headline_style(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for a string of nouns if the original is written in sentences."""
    if not HEADLINE_STYLE.knows(case.task.language):
        return
    for name, old, new in case.pairs():
        share, before = voice.measure_function_words(new), voice.measure_function_words(old)
        low = share < case.limits.function_words and share < before - case.limits.function_fall
        if low and len(find_content_words(voice.plain_text(new))) >= case.limits.style_words:
            yield form_defect(
                "headline_style", f"{name} reads like a headline; write it as one speaks"
            )


_DASHED = re.compile("(?<!\\w)[^\\W\\d_]+[\u2013\u2014][^\\W\\d_]+")
"""Two words joined by a dash, such as the names of two cities."""
_INSTRUCTIONS = re.compile(
    r"\bas an ai\b|\blanguage model\b|\b(?:here is|here's|below is) (?:the|a|an|your) "
    r"(?:\w+ )?(?:rewritten|updated|new|revised|composed)\b|\bi (?:cannot|can't|am unable to) "
    r"(?:assist|comply|help with|fulfil)|\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?"
    r"(?:the |your |these |previous |prior |above |earlier )+(?:instruction|rule|prompt|text)s?\b|"
    r"\bsystem prompt\b|\bbefore_triples?\b|\bafter_triples?\b|"
    r"\bevidence[_ ]ids?\b|\bused_replacements\b|\blocked spans?\b|\bfacts_supported\b|"
    r"\blabel_carrier\b|\bnone_fits\b|\{\"|\"\}|```|\{\{|<\|\w+\|>|\[/?INST\]|"
    r"</?(?:news|evidence|sample|text|item|plan|drafts|feedback|script|img|system)\b|<!--|"
    r"(?<!=)={3,} ?\w+ ?={3,}|^(?:system|assistant|user|human) ?:|"
    r"\[(?:name|place|date|company|number|insert [^\]]+)\]|"
    r"\$\{?(?:target|text|sentence\d|labels|item|label|task|line)\b",
    re.IGNORECASE,
)
_ANNOUNCES_LABEL = (
    r"\b(?:label|answer|class|category|verdict|emotion|stance)\b\W{0,3}(?:is|=|:|as)?\W{0,3}"
)


def check_script(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if a text in Latin letters changes its script."""
    limit = case.limits.latin_share
    for name, old, new in case.pairs():
        if measure_latin_share(old) >= limit > measure_latin_share(new):
            yield form_defect("language", f"{name} is not in the language of the original")


def check_language(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if a text is no longer in its language, judged by its function words."""
    language = case.task.language
    if not LANGUAGE.knows(language):
        return
    for name, old, new in case.pairs():
        plain = remove_marks(new)
        told = (
            len(split_words(plain)) >= FEWEST_WORDS
            and measure_latin_share(new) >= case.limits.latin_share
        )
        if told and _may_be(language, remove_marks(old)) and not _may_be(language, plain):
            yield form_defect("language", f"{name} is not in the language of the original")


def _may_be(language: str, text: str) -> bool:
    """Return whether there is no sign that a text is in another language."""
    if language == ENGLISH:
        return looks_english(text)
    return recognise_language(split_words(text)) in (language, None)


def check_instructions(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for a preamble, refusal, placeholder or piece of a prompt in the text."""
    for name, old, new in case.written_pairs():
        found = _INSTRUCTIONS.search(normalise(new))
        if found and not _INSTRUCTIONS.search(normalise(old)):
            yield form_defect(
                "instructions", f"{name} holds {found.group()!r}; write the text alone"
            )


def check_label_announced(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the label is announced or is the whole text."""
    names = item_kind(case.task).announced(case.task)
    if not names:
        return
    either = "|".join(re.escape(name) for name in names)
    announced = re.compile(rf"{_ANNOUNCES_LABEL}(?:{either})\b", re.IGNORECASE)
    for name, old, new in case.pairs():
        alone = new.strip(" .!\"'#").casefold() in {label.casefold() for label in names}
        if (found := announced.search(new)) and not announced.search(old):
            yield form_defect("label_told", f"{name} announces a label: {found.group()!r}")
        elif alone:
            yield form_defect("label_told", f"{name} is nothing but a label")


def check_links(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each link that the original does not have."""
    known = {url for _, old, _ in case.written_pairs() for url in find_urls(old)}
    for name, _, new in case.written_pairs():
        for url in sorted(set(find_urls(new)) - known):
            yield form_defect("address", f"{name} has a link of its own: {url!r}")


def check_hidden_characters(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each control, direction or invisible character new to the text."""
    known = {sign for _, old, _ in case.written_pairs() for sign in old}
    for name, _, new in case.written_pairs():
        hidden = sorted({sign for sign in new if _is_hidden(sign)} - known)
        if hidden:
            codes = ", ".join(f"U+{ord(sign):04X}" for sign in hidden)
            yield form_defect("hidden_signs", f"{name} holds signs that nobody sees: {codes}")


def _is_hidden(sign: str) -> bool:
    """Return whether a character is invisible; joiners and selectors belong to emoji."""
    joins = sign in "\u200d\ufe0f\ufe0e\n\t"
    return unicodedata.category(sign) in {"Cc", "Cf", "Co", "Cs"} and not joins


_CURLY_APOSTROPHE = re.compile(r"(?<=\w)\u2019(?=\w)")
_CURLY_QUOTE = re.compile(r"\u201c(?=\S)|(?<=\S)\u201d")
_SEPARATE_SIGNS = re.compile(
    r"""(&(?:\#\d+|[a-z]{2,8});)|([;:?!"()\[\]/$%&\u00a3\u20ac]|''|(?<!\.)\.{3,})"""
)
_COMMA = re.compile(r"(?<!\d),|,(?!\d)")
_CLITIC = re.compile(r"(?<=\w)'(?=[^\W\d_]|\s|\.(?:\s|$)|$)")
_ABBREVIATION = re.compile(
    r"(?:[A-Z]\w+\.-)?(?:Mr|Mrs|Ms|Dr|Sr|Jr|St|Gov|Sen|Rep|Gen|Sgt|Lt|Col|Capt|Cpl|Maj|Brig|Pfc|Pvt|Adm|Prof|Rev|Corp|Co|Inc|Ltd|No|Ave|Hwy|vs|"
    r"Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|[A-Z])\.",
)
_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}")
_QUOTE = '"'


_BLANK_LINES = re.compile(r"\n{3,}")


def restore_spacing(task: Task, text: str) -> str:
    """Return a text spaced like the task's texts, on one line unless their kind has several.

    Tokenised tasks separate punctuation and the text after an apostrophe (`the nation 's`); the
    exporter adds the trailing space of tweets, because the loaders strip it.
    """
    if not item_kind(task).keeps_lines:
        return _space_line(task, text)
    lines = (_space_line(task, line) for line in text.replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip("\n")


def _space_line(task: Task, text: str) -> str:
    return _tokenise(text) if task.tokenised else " ".join(text.split())


def _tokenise(text: str) -> str:
    plain = _CURLY_QUOTE.sub(_QUOTE, _CURLY_APOSTROPHE.sub("'", text))
    spaced = _CLITIC.sub(" '", _COMMA.sub(" , ", _SEPARATE_SIGNS.sub(_separate_sign, plain)))
    tokens = spaced.split()
    following = [*tokens[1:], ""]
    return " ".join(map(_separate_stop, tokens, following))


def _separate_sign(found: re.Match[str]) -> str:
    """Separate a sign with spaces; an entity such as `&amp;` counts as one word."""
    return found[1] or f" {found[2]} "


def _separate_stop(token: str, following: str) -> str:
    """Separate a full stop with a space if it ends a sentence, not an abbreviation."""
    word = token.removesuffix(".")
    if token == word or not word or word.endswith(".") or _ACRONYM.fullmatch(token):
        return token
    if not following:
        return f"{word} ."
    ends = following[0].isupper() or following == _QUOTE
    return token if _ABBREVIATION.fullmatch(token) or not ends else f"{word} ."
