"""The tokens that an endpoint says it has counted, checked where they are read."""

from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from coreeval.models.counts import ImpossibleCount, is_count


def usage_of(
    *, prompt: object, completion: object, cached: object = 0, written: object = 0
) -> UsageMetadata | ImpossibleCount:
    """Return counted tokens, or what is impossible about them.

    Args:
        prompt: All tokens of the prompt, the cached and written ones among them.
        completion: All tokens of the answer, hidden reasoning among them.
        cached: Those of the prompt that the provider had in its cache; None counts as 0.
        written: Those of the prompt that it was charged to put there; likewise.
    """
    said = {"prompt": prompt, "completion": completion, "cached": cached, "written": written}
    said |= {name: 0 for name in ("cached", "written") if said[name] is None}
    for name, value in said.items():
        if not is_count(value):
            return ImpossibleCount(f"{name} tokens: {str(value)[:40]!r}")
    total, answer, read, wrote = (int(value) for value in said.values())  # type: ignore[call-overload]
    if read + wrote > total:
        return ImpossibleCount(f"{read + wrote} of {total} prompt tokens cached or written")
    return UsageMetadata(
        input_tokens=total,
        output_tokens=answer,
        total_tokens=total + answer,
        input_token_details=InputTokenDetails(cache_read=read, cache_creation=wrote),
    )


def plus(*parts: object) -> object:
    """Return the sum of counts, None being 0; the first that is no count where there is one."""
    counted = [0 if part is None else part for part in parts]
    odd = next((part for part in counted if not is_count(part)), None)
    return sum(int(part) for part in counted) if odd is None else odd  # type: ignore[call-overload]
