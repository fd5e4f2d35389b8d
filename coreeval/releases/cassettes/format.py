"""The lines of a cassette, and writing them: equal content gives equal bytes everywhere.

A cassette is gzipped JSON Lines. The first line is the head, with the digest of all other lines.
"""

import gzip
import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self, cast

from pydantic import Field, TypeAdapter, model_validator

from coreeval.prompts import PromptName
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import Cost, Manifest
from coreeval.schema import BadRow, Evidence, NamedEntity, Result, RoleName, Rung, Sample, Value
from coreeval.tools.files import replacing
from coreeval.tools.outputs import refuse_foreign_output

FORMAT: Literal["coreeval cassette"] = "coreeval cassette"
VERSION: Literal[1] = 1
"""Version of the format; files with another version are not read."""
CassettePass = Literal["refresh", "control"]
"""The run's two passes over the samples, named after their stages."""


class CassetteOrigin(Value):
    """The versions of software that affect the bytes or the rules of the run."""

    coreeval: str
    python: str
    pyarrow: str
    spacy: str = ""
    """The spaCy version; empty if no role is played by rules."""


class CassetteFile(Value):
    """One Parquet file of the run's dataset."""

    name: Annotated[
        str, Field(pattern=r"^(updated|semantic|control|provenance)/[^/\\\x00]+\.parquet$")
    ]
    rows: int
    sha256: str
    columns: tuple[str, ...]


class TrainDigest(Value):
    """The train samples from which a label judge learned."""

    count: int
    sha256: str
    """sha256 over the sha256 of each sample's texts."""


class CassetteSettings(Value):
    """The settings that determine the dataset; paths are cut to names."""

    name: str
    task: str
    dataset: dict[str, Any]
    knowledge: dict[str, Any]
    run: dict[str, Any]
    safety: dict[str, Any]


class RecordedManifest(Manifest):
    """A run's manifest without costs, times, local paths and model details."""

    created_at: Literal[""] = ""
    models: dict[str, Any]
    """The player of each role."""

    @model_validator(mode="after")
    def _check_redacted(self) -> Self:
        """Refuse values that recordings never have, because a replay would act on them."""
        news = [self.knowledge, *([self.control.knowledge] if self.control else [])]
        stated = {
            "a config": self.source != ConfigSource(path="", sha256=""),
            "a workspace": bool(self.workspace or self.cassette),
            "targets to evaluate": self.evaluation is not None,
            "a cost": self.cost != Cost(),
            "a path to news": any(each.path is not None for each in news),
            "a path to a release": bool(self.parent and {"/", "\\"} & {*self.parent.path}),
        }
        for what, is_there in stated.items():
            if is_there:
                raise ValueError(f"it contains {what}, but a recording never does")
        return self


class CassetteHead(Value):
    """The first line of a cassette, which describes the rest."""

    format: Literal["coreeval cassette"] = FORMAT
    version: Literal[1] = VERSION
    made_with: CassetteOrigin
    run: RecordedManifest
    config: CassetteSettings
    models: dict[str, dict[str, Any]]
    """The player of each role with its parameters; without names of keys and other text."""
    texts: bool
    """Whether the samples' own texts are included."""
    snippet_chars: int | None
    """The most characters of a snippet, as shown to models; None if rules saw all of it."""
    learnt: TrainDigest | None = None
    files: tuple[CassetteFile, ...]
    lines: dict[str, int]
    """Number of lines of each kind."""
    bytes: int
    """Size of the unpacked lines after the head, in bytes."""
    sha256: str
    """sha256 of the unpacked lines after the head."""


class PromptLine(Value):
    """A prompt of a role, by its name."""

    kind: Literal["prompt"] = "prompt"
    role: PromptName
    text: str


class TaskLine(Value):
    """The task file, if it is the user's own."""

    kind: Literal["task"] = "task"
    yaml: str


class TakedownLine(Value):
    """The names and ids that must not be used."""

    kind: Literal["takedown"] = "takedown"
    entries: tuple[str, ...]


class NameLine(Value):
    """A name from the news, for roles played by rules."""

    kind: Literal["name"] = "name"
    stage: CassettePass
    entity: NamedEntity


