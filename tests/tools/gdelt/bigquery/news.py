"""A few rows of June 2026 in GDELT's own formats."""

from datetime import UTC, datetime
from pathlib import Path

from coreeval.schema import EntityQuery, Window
from tests.tools.gdelt.file_samples import gal_line, gkg_line, write

JUNE = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))
MANY = ";".join(f"Filler Name{at},{2000 + at}" for at in range(40))
GKG = (
    gkg_line(title="Ferry Board orders ten electric ferries", url="https://a.example/1",
             published="20260609100000", persons="Carla Espinoza Guti,20;John Howard,30",
             organisations="Ferry Board,5", date="20260610033000"),
    gkg_line(title="Ferry Board orders ten electric ferries today", url="https://b.example/1",
             date="20260610034500", persons="John Howard,40"),
    gkg_line(title="Rain slows harvest across the north", url="https://b.example/2026/06/20/r",
             date="20260620120000", persons="Mary Smith,9",
             locations="4#Springfield, Illinois, United States#US#USIL#IL167#39.8#-89.6#1#77"),
    gkg_line(title="AT&amp;T and Beyonc&#xE9; open a school in S&#xe3;o Paulo",
             url="https://c.example/2026/06/11/s", date="20260611120000", all_names=MANY),
    gkg_line(title="Minister names three judges to the court", url="https://d.example/old",
             published="20260301100000", persons="Mary Smith,9", date="20260612120000"),
    gkg_line(title="Seen late, and nobody says when it was written",
             url="https://d.example/undated", persons="Mary Smith,12", date="20260613120000"),
    gkg_line(title="US growth slows as the U.S. dollar rises again",
             url="https://e.example/2026/06/14/usd", date="20260614120000"),
    gkg_line(title="Trust us, it is about to get warmer again",
             url="https://e.example/2026/06/15/warm", date="20260615120000"),
    gkg_line(title="O'Brien wins \"Best Bakery\" for a third time",
             url="https://e.example/2026/06/16/bread", persons="Pat O'brien,3;Pat O'brien,90",
             date="20260616120000"),
    gkg_line(title="Le gouvernement commande dix traversiers", url="https://f.example/2026/06/16/q",
             persons="Mary Smith,12", translation="srclc:fra;eng:GT-FRA 1.0",
             date="20260616121500"),
    gkg_line(title="A citation of the radio is no page", url="BBC Monitoring", collection="2",
             persons="Mary Smith,12", date="20260616121500"),
    gkg_line(title="", url="https://g.example/2026/06/16/untitled", persons="Mary Smith,12",
             date="20260616121500"),
    gkg_line(title="Mary Smith visits the market in April", url="https://g.example/april",
             persons="Mary Smith,12", date="20260415000000", published="20260414120000"),
)  # fmt: skip
GAL = (
    gal_line("Ferry Board orders ten new electric ferries", "https://c.example/1",
             "2026-06-09T12:00:00Z", "The ships will serve the islands from autumn."),
    gal_line("Rain slows harvest across the north", "https://b.example/2026/06/20/r",
             "2026-06-20T11:00:00Z", "Farmers in Ontario wait for a dry week."),
    gal_line("Le marché attend la pluie", "https://h.example/1", "2026-06-20T11:00:00Z", "", "fr"),
)  # fmt: skip
NAMES = (
    "Ferry Board", "ferries", "John Howard", "Carla Espinoza Gutiérrez", "Mary Smith",
    "Springfield", "AT&T", "Beyonce", "Sao Paulo", "US", "O'Brien", "Pat O'Brien", "Filler Name3",
    "Nobody Atall", "harvesting", "islands", "Ontario",
)  # fmt: skip


def named(*names: str) -> list[EntityQuery]:
    """Return a query for each name; its id is the name."""
    return [EntityQuery(id=name, text=name) for name in names]


def folder_of(path: Path) -> Path:
    """Write the rows as GDELT's files."""
    path.mkdir()
    write(path / "a.gkg.csv", *GKG)
    write(path / "b.gal.json", *GAL)
    return path
