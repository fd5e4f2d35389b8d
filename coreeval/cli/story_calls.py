"""The calls of a step in words: who was asked what, and what came back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from coreeval.cli.story_texts import wrapped

if TYPE_CHECKING:
    from coreeval.viewer.history import CallHistory


def trouble(call: "CallHistory") -> str:
    """Tell what went wrong with a call before it brought an answer, and if it brought none."""
    told = [f"sent again: {reason}" for reason in call.tries]
    told += [f"no answer: {call.error}"] if call.error else []
    return f"{call.role}: {'; '.join(told)}" if told else ""


def call_lines(call: "CallHistory") -> Iterator[str]:
    """Yield a call with its messages and its answer."""
    yield from wrapped(_head(call))
    yield from wrapped(trouble(call))
    if call.gone:
        yield from wrapped("its words are no longer in the call store")
        return
    for message in call.messages:
        yield from _block(message.role, message.content)
    yield from _block("answer", call.answer)


def _head(call: "CallHistory") -> str:
    prompt = f", prompt {call.prompt} {call.prompt_version[:8]}" if call.prompt else ""
    tokens = f"{call.prompt_tokens} + {call.completion_tokens} tokens"
    usd = "unknown price" if call.usd is None else f"{call.usd:.6f} USD"
    paid = "known already" if call.cached else "billed"
    draw = f", draw {call.draw}" if call.draw else ""
    return (
        f"call {call.key[:12]} {call.role}: {call.model}{prompt}{draw}, {tokens}, {usd}, {paid}, "
        f"{call.seconds:.2f} s"
    )


def _block(title: str, text: str) -> Iterator[str]:
    """Yield a text with its own lines, each behind a bar so that none passes for one of ours."""
    yield f"    {title}"
    for line in text.splitlines():
        for part in wrapped(line) or [""]:
            yield f"    | {part.strip()}"
