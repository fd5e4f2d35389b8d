"""What reading the files came to, as the manifest keeps it."""

from coreeval.schema import Precision, Value


class FileRead(Value):
    """One file that was read."""

    name: str
    kind: str
    md5: str
    rows: int
    articles: int
    """Rows that were articles, before duplicates are joined and titles screened."""
    bad: dict[str, int] = {}
    """Rows that were none, by reason."""


class StoreStats(Value):
    """What the store was made of; rows = bad + duplicates + dropped + articles."""

    fingerprint: str
    files: tuple[FileRead, ...]
    ignored: dict[str, str] = {}
    """Files in the folder that hold no articles, and why they were left out."""
    rows: int
    bad: dict[str, int] = {}
    duplicates: int
    """Articles that another row with the same canonical URL already told."""
    dropped: dict[str, int] = {}
    """Articles not offered as evidence: language and the screen, by reason."""
    articles: int
    clusters: int
    """Groups of two or more kept articles that tell the same event."""
    precision: dict[Precision, int] = {}
    """How many kept articles know their publication time how well."""
