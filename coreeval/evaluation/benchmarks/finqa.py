"""FinQA, as its authors publish it and as CAP's files have it."""

from dataclasses import replace
from hashlib import sha256

from coreeval.evaluation.benchmarks.item_files import Record
from coreeval.evaluation.benchmarks.item_rows import Entry

QUESTION = "Question:"
PROMPT = (
    "Read the report and answer the question on it.\n"
    "Report: {report}\nQuestion: {question}\nAnswer:"
)
"""Around an original record, which has no prompt of its own."""


def entry(record: Record) -> Entry | str:
    """Return what an item is made of: input and output as they stand, or an original record's."""
    if "qa" not in record.values:
        return _prepared(record)
    asked = record.values["qa"]
    if not isinstance(asked, dict) or not isinstance(asked.get("question"), str):
        return "qa has no question"
    parts = [_sentences(record.values.get(key)) for key in ("pre_text", "post_text")]
    table = _table(record.values.get("table_ori") or record.values.get("table"))
    if None in (*parts, table):
        return "pre_text, post_text or table is no list"
    report = "\n".join(filter(None, (parts[0], table, parts[1])))
    text = PROMPT.format(report=report, question=asked["question"])
    return Entry(
        input=text,
        output=_answer(asked),
        id=record.values.get("id"),
        cluster=record.values.get("filename") or _digest(report),
    )


def _prepared(record: Record) -> Entry:
    """The form of CAP's files; what stands before the question is the document."""
    made = Entry.of(record.values)
    report, question, _ = str(made.input).rpartition(QUESTION)
    return replace(made, cluster=_digest(report)) if question else made


def _digest(report: str) -> str:
    """Return a name for a document that has none: equal texts have the same."""
    return f"report {sha256(report.encode(errors='replace')).hexdigest()[:16]}"


def _answer(asked: dict[str, object]) -> str:
    """Return the answer as written; the computed one where none is."""
    written, computed = asked.get("answer"), asked.get("exe_ans")
    return str(written or ("" if computed is None else computed))


def _sentences(value: object) -> str | None:
    if not isinstance(value, list):
        return None
    return " ".join(text for text in map(str, value) if text.strip(" ."))


def _table(value: object) -> str | None:
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        return None
    return "\n".join(f"|{'|'.join(map(str, row))}|" for row in value)
