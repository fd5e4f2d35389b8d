"""What code decides before any judge is paid: spans, plans, texts and spacing (pilot §7)."""

from coreeval.agents.checks.composition import check_composition
from coreeval.agents.checks.extraction import clean_extraction
from coreeval.agents.checks.plan import check_plan
from coreeval.agents.checks.restraint import Restraint
from coreeval.agents.checks.rewrite import check_rewrite
from coreeval.agents.checks.spacing import restore_spacing

__all__ = [
    "Restraint",
    "check_composition",
    "check_plan",
    "check_rewrite",
    "clean_extraction",
    "restore_spacing",
]