class TrainLine(Value):
    """A labelled sample from which a label judge learned."""

    kind: Literal["train"] = "train"
    sample: Sample


class BadRowLine(Value):
    """A line of the benchmark that is not a valid sample."""

    kind: Literal["bad_row"] = "bad_row"
    row: BadRow


class QuotedEvidence(Value):
    """The part of a piece of evidence that a release quotes (`Excerpt`)."""

    evidence: Evidence
    snippet_sha256: str


class FinalResult(Value):
    """A result that a replay copies: of a sample kept from a release, or of a failed sample."""

    result: Result
    excerpts: tuple[QuotedEvidence, ...] = ()


class SampleLine(Value):
    """A sample of the benchmark, in the benchmark's order."""

    kind: Literal["sample"] = "sample"
    sample: Sample
    """The sample, without texts if the cassette has none."""
    texts_sha256: str
    """Digest of the sample's texts; see `texts_sha256` of releases."""
    stated: FinalResult | None = None
    control: FinalResult | None = None
    """The final result in the pass that writes the control arm; None if there is none."""


class EvidenceLine(Value):
    """A piece of news offered to samples."""

    kind: Literal["evidence"] = "evidence"
    stage: CassettePass
    evidence: Evidence


class NewsQuery(Value):
    """A news query, with the number of results."""

    text: str
    rung: Rung
    found: int
    why_none: str


class OfferLine(Value):
    """The news offered to a sample by one search."""

    kind: Literal["offer"] = "offer"
    stage: CassettePass
    sample_id: str
    attempt: int
    asked: tuple[NewsQuery, ...] | None
    """The queries; None in the record of an older version."""
    items: tuple[tuple[str, Rung], ...]
    """The ids of evidence, best first, each with the rung that found it."""


class AnswerLine(Value):
    """A model's answer in a role."""

    kind: Literal["answer"] = "answer"
    role: RoleName
    answer: dict[str, Any]
    """The line of a file for `replay:`."""


class RowLine(Value):
    """A row of a Parquet file, as digests of its cells."""

    kind: Literal["row"] = "row"
    file: str
    id: str
    cells: str
    """8 hexadecimal digits per column."""


CassetteLine = (
    PromptLine | TaskLine | TakedownLine | NameLine | TrainLine | BadRowLine | SampleLine
    | EvidenceLine | OfferLine | AnswerLine | RowLine
)  # fmt: skip
LINE: TypeAdapter[CassetteLine] = TypeAdapter(Annotated[CassetteLine, Field(discriminator="kind")])
KINDS: Sequence[str] = (
    "prompt", "task", "takedown", "name", "train", "bad_row", "sample", "evidence", "offer",
    "answer", "row",
)  # fmt: skip
"""The kinds of lines, in order."""


GZIP_LEVEL = 6
"""Compression level of gzip: its own default."""


@dataclass(frozen=True, kw_only=True)
class BodyTally:
    """The tally of the lines after the head."""

    lines: dict[str, int]
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CassetteSummary:
    """A summary of a written cassette."""

    path: Path
    head: CassetteHead
    digest: str
    bytes: int


_PACKED = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""How a cassette begins: it is packed without a name and a time."""


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
    refuse_foreign_output(path, _PACKED)
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
        with open_packed(path) as packed:
            packed.write(encode_line(head))
            shutil.copyfileobj(body, packed)
    return CassetteSummary(path=path, head=head, digest=hash_head(head), bytes=path.stat().st_size)


@contextmanager
def open_packed(path: Path) -> Iterator[BinaryIO]:
    """Open a cassette to write its lines; it replaces `path` if the block succeeds.

    The same lines give the same bytes.

    Raises:
        OSError: the file cannot be written.
    """
    with (
        replacing(path) as draft,
        draft.open("wb") as file,
        gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as packed,
    ):
        yield cast(BinaryIO, packed)


def hash_head(head: CassetteHead) -> str:
    """Return the digest of a cassette: the sha256 of its head, which covers the rest."""
    return hashlib.sha256(encode_line(head)).hexdigest()


def encode_line(line: Value) -> bytes:
    """Encode a head or line for the file, in ASCII so that any text can be written."""
    return json.dumps(line.model_dump(mode="json")).encode() + b"\n"
