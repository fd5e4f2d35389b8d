"""Defects of a text, each with the point at which a retry should begin."""

from coreeval.schema import Defect


def form_defect(check: str, message: str) -> Defect:
    """Return a defect of form, for the composer to fix."""
    return Defect(check=check, kind="form", message=message, route="compose")


def fact_defect(check: str, message: str) -> Defect:
    """Return a defect for something that the composer added without evidence."""
    return Defect(check=check, kind="facts", message=message, route="compose")


def label_defect(check: str, message: str, *, replan: bool = False) -> Defect:
    """Return a defect of the gold, for the composer or, if another fact is needed, the replacer."""
    return Defect(
        check=check, kind="label", message=message, route="replace" if replan else "compose"
    )
