"""Checks by code before any judge is paid: of spans, plans, texts and spacing (pilot §7)."""

from coreeval.agents.checks.composition import check_composition
from coreeval.agents.checks.context import Restraint
from coreeval.agents.checks.form import restore_spacing
from coreeval.agents.checks.original import check_rewrite, clean_extraction
from coreeval.agents.checks.plan import check_plan

__all__ = [
    "Restraint",
    "check_composition",
    "check_plan",
    "check_rewrite",
    "clean_extraction",
    "restore_spacing",
]
