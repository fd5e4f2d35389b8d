"""The output of `coreeval prompts list|show|try`, as JSON and as text."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from coreeval.cli.output import Document, one_line
from coreeval.tools.tables import Table, numbers, text_lines, texts

WIDTH = 100
MADE_BY: Mapping[str, str] = {
    "sample": "the sample itself",
    "offline": "made by the offline rules, which play the earlier roles",
    "run": "from the run, on the sample's last attempt",
}
SENT: Mapping[bool | None, str] = {
    True: "the run sent exactly these messages",
    False: "the run sent different messages: the prompt, the task or CoreEval has changed since",
    None: "the messages of the run are unknown: rules played the role, its calls were deleted, "
    "or one call was about several texts",
}
EMPTY: tuple[object, ...] = ("", [], {}, None)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


# -- list -----------------------------------------------------------------------------------------


def list_lines(document: Document) -> Iterator[str]:
    """Yield a line for each prompt, then the location of the tasks' lines."""
    yield f"{'prompt':<28}{'version':<14}{'words':>6}{'~tokens':>9}  task lines (words)"
    for one in document["prompts"]:
        lines = ", ".join(f"{name} {line['words']}" for name, line in one["lines"].items())
        head = f"{one['name']:<28}{one['version']:<14}{one['words']:>6}{one['tokens']:>9}"
        yield f"{head}  {lines or 'none'}"
        yield f"{'':<28}{one['file']}: {' '.join('$' + name for name in one['variables'])}"


# -- show -----------------------------------------------------------------------------------------


def show_lines(document: Document, *, schema: bool) -> Iterator[str]:
    """Yield the exact messages to a model, after a few lines on their origin."""
    sample, prompt = document["sample"], document["prompt"]
    yield f"{document['role']} on {one_line(sample['id'])}   label: {sample['label_text']}"
    yield f"inputs: {MADE_BY[document['inputs']]}"
    if document["inputs"] == "run":
        yield f"        {SENT[document['sent']]}"
    line = f"with the line of {document['task']}: {prompt['version_with_line']}"
    yield f"prompt: {prompt['file']}, version {prompt['version']}; {line}"
    yield f"length: about {document['tokens']} tokens"
    for message in document["messages"]:
        yield _ruled_title(message["role"])
        yield message["content"]
    if schema:
        yield _ruled_title(f"schema of the answer: {document['schema']['name']}")
        yield json.dumps(document["schema"]["schema"], indent=2)


# -- try ------------------------------------------------------------------------------------------


def try_lines(document: Document) -> Iterator[str]:
    """Yield each sample with all variants' answers, then the totals in columns."""
    yield f"{document['role']}, task {document['task']}; inputs: {MADE_BY[document['inputs']]}"
    for letter, each in zip(LETTERS, document["contenders"], strict=False):
        yield f"{letter}: {each['name']} (wording {each['prompt']['version']})"
    for one in document["samples"]:
        sample = one["sample"]
        yield _ruled_title(f"{one_line(sample['id'])}, label {sample['label_text']}")
        for name, text in sample["fields"].items():
            yield from _wrap_line(f"{name}: {text}", "")
        for name, text in _text_under_judgement(one).items():
            yield from _wrap_line(f"judged {name}: {text}", "")
        for letter, trial in zip(LETTERS, one["trials"], strict=False):
            yield from _trial_lines(letter, trial)
    yield _ruled_title("totals")
    yield from _skipped_lines(document["passed_over"])
    yield from _sum_lines(document["totals"])


def _text_under_judgement(one: Document) -> Mapping[str, str]:
    """Return the text given to a judge, if it is not the sample's own."""
    fields: Mapping[str, str] = one["given"].get("fields", {})
    return {name: text for name, text in fields.items() if text != one["sample"]["fields"][name]}


def _trial_lines(letter: str, trial: Document) -> Iterator[str]:
    yield f"{letter}  {_cost(trial['calls'])}"
    if trial["answer"] is not None:
        yield from _answer_lines(trial["answer"])
    if trial["looked"]:
        yield from _assessment_lines("result", trial["looked"])
    for name, looked in trial["judged"].items():
        yield from _assessment_lines(name, looked)
    if trial["error"]:
        yield from _wrap_line(f"NOT  {trial['error']}")


def _assessment_lines(name: str, looked: Document) -> Iterator[str]:
    yield from _wrap_line(f"{'NOT' if looked['findings'] else 'ok '}  {name}: {looked['verdict']}")
    for finding in looked["findings"]:
        yield from _wrap_line(f"     {finding['check']}: {finding['message']}")


def _cost(calls: Sequence[Document]) -> str:
    sent = [call for call in calls if not call["cached"]]
    spent = sum(call["prompt_tokens"] + call["completion_tokens"] for call in sent)
    known = len(calls) - len(sent)
    parts = [f"{len(sent)} sent, {spent} tokens"] if sent else []
    return "; ".join([*parts, *([f"{known} from the store"] if known else [])]) or "no calls"


def _skipped_lines(missed: Sequence[Document]) -> Iterator[str]:
    if missed:
        first = missed[0]
        told = f"samples for which the role is not called, so skipped: {len(missed)}; the first:  "
        yield from _wrap_line(f"{told}{first['sample']}: {first['reason']}", "")


def _sum_lines(columns: Sequence[Document]) -> Iterator[str]:
    named = {
        "samples": "samples",
        "valid": "valid answers",
        "clean": "no problems found",
        "asked": "calls sent",
        "known": "calls answered from the store",
        "prompt_tokens": "tokens in",
        "completion_tokens": "tokens out",
        "paid_tokens": "tokens paid now",
    }
    rows = [(title, *(column[key] for column in columns)) for key, title in named.items()]
    for check in sorted({name for column in columns for name in column["checks"]}):
        rows.append((f"found {check}", *(column["checks"].get(check, 0) for column in columns)))
    letters = (numbers(letter, 9) for letter, _ in zip(LETTERS, columns, strict=False))
    yield from text_lines(Table((texts(width=22), *letters), rows))


# -- shared ---------------------------------------------------------------------------------------


def _ruled_title(title: str) -> str:
    return f"-- {title} ".ljust(WIDTH - 27, "-")


def _answer_lines(answer: Mapping[str, object]) -> Iterator[str]:
    """Yield an answer with one line per part, without empty parts."""
    for name, value in answer.items():
        if isinstance(value, Mapping):
            for key, text in value.items():
                yield from _wrap_line(f"{name}.{key}: {_format_value(text)}")
        elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
            for number, part in enumerate(value):
                yield from _wrap_line(f"{name}.{number}: {_format_value(part)}")
        elif value not in EMPTY:
            yield from _wrap_line(f"{name}: {_format_value(value)}")


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        if set(value) >= {"head", "relation", "tail"}:
            return " | ".join(str(value[part]) for part in ("head", "relation", "tail"))
        full = ((name, part) for name, part in value.items() if part not in EMPTY)
        return "; ".join(f"{name}: {_format_value(part)}" for name, part in full)
    return ", ".join(map(_format_value, value)) if isinstance(value, list) else str(value)


def _wrap_line(text: str, indent: str = "     ") -> list[str]:
    lines = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "     ")
    return lines or [indent]
