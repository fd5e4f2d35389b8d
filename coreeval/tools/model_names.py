"""Names of models: which spellings mean the same one, and what is near an unknown name."""

import difflib
import re
from collections.abc import Iterable

NAMED = 3
"""Names that are offered in place of an unknown one."""
_ALIKE = 0.6
"""Share of like characters from which two names are taken for neighbours."""
_PINNED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}(?:-\d{2})?|latest|preview)$")
"""What a name ends with that pins a model to a version."""
_DATED = re.compile(r"(.+)[-@](20\d{2})-?([01]\d)(?:-?([0-3]\d))?")


def bare_name(model: str) -> str:
    """Return a model's name without its provider and its host, in small letters."""
    provider, colon, name = model.partition(":")
    return (name if colon else provider).rpartition("/")[2].lower()


def undated(name: str) -> str:
    """Return a name without what pins it to a version."""
    return _PINNED.sub("", name)


def split_date(name: str) -> tuple[str, str]:
    """Return a name without the date at its end, and that date: a day, a month, or nothing."""
    found = _DATED.fullmatch(name)
    if found is None:
        return name, ""
    base, *parts = found.groups()
    return base, "-".join(part for part in parts if part)


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that a name may have been meant for, the likeliest first.

    A dated spelling goes before all others: `openai:gpt-4.1-2025-04-14` is `openai:gpt-4.1`. Who
    serves a model does not matter.
    """
    wanted = bare_name(name)
    by_bare = {bare_name(each): each for each in known}
    plain = undated(wanted)
    close = difflib.get_close_matches(wanted, by_bare, n=NAMED, cutoff=_ALIKE)
    begun = [bare for bare in by_bare if plain.startswith(f"{bare}-")]
    ordered = [plain, *close, *sorted(begun, key=len, reverse=True)]
    found = dict.fromkeys(by_bare[bare] for bare in ordered if bare in by_bare)
    return list(found)[:NAMED]
