"""Items of each kind, and what happened to them."""

from collections.abc import Sequence

from coreeval.agents.kinds import WrittenItem
from coreeval.agents.kinds.base import ItemCheck
from coreeval.schema import Evidence, Sample, Task
from coreeval.tasks import adapt_task
from coreeval.tasks.task_file import TaskFile, parse_task_file
from tests.agents.builders import news

NEWS = news(
    "Norvik opens a ferry line to Oslo",
    snippet="Norvik said that 14 ships sail from Bergen to Oslo. The line cost 5.2 million kroner.",
)


def task(kind: str, *fields: str, **more: object) -> Task:
    """Return a task of a kind with these fields."""
    said = {"name": "own", "kind": kind, "description": "A benchmark.", "fields": list(fields)}
    made = parse_task_file(said | more)
    assert isinstance(made, TaskFile), made
    return made.to_task()


CLOSED = task("answer", "question")
OPEN = task("answer", "context", "question")
SUMMARIES = task("summary", "document")


def choice(options: Sequence[str], right: str, question: str = "Who won the cup?") -> Sample:
    """Return a choice between these options."""
    named = dict(zip("ABCDEFGH", options, strict=False))
    return Sample(
        id="c1",
        split="test",
        fields={"question": question} | named,
        label="ABCDEFGH".index(right),
        label_text=right,
    )


def answer(answers: str, kind: str = "text", question: str = "Who came?", **more: str) -> Sample:
    """Return a question with accepted answers, one a line."""
    first = {"context": more.pop("context")} if "context" in more else {}
    ids = {"text": 0, "number": 1, "date": 2, "yes_no": 3}
    fields = first | {"question": question, "answers": answers} | more
    return Sample(id="a1", split="test", fields=fields, label=ids[kind], label_text=kind)


def summary(document: str, text: str) -> Sample:
    """Return a document with its summary."""
    fields = {"document": document, "summary": text}
    return Sample(id="s1", split="test", fields=fields, label=0, label_text="summary")


def written(
    of: Task, original: Sample, changes: dict[str, str], evidence: Sequence[Evidence] = (NEWS,)
) -> WrittenItem:
    """Return a new item with some fields of its original and others changed."""
    fields = original.fields | changes
    return WrittenItem(
        task=adapt_task(of, fields), sample=original, fields=fields, evidence=evidence
    )


def found(check: ItemCheck, item: WrittenItem) -> list[str]:
    """Return the names of the defects that a check finds."""
    return [defect.check for defect in check(item)]
