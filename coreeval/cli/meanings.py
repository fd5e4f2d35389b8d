"""How a run is put into words on a terminal: its outcomes, and which roles rules played."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from coreeval.meanings import OUTCOMES

if TYPE_CHECKING:
    from coreeval.releases.manifest import Manifest


def outcome_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each outcome that occurred: name, number, meaning."""
    for name, meaning in OUTCOMES.items():
        if counts.get(name):
            yield f"  {name:<20}{counts[name]:>8}   {meaning}"


def control_lines(counts: Mapping[str, int] | None) -> Iterator[str]:
    """Yield how far the pass is that writes the control arm, once it has begun."""
    if counts and counts["total"]:
        ended = counts["total"] - counts["pending"]
        yield f"control arm: {ended} of {counts['total']} samples have ended"
        yield from outcome_lines(counts)


def offline_roles(manifest: "Manifest") -> list[str]:
    """Return the roles that rules play in a run."""
    from coreeval.config import ModelsConfig

    return list(ModelsConfig.model_validate(manifest.models).rule_based_roles)


def offline_note(roles: list[str]) -> list[str]:
    """Return a line saying that rules played these roles; none if a model played them all."""
    from coreeval.releases.live import ROLES

    who = "every role" if len(roles) == len(ROLES) else ", ".join(roles)
    return [f"offline: {who} played by rules, which show the workings, not a model"] * bool(roles)
