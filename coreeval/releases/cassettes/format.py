"""The lines of a cassette, and writing them: the same content gives the same bytes everywhere.

A cassette is gzip of JSON Lines. The head comes first and vouches for all that follows.
"""

import gzip
import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from coreeval.runs.manifest import Manifest
from coreeval.schema import BadRow, Evidence, NamedEntity, Result, RoleName, Rung, Sample, Value
from coreeval.tools.files import replacing

FORMAT: Literal["coreeval cassette"] = "coreeval cassette"
VERSION: Literal[1] = 1
"""Of the format; another one is not read."""
CassettePass = Literal["refresh", "control"]
"""The run's two passes through the samples, by the names of their stages."""


class CassetteOrigin(Value):
    """What the run was made with, as far as bytes or rules depend on it."""

    coreeval: str
    python: str
    pyarrow: str
    spacy: str = ""
    """Empty if no role is played by rules."""


class CassetteFile(Value):
    """One Parquet file of the run's dataset."""

    name: Annotated[
        str, Field(pattern=r"^(updated|semantic|control|provenance)/[^/\\\x00]+\.parquet$")
    ]
    rows: int
    sha256: str
    columns: tuple[str, ...]


class TrainDigest(Value):
    """The train samples that a label judge learnt from."""

    count: int
    sha256: str
    """Over the sha256 of the texts of each."""


class CassetteSettings(Value):
    """The part of a config that decides the dataset; paths are cut to names."""

    name: str
    task: str
    dataset: dict[str, Any]
    knowledge: dict[str, Any]
    run: dict[str, Any]
    safety: dict[str, Any]


class CassetteHead(Value):
    """What a cassette says of itself."""

    format: Literal["coreeval cassette"] = FORMAT
    version: Literal[1] = VERSION
    made_with: CassetteOrigin
    run: Manifest
    """The run's manifest without money, times, places of a machine and what the models were."""
    config: CassetteSettings
    models: dict[str, dict[str, Any]]
    """By role who played it and with which parameters; no name of a key, no text beside them."""
    texts: bool
    """Whether the samples' own texts are in it."""
    snippet_chars: int | None
    """Most characters of a snippet: what models were shown of it; None if rules saw all."""
    learnt: TrainDigest | None = None
    files: tuple[CassetteFile, ...]
    lines: dict[str, int]
    """How many lines there are of each kind."""
    bytes: int
    """Of the lines after the head, unpacked."""
    sha256: str
    """Likewise."""


class PromptLine(Value):
    """The wording of a role."""

    kind: Literal["prompt"] = "prompt"
    role: RoleName
    text: str


class TaskLine(Value):
    """The task file, where it is a user's own."""

    kind: Literal["task"] = "task"
    yaml: str


class TakedownLine(Value):
    """The names and ids that nothing may rest on."""

    kind: Literal["takedown"] = "takedown"
    entries: tuple[str, ...]


class NameLine(Value):
    """A name that the news mention, for roles that are played by rules."""

    kind: Literal["name"] = "name"
    stage: CassettePass
    entity: NamedEntity


class TrainLine(Value):
    """A labelled sample that a label judge learnt from."""

    kind: Literal["train"] = "train"
    sample: Sample


class BadRowLine(Value):
    """A line of the benchmark that was no sample."""

    kind: Literal["bad_row"] = "bad_row"
    row: BadRow


class QuotedEvidence(Value):
    """What a release says of evidence (`Excerpt`)."""

    evidence: Evidence
    snippet_sha256: str


class FinalResult(Value):
    """A result that a replay takes as it is: kept from a release, or of a sample that failed."""

    result: Result
    excerpts: tuple[QuotedEvidence, ...] = ()


class SampleLine(Value):
    """A sample of the benchmark, in the benchmark's order."""

    kind: Literal["sample"] = "sample"
    sample: Sample
    """Without texts where the cassette has none."""
    texts_sha256: str
    """See `texts_sha256` of releases."""
    stated: FinalResult | None = None
    control: FinalResult | None = None
    """Likewise, in the pass that writes the control arm."""


class EvidenceLine(Value):
    """A piece of news that samples were offered."""

    kind: Literal["evidence"] = "evidence"
    stage: CassettePass
    evidence: Evidence


class NewsQuery(Value):
    """What was asked of the news, and how much there was."""

    text: str
    rung: Rung
    found: int
    why_none: str


class OfferLine(Value):
    """What a sample was offered when it looked for news."""

    kind: Literal["offer"] = "offer"
    stage: CassettePass
    sample_id: str
    attempt: int
    asked: tuple[NewsQuery, ...] | None
    """None in the record of an older version."""
    items: tuple[tuple[str, Rung], ...]
    """Ids of evidence, best first, each with the rung that found it."""


class AnswerLine(Value):
    """What a model answered in a role."""

    kind: Literal["answer"] = "answer"
    role: RoleName
    answer: dict[str, Any]
    """A line of a file for `replay:`."""


class RowLine(Value):
    """A row of a Parquet file, as digests of its cells."""

    kind: Literal["row"] = "row"
    file: str
    id: str
    cells: str
    """For each column 8 hexadecimal digits."""


CassetteLine = (
    PromptLine | TaskLine | TakedownLine | NameLine | TrainLine | BadRowLine | SampleLine
    | EvidenceLine | OfferLine | AnswerLine | RowLine
)  # fmt: skip
LINE: TypeAdapter[CassetteLine] = TypeAdapter(Annotated[CassetteLine, Field(discriminator="kind")])
KINDS: Sequence[str] = (
    "prompt", "task", "takedown", "name", "train", "bad_row", "sample", "evidence", "offer",
    "answer", "row",
)  # fmt: skip
"""In their order."""


GZIP_LEVEL = 6
"""Of gzip, its own default."""


@dataclass(frozen=True, kw_only=True)
class BodyTally:
    """What the lines after the head come to."""

    lines: dict[str, int]
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CassetteSummary:
    """A cassette that was written."""

    path: Path
    head: CassetteHead
    digest: str
    bytes: int


def write_cassette(
    path: Path, lines: Iterable[CassetteLine], head_of: Callable[[BodyTally], CassetteHead]
) -> CassetteSummary:
    """Write a cassette as one atomic replacement.

    Args:
        path: The file to write.
        lines: The lines after the head.
        head_of: Builds the head from the tally of the lines.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent) as body:
        counts, digest, size = Counter[str](), hashlib.sha256(), 0
        for line in lines:
            told = encode_line(line)
            body.write(told)
            digest.update(told)
            counts[line.kind] += 1
            size += len(told)
        ordered = {kind: counts[kind] for kind in KINDS}
        head = head_of(BodyTally(lines=ordered, bytes=size, sha256=digest.hexdigest()))
        body.seek(0)
        with (
            replacing(path) as draft,
            draft.open("wb") as file,
            gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as packed,
        ):
            packed.write(encode_line(head))
            shutil.copyfileobj(body, packed)
    return CassetteSummary(path=path, head=head, digest=hash_head(head), bytes=path.stat().st_size)


def hash_head(head: CassetteHead) -> str:
    """Return the digest of a cassette: the sha256 of its head, which covers the rest."""
    return hashlib.sha256(encode_line(head)).hexdigest()


def encode_line(line: Value) -> bytes:
    """Encode a head or line for the file, in ASCII so that any text can be written."""
    return json.dumps(line.model_dump(mode="json")).encode() + b"\n"
