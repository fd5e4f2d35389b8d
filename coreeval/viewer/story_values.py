"""What a sample's story is made of."""

from datetime import datetime
from typing import Any, Literal

from coreeval.schema import Arm, Evidence, Result, Sample, TrainEnd, Value, Verdict
from coreeval.tools.text import DiffPiece

Source = Literal[
    "original", "extraction", "semantic", "evidence", "plan", "composed", "feedback"
]  # fmt: skip
"""What a step can be given; all but the original is what an earlier step made."""


class Said(Value):
    """One message of a request."""

    role: str
    content: str


class CallStory(Value):
    """One model call: what was asked, what came back, and what it cost."""

    key: str
    """Where the call store keeps it."""
    role: str
    model: str
    prompt: str
    """Name of the prompt; empty where the run knows none for the role."""
    prompt_version: str
    """Hash of its wording."""
    draw: int
    """0 for the plain question; further ones show a bad answer or ask once more."""
    cached: bool
    """Whether it was found in the call store, paid by another run; else it was billed."""
    gone: bool
    """Whether the call store no longer has it; then there are no messages and no answer."""
    parameters: dict[str, Any]
    """What it was asked with, such as the temperature; empty where it is gone."""
    messages: tuple[Said, ...]
    answer: str
    """The model's words as they came."""
    error: str
    """Why the answer is none; empty where it is one."""
    tries: tuple[str, ...]
    """Why earlier requests for it came to nothing, in their order."""
    method: str
    """How the model was asked to keep to the schema."""
    model_returned: str
    """What the endpoint says that answered."""
    finish_reason: str
    started_at: str
    """Empty where it is gone."""
    seconds: float
    prompt_tokens: int
    cached_tokens: int
    """Those of the prompt tokens that the provider had in its own cache."""
    completion_tokens: int
    usd: float | None
    """What the call cost whoever paid for it; None where the price is not known."""


class Given(Value):
    """Something that a step was given, told by where it stands in the story."""

    source: Source
    step: int | None
    """Number of the step that made it; None for the original."""
    evidence: tuple[str, ...] = ()
    """Ids of the news, where it is news."""


class StepStory(Value):
    """One node run for one attempt."""

    number: int
    """Its place in the story, from 0; steps are in the order in which they began."""
    node: str
    attempt: int
    """0 for what is done before the first attempt."""
    started_at: datetime
    ended_at: datetime
    seconds: float
    error: str
    """Why it came to no end; empty where it did."""
    given: tuple[Given, ...]
    did: dict[str, Any]
    """What it made, by the names of the graph's state."""
    verdicts: tuple[Verdict, ...]
    calls: tuple[CallStory, ...]


class ArmDiff(Value):
    """What differs between a text field in two arms, word by word."""

    before: Arm
    after: Arm
    field: str
    pieces: tuple[DiffPiece, ...]


class AttemptStory(Value):
    """One try at the updated text."""

    number: int
    """From 1."""
    steps: tuple[int, ...]
    """Numbers of its steps."""
    text: dict[str, str] | None
    """What was composed; None where it did not come to that."""
    diff: tuple[ArmDiff, ...]
    """What differs between the original and that."""
    verdicts: tuple[Verdict, ...]
    seconds: float


class SampleStory(Value):
    """All that is known of one sample in a run."""

    sample: Sample
    result: Result | None
    """None while it has not ended."""
    train_item: TrainEnd | None
    """What became of an item of the train split; None for a sample of the benchmark."""
    steps: tuple[StepStory, ...]
    attempts: tuple[AttemptStory, ...]
    evidence: dict[str, Evidence]
    """What it was offered and what its facts rest on, by id."""
    diffs: tuple[ArmDiff, ...]
    """Between the arms that it has: original to semantic, semantic to updated, original to
    updated."""
    seconds: float
    """Of all steps together."""
    billed_usd: float | None
    """What its calls cost this run; None where a billed one has no known price."""
    hidden: bool = False
    """Whether texts, prompts and answers are replaced by their lengths and hashes."""
