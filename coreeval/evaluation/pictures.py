"""Pictures as SVG or PNG files, chosen by the suffix; the same input gives the same bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.errors import UsageError
from coreeval.tools.extras import check_extra, require_extra
from coreeval.tools.files import replacing
from coreeval.tools.outputs import refuse_foreign_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS: Final = (".svg", ".png")
COLOURS: Final = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
"""Colours of Okabe and Ito's palette, which colour-blind readers can distinguish."""
_BOX = "\N{REPLACEMENT CHARACTER}"
_NAME = 28
"""The most characters drawn of a name."""


def require_picture(path: Path) -> None:
    """Check that a file can be drawn as a picture, before anything is computed.

    Raises:
        ReleaseError: the file is in a release.
        UsageError: the suffix is not .svg or .png, or matplotlib is not installed.
    """
    refuse_foreign_output(path)
    check_extra("plots", "matplotlib", "a picture", where=str(path))
    if path.suffix.lower() not in FORMATS:
        raise UsageError(
            f"cannot write a figure as {path.suffix or 'a file without an extension'}",
            where=str(path),
            hint=f"use a name ending in {' or '.join(FORMATS)}",
        )


@contextmanager
def open_figure(path: Path, width: float, height: float) -> "Iterator[Figure]":
    """Yield a figure of a size in inches, and write the file if the block ends without an error.

    Names are untrusted: a dollar sign does not start a formula, and a letter missing from the font
    is drawn as a box without a warning. The text of an SVG stays text, so the viewer chooses the
    font.
    """
    import warnings

    refuse_foreign_output(path)
    with require_extra("plots", "a picture", where=str(path)):
        from matplotlib import rc_context, rcParams
        from matplotlib.figure import Figure

    with rc_context(), warnings.catch_warnings():
        rcParams["text.parse_math"], rcParams["font.size"] = False, 9
        rcParams["svg.hashsalt"], rcParams["svg.fonttype"] = "coreeval", "none"
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        kind = path.suffix.lower().removeprefix(".")
        stamp = {"Date": None} if kind == "svg" else {"Software": None}
        with replacing(path) as draft:
            figure.savefig(draft, format=kind, dpi=150, metadata=stamp)


def shorten_name(name: str, most: int = _NAME) -> str:
    """Shorten a name to the space available and replace unprintable characters by boxes."""
    drawn = "".join(one if one.isprintable() else _BOX for one in " ".join(name.split()))
    return drawn if len(drawn) <= most else f"{drawn[: most - 1]}…"


def title_figure(figure: "Figure", title: str, left: int) -> None:
    """Set the title of a figure, with the number of items left out."""
    figure.suptitle(f"{title} (and {left} more)" if left > 0 else title, fontsize=10)
