"""Templates of HTML pages, which escape foreign text and show its invisible characters."""

from typing import TYPE_CHECKING

from coreeval.tools.text import visible_value

if TYPE_CHECKING:
    from jinja2 import Environment


def open_templates(
    package: str, *others: str, folder: str = "", lstrip_blocks: bool = False
) -> "Environment":
    """Return an environment for templates; an undefined name in a template is an error.

    Args:
        package: The package of the templates.
        others: Packages with further templates beside their modules.
        folder: The folder of the templates in `package`; by default they are beside its modules.
        lstrip_blocks: Whether blanks before a block are removed.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    own = PackageLoader(package, folder)
    return Environment(
        loader=ChoiceLoader([own, *(PackageLoader(each, "") for each in others)]),
        autoescape=True,
        finalize=visible_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=lstrip_blocks,
    )
