"""GKG 2.1: 27 tab-separated columns without header or quoting (research: gdelt §2)."""

DATE, COLLECTION, URL = 1, 2, 4
LOCATIONS, PERSONS, ORGANISATIONS, ALL_NAMES = 10, 12, 14, 23
TRANSLATION, EXTRAS = 25, 26
WEB = "1"
"""The source collection whose documents are web pages; the others are citations."""
PROMINENT_OFFSET = 1500
PROMINENT_MENTIONS = 2
"""A name counts if it stands this early in the page or is repeated (research: gdelt §5)."""
