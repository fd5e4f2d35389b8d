"""Optional packages: a missing one is one error, with the pip line that installs its extra."""

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
    """Say which extra to install where the block imports a package that is not installed.

    Args:
        extra: The name of the extra in `pip install 'coreeval[extra]'`.
        purpose: What needs the package, as the subject of the message.
        where: The setting or file that asks for it.
        otherwise: What to do in place of installing it, such as "leave doc out of the backends".
        error: The kind of error to raise.

    Raises:
        UsageError: a package is not installed; of the kind `error`.
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
    """Return the error for a package that is not installed; the arguments are `require_extra`'s."""
    return error(
        f"{purpose} needs the package {package}, which is not installed",
        where=where,
        hint=f"pip install 'coreeval[{extra}]'" + (f", or {otherwise}" if otherwise else ""),
    )


def check_extra(extra: str, package: str, purpose: str, *, where: str = "") -> None:
    """Refuse at once what would need a missing package later, without importing the package.

    Raises:
        UsageError: the package is not installed.
    """
    if find_spec(package) is None:
        raise missing_extra(extra, purpose, package, where=where)
