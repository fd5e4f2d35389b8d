"""Asking before a variable of the environment is sent to an endpoint for the first time."""

import sys
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from coreeval.cli.output import note, one_line, plain
from coreeval.errors import UntrustedEndpoint

T = TypeVar("T")
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust-endpoints",
        help="Send keys and texts to the endpoints that the config names, without asking; it is "
        "remembered.",
    ),
]


def with_trusted_endpoints(trust: bool, work: Callable[[], T]) -> T:
    """Return what a piece of work returns, once a person has agreed to what it sends where.

    Args:
        trust: Whether that was agreed to on the command line.
        work: Raises UntrustedEndpoint before anything is written or sent; it is called again.

    Raises:
        UntrustedEndpoint: nobody has agreed, or nobody can be asked.
    """
    asked = set[tuple[str, str]]()
    while True:
        try:
            return work()
        except UntrustedEndpoint as error:
            new = set(error.pairs) - asked
            if error.record is None or not new or not (trust or _agrees(error)):
                raise
            asked |= new
            _remember(error)


def _agrees(error: UntrustedEndpoint) -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    note("The config names endpoints to which this workspace has sent nothing before:")
    for variable, origin in error.pairs:
        note(f"  {plain(one_line(variable))} would be sent to {plain(one_line(origin))}")
    return typer.confirm("Send it there from now on?", default=False, err=True)


def _remember(error: UntrustedEndpoint) -> None:
    from coreeval.tools.endpoints import EndpointPair
    from coreeval.tools.trust import TrustRecord

    assert error.record is not None, "only such errors are asked about"
    pairs = [EndpointPair(*pair) for pair in error.pairs]
    TrustRecord.at(error.record).trust_endpoints(pairs)
    for pair in pairs:
        note(f"remembered in {error.record}: {pair}")
