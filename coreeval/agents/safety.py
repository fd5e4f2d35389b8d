"""Restrictions on real people, set by a benchmark's owner: takedown list, policies, screening.

Published data must never use a name or a piece of evidence on the takedown list (pilot §4.8). A
sample's policy is the strictest that its flags and our own word list require.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from coreeval.agents.name_finder import NameFinder, fold_letters, is_unspaced
from coreeval.agents.text.language_checks import SAFETY_LISTS
from coreeval.agents.text.words import normalise
from coreeval.config.user_files import (
    MOST_DATA_BYTES,
    describe_unreadable,
    read_text,
)
from coreeval.errors import ConfigError
from coreeval.languages import ENGLISH
from coreeval.schema import Evidence, Extraction, Flag, Policy, Sample

_ID = re.compile(r"[0-9a-f]{16}")
FEWEST_LETTERS = 3
"""The fewest letters of a listed name: a shorter one is a mistake that would exclude half of the
news. Chinese and Japanese names may have one letter less."""


@dataclass(frozen=True)
class Takedown:
    """The names and evidence ids that must not be published."""

    names: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()

    def forbids(self, item: Evidence) -> bool:
        """Return whether a piece of evidence is listed or contains a listed name."""
        told = (item.title, item.snippet, item.url, *(entity.name for entity in item.entities))
        return item.id in self.ids or any(self.names_in(" | ".join(told)))

    def names_in(self, text: str) -> Iterator[str]:
        """Yield the listed names in a text, in any spelling."""
        return (name for name, finder in self._finders if finder.finds(text))

    def find_new_names(self, original: Iterable[str], texts: Iterable[str]) -> list[str]:
        """Return the listed names in new texts that no text of the original has."""
        found = list(self.names_in(" | ".join(texts)))
        known = set(self.names_in(" | ".join(original))) if found else set[str]()
        return [name for name in found if name not in known]

    @property
    def fingerprint(self) -> str:
        """Hash of the entries, regardless of their order; empty for an empty list."""
        entries = sorted({*map(fold_name, self.names), *self.ids})
        return hashlib.sha256("\n".join(entries).encode()).hexdigest() if entries else ""

    def __len__(self) -> int:
        return len(self.names) + len(self.ids)

    @cached_property
    def _finders(self) -> list[tuple[str, NameFinder]]:
        return [(name, NameFinder([name])) for name in self.names]


EMPTY_TAKEDOWN = Takedown()


def load_takedown(path: Path) -> Takedown:
    """Read a list with one name or evidence id per line; `#` begins a comment.

    Raises:
        ConfigError: the file cannot be read, or a line is neither a name nor an id.
    """
    try:
        lines = read_text(path, most_bytes=MOST_DATA_BYTES).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the takedown list cannot be read: {describe_unreadable(error)}",
            where=str(path),
            hint="knowledge.takedown must be a UTF-8 text file, one name or evidence id per line",
        ) from None
    return build_takedown(_read_entries(lines, path))


def load_active_takedown(listed: Iterable[str], *own: Path) -> Takedown:
    """Return the lists that a config names, merged with those of its workspaces.

    Args:
        listed: The files that the config names.
        own: The lists of workspaces, which may be missing.

    Raises:
        ConfigError: one of them cannot be read.
    """
    files = [*map(Path, listed), *own]
    named = [load_takedown(file) for file in files if file not in own or file.exists()]
    return build_takedown(entry for each in named for entry in (*each.names, *sorted(each.ids)))


def build_takedown(entries: Iterable[str]) -> Takedown:
    """Build a list from entries."""
    kept = list(dict.fromkeys(entries))
    ids = frozenset(entry for entry in kept if _ID.fullmatch(entry))
    return Takedown(tuple(entry for entry in kept if entry not in ids), ids)


def _read_entries(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        entry = " ".join(line.partition("#")[0].split())
        if entry and not is_long_enough(entry):
            raise ConfigError(
                f"{entry!r} is neither a name nor an evidence id",
                where=f"{path}, line {number}",
                hint="a name has at least three letters (two in Chinese or Japanese), an id has 16 "
                "hexadecimal digits",
            )
        if entry:
            yield entry


def is_long_enough(name: str) -> bool:
    """Return whether a name has enough letters to identify one person."""
    letters = [letter for letter in name if letter.isalnum()]
    unspaced = any(map(is_unspaced, letters))
    return len(letters) >= FEWEST_LETTERS - unspaced


def fold_name(text: str) -> str:
    """Normalise a name as `NameFinder` does: no case, accents or strokes, single spaces."""
    return " ".join(fold_letters(normalise(text)).split())


DEFAULT_POLICY: Mapping[Flag, Policy] = MappingProxyType(
    {
        "abuse": "neutral_only",
        "self_harm": "semantic_only",
        "protected_group": "semantic_only",
        "crime_or_accusation": "neutral_only",
        "death_or_illness": "neutral_only",
        "sexual_violence": "semantic_only",
        "minor": "neutral_only",
        "private_person": "neutral_only",
        "quotation": "allow",
    }
)
"""The policy for each flag (pilot §4). A protected group counts only in hostile texts."""
STRICTEST: tuple[Policy, ...] = ("skip", "semantic_only", "neutral_only", "allow")


@dataclass(frozen=True, kw_only=True)
class SafetyRules:
    """Safety settings that apply to every sample of a run."""

    policy: Mapping[Flag, Policy] = field(default_factory=lambda: DEFAULT_POLICY)
    takedown: Takedown = EMPTY_TAKEDOWN


def choose_strictest(policies: set[Policy]) -> Policy:
    """Return the strictest policy; without policies, everything is allowed."""
    return min(policies, key=STRICTEST.index, default="allow")


_GROUP = (
    r"(?:muslims?|jews?|christians?|catholics?|mormons?|hindus?|sikhs?|atheists|blacks?|whites|"
    r"black people|white people|asians?|mexicans?|arabs?|africans|immigrants?|migrants?|refugees?|"
    r"gays?|lesbians?|homosexuals?|transgenders?|trans people|women|feminists|gypsies|disabled "
    r"people)"
)
_HOSTILE = (
    r"(?:animals|vermin|scum|filth|filthy|savages?|subhuman|parasites?|disgusting|inferior|evil|"
    r"terrorists|rapists|thugs|trash|a plague|a cancer|a disease|all the same|criminals|retarded|"
    r"less intelligent)"
)
_FLAG_PATTERNS: Mapping[Flag, tuple[str, ...]] = MappingProxyType(
    {
        "self_harm": (
            r"\b(?:kill(?:ing|ed)?|hang(?:ing|ed)?|cut(?:ting)?|harm(?:ing|ed)?) "
            r"(?:myself|yourself|himself|herself|themselves|urself)\b"
            r"(?! (?:laughing|on|short|shaving|off|some|a) ?)",
            r"\bself[ -]?harm(?:ing)?\b",
            r"\b(?:want|wanna|wanted) (?:to )?die\b(?!,? (?:of|from|laughing|for))",
            r"\b(?:end|ending|take|taking|took) (?:my|your|his|her|their) own li(?:fe|ves)\b",
            r"\bend(?:ing)? my life\b",
            r"#\w*(?:killmyself|wanttodie|wannadie|endmylife)\w*",
            r"(?<!political )(?<!career )(?<!economic )(?<!commercial )(?<!social )"
            r"\bsuicid(?:e|al)\b(?! (?:squad|bomb|blast|attack|vest|belt|mission|car|truck))",
        ),
        "sexual_violence": (
            r"\b(?:gang[ -]?)?rap(?:e|ed|es|ing|ists?)\b(?! seed)(?! oil)",
            r"\bsexual(?:ly)? (?:assault|abus|violen|molest|exploit)\w*",
            r"\bmolest(?:ed|er|ers|ing|ation)\b",
            r"\b(?:child porn\w*|paedophil\w*|pedophil\w*)",
            r"\bsex (?:offenders?|abuse|crimes?|slaves?|traffick\w+)\b",
        ),
        "protected_group": (
            r"\b(?:nigg(?:er|ers)|fag(?:got|gots|s)|kikes?|spics?|ragheads?|towelheads?|wetbacks?|"
            r"trann(?:y|ies)|paki(?:s)?)\b",
            rf"\b{_GROUP}\b (?:\w+ )?(?:are|r) (?!not )(?:\w+ ){{0,2}}{_HOSTILE}\b",
            rf"\b(?:hate|despise|kill|exterminate|deport|ban) (?:all |these |those |the )?"
            rf"(?:fucking |damn |stupid |dirty )?{_GROUP}\b(?!')",
            rf"\ball {_GROUP} (?:should|must|need to|deserve to|have to) "
            r"(?:die|leave|be (?:killed|deported|banned|shot))\b",
        ),
    }
)
_HOSTILE_WORDS = re.compile(rf"\b(?:hate|{_HOSTILE})\b", re.IGNORECASE)


@dataclass(frozen=True)
class ScreenResult:
    """The policy for a sample, and the reason for it."""

    policy: Policy
    reason: str = ""
    """The decisive flag, with the words that raised it; empty if everything is allowed."""


def screen_sample(
    sample: Sample,
    extraction: Extraction,
    policy: Mapping[Flag, Policy],
    language: str = ENGLISH,
) -> ScreenResult:
    """Return the strictest policy that a sample's flags require.

    Both the extractor's flags and our own word lists are used, so that a sample passes neither
    because of a careless extractor nor because of an unusual wording. The lists are English: in
    other languages every flag of the extractor counts.
    """
    known = SAFETY_LISTS.knows(language)
    found = [*_extractor_flags(sample, extraction, hostile_only=known)]
    if known:
        found += _word_list_flags(sample)
    asked = choose_strictest({policy[flag] for flag, _ in found})
    reasons = (
        f"{flag}: {span!r}" if span else flag for flag, span in found if policy[flag] == asked
    )
    return ScreenResult(asked, "" if asked == "allow" else next(reasons, ""))


def _extractor_flags(
    sample: Sample, extraction: Extraction, *, hostile_only: bool
) -> Iterator[tuple[Flag, str]]:
    """Yield the extractor's flags; `hostile_only` omits a group that is only mentioned."""
    flags = {sensitive.flag for sensitive in extraction.sensitive}
    for sensitive in extraction.sensitive:
        harmless = sensitive.flag == "protected_group" and not _is_hostile(sample, flags)
        if not (hostile_only and harmless):
            yield sensitive.flag, sensitive.span


def _is_hostile(sample: Sample, flags: set[Flag]) -> bool:
    """Return whether a text is hostile to a protected group, not only about it."""
    return "abuse" in flags or any(
        _HOSTILE_WORDS.search(normalise(text)) for text in sample.fields.values()
    )


def _word_list_flags(sample: Sample) -> Iterator[tuple[Flag, str]]:
    for text in sample.fields.values():
        plain = normalise(text)
        for flag, patterns in _FLAG_PATTERNS.items():
            hits = (re.search(pattern, plain, re.IGNORECASE) for pattern in patterns)
            yield from ((flag, hit.group()) for hit in hits if hit)
