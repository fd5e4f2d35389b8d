"""Optional packages; a missing one is one error, with the pip command that installs its extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from coreeval.errors import UsageError


@contextmanager
def require_extra(
    extra: str,
    purpose: str,
    *,
    where: str = "",
    otherwise: str = "",
    error: type[UsageError] = UsageError,
) -> Iterator[None]:
    """Report which extra to install if the block imports a package that is missing.

    Args:
        extra: The name of the extra in `pip install 'coreeval[extra]'`.
        purpose: The feature that needs the package, as the subject of the message.
        where: The setting or file that requests it.
        otherwise: What to do instead of installing it, such as "remove doc from the list".
        error: The kind of error to raise.

    Raises:
        UsageError: a package is not installed; its class is `error`.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "coreeval").partition(".")[0] == "coreeval":
            raise
        raise missing_extra(
            extra, purpose, str(missing.name), where=where, otherwise=otherwise, error=error
        ) from None


def missing_extra(
    extra: str,
    purpose: str,
    package: str,
    *,
    where: str = "",
    otherwise: str = "",
    error: type[UsageError] = UsageError,
) -> UsageError:
    """Return the error for a missing package; the arguments are those of `require_extra`."""
    return error(
        f"{purpose} needs the {package} package, which is not installed",
        where=where,
        hint=f"pip install 'coreeval[{extra}]'" + (f", or {otherwise}" if otherwise else ""),
    )


def check_extra(extra: str, package: str, purpose: str, *, where: str = "") -> None:
    """Check early that a package is installed, without importing it.

    Raises:
        UsageError: the package is not installed.
    """
    if find_spec(package) is None:
        raise missing_extra(extra, purpose, package, where=where)
