"""docs/security.md says where each promise is kept and tested: these places exist."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_PLACE = re.compile(r"`((?:tests/)?[a-z_]+(?:/[a-z_]+)+)`")


def test_the_places_of_the_threat_model_are_there() -> None:
    root = PAGE.parents[1]
    places = set(_PLACE.findall(PAGE.read_text(encoding="utf-8")))
    assert len(places) > 40
    paths = {place if place.startswith("tests/") else f"coreeval/{place}" for place in places}
    missing = {p for p in paths if not (root / p).is_dir() and not (root / f"{p}.py").is_file()}
    assert not missing
