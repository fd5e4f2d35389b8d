"""Checks of a composed text's form: locks, marks, length, overlap, language."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from coreeval.agents.checks.case import Case, form
from coreeval.agents.length import length_limits
from coreeval.agents.lexicon import PROFANITY
from coreeval.agents.locks import keeps
from coreeval.agents.marks import (
    emoji,
    hashtags,
    marker_count,
    mentions,
    target_spellings,
)
from coreeval.agents.words import containment, mask, same_text, word_count, words
from coreeval.schema import Defect


def differs(case: Case) -> Iterator[Defect]:
    """A text equal to the original but for case and punctuation is no update."""
    if all(same_text(old, new) for _, old, new in case.pairs()):
        yield form("differs", "the text is the original unchanged")


def locks_kept(case: Case) -> Iterator[Defect]:
    """Locked spans survive word for word."""
    for lock in case.firm_locks:
        text = case.fields.get(lock.field)
        if text is not None and not keeps(text, lock):
            yield form("lock", f"{lock.field} must keep {lock.span!r} word for word ({lock.why})")


def markers_kept(case: Case) -> Iterator[Defect]:
    """Markers that carry the label are as many as before."""
    for name, old, new in case.pairs():
        for marker in case.task.markers:
            wanted, found = marker_count(old, marker), marker_count(new, marker)
            if wanted != found:
                yield form("markers", f"{name} has {marker} {found} times instead of {wanted}")


def mentions_kept(case: Case) -> Iterator[Defect]:
    """The same @names as often as before, and no other."""
    for name, old, new in case.pairs():
        wanted, found = Counter(mentions(old)), Counter(mentions(new))
        if wanted != found:
            odd = ", ".join(sorted((wanted - found) + (found - wanted)))
            yield form("mentions", f"{name} has other @names than the original: {odd}")


def hashtags_counted(case: Case) -> Iterator[Defect]:
    """About as many hashtags as before."""
    yield from _counted(case, "hashtags", hashtags, case.limits.hashtags)


def emoji_counted(case: Case) -> Iterator[Defect]:
    """About as many emoji as before."""
    yield from _counted(case, "emoji", emoji, case.limits.emoji)


def _counted(
    case: Case, what: str, find: Callable[[str], Sequence[str]], slack: int
) -> Iterator[Defect]:
    for name, old, new in case.pairs():
        wanted, found = len(find(old)), len(find(new))
        if abs(wanted - found) > slack:
            yield form(what, f"{name} has {found} {what}; the original has {wanted}")


def target_as_before(case: Case) -> Iterator[Defect]:
    """A stance's target is named if, and only if, the original named it."""
    for name, old, new in case.pairs():
        before = target_spellings(old, case.task.target_terms)
        after = target_spellings(new, case.task.target_terms)
        if before and not after:
            yield form("target", f"{name} must still name the target, as {before[0]!r}")
        if after and not before:
            yield form("target", f"{name} names the target ({after[0]!r}); the original does not")


def length_kept(case: Case) -> Iterator[Defect]:
    """About as many words as before, in each field."""
    for name, old, new in case.pairs():
        found, wanted = word_count(new), length_limits(case.task, old, case.brief.plan)
        if not wanted.fewest <= found <= wanted.most:
            between = f"between {wanted.fewest} and {wanted.most} are wanted"
            yield form("length", f"{name} has {found} words; {between}")


def original_not_copied(case: Case) -> Iterator[Defect]:
    """Few word trigrams of the original, locks aside: else memory of it still helps."""
    limits = case.limits
    for name, _, new in case.pairs():
        locks = case.locks(name)
        whole = " \x00 ".join(mask(old, case.locks(other)) for other, old, _ in case.pairs())
        share = containment(mask(new, locks), whole, fewest=limits.judged_trigrams)
        if share > limits.copied_original:
            yield form("copied_original", f"{name} shares too many phrases with the original text")


def headline_not_copied(case: Case) -> Iterator[Defect]:
    """No headline taken over nearly whole."""
    limits = case.limits
    for name, _, new in case.pairs():
        for item in case.brief.evidence:
            share = containment(
                mask(new, case.locks(name)), item.title, fewest=limits.judged_trigrams
            )
            if share > limits.copied_title:
                yield form("copied_headline", f"{name} repeats the headline {item.title!r}")


def no_new_profanity(case: Case) -> Iterator[Defect]:
    """No coarse word that the original lacks."""
    before = {word for _, old, _ in case.pairs() for word in words(old)}
    for name, _, new in case.pairs():
        gained = sorted((set(words(new)) & PROFANITY) - before)
        if gained:
            yield form("profanity", f"{name} has a coarse word of its own: {', '.join(gained)}")
